//! A spawn delay spaces starts, wherever they come from, and what it puts off can still be stopped.

use std::process::Stdio;

use serde_json::json;
use yard_engine::Timestamp;
use yard_tests::town::{Town, wait_until};

fn delayed(delay: &str) -> Town {
    let town = Town::new();
    town.set("scheduler.max_polecats", "9");
    town.set("scheduler.spawn_delay", delay);
    for i in 1..=5 {
        town.shell_bead(&format!("y-{i}"), "true");
    }
    town
}

fn start_times(town: &Town) -> Vec<Timestamp> {
    let started = town.events(Some("dispatch.started"));
    started
        .iter()
        .map(|e| Timestamp::parse_rfc3339(e["at"].as_str().expect("a time")).expect("a time"))
        .collect()
}

fn are_spaced(times: &[Timestamp], millis: u128) {
    for pair in times.windows(2) {
        assert!(pair[1].since(pair[0]).as_millis() >= millis, "{times:?}");
    }
}

#[test]
fn starts_are_spaced_also_across_passes() {
    let mut town = delayed("200ms");
    town.start_daemon();
    for i in 1..=4 {
        town.run(["sling", &format!("y-{i}")]).ok();
    }
    town.run(["wait", "y-1", "y-2", "y-3", "y-4"]).ok();
    let times = start_times(&town);
    assert_eq!(times.len(), 4);
    are_spaced(&times, 200);
}

#[test]
fn a_pause_stops_what_the_delay_put_off() {
    let mut town = delayed("400ms");
    town.start_daemon();
    town.run(["sling", "y-1", "y-2", "y-3"]).ok();
    wait_until("the first to start", || !start_times(&town).is_empty());
    town.run(["scheduler", "pause"]).ok();
    let paused = town.events(Some("scheduler.paused"))[0]["seq"].as_u64();
    town.run(["hold", "y-3"]).ok();
    town.run(["wait", "y-1"]).ok();
    town.run(["scheduler", "resume"]).ok();
    town.run(["wait", "y-2"]).ok();
    let resumed = town.events(Some("scheduler.resumed"))[0]["seq"].as_u64();
    let started = town.events(Some("dispatch.started"));
    assert!(started.iter().all(|e| e["seq"].as_u64() < paused || e["seq"].as_u64() > resumed), "{started:?}");
    assert_eq!(town.reasons_of("y-3"), ["held"]);
}

#[test]
fn a_run_without_a_daemon_starts_its_whole_pass() {
    let town = delayed("150ms");
    town.run(["sling", "y-1", "y-2", "y-3"]).ok();
    let run = town.json(["scheduler", "run"]);
    assert_eq!(run["dispatched"].as_array().map(Vec::len), Some(3), "{run}");
    assert_eq!((&run["skipped"], &run["reason"]), (&json!(0), &json!("ready")));
    are_spaced(&start_times(&town), 150);
}

#[test]
fn a_passing_command_gives_others_their_answers_before_it_leaves() {
    let town = delayed("700ms");
    town.set("scheduler.max_polecats", "-1");
    let sling = |ids: &[&str]| {
        let mut command = town.command([&["--json", "sling"], ids].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ym runs")
    };
    let first = sling(&["y-1", "y-2"]);
    wait_until("it serves", || town.root().join(".yardmaster/ym.sock").exists());
    let second = sling(&["y-3", "y-4", "y-5"]);
    for child in [first, second] {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let results = answer["results"].as_array().expect("a list").clone();
        assert!(results.iter().all(|r| r["action"] == "dispatched"), "{answer}");
    }
}
