//! What an operator does: hold, priority, cancel, undo, pause with expiry; and adding work in bulk.

use serde_json::json;
use yard_tests::town::Town;

fn queued(town: &Town, ids: &[&str]) {
    town.set("scheduler.max_polecats", "1");
    for id in ids {
        town.shell_bead(id, "true");
    }
    town.run([&["sling"], ids].concat()).ok();
}

#[test]
fn priority_decides_who_starts_first() {
    let town = Town::new();
    queued(&town, &["y-1", "y-2", "y-3"]);
    town.run(["priority", "y-3", "80"]).ok();
    assert_eq!(town.json(["scheduler", "run"])["dispatched"][0]["id"], "y-3");
}

#[test]
fn held_work_waits_and_undo_takes_the_hold_back() {
    let town = Town::new();
    queued(&town, &["y-1"]);
    town.run(["hold", "y-1"]).ok();
    assert_eq!(town.reasons_of("y-1"), ["held"]);
    assert_eq!(town.json(["scheduler", "run"])["reason"], "none");
    let undone = town.run(["undo"]).ok();
    assert!(undone.stderr.contains("ym --daemon"), "nothing starts it by itself: {}", undone.stderr);
    assert_eq!(town.reasons_of("y-1"), Vec::<String>::new());
}

#[test]
fn undo_takes_back_clear_pause_priority_and_cancel() {
    let town = Town::new();
    queued(&town, &["y-1", "y-2"]);
    town.run(["scheduler", "clear"]).ok();
    town.run(["undo"]).ok();
    assert_eq!(town.json(["scheduler", "status"])["queued_total"], 2);
    town.run(["scheduler", "pause"]).ok();
    town.run(["undo"]).ok();
    assert_eq!(town.json(["scheduler", "status"])["paused"], false);
    town.run(["priority", "y-2", "99"]).ok();
    town.run(["undo"]).ok();
    assert_eq!(town.json(["show", "y-2"])["context"]["priority"], 50);
    town.run(["cancel", "y-1"]).ok();
    assert_eq!(town.state_of("y-1"), "cancelled");
    town.run(["undo"]).ok();
    assert_eq!(town.state_of("y-1"), "queued");
    let last = town.json(["undo"]);
    assert_eq!(last["message"], "took back: config set scheduler.max_polecats 1");
    assert_eq!(town.refused(["undo"]), "nothing-to-undo");
}

#[test]
fn a_pause_ends_by_itself() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "1");
    town.start_daemon();
    town.run(["scheduler", "pause", "--for", "300ms"]).ok();
    let id = town.run(["-q", "add", "--", "true"]).ok().stdout.trim().to_owned();
    assert_eq!(town.json(["wait", &id])["done"], json!([id]));
    assert_eq!(town.json(["scheduler", "status"])["paused"], false);
}

#[test]
fn add_takes_a_file_all_or_nothing() {
    let town = Town::new();
    town.set("scheduler.max_polecats", "1");
    let bad = r#"{"id":"y-a","argv":["true"]}
{"id":"y-b","argv":["true"],"after":["y-nope"]}"#;
    let refused = town.run_with_input(["--json", "add", "--file", "-"], bad.as_bytes());
    assert_eq!(refused.error_code(), "unknown-bead");
    let broken = town.run_with_input(["--json", "add", "--file", "-"], b"{\"argv\":[\"true\"]}\n{oops");
    assert_ne!(broken.code, 0);
    assert!(broken.stdout.contains("line 2"), "{}", broken.stdout);
    let cycle = r#"{"id":"y-a","argv":["true"],"after":["y-b"]}
{"id":"y-b","argv":["true"],"after":["y-a"]}"#;
    assert_eq!(town.run_with_input(["--json", "add", "--file", "-"], cycle.as_bytes()).error_code(), "cycle");
    assert_eq!(town.events(Some("bead")), Vec::<serde_json::Value>::new(), "nothing happened");
    let good = r#"{"id":"y-a","argv":["true"],"priority":90}
{"id":"y-b","argv":["true"],"after":["y-a"],"name":"second"}"#;
    town.run_with_input(["add", "--file", "-"], good.as_bytes()).ok();
    assert_eq!(town.json(["scheduler", "status"])["queued_ready"], 1);
}

#[test]
fn waiting_for_what_cannot_move_says_why() {
    let town = Town::new();
    queued(&town, &["y-1"]);
    town.run(["bead", "add", "never", "--id", "y-never"]).ok();
    town.run(["bead", "dep", "add", "y-1", "y-never"]).ok();
    let waited = town.run(["--json", "wait", "y-1"]);
    assert_eq!(waited.code, 1);
    let stuck = waited.json()["stuck"][0].clone();
    assert_eq!(stuck["id"], "y-1");
    assert_eq!(stuck["reasons"][0]["ids"], json!(["y-never"]));
}

#[test]
fn dependency_cycles_are_refused_with_their_path() {
    let town = Town::new();
    for id in ["y-1", "y-2", "y-3"] {
        town.shell_bead(id, "true");
    }
    town.run(["bead", "dep", "add", "y-1", "y-2"]).ok();
    town.run(["bead", "dep", "add", "y-2", "y-3"]).ok();
    let refused = town.run(["--json", "bead", "dep", "add", "y-3", "y-1"]);
    assert_eq!(refused.error_code(), "cycle");
    assert!(refused.stdout.contains("y-3 -> y-1 -> y-2 -> y-3"), "{}", refused.stdout);
}
