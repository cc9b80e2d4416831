//! Convoys by the command line: staged, launched, fed, watched, recovered.

use std::fs;

use serde_json::{Value, json};
use yard_tests::town::{Town, wait_until};

/// Runs what is about workers with an executor.
macro_rules! by_executor {
    ($executor:literal) => {
        by_executor!($executor:
            a_staged_convoy_is_inert_and_a_launched_one_starts_its_first_wave_at_once,
            everything_a_close_unblocks_starts_in_the_turn_that_saw_it,
            adding_to_a_closed_convoy_opens_it_and_its_work_is_fed,
            only_convoys_that_are_really_stuck_are_stranded,
            recovery_shows_first_then_releases_what_dead_workers_left_and_feeds_it_again,
        );
    };
    ($executor:literal: $($name:ident),+ $(,)?) => {
        $(#[test] fn $name() { super::$name($executor); })+
    };
}

mod by_local {
    by_executor!("local");
}
mod by_slurm {
    by_executor!("slurm");
}
also_on_postgres!(
    a_staged_convoy_is_inert_and_a_launched_one_starts_its_first_wave_at_once("local"),
    everything_a_close_unblocks_starts_in_the_turn_that_saw_it("local"),
    errors_create_nothing_and_every_cycle_is_named_with_its_path,
    a_complete_convoy_closes_and_is_told_once_and_an_owned_one_waits_to_be_landed,
    adding_to_a_closed_convoy_opens_it_and_its_work_is_fed("local"),
    only_convoys_that_are_really_stuck_are_stranded("local"),
    recovery_shows_first_then_releases_what_dead_workers_left_and_feeds_it_again("local"),
);

fn native(town: &Town, id: &str, needs: &[&str], script: &str) {
    let mut args = vec!["bead", "add", id, "--id", id];
    for on in needs {
        args.extend(["--needs", on]);
    }
    args.extend(["--", "sh", "-c", script]);
    town.run(args).ok();
}

fn running(town: &Town) -> usize {
    town.json(["status"])["running"].as_array().map_or(0, Vec::len)
}

fn a_staged_convoy_is_inert_and_a_launched_one_starts_its_first_wave_at_once(executor: &str) {
    let mut town = Town::with_executor(executor);
    town.set("scheduler.max_polecats", "20");
    town.start_daemon();
    for i in 0..8 {
        native(&town, &format!("y-{i}"), &[], "sleep 1000");
    }
    native(&town, "y-last", &["y-0", "y-1"], "true");
    let tasks: Vec<String> = (0..8).map(|i| format!("y-{i}")).chain(["y-last".to_owned()]).collect();
    let staged = town.json(["convoy", "stage"].iter().copied().chain(tasks.iter().map(String::as_str)));
    assert_eq!(staged["status"], "staged:ready");
    assert_eq!(staged["critical_path"].as_array().map(Vec::len), Some(2));
    let convoy = staged["convoy_id"].as_str().expect("a convoy");
    town.run(["scheduler", "run"]).ok();
    assert_eq!(running(&town), 0);
    assert_eq!(town.reasons_of("y-0"), ["staged"]);
    assert_eq!(town.refused(["sling", convoy]), "staged");
    let launched = town.json(["convoy", "launch", convoy]);
    assert_eq!(launched["wave1"].as_array().map(Vec::len), Some(8));
    wait_until("the first wave runs", || running(&town) == 8);
    assert_eq!(town.json(["convoy", "status", convoy])["tracked"][8]["wave"], 2);
    assert_eq!(town.refused(["convoy", "launch", convoy]), "already-launched");
}

fn everything_a_close_unblocks_starts_in_the_turn_that_saw_it(executor: &str) {
    let mut town = Town::with_executor(executor);
    town.start_daemon();
    town.run(["bead", "add", "the blocker", "--id", "y-x", "--type", "decision"]).ok();
    let ids: Vec<String> = (0..10).map(|i| format!("y-{i}")).collect();
    for id in &ids {
        native(&town, id, &["y-x"], "sleep 1000");
    }
    town.run(["convoy", "create", "fan out"].into_iter().chain(ids.iter().map(String::as_str))).ok();
    town.run(["bead", "close", "y-x"]).ok();
    wait_until("all ten run", || running(&town) == 10);
    let events = town.events(None);
    let closed = events.iter().position(|e| e["type"] == "bead.closed").expect("the close");
    let at = events[closed]["at"].clone();
    let started = events.iter().filter(|e| e["type"] == "dispatch.started" && e["at"] == at);
    assert_eq!(started.count(), 10, "all at the time of the close");
}

#[test]
fn errors_create_nothing_and_every_cycle_is_named_with_its_path() {
    let town = Town::new();
    let beads = [
        json!({"id": "y-a", "title": "a", "dependencies": [{"depends_on_id": "y-b", "type": "blocks"}]}),
        json!({"id": "y-b", "title": "b", "dependencies": [{"depends_on_id": "y-a", "type": "blocks"}]}),
        json!({"id": "y-c", "title": "c", "dependencies": [{"depends_on_id": "y-d", "type": "blocks"}]}),
        json!({"id": "y-d", "title": "d", "dependencies": [{"depends_on_id": "y-c", "type": "waits-for"}]}),
        json!({"id": "y-e", "title": "e", "dependencies": [{"depends_on_id": "y-nobody", "type": "blocks"}]}),
    ];
    let lines: Vec<String> = beads.iter().map(Value::to_string).collect();
    let file = town.root().join("beads.jsonl");
    fs::write(&file, lines.join("\n")).expect("a file");
    town.run(["bead", "import", file.to_str().expect("utf-8")]).ok();
    let ran = town.run(["--json", "convoy", "stage", "y-a", "y-b", "y-c", "y-d", "y-e"]);
    assert_eq!(ran.code, 1);
    let plan = ran.json();
    assert_eq!((&plan["status"], &plan["convoy_id"]), (&json!("error"), &Value::Null));
    let errors = plan["errors"].as_array().expect("errors");
    let of = |category: &str| errors.iter().filter(|e| e["category"] == category).collect::<Vec<_>>();
    assert_eq!(of("cycle").len(), 2, "{errors:?}");
    assert!(of("missing-bead")[0]["message"].as_str().is_some_and(|m| m.contains("y-nobody")));
    assert_eq!(town.json(["convoy", "list", "--all"])["convoys"], json!([]));
    let text = town.run(["convoy", "stage", "y-a", "y-b"]);
    assert_eq!(text.code, 1);
    assert!(text.stdout.contains("y-a") && text.stdout.contains("cycle"), "{}", text.stdout);
}

#[test]
fn a_complete_convoy_closes_and_is_told_once_and_an_owned_one_waits_to_be_landed() {
    let mut town = Town::new();
    let told = town.root().join("told");
    let command = format!(r#"["sh", "-c", "cat >> {}"]"#, told.display());
    town.set("alerts.command", &command);
    town.start_daemon();
    native(&town, "y-a", &[], "true");
    native(&town, "y-b", &[], "true");
    let convoy = town.json(["convoy", "stage", "y-a", "--title", "of one"])["convoy_id"].clone();
    let convoy = convoy.as_str().expect("a convoy");
    town.run(["convoy", "watch", convoy, "--addr", "mayor/"]).ok();
    town.run(["convoy", "launch", convoy]).ok();
    wait_until("it is told", || fs::read_to_string(&told).is_ok_and(|text| text.contains(convoy)));
    let owned = town.json(["convoy", "create", "mine", "y-b", "--owned"])["id"].clone();
    let owned = owned.as_str().expect("a convoy");
    town.run(["convoy", "launch", owned]).ok();
    town.await_state("y-b", "closed");
    assert_eq!(town.json(["convoy", "status", owned])["status"], "open");
    town.run(["convoy", "land", owned]).ok();
    assert_eq!(town.json(["convoy", "status", owned])["status"], "closed");
    assert_eq!(town.refused(["convoy", "land", convoy]), "not-owned");
    town.stop_daemon();
    let said: Vec<Value> = fs::read_to_string(&told)
        .expect("told")
        .lines()
        .map(|line| serde_json::from_str(line).expect("an alert a line"))
        .collect();
    let about = |id: &str| said.iter().filter(|alert| alert["ids"][0] == id).collect::<Vec<_>>();
    assert_eq!(about(convoy).len(), 1, "{said:?}");
    assert_eq!(about(convoy)[0]["watchers"], json!(["mayor/"]));
    assert_eq!(about(owned).len(), 1, "{said:?}");
}

fn adding_to_a_closed_convoy_opens_it_and_its_work_is_fed(executor: &str) {
    let mut town = Town::with_executor(executor);
    town.start_daemon();
    native(&town, "y-a", &[], "true");
    native(&town, "y-b", &[], "sleep 1000");
    let convoy = town.json(["convoy", "create", "two steps", "y-a"])["id"].clone();
    let convoy = convoy.as_str().expect("a convoy");
    wait_until("it is complete", || town.json(["convoy", "status", convoy])["status"] == "closed");
    town.run(["convoy", "add", convoy, "y-b"]).ok();
    assert_eq!(town.json(["convoy", "status", convoy])["status"], "open");
    town.await_state("y-b", "running");
}

fn only_convoys_that_are_really_stuck_are_stranded(executor: &str) {
    let mut town = Town::with_executor(executor);
    town.set("retry.crash.max_attempts", "1");
    town.start_daemon();
    native(&town, "y-works", &[], "sleep 1000");
    native(&town, "y-fails", &[], "exit 3");
    native(&town, "y-waits", &["y-fails"], "true");
    town.run(["convoy", "create", "healthy", "y-works"]).ok();
    let stuck = town.json(["convoy", "create", "stuck", "y-fails", "y-waits"])["id"].clone();
    town.await_state("y-fails", "failed");
    let stranded = town.json(["convoy", "stranded"]);
    let convoys = stranded["convoys"].as_array().expect("a list");
    assert_eq!(convoys.len(), 1, "{stranded}");
    assert_eq!(convoys[0]["id"], stuck);
    let codes: Vec<&Value> = convoys[0]["stuck"]
        .as_array()
        .expect("beads")
        .iter()
        .map(|bead| &bead["reasons"][0]["code"])
        .collect();
    assert_eq!(codes, ["retries-exhausted", "blocked-by"]);
}

fn recovery_shows_first_then_releases_what_dead_workers_left_and_feeds_it_again(executor: &str) {
    let mut town = Town::with_executor(executor);
    native(&town, "y-a", &[], "sleep 1000");
    town.run(["bead", "update", "y-a", "--status", "in_progress", "--assignee", "bob"]).ok();
    town.set("recovery.stale_after", "0s");
    town.set("scheduler.safety_scan", "1s");
    town.run(["convoy", "create", "left behind", "y-a"]).ok();
    town.start_daemon();
    wait_until("the scan reports it", || town.json(["alerts"])["alerts"][0]["kind"] == "stale-hook");
    assert_eq!(
        town.reasons_of("y-a"),
        ["claimed-elsewhere"],
        "what somebody is said to be on is not taken by itself"
    );
    let shown = town.json(["scheduler", "recover", "--dry-run"]);
    assert_eq!(shown["findings"][0]["kind"], "stale-hook", "{shown}");
    assert_eq!(town.reasons_of("y-a"), ["claimed-elsewhere"], "a dry run changes nothing");
    let done = town.json(["scheduler", "recover"]);
    assert_eq!(done["findings"][0]["action"], "released", "{done}");
    town.await_state("y-a", "running");
    assert_eq!(town.json(["alerts"])["alerts"], json!([]));
}
