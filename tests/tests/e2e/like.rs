//! `ym bead ready|blocked --like br|bd` answers as those tools would. See tests/data/like for where the answers come from.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use yard_tests::town::Town;

#[test]
fn ready_and_blocked_are_as_br_and_bd_answer_them() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/like");
    let entries = fs::read_dir(&data).expect("the files").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    files.sort();
    assert!(files.len() >= 12, "{files:?}");
    for file in files {
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let town = Town::new();
        let project = town.root().join("project");
        fs::create_dir_all(project.join(".beads")).expect("a directory");
        fs::copy(&file, project.join(".beads/issues.jsonl")).expect("a copy");
        let prefix = if name == "beads-real" { "shop" } else { "syn" };
        let path = project.to_str().expect("utf-8");
        town.run(["rig", "add", "project", "--prefix", prefix, "--path", path]).ok();
        let answers = fs::read_to_string(file.with_extension("json")).expect("the answers");
        let answers: Value = serde_json::from_str(&answers).expect("JSON");
        for (tool, answers) in answers.as_object().expect("a tool each") {
            for question in ["ready", "blocked"] {
                let said = town.json(["bead", question, "--like", tool]);
                let beads = said["beads"].as_array().expect("a list");
                let said: Vec<&str> = beads.iter().filter_map(|bead| bead["id"].as_str()).collect();
                let expected: BTreeSet<&str> =
                    answers[question].as_array().expect("ids").iter().filter_map(Value::as_str).collect();
                assert_eq!(said.len(), expected.len(), "{name} {question} like {tool}: each once");
                assert_eq!(BTreeSet::from_iter(said), expected, "{name} {question} like {tool}");
            }
        }
    }
}
