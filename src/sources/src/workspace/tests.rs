use std::fs;

use super::*;

fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let beads = dir.path().join(BEADS_DIR);
    fs::create_dir(&beads).expect("created");
    for (name, text) in files {
        match name.strip_suffix('/') {
            Some(name) => fs::create_dir(beads.join(name)).expect("created"),
            None => fs::write(beads.join(name), text).expect("written"),
        }
    }
    dir
}

fn file_of(files: &[(&str, &str)]) -> String {
    match find(workspace(files).path()).expect("a workspace").source {
        BeadSource::Jsonl { path } => path,
        BeadSource::Command { argv } => argv.join(" "),
    }
}

#[test]
fn a_directory_without_beads_is_no_workspace() {
    let dir = tempfile::tempdir().expect("a directory");
    assert_eq!(find(dir.path()), None);
    fs::write(dir.path().join(BEADS_DIR), "").expect("written");
    assert_eq!(find(dir.path()), None);
}

#[test]
fn the_file_is_the_one_that_is_there() {
    let issues = ".beads/issues.jsonl";
    let legacy = r#"{"database":"beads.db","jsonl_export":"beads.jsonl"}"#;
    assert_eq!(file_of(&[]), issues);
    assert_eq!(file_of(&[("metadata.json", "half {")]), issues);
    assert_eq!(file_of(&[("beads.jsonl", "")]), ".beads/beads.jsonl");
    assert_eq!(file_of(&[("beads.jsonl", ""), ("issues.jsonl", "")]), issues);
    assert_eq!(
        file_of(&[("metadata.json", legacy), ("beads.jsonl", ""), ("issues.jsonl", "")]),
        ".beads/beads.jsonl"
    );
    assert_eq!(file_of(&[("metadata.json", legacy)]), ".beads/beads.jsonl");
    assert_eq!(file_of(&[("metadata.json", legacy), ("issues.jsonl", "")]), issues);
    assert_eq!(file_of(&[("metadata.json", r#"{"jsonl_export":"../../x.jsonl"}"#)]), issues);
}

#[test]
fn a_workspace_whose_truth_is_in_dolt_is_asked() {
    let ask = "bd list --all --limit 0 --json";
    assert_eq!(file_of(&[("metadata.json", r#"{"backend":"dolt"}"#), ("issues.jsonl", "")]), ask);
    assert_eq!(file_of(&[("metadata.json", r#"{"database":"dolt"}"#)]), ask);
    assert_eq!(file_of(&[("dolt/", "")]), ask);
    assert_eq!(file_of(&[("embeddeddolt/", "")]), ask);
    assert_eq!(file_of(&[("dolt/", ""), ("issues.jsonl", "")]), ".beads/issues.jsonl");
}

#[test]
fn the_prefix_is_the_most_common_one() {
    let ids = ["web-ui-1h3.5.2", "web-ui-1h3", "other-1", "web-ui-9.1", "nohyphen", "other-2.x"];
    let text = ids.map(|id| format!("{{\"id\":\"{id}\"}}\n")).concat();
    let prefix = |text: &str| find(workspace(&[("issues.jsonl", text)]).path()).expect("a workspace").prefix;
    assert_eq!(prefix(&text).as_deref(), Some("web-ui"));
    assert_eq!(prefix("{\"id\":\"b-1\"}\n{\"id\":\"a-1\"}\nbad\n").as_deref(), Some("a"));
    assert_eq!(prefix(""), None);
}
