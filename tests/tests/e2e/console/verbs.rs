//! The operator's verbs, from the key to what becomes of the work.

use std::os::unix::fs::PermissionsExt as _;

use yard_tests::terminal::{NARROW, WIDE, nobody_is_left};
use yard_tests::town::wait_until;

use super::{at_both_sizes, beads, endless, first_row, live, select, stands, town_of, unfilter};

at_both_sizes!(
    an_epic_is_staged_launched_and_finished,
    a_pause_shows_who_and_why,
    what_was_cleared_comes_back,
    a_running_bead_gives_way_to_a_waiting_one,
    circuit_broken_work_is_found_explained_and_retried,
);

fn an_epic_is_staged_launched_and_finished(size: (u16, u16)) {
    let town = town_of(2);
    town.run(["bead", "add", "the epic", "--id", "y-epic", "--type", "epic"]).ok();
    for (id, needs) in [("y-1", &[][..]), ("y-2", &[]), ("y-3", &["y-1", "y-2"])] {
        let mut args = vec!["bead", "add", id, "--id", id, "--parent", "y-epic"];
        args.extend(needs.iter().flat_map(|needs| ["--needs", needs]));
        args.extend(["--", "sleep", "0.2"]);
        town.run(args).ok();
    }
    let mut terminal = live(&town, size);
    select(&terminal, "y-epic");
    terminal.press(&["s"]);
    terminal.shows("[e] epic y-epic the epic");
    terminal.press(&["e"]);
    terminal.shows("is staged: nothing has started");
    let convoys = town.json(["convoy", "list"]);
    let convoy = convoys["convoys"][0]["id"].as_str().expect("a convoy").to_owned();
    terminal.shows(&convoy);
    let plan = town.json(["convoy", "stage", &convoy]);
    for wave in plan["waves"].as_array().expect("waves") {
        let tasks = wave["tasks"].as_array().expect("tasks");
        let word = if tasks.len() == 1 { "1 bead".to_owned() } else { format!("{} beads", tasks.len()) };
        terminal.shows_row(&[&format!("wave {}", wave["number"]), &word]);
    }
    terminal.shows("no findings: it can go");
    assert!(town.events(Some("dispatch.started")).is_empty());
    terminal.press(&["L"]);
    terminal.shows(&format!("launch {convoy}?"));
    terminal.press(&["y"]);
    terminal.hides("nothing has started");
    unfilter(&terminal);
    for id in ["y-1", "y-2", "y-3"] {
        stands(&terminal, id, "closed");
    }
    terminal.press(&["2"]);
    terminal.shows_row(&["the epic", "closed"]);
    let all = town.json(["convoy", "list", "--all"]);
    let ours = all["convoys"].as_array().and_then(|all| all.iter().find(|c| c["id"] == convoy.as_str()));
    assert_eq!(ours.map(|c| c["status"].clone()), Some("closed".into()), "{all}");
    terminal.press(&["q"]);
    terminal.left_with(0);
    nobody_is_left(&town);
}

#[test]
fn what_cannot_be_staged_says_why_and_is_not_launched() {
    let town = town_of(2);
    let mut terminal = live(&town, NARROW);
    terminal.press(&["s"]);
    terminal.shows("[i] by id");
    terminal.press(&["i"]);
    terminal.shows("stage (epic, convoy or tasks):");
    terminal.type_text("y-nowhere");
    terminal.press(&["Enter"]);
    terminal.shows("y-nowhere");
    terminal.press(&["L"]);
    terminal.shows("no convoy is staged");
    assert_eq!(town.json(["convoy", "list", "--all"])["convoys"].as_array().map(Vec::len), Some(0));
    terminal.press(&["q"]);
    terminal.left_with(0);
}

#[test]
fn findings_are_seen_before_a_launch_that_goes_on_in_spite_of_them() {
    let mut town = town_of(2);
    town.start_daemon();
    town.run(["bead", "add", "the epic", "--id", "y-epic", "--type", "epic"]).ok();
    town.run(["bead", "add", "one", "--id", "y-1", "--parent", "y-epic", "--", "true"]).ok();
    town.run(["bead", "add", "two", "--id", "y-2", "--parent", "y-epic", "--needs", "y-1", "--", "true"])
        .ok();
    town.run(["bead", "add", "alone", "--id", "y-3", "--parent", "y-epic", "--", "true"]).ok();
    let mut terminal = live(&town, NARROW);
    select(&terminal, "y-epic");
    terminal.press(&["s"]);
    terminal.shows("[e] epic y-epic");
    terminal.press(&["e"]);
    terminal.shows_row(&["warning orphan", "y-3"]);
    let convoy = town.json(["convoy", "list"])["convoys"][0].clone();
    assert_eq!(convoy["status"], "staged:warnings");
    terminal.press(&["L"]);
    terminal.shows_row(&["$ ym convoy launch", "--force"]);
    terminal.press(&["Esc"]);
    terminal.hides("--force");
    assert!(town.events(Some("dispatch.started")).is_empty(), "Esc launches nothing");
    terminal.press(&["L"]);
    terminal.shows("--force");
    terminal.press(&["y"]);
    for id in ["y-1", "y-2", "y-3"] {
        town.await_state(id, "closed");
    }
    terminal.press(&["q"]);
    terminal.left_with(0);
}

fn a_pause_shows_who_and_why(size: (u16, u16)) {
    let mut town = town_of(1);
    town.start_daemon();
    let mut terminal = live(&town, size);
    terminal.press(&["p"]);
    terminal.shows("pause, because:");
    terminal.type_text("release day");
    terminal.press(&["Enter"]);
    terminal.until("who and why", |screen| first_row(screen).contains("PAUSED by tester: release day"));
    let scheduler = town.json(["status"])["scheduler"].clone();
    assert_eq!(
        (&scheduler["paused_by"], &scheduler["pause_reason"]),
        (&"tester".into(), &"release day".into())
    );
    endless(&town, "y-later");
    stands(&terminal, "y-later", "queued");
    terminal.press(&["p"]);
    terminal.until("it to go on", |screen| first_row(screen).contains("LIVE"));
    stands(&terminal, "y-later", "running");
    assert_eq!(town.json(["status"])["scheduler"]["paused"], false);
    // Somebody else's pause is shown as theirs.
    town.run(["scheduler", "pause", "--reason", "from the shell"]).ok();
    terminal.until("the other's reason", |screen| first_row(screen).contains("tester: from the shell"));
    terminal.press(&["q"]);
    terminal.left_with(0);
}

fn what_was_cleared_comes_back(size: (u16, u16)) {
    let mut town = town_of(1);
    town.start_daemon();
    endless(&town, "y-busy");
    town.await_state("y-busy", "running");
    endless(&town, "y-wait");
    let mut terminal = live(&town, size);
    stands(&terminal, "y-wait", "queued");
    select(&terminal, "y-wait");
    terminal.press(&["c"]);
    stands(&terminal, "y-wait", "open");
    assert_eq!(town.state_of("y-wait"), "open");
    terminal.press(&["z"]);
    stands(&terminal, "y-wait", "queued");
    assert_eq!(town.state_of("y-wait"), "queued");
    terminal.press(&["Z"]);
    stands(&terminal, "y-wait", "open");
    assert_eq!(town.state_of("y-wait"), "open", "redo clears it again");
    unfilter(&terminal);
    select(&terminal, "y-busy");
    terminal.press(&["c"]);
    terminal.shows("y-busy is running: this applies to beads that wait on the schedule");
    assert_eq!(town.state_of("y-busy"), "running");
    terminal.press(&["q"]);
    terminal.left_with(0);
}

fn a_running_bead_gives_way_to_a_waiting_one(size: (u16, u16)) {
    let mut town = town_of(1);
    town.start_daemon();
    endless(&town, "y-low");
    town.run(["bead", "add", "urgent", "--id", "y-high", "--", "sleep", "1000"]).ok();
    town.await_state("y-low", "running");
    town.run(["sling", "y-high"]).ok();
    let mut terminal = live(&town, size);
    stands(&terminal, "y-low", "running");
    stands(&terminal, "y-high", "queued");
    select(&terminal, "y-high");
    terminal.press(&["P"]);
    terminal.shows("who makes room for y-high?");
    terminal.shows("[1] y-low");
    terminal.press(&["1"]);
    unfilter(&terminal);
    stands(&terminal, "y-high", "running");
    stands(&terminal, "y-low", "preempt");
    assert_eq!((town.state_of("y-high"), town.state_of("y-low")), ("running".into(), "queued".into()));
    assert_eq!(town.json(["show", "y-low"])["context"]["crashes"], 0, "being pushed out is no failure");
    terminal.press(&["q"]);
    terminal.left_with(0);
    town.stop_daemon();
    nobody_is_left(&town);
}

#[test]
fn preempting_a_running_bead_asks_first() {
    let mut town = town_of(1);
    town.start_daemon();
    endless(&town, "y-one");
    town.await_state("y-one", "running");
    let mut terminal = live(&town, NARROW);
    select(&terminal, "y-one");
    terminal.press(&["P"]);
    terminal.shows("y-one gives way?");
    terminal.press(&["Esc"]);
    terminal.hides("gives way?");
    assert!(town.events(Some("dispatch.stop_requested")).is_empty(), "Esc leaves it alone");
    endless(&town, "y-two");
    terminal.press(&["P"]);
    terminal.shows("y-one gives way?");
    terminal.press(&["y"]);
    unfilter(&terminal);
    stands(&terminal, "y-two", "running");
    stands(&terminal, "y-one", "preempt");
    assert_eq!((town.state_of("y-two"), town.state_of("y-one")), ("running".into(), "queued".into()));
    terminal.press(&["q"]);
    terminal.left_with(0);
}

fn circuit_broken_work_is_found_explained_and_retried(size: (u16, u16)) {
    let mut town = town_of(1);
    town.start_daemon();
    let tool = town.root().join("tool");
    let program = tool.to_str().expect("utf-8");
    town.run(["bead", "add", "needs a tool", "--id", "y-fix", "--", program]).ok();
    town.run(["sling", "y-fix"]).ok();
    let mut terminal = live(&town, size);
    stands(&terminal, "y-fix", "BROKEN");
    assert_eq!(town.state_of("y-fix"), "circuit-broken");
    terminal.until("a problem in the header", |screen| first_row(screen).contains(" problem"));
    terminal.press(&["5"]);
    terminal.shows_row(&["BROKEN", "y-fix"]);
    terminal.press(&["w"]);
    terminal.shows("why y-fix needs a tool is not running");
    terminal.shows_row(&["breaker", "BLOCK"]);
    terminal.shows("ym scheduler retry y-fix");
    std::fs::write(&tool, "#!/bin/sh\nexit 0\n").expect("a file");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    terminal.press(&["Esc"]);
    terminal.hides("is not running");
    terminal.press(&["r"]);
    town.await_state("y-fix", "closed");
    terminal.press(&["1"]);
    stands(&terminal, "y-fix", "closed");
    terminal.until("no problem in the header", |screen| !first_row(screen).contains(" problem"));
    terminal.press(&["q"]);
    terminal.left_with(0);
    town.stop_daemon();
    nobody_is_left(&town);
}

#[test]
fn marked_beads_are_held_together_and_let_go_one_by_one() {
    let mut town = town_of(1);
    town.start_daemon();
    endless(&town, "y-busy");
    town.await_state("y-busy", "running");
    for id in ["y-a1", "y-a2", "y-b1"] {
        endless(&town, id);
    }
    let mut terminal = live(&town, WIDE);
    terminal.press(&["/"]);
    terminal.type_text("y-a");
    terminal.press(&["Enter"]);
    terminal.until("only those two", |screen| beads(screen) == ["y-a1", "y-a2"]);
    terminal.press(&["g", "Space", "Space"]);
    terminal.shows("2 beads marked");
    terminal.press(&["x"]);
    terminal.shows("act on 2 marked beads");
    terminal.press(&["h"]);
    terminal.shows("2 commands carried out");
    let held = |id: &str| town.reasons_of(id).contains(&"held".to_owned());
    assert!(held("y-a1") && held("y-a2") && !held("y-b1"));
    terminal.press(&["z"]);
    wait_until("one to be let go", || held("y-a1") != held("y-a2"));
    terminal.press(&["z"]);
    wait_until("both to be let go", || !held("y-a1") && !held("y-a2"));
    terminal.press(&["q"]);
    terminal.left_with(0);
}
