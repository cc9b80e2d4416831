//! Claims: who has a bead, for how long, and what becomes of it when it is let go.

use yard_engine::agent::{AgentState, Message, Registration};
use yard_engine::alert::AlertKind;
use yard_engine::bead::BeadStatus;
use yard_engine::command::{AgentStatus, ClaimEnd, WorkerSays};
use yard_engine::readiness::ReasonCode;
use yard_engine::settings::RigAssign;
use yard_engine::{Answer, Command, Millis, Standing};

use crate::agents::{done, ids, pairs, registration, released};
use crate::town::{Town, rig_name};

#[test]
fn claiming_again_changes_nothing_and_everybody_else_is_told_who_has_it() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.bead("gt-a");
    let first = town.claims("fern", "gt-a").expect("it is free");
    assert_eq!((first.0.to_string().as_str(), first.1), ("gt-a@1", false));
    let before = town.log.len();
    assert_eq!(town.claims("fern", "gt-a").expect("still its"), (first.0, true));
    assert_eq!(town.log.len(), before);
    let other = town.claims("moss", "gt-a").expect_err("it is taken");
    assert_eq!((other.code.as_str(), other.message.contains("claimed by fern")), ("claimed", true));
}

#[test]
fn only_what_is_ready_can_be_claimed() {
    let mut town = Town::new();
    town.agent("fern");
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    assert_eq!(town.claims("fern", "gt-b").expect_err("it waits").code, "blocked-by");
    town.pause();
    assert_eq!(town.claims("fern", "gt-a").expect_err("nothing starts").code, "paused");
    town.resume();
    assert_eq!(town.claims("nobody", "gt-a").expect_err("unknown").code, "unknown-agent");
    town.sling(&["gt-a"]);
    town.start();
    assert_eq!(town.claims("fern", "gt-a").expect_err("a worker has it").code, "running");
    town.exits_ok("gt-a");
    assert_eq!(town.claims("fern", "gt-a").expect_err("over").code, "closed");
    town.claimed("fern", "gt-b");
}

#[test]
fn a_bead_waiting_for_room_may_be_claimed_and_is_then_not_started_as_well() {
    let mut town = Town::deferred(1);
    town.agent("fern");
    town.beads(&["gt-a", "gt-b"]);
    town.sling(&["gt-a", "gt-b"]);
    town.start();
    town.claimed("fern", "gt-b");
    town.exits_ok("gt-a");
    assert_eq!(town.pass().started, Vec::<String>::new());
    assert_eq!(town.standing("gt-b"), Standing::Running);
}

#[test]
fn heartbeats_renew_the_lease_and_silence_returns_the_bead() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.says("moss", AgentStatus::Blocked);
    town.bead("gt-a");
    town.gives_away(&["gt-a"]);
    town.pass();
    let token = town.claimed("fern", "gt-a");
    for _ in 0..3 {
        town.advance(Millis::minutes(9));
        town.beats("fern");
    }
    assert_eq!(town.live("gt-a"), token);
    town.says("moss", AgentStatus::Idle);
    town.advance(Millis::minutes(10));
    assert_eq!(town.state_of("fern"), AgentState::Offline, "what it held is gone, and so is it");
    town.says("moss", AgentStatus::Idle);
    town.pass();
    assert_eq!((town.mail("fern").1, town.orders("moss")), (ids(&["gt-a"]), ids(&["gt-a"])));
    assert_eq!(town.alert_kinds(), [AlertKind::AgentSilent]);
}

#[test]
fn an_expired_token_closes_costs_and_notes_nothing() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.bead("gt-a");
    let old = town.claimed("fern", "gt-a");
    town.advance(Millis::minutes(10));
    town.beats("moss");
    let new = town.claimed("moss", "gt-a");
    for says in [
        WorkerSays::Checkpoint { note: "half".to_owned(), session: None },
        WorkerSays::Cost { usd: "1".parse().expect("an amount"), total: false, tokens: None },
        WorkerSays::Done { reason: None },
    ] {
        match town.does(&Command::Worker { dispatch: old.to_string(), says }) {
            Answer::Heard { accepted, .. } => assert!(!accepted),
            other => panic!("{other:?}"),
        }
    }
    let refused = town.ends("fern", "gt-a", done()).expect_err("it is moss's");
    assert_eq!((refused.code.as_str(), refused.message.contains("moss has it now")), ("stale-claim", true));
    let (agent, bead) = ("moss".to_owned(), "gt-a".to_owned());
    let stale = Command::AgentEnds { agent, bead, token: Some(old.to_string()), how: done() };
    assert!(town.command(&stale).is_err(), "not even under the name of who has it");
    assert_eq!((town.live("gt-a"), town.standing("gt-a")), (new, Standing::Running));
}

#[test]
fn what_an_agent_took_of_its_own_accord_is_open_again_when_it_lets_go() {
    let mut town = Town::new();
    town.agent("fern");
    town.bead("gt-a");
    town.claimed("fern", "gt-a");
    town.ends("fern", "gt-a", released()).expect("it is given back");
    assert_eq!((town.standing("gt-a"), town.codes("gt-a")), (Standing::Open, vec![]));
    town.claimed("fern", "gt-a");
    town.ends("fern", "gt-a", ClaimEnd::Failed { message: "no".to_owned(), unavailable: false })
        .expect("failed");
    assert_eq!(town.standing("gt-a"), Standing::Open);
}

#[test]
fn what_was_asked_for_stays_asked_for_when_an_agent_lets_go_or_fails() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.bead("gt-a");
    town.gives_away(&["gt-a"]);
    town.pass();
    town.claimed("fern", "gt-a");
    town.ends("fern", "gt-a", released()).expect("it is given back");
    town.pass();
    assert_eq!(town.sent(), pairs(&[("gt-a", "moss")]), "not to the one that gave it back");
    town.ends("moss", "gt-a", released()).expect("it is declined");
    town.pass();
    assert_eq!(town.sent(), []);
    assert!(town.why("gt-a").contains("every free agent has given it back"), "{}", town.why("gt-a"));
    town.advance(Millis::minutes(5));
    town.pass();
    assert_eq!(town.sent().len(), 1, "after a while it is offered again");
    let (_, agent) = town.sent().remove(0);
    town.claimed(&agent, "gt-a");
    town.ends(&agent, "gt-a", ClaimEnd::Failed { message: "no".to_owned(), unavailable: false })
        .expect("failed");
    assert_eq!((town.codes("gt-a")[0], town.context("gt-a").crashes), (ReasonCode::NotBefore, 1));
}

#[test]
fn taking_an_ordered_bead_in_its_tracker_is_as_good_as_a_claim() {
    let mut town = Town::new();
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    town.reads(&mut tracker);
    town.agent("fern");
    town.gives_away(&["ox-a"]);
    town.pass();
    tracker.claims("ox-a", "fern");
    town.reads(&mut tracker);
    assert_eq!((town.mail("fern"), town.state_of("fern")), ((vec![], vec![]), AgentState::Working));
    town.advance(Millis::minutes(5));
    assert_eq!(town.state_of("fern"), AgentState::Working, "nothing lapsed");
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!((town.state_of("fern"), town.standing("ox-a")), (AgentState::Idle, Standing::Closed));
}

#[test]
fn a_claim_on_a_workspace_bead_ends_with_its_close_and_a_lost_one_leaves_it_open() {
    let mut town = Town::new();
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a", "ox-b"]);
    town.reads(&mut tracker);
    town.agents(&["fern", "moss"]);
    for bead in ["ox-a", "ox-b"] {
        town.claimed("fern", bead);
        tracker.claims(bead, "fern");
        town.reads(&mut tracker);
    }
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!((town.state_of("fern"), town.standing("ox-a")), (AgentState::Working, Standing::Closed));
    town.advance(Millis::minutes(10));
    town.beats("fern");
    assert_eq!(town.state_of("fern"), AgentState::Idle, "it lost ox-b, whatever the tracker says");
    town.claimed("moss", "ox-b");
}

#[test]
fn orders_are_claimed_for_whoever_wants_it_and_stay_in_the_inbox_until_it_is_known() {
    let mut town = Town::new();
    town.configure(|s| s.agents.auto_claim = true);
    town.agent("fern");
    town.does(&Command::AgentRegister(Box::new(Registration {
        auto_claim: Some(false),
        ..registration("moss")
    })));
    town.beads(&["gt-a", "gt-b"]);
    town.gives_away(&["gt-a", "gt-b"]);
    town.pass();
    assert_eq!((town.standing("gt-a"), town.standing("gt-b")), (Standing::Running, Standing::Assigned));
    let inbox = Command::AgentInbox { agent: "fern".to_owned(), keep: false };
    for _ in 0..2 {
        let Answer::Inbox { messages, .. } = town.does(&inbox) else { panic!("an inbox") };
        let [Message::Order { order, claim, .. }] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!((order.auto_claim, claim.as_ref()), (true, Some(&town.live("gt-a"))));
    }
    assert!(town.claims("fern", "gt-a").expect("its own").1);
    assert_eq!(town.mail("fern"), (vec![], vec![]));
    town.ends("fern", "gt-a", done()).expect("it is done");
}

#[test]
fn a_closed_bead_is_nobodys() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.bead("gt-a");
    let token = town.claimed("fern", "gt-a");
    town.close("gt-a");
    assert_eq!((town.state_of("fern"), town.standing("gt-a")), (AgentState::Idle, Standing::Closed));
    let says = WorkerSays::Progress { text: "still at it".to_owned() };
    match town.does(&Command::Worker { dispatch: token.to_string(), says }) {
        Answer::Heard { accepted, .. } => assert!(!accepted),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_claims_something_else_is_not_waited_for() {
    let mut town = Town::new();
    town.agents(&["fern", "moss"]);
    town.says("moss", AgentStatus::Blocked);
    town.beads(&["gt-a", "gt-b"]);
    town.gives_away(&["gt-a"]);
    town.pass();
    town.claimed("fern", "gt-b");
    town.says("moss", AgentStatus::Idle);
    town.pass();
    assert_eq!((town.sent(), town.state_of("fern")), (pairs(&[("gt-a", "moss")]), AgentState::Working));
}

#[test]
fn an_agent_neither_closes_nor_takes_what_another_has() {
    let mut town = Town::new();
    town.agents(&["ada", "fern"]);
    town.bead("gt-a");
    town.claimed("fern", "gt-a");
    // In these tests it is ada who asks.
    let close = Command::BeadClose { ids: vec!["gt-a".to_owned()], reason: None };
    assert_eq!(town.refuses(&close).code, "claimed");
    town.does(&Command::AgentRetire { agent: "ada".to_owned() });
    town.does(&close);
}

#[test]
fn a_bead_that_is_set_back_to_open_in_its_agents_name_is_its_agents() {
    let mut town = Town::new();
    town.configure(|s| s.rigs.entry(rig_name("gastown")).or_default().assign = RigAssign::Ready);
    town.agent("fern");
    town.bead("gt-a");
    town.claimed("fern", "gt-a");
    town.status("gt-a", BeadStatus::InProgress, Some("fern"));
    town.advance(Millis::minutes(10));
    assert_eq!(town.codes("gt-a"), [], "the claim is lost, and the bead open again");
    town.status("gt-a", BeadStatus::Open, None);
    assert_eq!(town.codes("gt-a"), [ReasonCode::ClaimedElsewhere]);
}
