//! `ym bead ready|blocked --like br|bd` answers as those tools would. `src/engine/tests/data` holds what a real `br` was
//! asked and answered; tests/data/like holds files of a generator with its oracle's answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use yard_tests::town::Town;

/// A town whose only workspace is a copy of this file.
fn town_over(file: &Path, prefix: &str) -> Town {
    let town = Town::new();
    let project = town.root().join("project");
    fs::create_dir_all(project.join(".beads")).expect("a directory");
    fs::copy(file, project.join(".beads/issues.jsonl")).expect("a copy");
    let path = project.to_str().expect("utf-8");
    town.run(["rig", "add", "project", "--prefix", prefix, "--path", path]).ok();
    town
}

/// Compares what `ym` answers with ids, given as texts or as records.
fn answers(town: &Town, question: &str, tool: &str, expected: &Value) {
    let id = |bead: &Value| bead["id"].as_str().or(bead.as_str()).expect("an id").to_owned();
    let expected: BTreeSet<String> = expected.as_array().expect("a list").iter().map(id).collect();
    let said = town.json(["bead", question, "--like", tool]);
    let said: Vec<String> = said["beads"].as_array().expect("a list").iter().map(id).collect();
    assert_eq!(said.len(), expected.len(), "{question} like {tool}: each once");
    assert_eq!(BTreeSet::from_iter(said), expected, "{question} like {tool}");
}

fn json(path: PathBuf) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON")
}

#[test]
fn ready_and_blocked_are_what_the_real_br_answered() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/engine/tests/data");
    for (name, prefix) in [("beads-real", "shop"), ("layered-1000", "syn"), ("random-1000", "syn")] {
        let town = town_over(&data.join(format!("{name}.jsonl")), prefix);
        for question in ["ready", "blocked"] {
            answers(&town, question, "br", &json(data.join(format!("{name}.{question}.json"))));
        }
    }
}

#[test]
fn ready_and_blocked_agree_with_the_oracle_of_the_generator() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/like");
    let entries = fs::read_dir(&data).expect("the files").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    files.sort();
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        let town = town_over(&file, "syn");
        let oracle = json(file.with_extension("json"));
        for tool in ["br", "bd"] {
            for question in ["ready", "blocked"] {
                answers(&town, question, tool, &oracle[tool][question]);
            }
        }
    }
}
