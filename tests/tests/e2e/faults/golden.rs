//! Journals that earlier versions wrote open with this one and say the same. `tests/data/golden/make` made them, with the
//! program of their time; none is ever made again.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use yard_tests::town::Town;

fn archives() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/golden");
    let entries = std::fs::read_dir(folder).expect("the golden journals").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|it| it == "gz")).collect()
}

fn read(path: PathBuf) -> Vec<Value> {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The part of an answer that a newer program must give too: it may say more.
fn contains(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            old.iter().all(|(key, value)| new.get(key).is_some_and(|it| contains(it, value)))
        }
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| contains(new, old))
        }
        (new, old) => new == old,
    }
}

#[test]
fn journals_of_earlier_versions_say_the_same() {
    let archives = archives();
    assert!(!archives.is_empty());
    for archive in archives {
        let town = Town::here();
        let folder = town.root().join(".yardmaster");
        let golden = town.root().join("golden");
        std::fs::create_dir(&golden).expect("a directory");
        let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&golden).status();
        assert!(unpacked.is_ok_and(|it| it.success()), "{}", archive.display());
        for leftover in ["journal.db-tip", "journal.db-wal", "journal.db-shm"] {
            let _ = std::fs::remove_file(folder.join(leftover));
        }
        for file in ["journal.db", "config.toml"] {
            std::fs::copy(golden.join(file), folder.join(file)).expect("a copy");
        }
        town.run(["journal", "check"]).ok();
        let answers = [
            ("bead-list-all", vec!["bead", "list", "--all"]),
            ("convoy-list-all", vec!["convoy", "list", "--all"]),
            ("rig-list", vec!["rig", "list"]),
            ("agent-list", vec!["agent", "list"]),
            ("scheduler-status", vec!["scheduler", "status"]),
            ("scheduler-list", vec!["scheduler", "list"]),
            ("why-ytop", vec!["why", "y-top"]),
            ("why-ybranch", vec!["why", "y-branch"]),
            ("show-yspeaks", vec!["show", "y-speaks"]),
            ("events", vec!["events"]),
        ];
        let compare = |when: &str| {
            for (name, args) in &answers {
                let said = town.run(std::iter::once("--json").chain(args.iter().copied())).ok().stdout;
                let said: Vec<Value> =
                    said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
                let old = read(golden.join(format!("{name}.json")));
                // What happens after it is opened comes on top.
                assert!(said.len() >= old.len(), "{name} {when}: {} of {}", said.len(), old.len());
                for (said, old) in said.iter().zip(&old) {
                    assert!(contains(said, old), "{name} {when} of {}:\n{old}\n{said}", archive.display());
                }
            }
        };
        compare("as it is");
        // Its first writer brings it up to date.
        town.run(["bead", "add", "new", "--id", "y-new"]).ok();
        town.run(["journal", "check"]).ok();
        let events = town.events(None);
        let old = read(golden.join("events.json"));
        assert!(events.len() > old.len());
        assert!(old.iter().zip(&events).all(|(old, new)| contains(new, old)));
        assert_eq!(town.state_of("y-new"), "open");
    }
}
