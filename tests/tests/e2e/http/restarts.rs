//! Tasks and the end of the daemon: nothing that was acknowledged is lost, nothing that was sent is sent again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::json;
use yard_tests::http::{Http, Peer};
use yard_tests::town::wait_until;

use super::{Slow, click, paused, serving};

// D4
#[test]
fn tasks_results_and_counts_survive_kill_nine() {
    let peer = Peer::start(|_| (200, "{\"ok\": 1}".to_owned()));
    let (mut town, http) = serving(&[("executor.http.base_url", &peer.url())]);
    let done = http.submit(&click("a"));
    http.await_state(&done, "done");
    town.run(["scheduler", "pause"]).ok();
    let waits = http.submit(&json!({"agentId": "a", "action": "x", "tabId": "t", "priority": 3}));
    let before = (http.task(&done), http.get("/scheduler/stats").json());
    town.kill_daemon();
    town.start_daemon();
    let http = Http::of(&town);
    assert_eq!((http.task(&done), http.get("/scheduler/stats").json()), before);
    assert_eq!(http.task(&waits)["state"], "queued");
    town.run(["scheduler", "resume"]).ok();
    http.await_state(&waits, "done");
    assert_eq!(peer.asked().len(), 2);
}

#[test]
fn an_action_under_way_in_a_crash_fails_with_its_outcome_unknown() {
    let slow = Slow::start();
    let peer = &slow.peer;
    let (mut town, http) = serving(&[("executor.http.base_url", &peer.url())]);
    let id = http.submit(&json!({"agentId": "a", "action": "pay", "tabId": "t", "maxAttempts": 5}));
    peer.await_asked(1);
    town.kill_daemon();
    town.start_daemon();
    let http = Http::of(&town);
    let ended = http.await_state(&id, "failed");
    assert!(ended["error"].as_str().expect("words").starts_with("outcome unknown"), "{ended}");
    let next = http.submit(&click("b"));
    peer.await_asked(2);
    assert_eq!(http.task(&next)["state"], "running");
    let payments = peer.asked().iter().filter(|asked| asked.json()["kind"] == "pay").count();
    assert_eq!(payments, 1, "never sent again");
}

// D3
#[test]
fn a_stop_waits_for_what_runs_and_leaves_what_waits() {
    let slow = Slow::start();
    let peer = &slow.peer;
    let (mut town, http) = serving(&[("executor.http.base_url", &peer.url()), ("http.max_inflight", "1")]);
    let runs = http.submit(&click("a"));
    let waits = http.submit(&click("a"));
    peer.await_asked(1);
    let mut stop = town.command(["stop"]).spawn().expect("it can be run");
    wait_until("the daemon drains", || {
        let log = std::fs::read_to_string(town.root().join("daemon.log")).unwrap_or_default();
        log.contains("draining")
    });
    slow.let_go();
    assert!(stop.wait().expect("it ends").success());
    town.kill_daemon();
    assert_eq!(peer.asked().len(), 1, "the backlog was not run");
    town.run(["scheduler", "pause"]).ok();
    town.start_daemon();
    let http = Http::of(&town);
    assert_eq!(http.task(&runs)["state"], "done");
    assert_eq!(http.task(&waits)["state"], "queued");
}

#[test]
fn a_stop_ends_what_takes_too_long() {
    let slow = Slow::start();
    let peer = &slow.peer;
    let (mut town, http) = serving(&[("executor.http.base_url", &peer.url())]);
    let id = http.submit(&click("a"));
    peer.await_asked(1);
    town.run(["stop", "--timeout", "100ms"]).ok();
    town.kill_daemon();
    town.start_daemon();
    let ended = Http::of(&town).task(&id);
    assert!(ended["error"].as_str().expect("words").starts_with("outcome unknown"), "{ended}");
}

#[test]
fn results_are_gone_when_their_time_is_up() {
    let (town, http) = serving(&[("results.ttl", "2s")]);
    let params = json!({"command": "echo hello"});
    let by_formula =
        http.submit(&json!({"agentId": "a", "action": "x", "formula": "shell", "params": params}));
    http.await_state(&by_formula, "done");
    let log = town.root().join(format!(".yardmaster/logs/{by_formula}@1.log"));
    assert!(log.exists());
    town.run(["scheduler", "pause"]).ok();
    let id = http.submit(&click("a"));
    let waits = http.submit(&click("a"));
    http.post(&format!("/tasks/{id}/cancel"), &json!({}));
    wait_until("it is forgotten", || http.get(&format!("/tasks/{id}")).status == 404);
    assert_eq!(http.task(&waits)["state"], "queued");
    wait_until("what it wrote is gone too", || !log.exists());
    assert_eq!(town.refused(["show", &id]), "unknown-bead");
    assert_eq!(http.get("/scheduler/stats").json()["metrics"]["tasksCancelled"], 1);
}

/// Whom a peer has been asked by, and how far it got.
#[derive(Default)]
struct Queue {
    asked: usize,
    answered: usize,
    most_at_once: usize,
}

/// Ten thousand tasks of a hundred agents, with a `kill -9` in the middle. D10: each has an id of its own.
#[test]
fn ten_thousand_tasks_of_a_hundred_agents_are_each_done_once() {
    const AGENTS: usize = 100;
    const EACH: usize = 100;
    // Answers in the order in which it was asked, so that no agent's task takes longer than another's.
    let queue = Arc::new((Mutex::new(Queue::default()), Condvar::new()));
    let theirs = Arc::clone(&queue);
    let peer = Peer::start(move |_| {
        let (queue, turn) = &*theirs;
        let mut now = queue.lock().expect("not poisoned");
        let ticket = now.asked;
        now.asked += 1;
        now.most_at_once = now.most_at_once.max(now.asked - now.answered);
        let mut now = turn.wait_while(now, |now| now.answered < ticket).expect("not poisoned");
        now.answered += 1;
        turn.notify_all();
        (200, "1".to_owned())
    });
    let (mut town, http) = paused(&[
        ("executor.http.base_url", &peer.url()),
        ("http.max_queue", "100000"),
        ("http.max_per_agent", "1000"),
        ("http.max_inflight", "20"),
        ("http.max_per_agent_inflight", "3"),
    ]);
    let deadline = "2126-01-01T00:00:00Z";
    let mut acknowledged: BTreeMap<String, String> = BTreeMap::new();
    for agent in 0..AGENTS {
        let name = format!("agent-{agent}");
        for half in 0..EACH / 50 {
            let item =
                |nth: usize| json!({"action": format!("{half}.{nth}"), "tabId": "t", "deadline": deadline});
            let tasks: Vec<_> = (0..50).map(item).collect();
            let answer = http.post("/tasks/batch", &json!({"agentId": name, "tasks": tasks})).json();
            for task in answer["tasks"].as_array().expect("a list") {
                assert_eq!(task["state"], "queued");
                acknowledged.insert(task["taskId"].as_str().expect("an id").to_owned(), name.clone());
            }
        }
    }
    assert_eq!(acknowledged.len(), AGENTS * EACH);
    town.run(["scheduler", "resume"]).ok();
    // More come in until the daemon is gone: what was answered counts, whatever else arrived.
    let late: Vec<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|nth| {
                let task = json!({"agentId": format!("late-{nth}"), "action": "x", "tabId": "t", "deadline": deadline});
                scope.spawn({
                    let (http, task) = (http.clone(), task.to_string());
                    move || {
                        let send = || http.try_send("POST", "/tasks", &[], task.as_bytes());
                        let answers = std::iter::from_fn(|| send().ok().filter(|answer| answer.status == 202));
                        answers
                            .map(|answer| answer.json()["taskId"].as_str().expect("an id").to_owned())
                            .collect::<Vec<_>>()
                    }
                })
            })
            .collect();
        peer.await_asked(AGENTS * EACH / 3);
        town.kill_daemon();
        writers.into_iter().flat_map(|writer| writer.join().expect("it ends")).collect()
    });
    assert!(!late.is_empty());
    town.start_daemon();
    let http = Http::of(&town);
    wait_until("everything has ended", || {
        let queue = http.get("/scheduler/stats").json()["queue"].clone();
        queue["totalQueued"] == 0 && queue["totalInflight"] == 0
    });
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut unknown = 0;
    let mut cursor = String::new();
    loop {
        let page = http.get(&format!("/tasks?limit=1000{cursor}")).json();
        for task in page["tasks"].as_array().expect("a list") {
            match task["state"].as_str().expect("a state") {
                "done" => {}
                "failed" => {
                    assert!(task["error"].as_str().expect("words").starts_with("outcome unknown"), "{task}");
                    unknown += 1;
                }
                other => panic!("{other}: {task}"),
            }
            let id = task["taskId"].as_str().expect("an id").to_owned();
            assert!(seen.insert(id.clone()), "{id} is there twice");
            if task["agentId"].as_str().is_some_and(|agent| agent.starts_with("late-")) {
                continue;
            }
            assert!(found.insert(id, task["agentId"].as_str().expect("an agent").to_owned()).is_none());
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, acknowledged, "every acknowledged task is there, once");
    assert!(late.iter().all(|id| seen.contains(id)), "also those that came in around the crash");
    assert!(unknown <= 20, "only what was under way in the crash is unknown, not {unknown}");
    // Each request that arrived was one task: none was sent twice.
    let asked = peer.asked();
    let sent: Vec<(String, String)> = asked
        .iter()
        .filter(|asked| !asked.header("x-agent-id").starts_with("late-"))
        .map(|asked| (asked.header("x-agent-id").to_owned(), asked.json()["kind"].to_string()))
        .collect();
    let distinct: BTreeSet<_> = sent.iter().collect();
    assert_eq!(distinct.len(), sent.len(), "an action was sent twice");
    let most = queue.0.lock().expect("not poisoned").most_at_once;
    assert!(most <= 40, "{most} at once: at most 20 of either daemon");
    check_shares(&town.events(Some("dispatch")));
}

/// Goes through the log: never more than the limits allow, and shares that differ by at most one.
fn check_shares(events: &[serde_json::Value]) {
    let mut agents: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut lanes: BTreeMap<String, String> = BTreeMap::new();
    let (mut live, mut late) = (0, (0, 0));
    for event in events {
        match event["type"].as_str().expect("a type") {
            "dispatch.started" => {
                let dispatch = &event["dispatch"];
                let lane = dispatch["lane"].as_str().expect("a lane").to_owned();
                lanes.insert(dispatch["id"].as_str().expect("an id").to_owned(), lane.clone());
                let is_late = lane.starts_with("http late-");
                let agent = if is_late { &mut late } else { agents.entry(lane).or_default() };
                agent.0 += 1;
                agent.1 += 1;
                live += 1;
                assert!(live <= 20, "{live} altogether");
                assert!(is_late || agent.1 <= 3, "{} of one agent", agent.1);
                let most = agents.values().map(|agent| agent.0).max().unwrap_or(0);
                let least = agents.values().map(|agent| agent.0).min().unwrap_or(0);
                assert!(agents.len() < 100 || most - least <= 1, "{most} and {least}");
            }
            "dispatch.ended" => {
                live -= 1;
                let lane = &lanes[event["id"].as_str().expect("an id")];
                let agent =
                    if lane.starts_with("http late-") { Some(&mut late) } else { agents.get_mut(lane) };
                agent.expect("known").1 -= 1;
            }
            _ => {}
        }
    }
}
