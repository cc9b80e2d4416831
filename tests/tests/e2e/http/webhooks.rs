//! Webhooks: signed, for every end, retried across restarts, never into a private network.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};
use yard_tests::http::{Http, Peer};
use yard_tests::town::wait_until;

use super::{Slow, paused, serving};

fn told_of(agent: &str, peer: &Peer) -> Value {
    json!({"agentId": agent, "action": "x", "tabId": "t", "callbackUrl": format!("{}/hook", peer.url())})
}

/// HMAC-SHA256 as openssl has it: a second opinion on our signatures.
fn signature(key: &str, signed: &[u8]) -> String {
    let script = "key=$(printf %s \"${1#whsec_}\" | base64 -d | od -An -v -tx1 | tr -d ' \\n'); \
        openssl dgst -sha256 -mac HMAC -macopt hexkey:$key -binary | base64";
    let mut child = std::process::Command::new("sh")
        .args(["-c", script, "sh", key])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("openssl is there");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), signed).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("base64").trim().to_owned()
}

#[test]
fn every_end_is_told_and_signed() {
    let peer = Peer::start(|_| (200, String::new()));
    let (town, http) =
        paused(&[("http.webhook_allow", &json!([peer.host()]).to_string()), ("http.max_queue", "2")]);
    let fails = http.submit(&told_of("a", &peer));
    let cancelled = http.submit(&told_of("a", &peer));
    let rejected = http.post("/tasks", &told_of("a", &peer)).json()["details"]["taskId"].clone();
    http.post(&format!("/tasks/{cancelled}/cancel"), &json!({}));
    town.run(["scheduler", "resume"]).ok();
    let asked = peer.await_asked(3);
    let mut states: Vec<(String, String)> = asked
        .iter()
        .map(|asked| {
            let text = |name: &str| asked.json()[name].as_str().expect("a text").to_owned();
            (text("taskId"), text("state"))
        })
        .collect();
    states.sort();
    let mut expected = vec![
        (fails, "failed".to_owned()),
        (cancelled, "cancelled".to_owned()),
        (rejected.as_str().expect("an id").to_owned(), "rejected".to_owned()),
    ];
    expected.sort();
    assert_eq!(states, expected);
    let secret = town.json(["http", "secret"])["secret"].as_str().expect("a secret").to_owned();
    for letter in &asked {
        assert_eq!(letter.line, "POST /hook");
        assert_eq!(letter.header("x-pinchtab-event"), "task.completed");
        let id = letter.json()["taskId"].as_str().expect("an id").to_owned();
        assert_eq!(letter.header("x-pinchtab-task-id"), id);
        assert_eq!(letter.header("webhook-id"), format!("whd_{id}"));
        let mut signed = format!("{}.{}.", letter.header("webhook-id"), letter.header("webhook-timestamp"));
        signed += std::str::from_utf8(&letter.body).expect("text");
        let expected = format!("v1,{}", signature(&secret, signed.as_bytes()));
        assert_eq!(letter.header("webhook-signature"), expected);
    }
}

// D15
#[test]
fn a_webhook_that_failed_is_sent_again_under_the_same_id_also_after_a_restart() {
    let status = Arc::new(AtomicU16::new(500));
    let theirs = Arc::clone(&status);
    let peer = Peer::start(move |_| (theirs.load(Ordering::SeqCst), String::new()));
    let (mut town, http) = serving(&[("http.webhook_allow", &json!([peer.host()]).to_string())]);
    let id = http.submit(&told_of("a", &peer));
    peer.await_asked(1);
    let webhook = || Http::of(&town).task(&id)["webhook"].clone();
    wait_until("that is noted", || webhook()["attempts"] == 1);
    assert_eq!(webhook()["delivered"], false);
    town.kill_daemon();
    status.store(204, Ordering::SeqCst);
    town.start_daemon();
    let asked = peer.await_asked(2);
    assert_eq!(asked[0].header("webhook-id"), asked[1].header("webhook-id"));
    wait_until("it has arrived", || Http::of(&town).task(&id)["webhook"]["delivered"] == true);
}

#[test]
fn a_redirect_is_no_delivery_and_is_not_followed() {
    let peer = Peer::start(|_| (307, String::new()));
    let (_town, http) = serving(&[("http.webhook_allow", &json!([peer.host()]).to_string())]);
    let id = http.submit(&told_of("a", &peer));
    wait_until("that is noted", || http.task(&id)["webhook"]["attempts"] == 1);
    let webhook = http.task(&id)["webhook"].clone();
    assert_eq!(webhook["delivered"], false);
    assert!(webhook["error"].as_str().expect("words").contains("307"), "{webhook}");
}

#[test]
fn private_addresses_are_refused_when_submitted_and_when_connected_to() {
    let peer = Peer::start(|_| (200, String::new()));
    let (town, http) = serving(&[("http.webhook_allow", &json!([peer.host()]).to_string())]);
    for private in [
        "http://127.0.0.1:1/",
        "http://localhost/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://2130706433/",
    ] {
        let task = json!({"agentId": "a", "action": "x", "callbackUrl": private});
        assert_eq!(http.post("/tasks", &task).status, 400, "{private}");
    }
    // Allowed when it was submitted, no longer when it is sent.
    town.run(["scheduler", "pause"]).ok();
    let id = http.submit(&told_of("a", &peer));
    town.run(["config", "unset", "http.webhook_allow"]).ok();
    town.run(["scheduler", "resume"]).ok();
    wait_until("that is noted", || http.task(&id)["webhook"]["attempts"] == 1);
    let webhook = http.task(&id)["webhook"].clone();
    assert!(webhook["error"].as_str().expect("words").contains("private"), "{webhook}");
    assert!(webhook.get("nextAt").is_none(), "trying again would not help");
    assert!(peer.asked().is_empty());
}

#[test]
fn sixteen_webhooks_go_at_once_and_the_others_wait_for_their_turn() {
    let slow = Slow::start();
    let peer = &slow.peer;
    let (_town, http) = serving(&[("http.webhook_allow", &json!([peer.host()]).to_string())]);
    let callback = format!("{}/hook", peer.url());
    for _ in 0..4 {
        let tasks = vec![json!({"action": "x"}); 20];
        http.post("/tasks/batch", &json!({"agentId": "a", "callbackUrl": callback, "tasks": tasks}));
    }
    wait_until("all have ended", || http.get("/tasks?state=failed").json()["count"] == 80);
    assert_eq!(peer.await_asked(16).len(), 16);
    slow.let_go();
    let asked = peer.await_asked(80);
    let ids: std::collections::BTreeSet<String> =
        asked.iter().map(|asked| asked.header("webhook-id").to_owned()).collect();
    assert_eq!((ids.len(), asked.len()), (80, 80));
}
