//! Orders: how they reach an agent, and what its work makes of its state.

use serde_json::json;
use yard_tests::http::Http;
use yard_tests::town::{Town, is_alive, wait_until};
use yard_tests::workspace::{Workspace, bead};

use super::{answer, give_away, register, state_of, town_with, waits_for_mail};

#[test]
fn an_order_wakes_whoever_waits_for_it_and_says_all_there_is_to_know() {
    let town = town_with(&["fern"]);
    let waiting = waits_for_mail(&town, "fern");
    town.run(["bead", "add", "Fix login bug", "--id", "y-1", "--priority", "P1"]).ok();
    town.run(["sling", "y-1", "--assign", "--no-convoy"]).ok();
    let inbox = answer(waiting);
    let [message] = inbox["messages"].as_array().expect("messages").as_slice() else { panic!("{inbox}") };
    assert_eq!(message["subject"], "[DISPATCH] Assigned: y-1");
    let body = &message["body"];
    assert_eq!((body["type"].as_str(), body["bead_id"].as_str()), (Some("DISPATCH_ORDER"), Some("y-1")));
    assert_eq!((body["title"].as_str(), body["priority"].as_str()), (Some("Fix login bug"), Some("P1")));
    assert_eq!((body["importance"].as_str(), body["auto_claim"].as_bool()), (Some("high"), Some(false)));
    assert!(body["reason"].as_str().is_some_and(|reason| reason.starts_with("P1")), "{body}");
    assert!(body["expires_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{body}");
    assert_eq!(town.state_of("y-1"), "assigned");
    let again = town.json(["agent", "inbox", "--as", "fern"]);
    assert_eq!(again["messages"][0]["id"], message["id"], "the same order, until it is claimed");
    town.run(["agent", "claim", "y-1", "--as", "fern"]).ok();
    assert_eq!(town.json(["agent", "inbox", "--as", "fern"])["messages"], json!([]));
}

#[test]
fn whoever_waits_in_vain_is_told_and_without_a_daemon_nobody_waits() {
    let mut town = town_with(&["fern"]);
    let ran = town.run(["--json", "agent", "inbox", "--wait", "--timeout", "10ms", "--as", "fern"]);
    assert_eq!((ran.code, ran.json()["timed_out"].as_bool()), (1, Some(true)));
    town.stop_daemon();
    assert_eq!(town.refused(["agent", "inbox", "--wait", "--as", "fern"]), "no-daemon");
    assert_eq!(town.json(["agent", "inbox", "--as", "fern"])["messages"], json!([]));
}

#[test]
fn agents_elsewhere_are_served_over_http() {
    let mut town = Town::new();
    town.set("http.listen", "127.0.0.1:0");
    town.start_daemon();
    let http = Http::of(&town);
    let fern = json!({"name": "fern", "program": "elsewhere", "skills": "sql"});
    assert_eq!(http.post("/agents", &fern).json()["state"], "IDLE");
    let waits = http.clone();
    let waiting = std::thread::spawn(move || waits.get("/agents/fern/inbox?wait=60").json());
    give_away(&town, "y-1");
    let inbox = waiting.join().expect("an answer");
    assert_eq!(inbox["messages"][0]["body"]["bead_id"], "y-1");
    let claim = http.send("PUT", "/agents/fern/claims/y-1", &[], b"");
    assert_eq!((claim.status, claim.json()["dispatch_id"].as_str()), (200, Some("y-1@1")));
    let about = |verb: &str, body| http.post(&format!("/agents/fern/claims/y-1/{verb}"), &body);
    assert_eq!(about("checkpoint", json!({"token": "y-1@1", "note": "half"})).status, 200);
    assert_eq!(about("cost", json!({"token": "y-1@1", "usd": 0.42})).status, 200);
    assert_eq!(about("cost", json!({"usd": 0.42})).status, 400, "without the token nothing is said");
    assert_eq!(about("done", json!({"token": "y-1@0"})).status, 409);
    assert_eq!(about("done", json!({"token": "y-1@1"})).status, 200);
    assert_eq!(town.state_of("y-1"), "closed");
    register(&town, "moss");
    let session =
        town.json(["http", "token", "--agent", "fern"])["session"].as_str().expect("a token").to_owned();
    let session = http.with(Some(&format!("Session {session}")));
    assert_eq!(session.send("POST", "/agents/fern/heartbeat", &[], b"").status, 200);
    assert_eq!(session.send("POST", "/agents/moss/heartbeat", &[], b"").status, 403, "another's");
    assert_eq!(session.get("/agents").status, 403);
    town.run(["bead", "add", "of moss", "--id", "y-2"]).ok();
    town.run(["agent", "claim", "y-2", "--as", "moss"]).ok();
    let cost = json!({"token": "y-2@1", "usd": 1000});
    assert_eq!(session.post("/agents/fern/claims/y-2/cost", &cost).status, 409, "another's claim");
    assert_eq!(session.post("/agents/moss/claims/y-2/cost", &cost).status, 403);
    assert_eq!(http.get("/agents/nobody/inbox").status, 404);
}

#[test]
fn the_hook_carries_messages_elsewhere() {
    let mut town = Town::new();
    town.set("agents.hook", &format!("[\"sh\", \"-c\", \"cat >> {}/mail\"]", town.root().display()));
    town.start_daemon();
    register(&town, "fern");
    give_away(&town, "y-1");
    let mail = || std::fs::read_to_string(town.root().join("mail")).unwrap_or_default();
    wait_until("the order is told", || mail().contains("DISPATCH_ORDER"));
    town.run(["cancel", "y-1"]).ok();
    wait_until("the end is told", || mail().contains("UNASSIGN"));
    let told: Vec<serde_json::Value> =
        mail().lines().map(|line| serde_json::from_str(line).expect("a message a line")).collect();
    assert_eq!(told.len(), 2, "each once");
    assert!(told.iter().all(|message| message["agent"] == "fern"));
}

/// Another rig of a town, over a workspace of its own.
fn shop(town: &Town, beads: &[serde_json::Value]) -> Workspace {
    let dir = town.root().join("shop");
    let workspace = Workspace::create(&dir, beads);
    town.run(["rig", "add", "shop", "--prefix", "shop", "--path", dir.to_str().expect("utf-8")]).ok();
    workspace
}

#[test]
fn the_state_follows_the_work_in_a_tracker() {
    let town = town_with(&["fern"]);
    let workspace = shop(&town, &[bead("shop-1", "task", &[]), bead("shop-2", "task", &[])]);
    workspace.claim("shop-1", "fern");
    workspace.claim("shop-2", "fern");
    wait_until("fern works", || state_of(&town, "fern") == "WORKING");
    workspace.close("shop-1");
    wait_until("one is closed", || town.state_of("shop-1") == "closed");
    assert_eq!(state_of(&town, "fern"), "WORKING");
    workspace.close("shop-2");
    wait_until("fern is idle", || state_of(&town, "fern") == "IDLE");
}

#[test]
fn everything_ready_in_a_tracker_is_offered_where_a_rig_says_so() {
    let town = town_with(&["fern"]);
    let beads = [bead("shop-1", "task", &[]), bead("shop-2", "task", &[("shop-1", "blocks")])];
    let workspace = shop(&town, &beads);
    town.set("rig.shop.assign", "ready");
    wait_until("the first is sent", || town.state_of("shop-1") == "assigned");
    workspace.close("shop-1");
    wait_until("the second is sent", || town.state_of("shop-2") == "assigned");
    let mail = town.json(["agent", "inbox", "--as", "fern"]);
    let messages = mail["messages"].as_array().expect("messages").iter();
    let subjects: Vec<&str> = messages.filter_map(|message| message["subject"].as_str()).collect();
    assert_eq!(subjects, ["[UNASSIGN] shop-1", "[DISPATCH] Assigned: shop-2"]);
}

#[test]
fn an_agent_is_there_as_long_as_its_process_lives() {
    let town = town_with(&["moss"]);
    let mut process = std::process::Command::new("sleep").arg("600").spawn().expect("a process");
    let pid = process.id().to_string();
    town.run(["agent", "register", "fern", "--program", "test", "--pid", &pid]).ok();
    town.set("agents.offline_after", "300ms");
    wait_until("moss is gone", || state_of(&town, "moss") == "OFFLINE");
    assert_eq!(state_of(&town, "fern"), "IDLE", "nothing was heard of it, but it lives");
    process.kill().expect("it can be ended");
    process.wait().expect("it ends");
    assert!(!is_alive(process.id()));
    wait_until("fern is gone", || state_of(&town, "fern") == "OFFLINE");
    assert_eq!(
        town.refused(["agent", "register", "reed", "--program", "x", "--pid", "999999999"]),
        "no-process"
    );
}

#[test]
fn whatever_an_agent_calls_is_a_sign_of_life() {
    let town = town_with(&["fern"]);
    town.set("agents.offline_after", "200ms");
    wait_until("fern is gone", || state_of(&town, "fern") == "OFFLINE");
    town.set("agents.offline_after", "10m");
    assert_eq!(state_of(&town, "fern"), "OFFLINE", "others looking at it are no sign of its life");
    let looks = town.command(["status"]).env("YM_AGENT", "fern").output().expect("ym can be run");
    assert!(looks.status.success());
    assert_eq!(state_of(&town, "fern"), "IDLE");
}

#[test]
fn whoever_has_a_bead_next_reads_what_the_last_one_noted() {
    let town = town_with(&["fern", "moss"]);
    town.run(["bead", "add", "hard", "--id", "y-1"]).ok();
    town.run(["agent", "claim", "y-1", "--as", "fern"]).ok();
    town.run(["agent", "release", "y-1", "--as", "fern", "--note", "needs a database"]).ok();
    let claim = town.json(["agent", "claim", "y-1", "--as", "moss"]);
    assert_eq!(
        (claim["checkpoint"].as_str(), claim["dispatch_id"].as_str()),
        (Some("needs a database"), Some("y-1@2"))
    );
}

#[test]
fn every_idle_agent_and_every_waiting_bead_says_why() {
    let town = town_with(&["fern"]);
    town.run(["bead", "add", "for moss", "--id", "y-1"]).ok();
    town.run(["sling", "y-1", "--assign", "moss", "--no-convoy"]).ok();
    let why = town.json(["agent", "why"]);
    assert_eq!(why["agents"][0]["reasons"][0]["code"], "not-for-it");
    let message = why["beads"][0]["reasons"][0]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("no agent of that name is registered"), "{message}");
    assert_eq!(town.reasons_of("y-1"), ["awaiting-agent"]);
    let text = town.run(["agent", "why", "--as", "fern"]).ok().stdout;
    assert!(text.contains("y-1 is for moss"), "{text}");
}
