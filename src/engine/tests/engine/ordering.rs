//! Who goes first, and who must wait for which limit.

use yard_engine::plan::PlanReason;
use yard_engine::readiness::ReasonCode;
use yard_engine::settings::{AccountSettings, Fairness};
use yard_engine::{AccountName, Millis};

use crate::town::{Town, sling_of};

fn account(text: &str) -> AccountName {
    AccountName::parse(text).expect("a valid name")
}

#[test]
fn plain_work_goes_by_priority_then_first_come() {
    let mut town = Town::deferred(1);
    for (id, priority) in [("gt-a", 50), ("gt-b", 90), ("gt-c", 50), ("gt-d", 90)] {
        town.bead(id);
        town.sling_with(id, |r| r.priority = Some(priority));
        town.advance(Millis(1));
    }
    let mut order = Vec::new();
    while let [id] = town.start().as_slice() {
        order.push(id.clone());
        town.exits_ok(id);
    }
    assert_eq!(order, ["gt-b", "gt-d", "gt-a", "gt-c"]);
}

#[test]
fn a_full_rig_does_not_hold_up_the_others() {
    let mut town = Town::deferred(3);
    town.rig_with("small", "s", |r| r.max_polecats = Some(1));
    town.beads(&["s-1", "s-2", "s-3", "gt-a"]);
    town.sling_request({
        let mut request = sling_of(&["s-1", "s-2", "s-3"]);
        request.priority = Some(100);
        request
    });
    town.sling(&["gt-a"]);
    let passed = town.pass();
    assert_eq!((passed.started, passed.skipped), (vec!["s-1".to_owned(), "gt-a".to_owned()], 2));
    assert_eq!(passed.reason, PlanReason::Capacity);
    let reasons = town.state.reasons(&crate::town::bead_id("s-2"));
    assert_eq!((reasons[0].code, reasons[0].limit.as_deref()), (ReasonCode::Capacity, Some("rig small")));
    town.exits_ok("s-1");
    assert_eq!(town.pass().started, ["s-2"]);
}

#[test]
fn a_rigs_cap_can_be_configured_and_changed() {
    let mut town = Town::deferred(9);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    let gastown = crate::town::rig_name("gastown");
    let cap = |n| yard_engine::settings::RigSettings { max_polecats: Some(n), ..Default::default() };
    town.configure(|s| drop(s.rigs.insert(gastown.clone(), cap(1))));
    town.sling(&["gt-a", "gt-b", "gt-c"]);
    assert_eq!(town.pass().started, ["gt-a"]);
    town.configure(|s| drop(s.rigs.insert(gastown, cap(2))));
    assert_eq!(town.pass().started, ["gt-b"]);
}

#[test]
fn a_full_account_does_not_hold_up_the_others() {
    let mut town = Town::deferred(9);
    town.configure(|s| {
        s.accounts.insert(account("main"), AccountSettings { max_polecats: Some(1), cooldown: None });
    });
    town.beads(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    for id in ["gt-a", "gt-b"] {
        town.sling_with(id, |r| r.account = Some(account("main")));
    }
    town.sling_with("gt-c", |r| r.account = Some(account("spare")));
    town.sling(&["gt-d"]);
    assert_eq!(town.pass().started, ["gt-a", "gt-c", "gt-d"]);
    town.exits_ok("gt-c");
    assert!(town.pass().started.is_empty());
    town.exits_ok("gt-a");
    assert_eq!(town.pass().started, ["gt-b"]);
}

#[test]
fn lanes_share_the_slots_the_one_with_fewest_running_first() {
    let mut town = Town::deferred(4);
    town.configure(|s| s.fairness = Fairness::Agent);
    for (agent, count) in [("ann", 5), ("bob", 2)] {
        for n in 0..count {
            let id = format!("gt-{agent}{n}");
            town.bead(&id);
            town.sling_with(&id, |r| r.agent = Some(agent.to_owned()));
        }
    }
    assert_eq!(town.start(), ["gt-ann0", "gt-bob0", "gt-ann1", "gt-bob1"]);
    town.exits_ok("gt-bob0");
    town.exits_ok("gt-bob1");
    assert_eq!(town.start(), ["gt-ann2", "gt-ann3"], "an empty lane lends its slots");
}

#[test]
fn among_equal_lanes_the_one_served_longest_ago_goes_first() {
    let mut town = Town::deferred(1);
    town.configure(|s| s.fairness = Fairness::Rig);
    town.rig("web", "w");
    town.beads(&["gt-1", "gt-2", "w-1", "w-2"]);
    town.sling(&["gt-1", "gt-2", "w-1", "w-2"]);
    let mut order = Vec::new();
    while let [id] = town.start().as_slice() {
        order.push(id.clone());
        town.exits_ok(id);
    }
    assert_eq!(order, ["gt-1", "w-1", "gt-2", "w-2"]);
}

#[test]
fn a_convoy_can_be_a_lane() {
    let mut town = Town::deferred(2);
    town.configure(|s| s.fairness = Fairness::Convoy);
    town.beads(&["gt-1", "gt-2", "gt-3", "gt-4"]);
    for beads in [["gt-1", "gt-2"], ["gt-3", "gt-4"]] {
        let convoy = town.convoy(&beads);
        town.sling(&[&convoy]);
    }
    assert_eq!(town.start(), ["gt-1", "gt-3"]);
}

#[test]
fn waiting_makes_old_work_overtake_younger_work_of_higher_priority() {
    for (waited, first) in [(9, "gt-young"), (11, "gt-old")] {
        let mut town = Town::deferred(1);
        town.configure(|s| s.aging = Some(Millis::minutes(1)));
        town.beads(&["gt-old", "gt-young"]);
        town.sling_with("gt-old", |r| r.priority = Some(50));
        town.advance(Millis::minutes(waited));
        town.sling_with("gt-young", |r| r.priority = Some(60));
        assert_eq!(town.pass().started, [first], "after {waited} minutes");
    }
}

#[test]
fn an_ageing_interval_beyond_all_time_is_survived() {
    let mut town = Town::deferred(1);
    town.configure(|s| s.aging = Some(Millis(u64::MAX)));
    town.beads(&["gt-a", "gt-b"]);
    town.sling(&["gt-a", "gt-b"]);
    assert_eq!(town.pass().started.len(), 1);
}

#[test]
fn a_manual_pass_has_a_batch_of_its_own() {
    let mut town = Town::deferred(9);
    town.configure(|s| s.batch_size = 1);
    town.beads(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    town.sling(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    assert_eq!(town.run(Some(2), false).started.len(), 2);
    assert_eq!(town.run(None, false).started.len(), 1);
    assert_eq!(town.run(Some(0), false).started.len(), 1);
}

#[test]
fn a_busy_host_starts_nothing_and_says_so() {
    let mut town = Town::new();
    town.bead("gt-a");
    town.act(|tx| tx.host_observed(Some("load 9 per core".to_owned())));
    assert!(town.ym_sling(&["gt-a"], |_| {}).is_empty());
    assert_eq!(town.codes("gt-a"), [ReasonCode::HostLoad]);
    town.act(|tx| tx.host_observed(None));
    assert_eq!(town.pass().started, ["gt-a"]);
}
