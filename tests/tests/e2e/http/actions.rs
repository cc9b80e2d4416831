//! What becomes of tasks that run: the contract with the server of a tab, deadlines, cancellation, formulas.

use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use yard_tests::http::{Http, Peer};
use yard_tests::town::{Town, wait_until};

use super::{Slow, click, serving};

fn with_server(answer: fn() -> (u16, String)) -> (Town, Http, Peer) {
    let peer = Peer::start(move |_| answer());
    let (town, http) = serving(&[("executor.http.base_url", &peer.url())]);
    (town, http, peer)
}

#[test]
fn an_action_reaches_the_server_of_its_tab_and_its_answer_is_the_result() {
    let (_town, http, peer) = with_server(|| (200, "{\"clicked\": true}".to_owned()));
    let params = json!({"text": "hi", "kind": "evil", "tabId": "evil", "ref": "evil", "selector": "evil"});
    let id = http.submit(&json!({"agentId": "agent-1", "action": "type", "tabId": "tab/1", "ref": "e14",
        "params": params}));
    let done = http.await_state(&id, "done");
    assert_eq!(done["result"], json!({"clicked": true}));
    assert!(done["startedAt"].is_string() && done["completedAt"].is_string() && done["latencyMs"].is_u64());
    let asked = peer.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].line, "POST /tabs/tab%2F1/action");
    assert_eq!(asked[0].json(), json!({"kind": "type", "ref": "e14", "text": "hi"}));
    let headers = ["content-type", "x-pinchtab-source", "x-pinchtab-tab-id", "x-agent-id"];
    let sent = headers.map(|name| asked[0].header(name));
    assert_eq!(sent, ["application/json", "scheduler", "tab/1", "agent-1"]);
}

#[test]
fn whatever_goes_wrong_is_said_in_the_words_that_clients_know() {
    let (town, http, _peer) = with_server(|| (500, "no such element".to_owned()));
    let error = |task: &Value| {
        let id = http.submit(task);
        http.await_state(&id, "failed")["error"].as_str().expect("an error").to_owned()
    };
    assert_eq!(error(&click("a")), "executor returned 500: no such element");
    assert_eq!(error(&json!({"agentId": "a", "action": "x"})), "tabId is required for task execution");
    town.set("executor.http.base_url", "http://127.0.0.1:1");
    assert!(error(&click("a")).starts_with("executor request failed: "));
    town.run(["config", "unset", "executor.http.base_url"]).ok();
    assert!(error(&click("a")).starts_with("could not resolve tab \"tab-1\": "));
}

#[test]
fn an_answer_that_is_no_json_is_a_text_and_redirects_are_not_followed() {
    let (_town, http, peer) = with_server(|| (302, "moved".to_owned()));
    let id = http.submit(&click("a"));
    assert_eq!(http.await_state(&id, "done")["result"], "moved");
    assert_eq!(peer.asked().len(), 1);
}

#[test]
fn tabs_lead_to_their_instances() {
    let (one, two) = (Peer::start(|_| (200, "1".to_owned())), Peer::start(|_| (200, "2".to_owned())));
    let instances = json!({"tab-1*": one.url(), "tab-12*": two.url()}).to_string();
    let (_town, http) = serving(&[("executor.http.instances", &instances)]);
    for (tab, answer) in [("tab-1", 1), ("tab-123", 2)] {
        let id = http.submit(&json!({"agentId": "a", "action": "x", "tabId": tab}));
        assert_eq!(http.await_state(&id, "done")["result"], answer, "{tab}");
    }
    let id = http.submit(&json!({"agentId": "a", "action": "x", "tabId": "other"}));
    assert!(http.await_state(&id, "failed")["error"].as_str().expect("words").contains("could not resolve"));
}

#[test]
fn a_running_task_ends_at_its_deadline_and_one_that_waits_too() {
    let slow = Slow::start();
    let (_town, http) = serving(&[("executor.http.base_url", &slow.peer.url()), ("http.max_inflight", "1")]);
    let deadline = |millis: u64| {
        let at = SystemTime::now() + Duration::from_millis(millis);
        let since = at.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        yard_engine::Timestamp::from_millis(since.as_millis() as i64).to_string()
    };
    let task = |at: String| json!({"agentId": "a", "action": "x", "tabId": "t", "deadline": at});
    let runs = http.submit(&task(deadline(1500)));
    http.await_state(&runs, "running");
    let waits = http.submit(&task(deadline(700)));
    assert_eq!(http.await_state(&waits, "failed")["error"], "deadline exceeded while queued");
    assert_eq!(http.await_state(&runs, "failed")["error"], "deadline exceeded while running");
    let metrics = http.get("/scheduler/stats").json()["metrics"].clone();
    assert_eq!((&metrics["tasksExpired"], &metrics["tasksFailed"]), (&json!(1), &json!(2)));
}

// D2
#[test]
fn cancelling_a_running_task_ends_it_once_and_frees_one_place() {
    let slow = Slow::start();
    let (town, http) = serving(&[("executor.http.base_url", &slow.peer.url()), ("http.max_inflight", "2")]);
    let first = http.submit(&click("a"));
    let second = http.submit(&click("a"));
    http.await_state(&first, "running");
    http.await_state(&second, "running");
    let third = http.submit(&click("a"));
    let fourth = http.submit(&click("a"));
    assert_eq!(http.post(&format!("/tasks/{first}/cancel"), &json!({})).status, 200);
    let ended = http.task(&first);
    assert_eq!((&ended["state"], ended.get("error")), (&json!("cancelled"), None));
    http.await_state(&third, "running");
    assert_eq!(http.task(&fourth)["state"], "queued", "one place was freed, not two");
    slow.let_go();
    http.await_state(&fourth, "done");
    let ends = town.events(Some("task.ended"));
    assert_eq!(ends.iter().filter(|event| event["id"] == first.as_str()).count(), 1);
    let metrics = http.get("/scheduler/stats").json()["metrics"].clone();
    assert_eq!((&metrics["tasksCancelled"], &metrics["tasksFailed"]), (&json!(1), &json!(0)));
}

// D13: no cap of a minute stands behind the deadline.
#[test]
fn an_action_may_take_longer_than_a_minute() {
    let slow = Slow::start();
    let (_town, http) = serving(&[("executor.http.base_url", &slow.peer.url())]);
    let id = http
        .submit(&json!({"agentId": "a", "action": "x", "tabId": "t", "deadline": "2126-01-01T00:00:00Z"}));
    slow.peer.await_asked(1);
    let sent = Instant::now();
    for half in [31, 62] {
        wait_until("half a minute has passed", || sent.elapsed() > Duration::from_secs(half));
    }
    assert_eq!(http.task(&id)["state"], "running");
    slow.let_go();
    http.await_state(&id, "done");
}

// D12
#[test]
fn the_average_wait_is_the_time_before_the_start() {
    let slow = Slow::start();
    let (town, http) = serving(&[("executor.http.base_url", &slow.peer.url())]);
    town.run(["scheduler", "pause"]).ok();
    let id = http.submit(&click("a"));
    let created = Instant::now();
    wait_until("it has waited", || created.elapsed() > Duration::from_millis(300));
    town.run(["scheduler", "resume"]).ok();
    http.await_state(&id, "running");
    let wait =
        http.get("/scheduler/stats").json()["metrics"]["avgDispatchLatencyMs"].as_f64().expect("a number");
    assert!(wait >= 300.0, "{wait}");
    slow.let_go();
    http.await_state(&id, "done");
    let after = http.get("/scheduler/stats").json()["metrics"]["avgDispatchLatencyMs"].clone();
    assert_eq!(after.as_f64(), Some(wait), "how long it ran says nothing about how long it waited");
}

#[test]
fn a_task_may_run_by_a_formula_wait_for_another_and_be_tried_again() {
    let (town, http) = serving(&[("retry.crash.backoff", "10ms")]);
    let formula = "name = \"shout\"\n[vars.word]\n[[steps]]\nid = \"shout\"\n\
        shell = \"echo $YM_VAR_WORD | tee -a out; test $(wc -l < out) -ge 2\"\n";
    std::fs::write(town.root().join(".yardmaster/formulas/shout.toml"), formula).expect("written");
    let missing = http.post("/tasks", &json!({"agentId": "a", "action": "x", "formula": "shout"}));
    assert_eq!(missing.status, 400, "a variable is missing: {}", missing.json());
    let first = http.submit(&json!({"agentId": "a", "action": "shout it", "formula": "shout",
        "params": {"word": "hey"}, "maxAttempts": 3}));
    let second = http.submit(&json!({"agentId": "b", "action": "x", "tabId": "t", "after": [first]}));
    let done = http.await_state(&first, "done");
    assert_eq!(done["attempts"], 2);
    assert_eq!(done["result"], json!({"exitCode": 0, "output": "hey\n"}));
    let out = std::fs::read_to_string(town.root().join("out")).expect("it shouted");
    assert_eq!(out, "hey\nhey\n");
    http.await_state(&second, "failed");
    let events = town.events(Some("dispatch.started"));
    assert_eq!(events.last().expect("a start")["dispatch"]["id"], format!("{second}@1"));
}
