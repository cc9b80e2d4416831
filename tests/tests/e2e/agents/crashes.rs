//! `kill -9` of the daemon while agents are sent orders and claim: none is lost, none is doubled.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use yard_tests::town::{Town, wait_until};

use super::register;

const AGENTS: [&str; 4] = ["fern", "moss", "reed", "sedge"];
const BEADS: usize = 60;
const KILLS: usize = 8;

/// An agent that does whatever it is sent until there is no more; what a dead daemon leaves unanswered it asks again.
fn work(town: &Town, agent: &str, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let inbox = town.run(["--json", "agent", "inbox", "--wait", "--timeout", "200ms", "--as", agent]);
        let Ok(inbox) = serde_json::from_str::<serde_json::Value>(&inbox.stdout) else { continue };
        for message in inbox["messages"].as_array().into_iter().flatten() {
            if message["body"]["type"] != "DISPATCH_ORDER" {
                continue;
            }
            let bead = message["body"]["bead_id"].as_str().expect("an id").to_owned();
            // Whether the first answer got lost or not: claiming again tells the same.
            let mut token = None;
            while token.is_none() && !over.load(Ordering::Relaxed) {
                let claim = town.run(["--json", "agent", "claim", &bead, "--as", agent]);
                let answer: serde_json::Value = serde_json::from_str(&claim.stdout).unwrap_or_default();
                token = answer["dispatch_id"].as_str().map(str::to_owned);
                if answer["error"]["code"] == "closed" {
                    break;
                }
            }
            let Some(token) = token else { continue };
            loop {
                let done = town.run(["--json", "agent", "done", &bead, "--as", agent, "--token", &token]);
                let known = ["stale-claim", "not-claimed"];
                let answer: serde_json::Value = serde_json::from_str(&done.stdout).unwrap_or_default();
                if done.code == 0 || known.iter().any(|code| answer["error"]["code"] == *code) {
                    break;
                }
            }
        }
    }
}

fn survives(auto_claim: &str) {
    let mut town = Town::new();
    town.set("agents.auto_claim", auto_claim);
    for agent in AGENTS {
        register(&town, agent);
    }
    for number in 0..BEADS {
        let id = format!("y-{number}");
        town.run(["bead", "add", &id, "--id", &id]).ok();
    }
    let ids: Vec<String> = (0..BEADS).map(|number| format!("y-{number}")).collect();
    let sling = ["sling".to_owned(), "--assign=".to_owned()].into_iter().chain(ids.iter().cloned());
    town.run(sling.chain(["--no-convoy".to_owned()])).ok();
    town.start_daemon();
    let over = AtomicBool::new(false);
    let workers = Town::found(town.root());
    std::thread::scope(|scope| {
        for agent in AGENTS {
            let (workers, over) = (&workers, &over);
            scope.spawn(move || work(workers, agent, over));
        }
        for kill in 1..=KILLS {
            let goal = kill * BEADS / (KILLS + 2);
            wait_until("some are done", || workers.events(Some("bead.closed")).len() >= goal);
            town.kill_daemon();
            town.start_daemon();
        }
        wait_until("all are done", || workers.events(Some("bead.closed")).len() == BEADS);
        over.store(true, Ordering::Relaxed);
    });
    let mut claims: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in town.events(Some("dispatch.started")) {
        let id = event["dispatch"]["id"].as_str().expect("an id");
        let bead = id.split_once('@').expect("a token").0.to_owned();
        claims.entry(bead).or_default().push(id.to_owned());
    }
    for id in &ids {
        assert_eq!(claims[id], [format!("{id}@1")], "claimed once, by one");
    }
    let ended = town.events(Some("dispatch.ended"));
    assert_eq!(ended.len(), BEADS, "each came to one end");
    assert!(ended.iter().all(|event| event["outcome"]["how"] == "succeeded"), "and a good one");
    assert_eq!(town.events(Some("order.sent")).len(), BEADS, "no order was sent twice");
    for agent in AGENTS {
        assert_eq!(
            town.json(["agent", "inbox", "--as", agent])["messages"],
            serde_json::json!([]),
            "{agent}"
        );
    }
}

#[test]
fn no_order_is_lost_or_doubled_when_the_daemon_dies() {
    survives("false");
}

#[test]
fn no_order_is_lost_or_doubled_when_the_daemon_dies_between_claim_and_delivery() {
    survives("true");
}
