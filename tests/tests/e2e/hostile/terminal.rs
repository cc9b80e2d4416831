//! Nothing that commands a terminal is printed by any command, whatever the texts of a town are.

use serde_json::json;
use yard_tests::town::Town;

/// Escapes, controls, overrides, and a title that would be one line too many.
const EVIL: &str =
    "\u{1b}[31mred\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}rtl\u{200b}\rback\u{8}\ntwo\tthree\u{85}four";

#[test]
fn no_command_prints_what_commands_a_terminal() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "4");
    town.set("retry.crash.max_attempts", "1");
    town.set("worker.agent", &json!(["sh", "-c", "cat >/dev/null; exit 3"]).to_string());
    town.set("alerts.command", &json!(["sh", "-c", "exit 1"]).to_string());
    town.run(["bead", "add", EVIL, "--id", "y-1", "--label", EVIL, "--description", EVIL]).ok();
    town.run(["bead", "add", EVIL, "--id", "y-2", "--type", "epic"]).ok();
    town.run(["bead", "add", EVIL, "--id", "y-3", "--parent", "y-2", "--needs", "y-1"]).ok();
    town.run(["bead", "add", EVIL, "--id", "y-4", "--", "printf", EVIL]).ok();
    town.run(["bead", "add", EVIL, "--id", "y-5", "--", &format!("no such {EVIL}")]).ok();
    town.run(["bead", "add", EVIL, "--id", "y-6"]).ok();
    town.run(["agent", "register", "fern", "--program", EVIL, "--skills", EVIL, "--model", EVIL]).ok();
    town.start_daemon();
    town.run(["convoy", "create", EVIL, "y-1", "y-3"]).ok();
    town.run(["sling", "y-1", "--args", EVIL]).ok();
    town.run(["sling", "y-4"]).ok();
    town.run(["sling", "y-5"]).ok();
    town.run(["sling", "y-6", "--assign", "fern"]).ok();
    town.await_state("y-1", "failed");
    town.await_state("y-4", "closed");
    town.run(["agent", "status", "blocked", "--as", "fern", "--note", EVIL]).ok();
    town.run(["bead", "close", "y-6", "--reason", EVIL]);
    town.run(["scheduler", "pause", "--reason", EVIL]).ok();
    let convoy = town.json(["convoy", "list"])["convoys"][0]["id"].as_str().expect("a convoy").to_owned();
    let commands: [&[&str]; 36] = [
        &["status"],
        &["scheduler", "status"],
        &["scheduler", "list"],
        &["scheduler", "run", "--dry-run"],
        &["scheduler", "recover", "--dry-run"],
        &["bead", "list"],
        &["bead", "list", "--all"],
        &["bead", "ready"],
        &["bead", "blocked"],
        &["bead", "show", "y-1"],
        &["show", "y-1"],
        &["show", "y-1@1"],
        &["show", "y-4@1"],
        &["show", "y-5"],
        &["show", "y-6"],
        &["show", &convoy],
        &["why", "y-1"],
        &["why", "y-3"],
        &["why", "y-5"],
        &["why", "y-6"],
        &["convoy", "list", "--all", "--tree"],
        &["convoy", "status", &convoy],
        &["convoy", "stranded"],
        &["convoy", "stage", "y-2"],
        &["events"],
        &["alerts", "--all"],
        &["forecast"],
        &["forecast", &convoy],
        &["agent", "list"],
        &["agent", "why"],
        &["agent", "inbox", "--as", "fern"],
        &["rig", "list"],
        &["config", "list"],
        &["doctor"],
        &["worktree", "list"],
        &["undo"],
    ];
    for words in commands {
        let ran = town.run(words);
        assert!(!super::has_controls(&ran.stdout), "{words:?} prints {:?}", ran.stdout);
        assert!(!super::has_controls(&ran.stderr), "{words:?} complains {:?}", ran.stderr);
    }
}

#[test]
fn no_refusal_quotes_what_commands_a_terminal() {
    let town = Town::new();
    for words in [
        &["show", EVIL][..],
        &["bead", "add", "t", "--id", EVIL],
        &["sling", EVIL],
        &["convoy", "launch", EVIL],
        &["config", "get", EVIL],
        &["config", "set", EVIL, EVIL],
        &["config", "set", "scheduler.batch_size", EVIL],
        &["help", EVIL],
        &[EVIL],
        &["status", EVIL],
        &["status", &format!("--{EVIL}")],
        &["wait", "y-1", "--timeout", EVIL],
        &["events", "--since", EVIL],
        &["--color", EVIL, "status"],
        &["--town", EVIL, "status"],
        &["bead", "import", EVIL],
        &["add", "--file", EVIL],
        &["completions", EVIL],
        &["man", EVIL],
    ] {
        let ran = town.run(words);
        assert_ne!(ran.code, 0, "{words:?} was taken");
        assert!(!super::has_controls(&ran.stdout) && !super::has_controls(&ran.stderr), "{words:?}: {ran:?}");
    }
}
