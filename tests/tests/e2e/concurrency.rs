//! Many at once: one context, no lost pause, one server.

use std::process::{Child, Stdio};

use serde_json::json;
use yard_tests::town::{Town, kill_nine, wait_until};

fn hundred_slings(town: &Town) {
    town.shell_bead("y-one", "true");
    let children: Vec<Child> = (0..100)
        .map(|_| {
            let mut command = town.command(["--json", "sling", "y-one"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ym runs")
        })
        .collect();
    let mut scheduled = 0;
    for child in children {
        let output = child.wait_with_output().expect("ym ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
        let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        match answer["results"][0]["action"].as_str() {
            Some("scheduled") => scheduled += 1,
            Some("already-scheduled") => {}
            other => panic!("unexpected action {other:?}"),
        }
    }
    assert_eq!(scheduled, 1);
    assert_eq!(town.events(Some("context.opened")).len(), 1);
}

#[test]
fn a_hundred_slings_of_one_bead_give_one_context_without_a_daemon() {
    let town = Town::new();
    town.set("scheduler.max_polecats", "5");
    hundred_slings(&town);
}

#[test]
fn a_hundred_slings_of_one_bead_give_one_context_with_a_daemon() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "5");
    town.start_daemon();
    town.run(["scheduler", "pause"]).ok();
    hundred_slings(&town);
}

#[test]
fn a_pause_while_a_pass_runs_is_never_lost() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.start_daemon();
    let items: Vec<String> =
        (0..300).map(|i| json!({"id": format!("y-{i}"), "argv": ["true"]}).to_string()).collect();
    town.run_with_input(["add", "--file", "-"], items.join("\n").as_bytes()).ok();
    for _ in 0..20 {
        let before = town.json(["scheduler", "status"])["queued_total"].as_u64().expect("a count");
        if before == 0 {
            break;
        }
        town.run(["scheduler", "pause"]).ok();
        let paused = town.events(Some("scheduler.paused")).last().cloned().expect("a pause");
        wait_until("running work to end", || town.json(["status"])["running"] == json!([]));
        assert_eq!(town.json(["scheduler", "status"])["paused"], true);
        let started = town.events(Some("dispatch.started"));
        let last = started.last().map_or(0, |e| e["seq"].as_u64().unwrap_or(0));
        assert!(last < paused["seq"].as_u64().expect("a seq"), "nothing starts after the pause");
        town.run(["scheduler", "resume"]).ok();
    }
}

#[test]
fn a_second_daemon_refuses_and_names_the_first() {
    // In a database it would stand by.
    let mut town = Town::here();
    let pid = town.start_daemon();
    let second = town.run(["--daemon"]);
    assert_eq!(second.code, 1);
    assert!(second.stderr.contains(&pid.to_string()), "{}", second.stderr);
}

#[test]
fn a_stale_lock_and_socket_never_block_a_start() {
    let mut town = Town::new();
    for _ in 0..3 {
        let pid = town.start_daemon();
        kill_nine(pid);
        town.kill_daemon();
        let folder = town.root().join(".yardmaster");
        assert!(folder.join("ym.sock").exists(), "the dead daemon's socket is still there");
    }
    town.run(["bead", "add", "works", "--", "true"]).ok();
    town.start_daemon();
}

#[test]
fn short_work_never_waits_for_a_long_run_while_a_slot_is_free() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.start_daemon();
    let short = |n: usize| json!({"id": format!("y-{n}"), "argv": ["true"]}).to_string();
    let long = json!({"id": "y-long", "argv": ["sleep", "1000"]}).to_string();
    let items: Vec<String> = (0..20).map(short).chain([long]).chain((20..40).map(short)).collect();
    town.run_with_input(["add", "--file", "-"], items.join("\n").as_bytes()).ok();
    wait_until("all short work to end", || town.events(Some("bead.closed")).len() == 40);
    assert_eq!(town.state_of("y-long"), "running");
    town.run(["kill", "y-long"]).ok();
    town.await_state("y-long", "cancelled");
}
