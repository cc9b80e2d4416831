//! Leases: silence returns a bead, and whoever had it can do nothing more to it.

use std::time::{Duration, Instant};

use yard_tests::town::{Town, wait_until};

use super::{give_away, register, state_of, town_with};

#[test]
fn an_expired_token_cannot_close_cost_or_checkpoint() {
    let town = town_with(&["fern"]);
    give_away(&town, "y-1");
    town.run(["agent", "claim", "y-1", "--as", "fern"]).ok();
    town.set("agents.lease", "200ms");
    wait_until("the claim is lost", || town.json(["show", "y-1@1"])["ended"].is_object());
    let says = |words: &[&str]| {
        let mut command = town.command(["--json", "worker", "--dispatch", "y-1@1"]);
        let output = command.args(words).output().expect("ym can be run");
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for words in [&["checkpoint", "half"][..], &["cost", "0.5"], &["progress", "on it"], &["done"]] {
        assert!(says(words).contains("stale-dispatch"), "{words:?}");
    }
    assert_eq!(town.refused(["agent", "done", "y-1", "--as", "fern"]), "stale-claim");
    let close =
        town.command(["--json", "bead", "close", "y-1"]).env("YM_ACTOR", "fern").output().expect("ym");
    assert!(String::from_utf8_lossy(&close.stdout).contains("stale-claim"), "{close:?}");
    assert_eq!(town.events(Some("dispatch.cost")), Vec::<serde_json::Value>::new());
    town.set("agents.lease", "10m");
    town.run(["agent", "status", "blocked", "--as", "fern"]).ok();
    register(&town, "moss");
    wait_until("it is offered again", || town.state_of("y-1") == "assigned");
    let mail = town.json(["agent", "inbox", "--as", "moss"]);
    assert_eq!(mail["messages"][0]["body"]["bead_id"], "y-1", "to somebody else");
    town.run(["agent", "claim", "y-1", "--as", "moss"]).ok();
    let late = town.run(["agent", "done", "y-1", "--as", "fern", "--token", "y-1@1"]);
    assert!(late.stderr.contains("moss has it now (y-1@2)"), "{}", late.stderr);
    town.run(["agent", "done", "y-1", "--as", "moss", "--token", "y-1@2"]).ok();
    assert_eq!(town.state_of("y-1"), "closed");
}

#[test]
fn an_order_that_nobody_claims_goes_to_the_next() {
    let town = town_with(&["fern", "moss"]);
    town.set("agents.claim_timeout", "200ms");
    give_away(&town, "y-1");
    wait_until("fern does not answer", || state_of(&town, "fern") == "UNRESPONSIVE");
    let mail = town.json(["agent", "inbox", "--as", "fern"]);
    assert_eq!(mail["messages"][0]["subject"], "[UNASSIGN] y-1");
    assert_ne!(state_of(&town, "fern"), "UNRESPONSIVE", "it was heard of");
    assert_eq!(town.events(Some("order.withdrawn"))[0]["why"], "lapsed");
    let sent = town.events(Some("order.sent"));
    let to: Vec<&str> = sent.iter().filter_map(|event| event["order"]["agent"].as_str()).collect();
    assert_eq!(&to[..2], ["fern", "moss"]);
}

#[test]
fn an_expired_token_is_as_worthless_when_no_daemon_looks_at_the_clock() {
    let town = Town::new();
    town.set("agents.lease", "50ms");
    for agent in ["fern", "moss"] {
        register(&town, agent);
    }
    for bead in ["y-1", "y-2"] {
        town.run(["bead", "add", bead, "--id", bead]).ok();
    }
    town.run(["agent", "claim", "y-1", "--as", "fern"]).ok();
    town.run(["agent", "claim", "y-2", "--as", "fern"]).ok();
    let claimed = Instant::now();
    wait_until("the lease is over", || claimed.elapsed() > Duration::from_millis(60));
    assert_eq!(town.refused(["worker", "--dispatch", "y-1@1", "cost", "5"]), "stale-dispatch");
    assert_eq!(town.refused(["agent", "done", "y-1", "--as", "fern", "--token", "y-1@1"]), "stale-claim");
    assert_eq!(town.state_of("y-1"), "open");
    assert_eq!(town.json(["agent", "claim", "y-2", "--as", "moss"])["dispatch_id"], "y-2@2");
}
