//! Properties over random graphs, random histories and random bytes.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use yard_engine::agent::Registration;
use yard_engine::bead::{BeadEvent, BeadStatus, DepKind};
use yard_engine::command::{AgentStatus, NewTask, WorkerSays};
use yard_engine::dispatch::{Category, DispatchEvent, StopReason};
use yard_engine::event::KINDS;
use yard_engine::merge::MergeProblem;
use yard_engine::rig::RigSwitch;
use yard_engine::settings::Merge;
use yard_engine::{
    AccountName, AgentName, Command, DispatchId, Event, Millis, Recorded, Settings, State, WebhookFailure,
};

use crate::agents::{agent_name, registration};
use crate::asks::graph;
use crate::happenings::{Yard, happening, happens};
use crate::tasks::{submit_one, task_of};
use crate::town::{Town, bead_id, rig_name};
use crate::words::{add_of, watch_of};

/// Whether a bead may start by its own and inherited edges, worked out the long way.
fn unblocked(state: &State, bead: &str, seen: &mut Vec<String>) -> bool {
    if seen.iter().any(|s| s == bead) {
        return true;
    }
    seen.push(bead.to_owned());
    let Some(entry) = state.bead(&bead_id(bead)) else { return true };
    if seen.len() > 1 && entry.bead.is_closed() {
        return true;
    }
    entry.bead.dependencies.iter().all(|d| match &d.kind {
        DepKind::ParentChild => unblocked(state, d.on.as_str(), seen),
        kind => !kind.blocks() || state.bead(&d.on).is_some_and(|e| e.bead.is_closed()),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// Whatever happens: the town checks itself after every decision, and nothing starts before its blockers closed.
    #[test]
    fn no_history_breaks_the_town(beads in graph(), story in vec(happening(), 1..80)) {
        let mut yard = Yard::of(beads);
        for happening in &story {
            let (before, from) = (yard.town.state.clone(), yard.town.log.len());
            happens(&mut yard, happening);
            check_events(before, &yard.town.log[from..]);
        }
    }

    #[test]
    fn everything_ready_starts_when_there_is_no_limit(beads in graph()) {
        let mut town = Town::deferred(1_000);
        town.rig("web", "w");
        town.rig("ox", "ox");
        let ids: Vec<String> = beads.iter().filter_map(|b| b.id.clone()).collect();
        town.import(beads);
        for id in &ids {
            let _ = town.command(&Command::Sling(Box::new(crate::town::sling_of(&[id]))));
        }
        let scheduled: Vec<&String> = ids.iter().filter(|id| town.is_scheduled(id)).collect();
        let expected: Vec<&String> =
            scheduled.into_iter().filter(|id| unblocked(&town.state, id, &mut Vec::new())).collect();
        let mut started = town.pass().started;
        started.sort_by_key(|id| ids.iter().position(|i| i == id));
        prop_assert_eq!(started.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn random_bytes_are_refused_and_never_panic(kind in proptest::sample::select(KINDS.to_vec()), bytes in vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(Event::from_stored(kind, &text).is_err());
        let empty = "{}";
        prop_assert!(Event::from_stored(&text, empty).is_err());
        prop_assert!(State::restore(yard_engine::Seq(1), [("bead", "x", &*text)].into_iter()).is_err());
        let _ = serde_json::from_str::<Command>(&text);
        let _ = serde_json::from_str::<Settings>(&text);
    }

    #[test]
    fn damaged_events_never_panic(cut in 0_usize..400, flip in 0_usize..400, byte in any::<u8>()) {
        for recorded in SAMPLE.iter() {
            let kind = recorded.event.kind();
            let mut body = recorded.event.body().into_bytes();
            if let Some(b) = body.get_mut(flip) {
                *b = byte;
            }
            body.truncate(cut.max(1));
            if let Ok(event) = Event::from_stored(kind, &String::from_utf8_lossy(&body)) {
                // A town that never heard of what the event is about takes it all the same.
                State::default().apply(&yard_engine::Recorded { event, ..*recorded });
            }
        }
    }
}

/// No start of a decision may have an open blocker in the state it was made in, nor an id that was used before; and
/// what is closed does not close again.
fn check_events(mut state: State, events: &[yard_engine::Recorded]) {
    for recorded in events {
        match &recorded.event {
            Event::Dispatch(DispatchEvent::Started { dispatch }) => {
                let (id, bead) = (&dispatch.id, dispatch.id.bead().as_str());
                assert!(
                    unblocked(&state, bead, &mut Vec::new()),
                    "{bead} started before its blockers closed"
                );
                assert!(state.pause().is_none(), "{bead} started while paused");
                assert!(state.dispatch(id).is_none(), "{id} was used before");
            }
            Event::Bead(BeadEvent::Closed { id, .. }) => {
                let open = state.bead(id).is_some_and(|entry| !entry.bead.is_closed());
                assert!(open, "the close of {id} was seen twice");
            }
            _ => {}
        }
        state.apply(recorded);
        let checked = state.check_indexes();
        assert!(checked.is_ok(), "the indexes are right after every event, also {recorded:?}: {checked:?}");
    }
}

static SAMPLE: LazyLock<Vec<yard_engine::Recorded>> = LazyLock::new(sample_log);

/// A log that holds an event of every kind but the one that no decision makes.
fn sample_log() -> Vec<yard_engine::Recorded> {
    let mut town = Town::deferred(2);
    town.rig("gone", "gone");
    town.does(&Command::RigRemove { name: rig_name("gone") });
    town.switch("gastown", RigSwitch::Park);
    town.does(&Command::Undo);
    town.beads(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    town.needs("gt-b", "gt-a", DepKind::Blocks);
    town.does(&Command::DependencyRemove { id: "gt-b".to_owned(), on: "gt-a".to_owned() });
    town.status("gt-c", BeadStatus::Deferred, None);
    town.close("gt-c");
    town.does(&Command::BeadReopen { id: "gt-c".to_owned() });
    town.sling(&["gt-a", "gt-b"]);
    let soon = town.in_time(Millis(5));
    town.sling_with("gt-d", |r| r.not_before = Some(soon));
    town.does(&Command::Hold { id: "gt-b".to_owned(), held: true });
    town.does(&Command::Priority { id: "gt-b".to_owned(), priority: 3 });
    town.pause();
    town.resume();
    town.act(|tx| tx.host_observed(Some("load".to_owned())));
    town.act(|tx| tx.host_observed(None));
    town.act(|tx| tx.cluster_observed(4));
    town.pass();
    let id = town.live("gt-a");
    town.act(|tx| tx.worker_not_started(&id, "no processes left"));
    town.run(None, false);
    town.start_fails("gt-a", "no such program");
    town.run(None, false);
    let id = town.live("gt-a");
    town.runs("gt-a");
    town.act(|tx| tx.worker_step_done(&id, "work"));
    town.act(|tx| tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon"));
    town.exits_ok("gt-a");
    town.act(|tx| tx.worker_lost(&id, "late"));
    town.close("gt-b");
    town.advance(Millis(5));
    workspace_events(&mut town);
    convoy_events(&mut town);
    tracker_events(&mut town);
    second_thoughts(&mut town);
    task_events(&mut town);
    agent_events(&mut town);
    merge_events(&mut town);
    town.log.into_iter().chain(line_events()).collect()
}

fn second_thoughts(town: &mut Town) {
    town.does(&Command::Clear { bead: None });
    for command in [Command::Undo, Command::Redo, Command::Undo] {
        town.does(&command);
    }
    town.does(&Command::Retry { bead: "gt-low".to_owned() });
    town.does(&Command::Undo);
}

fn tracker_events(town: &mut Town) {
    let main = AccountName::parse("main").expect("a name");
    town.does(&Command::Clear { bead: None });
    town.start();
    let slots = town.state.live_count() as i64 + 1;
    town.configure(|s| {
        s.max_polecats = slots;
        s.accounts.entry(main.clone()).or_default().cooldown = Some(Millis::minutes(5));
    });
    town.beads(&["gt-low", "gt-urgent"]);
    town.sling_with("gt-low", |r| (r.priority, r.account) = (Some(10), Some(main)));
    town.start();
    let id = town.live("gt-low");
    for says in [
        WorkerSays::Checkpoint { note: "half".to_owned(), session: "s-1".parse().ok() },
        WorkerSays::Cost { usd: "0.42".parse().expect("an amount"), total: false, tokens: Some(1200) },
        WorkerSays::Progress { text: "reading".to_owned() },
        WorkerSays::Fail { message: "rate limited".to_owned(), unavailable: true },
    ] {
        town.does(&Command::Worker { dispatch: id.to_string(), says });
    }
    town.act(|tx| {
        tx.worker_steps(&id, &["work".to_owned(), "check".to_owned()]);
        tx.worker_wrote(&id, "reading");
        tx.worker_metered(&id, "0.1".parse().expect("an amount"), 5, "claude/s-2".parse().ok().as_ref());
    });
    town.sling_with("gt-urgent", |r| r.priority = Some(90));
    town.advance(Millis::minutes(31));
    town.pass();
    let now = town.now;
    town.act(|tx| tx.worker_heard(&id, now));
    town.exits("gt-low", 1, Category::Crash);
}

fn workspace_events(town: &mut Town) {
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a", "ox-b"]);
    let mut troubled = tracker.news();
    troubled.trouble = Some("its last line is cut off".to_owned());
    town.hears(&troubled);
    let id = town.state.alerts().next().expect("it was raised").id.clone();
    town.act(|tx| tx.alert_told(&id, None));
    town.does(&Command::AlertAck { id: id.to_string() });
    tracker.loses("ox-b");
    town.reads(&mut tracker);
    town.sling(&["ox-a"]);
    town.start();
    town.exits_ok("ox-a");
    town.advance(Millis::minutes(5));
}

fn task_events(town: &mut Town) {
    town.configure(|settings| settings.results_ttl = Millis::minutes(1));
    let callback = Some("https://x.example/".to_owned());
    let first = submit_one(town, NewTask { callback: callback.clone(), ..task_of("a") });
    submit_one(town, NewTask { after: vec![first.clone()], formula: "work".parse().ok(), ..task_of("a") });
    town.configure(|settings| settings.http.max_queue = 1);
    submit_one(town, NewTask { callback, ..task_of("a") });
    town.pass();
    town.runs(&first);
    let dispatch = town.live(&first);
    town.act(|tx| tx.task_answered(&dispatch, serde_json::json!({"ok": true})));
    town.exits_ok(&first);
    town.advance(Millis(0));
    let due: Vec<_> = town.state.due_webhooks(town.now).map(|task| task.id.clone()).collect();
    let failure = |error: &str| Some(WebhookFailure { error: error.to_owned(), hopeless: true });
    for (id, failure) in due.iter().zip([None, failure("gone")]) {
        town.act(|tx| tx.webhook_tried(id, failure));
    }
    town.advance(Millis::minutes(2));
    // Closed beads are at rest by now, and their time is up.
    (0..4).for_each(|_| town.scan());
}

fn merge_events(town: &mut Town) {
    let slots = town.state.live_count() as i64 + 4;
    town.configure(|s| (s.max_polecats, s.worker.merge) = (slots, Some(Merge::Direct)));
    for bead in ["gt-m1", "gt-m2", "gt-m3"] {
        town.bead(bead);
        town.sling(&[bead]);
        town.pass();
        town.works_on_branch(bead);
        town.leaves_commit(bead);
    }
    town.begins();
    town.act(|tx| tx.merge_composed(&bead_id("gt-m1"), "c0", "c1", true));
    let run = DispatchId::new(bead_id("gt-m1"), 2);
    town.act(|tx| tx.merge_check_lost(&run, "its shim died"));
    town.begins();
    town.act(|tx| tx.merge_composed(&bead_id("gt-m1"), "c0", "c1", false));
    town.act(|tx| tx.merge_landed(&bead_id("gt-m1"), "c1"));
    town.begins();
    let problem = MergeProblem::Conflict { files: vec!["a.rs".to_owned()] };
    town.act(|tx| tx.merge_blocked(&bead_id("gt-m2"), problem));
    town.does(&Command::Cancel { id: "gt-m3".to_owned(), at_once: false });
}

fn agent_events(town: &mut Town) {
    town.configure(|settings| {
        (settings.agents.tracks, settings.agents.hook) = (true, Some(vec!["tell".to_owned()]));
    });
    town.agents(&["fern", "moss"]);
    town.bead("gt-t1");
    town.bead_needing("gt-t2", &["gt-t1"]);
    town.gives_away(&["gt-t1", "gt-t2"]);
    town.pass();
    let (to, message) = town.state.untold_messages().remove(0);
    town.act(|tx| tx.message_told(&to, message.id(), Some("it is not there".to_owned())));
    let says = |agent: &AgentName, status| Command::AgentStatus {
        agent: agent.to_string(),
        status,
        note: Some("a reason".to_owned()),
    };
    town.does(&says(&to, AgentStatus::Blocked));
    town.does(&Command::AgentInbox { agent: to.to_string(), keep: false });
    town.does(&says(&to, AgentStatus::Offline));
    town.does(&Command::AgentHeartbeat { agent: to.to_string() });
    town.does(&Command::AgentRetire { agent: to.to_string() });
    let auto = Registration { auto_claim: Some(true), ..registration("reed") };
    town.does(&Command::AgentRegister(Box::new(auto)));
    town.beads(&["gt-t3", "gt-t4"]);
    town.gives_away(&["gt-t3", "gt-t4"]);
    town.pass();
    let taken = town.state.claims_of(&agent_name("reed")).next().expect("claimed for it").bead().to_string();
    town.claims("reed", &taken).expect("its own");
}

fn line_events() -> Vec<Recorded> {
    let mut town = Town::deferred(1);
    town.beads(&["gt-a", "gt-b"]);
    town.sling(&["gt-a", "gt-b"]);
    town.start();
    let first = town.live("gt-a");
    town.act(|tx| tx.line_up(&first));
    let next = town.state.lined_up().next().expect("somebody is next").1.id.clone();
    town.act(|tx| tx.called_back(&next));
    town.log
}

fn convoy_events(town: &mut Town) {
    town.beads(&["gt-x", "gt-y"]);
    let (convoy, _) = town.launch(&["gt-x"]);
    town.does(&watch_of(&convoy, "bob", true));
    town.close("gt-x");
    town.does(&add_of(&convoy, &["gt-y"]));
}

#[test]
fn every_kind_of_event_survives_being_written_down() {
    // `Town` compares each event with what is read back; this makes sure that each kind came by.
    let seen: std::collections::BTreeSet<&str> = SAMPLE.iter().map(|r| r.event.kind()).collect();
    let missing: Vec<&str> = KINDS.into_iter().filter(|kind| !seen.contains(kind)).collect();
    assert_eq!(missing, ["town.repaired"]);
    let repaired = Event::from(yard_engine::town::TownEvent::Repaired { difference: "x".to_owned() });
    assert_eq!(Event::from_stored(repaired.kind(), &repaired.body()).ok(), Some(repaired));
}

#[test]
fn a_newer_kind_of_event_and_a_body_of_another_kind_are_refused_clearly() {
    let newer = Event::from_stored("bead.teleported", "{}").expect_err("unknown");
    assert!(newer.to_string().contains("newer"), "{newer}");
    let closed = r#"{"type":"bead.reopened","id":"gt-a","actor":"ada"}"#;
    assert!(Event::from_stored("bead.reopened", closed).is_ok());
    let mixed = Event::from_stored("bead.closed", closed).expect_err("another kind");
    assert!(mixed.to_string().contains("bead.reopened"), "{mixed}");
}

#[test]
fn the_safety_scan_finds_nothing_in_a_healthy_town() {
    let mut town = Town::deferred(2);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.pass();
    let before = town.log.len();
    town.act(|tx| {
        tx.scan(None, usize::MAX);
    });
    assert_eq!(town.log.len(), before);
}
