//! The daemon dispatches by itself: at once, all that is ready, up to capacity.

use serde_json::json;
use yard_tests::town::{Town, wait_until};

#[test]
fn ten_beads_blocked_by_one_start_in_the_same_pass() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "20");
    town.run(["bead", "add", "the blocker", "--id", "y-gate"]).ok();
    for i in 0..10 {
        let id = format!("y-{i}");
        town.run(["bead", "add", &id, "--id", &id, "--needs", "y-gate", "--", "sleep", "1000"]).ok();
        town.run(["sling", &id]).ok();
        assert_eq!(town.reasons_of(&id), ["blocked-by"]);
    }
    town.start_daemon();
    town.run(["bead", "close", "y-gate"]).ok();
    wait_until("all ten to run", || {
        town.json(["status"])["running"].as_array().is_some_and(|r| r.len() == 10)
    });
    let events = town.events(None);
    let closed = events.iter().position(|e| e["type"] == "bead.closed").expect("the close");
    let next: Vec<&str> =
        events[closed + 1..=closed + 10].iter().filter_map(|e| e["type"].as_str()).collect();
    assert_eq!(next, ["dispatch.started"; 10], "they follow the close in the same commit");
    let times: Vec<&str> = events[closed..=closed + 10].iter().filter_map(|e| e["at"].as_str()).collect();
    assert!(times.iter().all(|t| *t == times[0]), "{times:?}");
}

#[test]
fn a_chain_runs_to_its_end_by_itself() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.start_daemon();
    let items: Vec<String> = (0..30)
        .map(|i| {
            let after = if i == 0 { vec![] } else { vec![format!("y-{}", i - 1)] };
            json!({"id": format!("y-{i}"), "argv": ["true"], "after": after}).to_string()
        })
        .collect();
    town.run_with_input(["add", "--file", "-"], items.join("\n").as_bytes()).ok();
    let waited = town.json(["wait", "--all"]);
    assert_eq!(waited["failed"], json!([]));
    assert_eq!(town.state_of("y-29"), "closed");
    let closed: Vec<String> = town
        .events(Some("bead.closed"))
        .iter()
        .map(|e| e["id"].as_str().unwrap_or_default().to_owned())
        .collect();
    let expected: Vec<String> = (0..30).map(|i| format!("y-{i}")).collect();
    assert_eq!(closed, expected, "in order");
}

#[test]
fn never_more_workers_than_configured_and_a_changed_config_is_taken_over() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.start_daemon();
    for _ in 0..6 {
        town.run(["add", "--", "sleep", "1000"]).ok();
    }
    let active = || town.json(["scheduler", "status"])["active_polecats"].as_u64().expect("a count");
    wait_until("two to run", || active() == 2);
    assert_eq!(town.json(["scheduler", "status"])["beads"][0]["reasons"][0]["code"], "capacity");
    town.set("scheduler.max_polecats", "4");
    wait_until("four to run", || active() == 4);
    let bad = town.root().join(".yardmaster/config.toml");
    std::fs::write(&bad, "[scheduler]\nmax_polecats = \"many\"\n").expect("a file");
    wait_until("an alert", || town.json(["status"])["alerts"].as_array().is_some_and(|a| !a.is_empty()));
    assert_eq!(town.json(["scheduler", "status"])["capacity"]["max"], 4, "a bad value keeps the old one");
}

#[test]
fn stopping_drains_and_requeues_what_ran() {
    let mut town = Town::local();
    town.set("scheduler.max_polecats", "2");
    town.start_daemon();
    let id = town.run(["-q", "add", "--", "sleep", "1000"]).ok().stdout.trim().to_owned();
    town.await_state(&id, "running");
    town.stop_daemon();
    assert_eq!(town.state_of(&id), "queued", "it will start again");
    assert_eq!(town.json(["show", &id])["context"]["crashes"], 0, "and nothing was counted");
    let ended = town.events(Some("dispatch.ended"));
    assert_eq!(ended[0]["outcome"]["reason"], "graceful_shutdown");
}

#[test]
fn a_cancel_during_a_drain_is_not_lost() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.set("limits.kill_grace", "30s");
    town.start_daemon();
    let ready = town.root().join("ready");
    let script = format!("trap '' TERM; touch '{}'; sleep 1000; sleep 1000", ready.display());
    let id = town.run(["-q", "add", "--", "sh", "-c", &script]).ok().stdout.trim().to_owned();
    wait_until("it to ignore SIGTERM", || ready.exists());
    let mut stop = town.command(["stop", "--timeout", "60s"]).spawn().expect("ym runs");
    wait_until("the drain", || !town.events(Some("dispatch.stop_requested")).is_empty());
    let refused = town.run(["--json", "scheduler", "run"]);
    assert_eq!(refused.error_code(), "draining");
    town.run(["kill", &id]).ok();
    assert!(stop.wait().expect("it ends").success());
    assert_eq!(town.state_of(&id), "cancelled");
}

#[test]
fn work_added_by_a_worker_without_a_daemon_waits_and_is_not_killed_with_it() {
    let town = Town::new();
    let ym = yard_tests::town::ym_binary();
    let go = town.root().join("go");
    let wait = format!("while [ ! -e '{}' ]; do sleep 0.01; done", go.display());
    let added = town.root().join("added");
    let script =
        format!("{wait}; '{}' -q add --name inner -- true; touch '{}'", ym.display(), added.display());
    let outer = town.run(["-q", "add", "--", "sh", "-c", &script]).ok().stdout.trim().to_owned();
    // Only now: before, the command that started the outer one could still serve, and start the inner one itself.
    std::fs::write(&go, "").expect("a file");
    wait_until("the inner one to be added", || added.exists());
    town.run(["wait", &outer]).ok();
    let inner = town.json(["bead", "list"])["beads"][0].clone();
    assert_eq!((&inner["title"], &inner["state"]), (&json!("inner"), &json!("queued")), "{inner}");
    assert!(town.run(["logs", &outer]).ok().stdout.contains("ym --daemon"), "and it said so");
}

#[test]
fn a_hung_shim_is_killed_although_the_safety_scan_looks_often() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.set("scheduler.safety_scan", "200ms");
    town.set("limits.kill_grace", "500ms");
    town.start_daemon();
    let id = town.run(["-q", "add", "--", "sleep", "1000"]).ok().stdout.trim().to_owned();
    let pid = || town.json(["status"])["running"][0]["pid"].as_u64();
    wait_until("it runs", || pid().is_some());
    let shim = yard_tests::town::parent_of(pid().expect("a pid") as u32).expect("a shim");
    let shim = nix::unistd::Pid::from_raw(shim as i32);
    nix::sys::signal::kill(shim, nix::sys::signal::Signal::SIGSTOP).expect("it can be stopped");
    town.run(["cancel", &id]).ok();
    town.await_state(&id, "cancelled");
}

#[test]
fn stop_can_leave_workers_running() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.start_daemon();
    let id = town.run(["-q", "add", "--", "sleep", "1000"]).ok().stdout.trim().to_owned();
    town.await_state(&id, "running");
    let running = || town.json(["status"])["running"][0]["pid"].as_u64();
    wait_until("its program to run", || running().is_some());
    let pid = running().expect("a pid") as u32;
    town.run(["stop", "--leave-running"]).ok();
    assert!(yard_tests::town::is_alive(pid));
    town.run(["cancel", &id]).ok();
    wait_until("it to be gone", || !yard_tests::town::is_alive(pid));
    town.await_state(&id, "cancelled");
}

#[test]
fn failed_starts_are_tried_again_until_the_breaker_opens() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.start_daemon();
    town.run(["add", "--name", "x", "--", "/no/such/program"]).ok();
    let waited = town.run(["--json", "wait", "--all"]);
    assert_eq!(waited.code, 1);
    let failed = waited.json()["failed"][0].as_str().expect("an id").to_owned();
    assert_eq!(town.state_of(&failed), "circuit-broken");
    assert_eq!(town.events(Some("context.start_failed")).len(), 3);
}

#[test]
fn a_rig_is_woken_once_after_a_pass_that_gave_it_work() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "5");
    let log = town.root().join("woken");
    let wake = json!(["sh", "-c", format!("echo \"$YM_RIG\" >> '{}'", log.display())]).to_string();
    let rig = town.json(["rig", "list"])["rigs"][0]["name"].as_str().expect("a name").to_owned();
    town.set(&format!("rig.{rig}.wake"), &wake);
    for id in ["y-a", "y-b", "y-c"] {
        town.shell_bead(id, "true");
    }
    town.run(["sling", "y-a", "y-b", "y-c"]).ok();
    town.start_daemon();
    town.run(["wait", "--all"]).ok();
    wait_until("the wake command", || log.exists());
    assert_eq!(std::fs::read_to_string(&log).expect("a file"), format!("{rig}\n"));
}

#[test]
fn a_changed_config_is_in_force_for_the_next_command_and_a_missing_one_changes_nothing() {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "1");
    town.start_daemon();
    let cap = || town.json(["scheduler", "status"])["capacity"]["max"].clone();
    town.set("scheduler.max_polecats", "3");
    assert_eq!(cap(), 3);
    let config = town.root().join(".yardmaster/config.toml");
    let aside = town.root().join("aside.toml");
    std::fs::rename(&config, &aside).expect("moved away");
    assert_eq!(cap(), 3, "the cap does not fall with the file");
    assert_eq!(town.json(["alerts"])["alerts"][0]["kind"], "config");
    std::fs::rename(&aside, &config).expect("moved back");
    assert_eq!((town.json(["alerts"])["alerts"].clone(), cap()), (json!([]), json!(3)));
}
