//! Taking commands back and doing them again, with the real program: the schedule, and the settings in the file.

use serde_json::json;
use yard_tests::town::{Town, wait_until};

const CAP: &str = "scheduler.max_polecats";

fn config(town: &Town) -> String {
    std::fs::read_to_string(town.root().join(".yardmaster/config.toml")).unwrap_or_default()
}

fn write_config(town: &Town, text: &str) {
    std::fs::write(town.root().join(".yardmaster/config.toml"), text).expect("the file can be written");
}

fn max(town: &Town) -> serde_json::Value {
    town.json(["scheduler", "status"])["capacity"]["max"].clone()
}

/// A bead whose program is not there.
fn broken(town: &Town) {
    town.run(["bead", "add", "no such tool", "--id", "y-1", "--", "./tool"]).ok();
    town.run(["sling", "y-1"]).ok();
    for _ in 0..3 {
        town.run(["scheduler", "run"]);
    }
    assert_eq!(town.state_of("y-1"), "circuit-broken");
}

#[test]
fn a_cap_is_taken_back_and_set_again_with_every_comment() {
    for served in [false, true] {
        let mut town = Town::here();
        let text = "# ours\n[scheduler]\n# five is plenty\nmax_polecats = 5 # for now\n";
        write_config(&town, text);
        if served {
            town.start_daemon();
        }
        town.run(["config", "set", CAP, "16"]).ok();
        assert_eq!((max(&town), config(&town)), (json!(16), text.replace("= 5", "= 16")));
        let undone = town.json(["undo"]);
        assert_eq!(undone["message"], "took back: config set scheduler.max_polecats 16");
        assert_eq!(
            (&undone["changed"], &undone["redo"]),
            (&json!(true), &json!("config set scheduler.max_polecats 16"))
        );
        assert_eq!((max(&town), config(&town)), (json!(5), text.to_owned()));
        assert_eq!(town.run(["redo"]).ok().stdout, "done again: config set scheduler.max_polecats 16\n");
        assert_eq!((max(&town), config(&town)), (json!(16), text.replace("= 5", "= 16")));
        town.run(["config", "unset", CAP]).ok();
        assert!(!config(&town).contains("five"));
        town.run(["undo"]).ok();
        assert_eq!(config(&town), text.replace("= 5", "= 16"));
    }
}

#[test]
fn a_cap_that_a_person_has_changed_since_is_left_alone() {
    let town = Town::here();
    town.set(CAP, "16");
    write_config(&town, "scheduler.max_polecats = 20 # mine\n");
    let undone = town.json(["undo"]);
    assert_eq!(undone["changed"], false);
    let said = undone["message"].as_str().unwrap_or_default();
    assert!(
        said.ends_with("scheduler.max_polecats is 20 in the config file by now, not 16; it is left alone"),
        "{said}"
    );
    assert_eq!(config(&town), "scheduler.max_polecats = 20 # mine\n");
    assert_eq!(town.refused(["redo"]), "nothing-to-redo");
}

#[test]
fn an_edit_that_was_taken_back_before_a_crash_is_taken_back_once() {
    // As if the daemon had been killed between the file and the log.
    let town = Town::here();
    town.set(CAP, "5");
    town.set(CAP, "16");
    write_config(&town, &config(&town).replace("16", "5"));
    assert_eq!(town.json(["undo"])["changed"], true);
    assert!(config(&town).contains("max_polecats = 5"));
    town.run(["undo"]).ok();
    assert_eq!(config(&town), "", "nothing was set at first");
    town.run(["redo"]).ok();
    town.run(["redo"]).ok();
    assert!(config(&town).contains("max_polecats = 16"));
}

#[test]
fn a_setting_can_be_changed_when_nobody_can_be_told() {
    let town = Town::here();
    std::fs::write(town.root().join(".yardmaster/journal.db"), "not a journal").expect("damaged");
    let set = town.run(["config", "set", CAP, "3"]).ok();
    assert!(set.stderr.contains("ym undo does not know of it"), "{}", set.stderr);
    assert!(config(&town).contains("max_polecats = 3"));
    assert_eq!(town.refused(["config", "set", CAP, "many"]), "bad-value");
}

#[test]
fn a_retry_is_taken_back_and_made_again() {
    let town = Town::local();
    town.set(CAP, "1");
    broken(&town);
    town.run(["scheduler", "retry", "y-1"]).ok();
    assert_eq!(town.state_of("y-1"), "queued");
    town.run(["undo"]).ok();
    assert_eq!(town.state_of("y-1"), "circuit-broken");
    assert_eq!(town.json(["show", "y-1"])["context"]["dispatch_failures"], 3);
    town.run(["redo"]).ok();
    assert_eq!(town.state_of("y-1"), "queued");
}

#[test]
fn what_cannot_be_taken_back_is_said_in_words() {
    let mut town = Town::new();
    town.set(CAP, "2");
    town.shell_bead("y-1", "sleep 1000");
    town.start_daemon();
    town.run(["sling", "y-1"]).ok();
    town.await_state("y-1", "running");
    town.run(["scheduler", "pause"]).ok();
    town.run(["kill", "y-1"]).ok();
    town.await_state("y-1", "cancelled");
    let said = town.run(["undo"]).ok().stdout;
    assert!(said.starts_with("\"kill y-1\" cannot be taken back: y-1@1 was told to stop"), "{said}");
    assert_eq!(town.json(["scheduler", "status"])["paused"], true);
    town.run(["undo"]).ok();
    assert_eq!(town.json(["scheduler", "status"])["paused"], false);
    town.run(["redo"]).ok();
    wait_until("paused again", || town.json(["scheduler", "status"])["paused"] == true);
    town.run(["scheduler", "resume"]).ok();
    assert_eq!(town.refused(["redo"]), "nothing-to-redo");
}
