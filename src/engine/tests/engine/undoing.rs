//! Taking commands back and doing them again: the same town each time, and plain words where there is no way back.

use yard_engine::alert::AlertKind;
use yard_engine::bead::Verdict;
use yard_engine::dispatch::Category;
use yard_engine::preempt::Method;
use yard_engine::rig::RigSwitch;
use yard_engine::undo::ConfigEdit;
use yard_engine::{Answer, Command, Event, Millis, Refusal, Standing, State};

use crate::town::{Town, bead_id, rig_name};
use crate::words::{changed, close_of, land_of, stage_of, watch_of};

const BEADS: [&str; 4] = ["gt-a", "gt-b", "gt-broken", "gt-failed"];

fn retry(bead: &str) -> Command {
    Command::Retry { bead: bead.to_owned() }
}

fn cancel(bead: &str, at_once: bool) -> Command {
    Command::Cancel { id: bead.to_owned(), at_once }
}

fn message(answer: &Answer) -> &str {
    match answer {
        Answer::Done { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

fn undo(town: &mut Town) -> String {
    message(&town.does(&Command::Undo)).to_owned()
}

fn redo(town: &mut Town) -> String {
    message(&town.does(&Command::Redo)).to_owned()
}

fn breaks(town: &mut Town, bead: &str) {
    while town.standing(bead) != Standing::CircuitBroken {
        town.run(None, false);
        town.start_fails(bead, "no such program");
    }
}

fn asked(town: &mut Town, bead: &str) {
    town.sling_with(bead, |request| request.no_convoy = true);
}

/// Two beads that wait, one of them after a crash; one that could not be started, one that failed for good.
fn busy_town() -> Town {
    let mut town = Town::deferred(1);
    town.beads(&BEADS);
    asked(&mut town, "gt-broken");
    breaks(&mut town, "gt-broken");
    asked(&mut town, "gt-failed");
    town.start();
    town.exits("gt-failed", 1, Category::HardCap);
    asked(&mut town, "gt-a");
    town.start();
    town.crashes("gt-a");
    asked(&mut town, "gt-b");
    town
}

/// What an operator sees of a town.
fn picture(town: &Town) -> Vec<String> {
    let mut lines: Vec<String> = BEADS.iter().map(|bead| picture_of(town, bead)).collect();
    lines.push(format!("{:?}", town.state.pause()));
    lines.extend(town.state.rigs().map(|rig| format!("{rig:?}")));
    let open = town.state.convoys().filter(|convoy| convoy.closed.is_none());
    lines.extend(open.map(|c| format!("{} {} {:?}", c.id, c.status(), c.watchers)));
    let mut alerts: Vec<String> = town.state.all_alerts().map(|alert| alert.message.clone()).collect();
    alerts.sort();
    lines.extend(alerts);
    lines
}

fn picture_of(town: &Town, bead: &str) -> String {
    let work = town.work(bead);
    let id = work.context.as_ref().or(work.last_context.as_ref()).expect("it was asked for");
    let context = town.state.context(id).expect("known");
    let used = (context.crashes, context.not_before, context.active, context.fields.dispatch_failures);
    let facts = (context.priority, context.held, context.order, &context.fields.last_failure);
    format!("{bead} {:?} {:?} {used:?} {facts:?} {}", town.standing(bead), work.verdict, town.why(bead))
}

/// Does something, takes it back, does it again, takes that back.
fn there_and_back(name: &str, town: &mut Town, command: &Command) {
    let before = picture(town);
    town.does(command);
    let after = picture(town);
    assert_ne!(before, after, "{name} changes something");
    for _ in 0..2 {
        assert!(changed(&town.does(&Command::Undo)), "{name}");
        assert_eq!(picture(town), before, "{name} taken back");
        assert!(changed(&town.does(&Command::Redo)), "{name}");
        assert_eq!(picture(town), after, "{name} done again");
    }
    town.does(&Command::Undo);
    assert_eq!(picture(town), before, "{name} taken back at last");
}

#[test]
fn what_is_taken_back_can_be_done_again_and_taken_back_again() {
    let pause = |town: &Town| Command::Pause {
        reason: Some("lunch".to_owned()),
        until: Some(town.in_time(Millis::minutes(5))),
    };
    let commands = [
        ("pause", pause(&busy_town())),
        ("hold", Command::Hold { id: "gt-a".to_owned(), held: true }),
        ("priority", Command::Priority { id: "gt-b".to_owned(), priority: 77 }),
        ("dock", Command::RigSwitch { name: rig_name("gastown"), switch: RigSwitch::Dock }),
        ("clear", Command::Clear { bead: None }),
        ("clear one", Command::Clear { bead: Some("gt-a".to_owned()) }),
        ("cancel", cancel("gt-a", false)),
        ("retry of what waits", retry("gt-a")),
        ("retry of what is broken", retry("gt-broken")),
        ("retry of what failed", retry("gt-failed")),
        ("stage", stage_of(&["gt-a", "gt-b"])),
    ];
    for (name, command) in &commands {
        there_and_back(name, &mut busy_town(), command);
    }
    // All of them in one town, one after the other.
    let mut town = busy_town();
    for (name, command) in &commands {
        there_and_back(name, &mut town, command);
    }
}

#[test]
fn what_is_done_to_convoys_is_taken_back_too() {
    let mut town = busy_town();
    let convoy = town.convoy(&["gt-a", "gt-b"]);
    there_and_back("watch", &mut town, &watch_of(&convoy, "bob", true));
    there_and_back("close", &mut town, &close_of(&convoy, true));
    let owned = town.owned_convoy(&["gt-failed"]);
    there_and_back("land", &mut town, &land_of(&owned, true));
}

#[test]
fn a_convoy_that_is_complete_stays_closed() {
    let mut town = busy_town();
    let convoy = town.convoy(&["gt-a"]);
    town.does(&close_of(&convoy, true));
    town.close("gt-a");
    assert!(undo(&mut town).contains("is closed"));
    assert!(town.convoy_record(&convoy).closed.is_some());
}

#[test]
fn a_pause_comes_back_with_who_made_it() {
    let mut town = busy_town();
    town.pause();
    let first = town.state.pause().cloned();
    town.advance(Millis::minutes(1));
    town.does(&Command::Pause { reason: Some("dinner".to_owned()), until: None });
    undo(&mut town);
    assert_eq!(town.state.pause().cloned(), first, "since then, too");
    town.resume();
    town.advance(Millis::minutes(1));
    undo(&mut town);
    assert_eq!(town.state.pause().cloned(), first);
}

#[test]
fn a_pause_that_is_over_needs_no_taking_back_and_does_not_come_again() {
    let mut town = busy_town();
    let until = town.in_time(Millis::minutes(5));
    town.does(&Command::Pause { reason: None, until: Some(until) });
    assert_eq!(town.state.undoable().expect("an entry").did, "scheduler pause --for 5m");
    undo(&mut town);
    town.advance(Millis::minutes(6));
    assert!(redo(&mut town).contains("can no longer be done again: the pause would have ended at"));
    assert!(town.state.pause().is_none() && town.state.redoable().is_none());
    let until = town.in_time(Millis::minutes(5));
    town.does(&Command::Pause { reason: None, until: Some(until) });
    town.advance(Millis::minutes(6));
    let answer = town.does(&Command::Undo);
    assert!(!changed(&answer) && message(&answer).ends_with("dispatch is not paused"), "{answer:?}");
}

#[test]
fn a_new_command_ends_what_could_be_done_again() {
    let mut town = busy_town();
    town.does(&Command::Hold { id: "gt-a".to_owned(), held: true });
    town.pause();
    undo(&mut town);
    undo(&mut town);
    assert_eq!(town.state.redoable().expect("an entry").did, "hold gt-a");
    redo(&mut town);
    assert_eq!(town.state.redoable().expect("an entry").did, "scheduler pause");
    asked(&mut town, "gt-b");
    assert!(town.state.redoable().is_some(), "asking for work is no operator's command");
    town.does(&Command::Priority { id: "gt-b".to_owned(), priority: 3 });
    assert!(town.state.redoable().is_none());
    assert_eq!(town.refuses(&Command::Redo).code, "nothing-to-redo");
    assert!(town.context("gt-a").held);
}

#[test]
fn a_retry_is_not_taken_back_once_it_has_started() {
    let mut town = busy_town();
    town.does(&Command::Clear { bead: None });
    town.does(&retry("gt-broken"));
    town.start();
    assert!(undo(&mut town).contains("gt-broken has started meanwhile"));
    assert_eq!(town.standing("gt-broken"), Standing::Running);
    town.exits_ok("gt-broken");
    assert!(changed(&town.does(&Command::Undo)), "the clear before it");
}

#[test]
fn a_retry_that_is_taken_back_leaves_verdict_history_and_alert() {
    let mut town = busy_town();
    assert_eq!(town.alerts_of(AlertKind::CircuitBroken).len(), 1);
    town.does(&retry("gt-broken"));
    assert!(town.alerts_of(AlertKind::CircuitBroken).is_empty());
    undo(&mut town);
    assert_eq!(town.work("gt-broken").verdict, Some(Verdict::CircuitBroken));
    assert_eq!(town.last_closed("gt-broken").0.fields.dispatch_failures, 3);
    let alerts = town.alerts_of(AlertKind::CircuitBroken);
    assert!(alerts[0].message.contains("no such program"), "{}", alerts[0].message);
}

#[test]
fn what_changed_meanwhile_is_not_done_again() {
    let mut town = busy_town();
    town.does(&Command::Clear { bead: None });
    undo(&mut town);
    town.close("gt-a");
    town.bead("gt-new");
    town.sling(&["gt-new"]);
    assert_eq!(redo(&mut town), "done again: scheduler clear");
    assert!(!town.is_scheduled("gt-b") && town.is_scheduled("gt-new"), "only what was cleared then");
    undo(&mut town);
    assert!(town.is_scheduled("gt-b"));
    town.does(&Command::Hold { id: "gt-b".to_owned(), held: true });
    undo(&mut town);
    assert_eq!(town.start(), ["gt-b"]);
    assert!(redo(&mut town).contains("\"hold gt-b\" can no longer be done again: gt-b is running"));
}

#[test]
fn a_worker_that_was_stopped_is_said_to_be_stopped() {
    for (at_once, word) in [(false, "cancel gt-b"), (true, "kill gt-b")] {
        let mut town = busy_town();
        town.does(&Command::Hold { id: "gt-a".to_owned(), held: true });
        town.start();
        town.does(&cancel("gt-b", at_once));
        town.does(&cancel("gt-b", at_once));
        assert!(town.state.undoable().is_some_and(|entry| entry.did == word && entry.cannot.is_some()));
        let said = undo(&mut town);
        assert!(said.contains("cannot be taken back") && said.contains("ym scheduler retry gt-b"), "{said}");
        assert!(said.ends_with("the next undo is for: hold gt-a"), "{said}");
        assert!(town.context("gt-a").held, "nothing else was taken back instead");
        assert!(town.state.redoable().is_none());
        assert_eq!(undo(&mut town), "took back: hold gt-a");
    }
}

#[test]
fn a_launch_is_said_to_be_under_way() {
    let mut town = busy_town();
    let convoy = town.staged(&["gt-a", "gt-b"]);
    town.launch_by_force(&[&convoy]);
    assert!(undo(&mut town).contains("cannot be taken back: its beads are on the schedule"));
    assert_eq!(town.convoy_record(&convoy).status(), "open");
    assert!(undo(&mut town).contains("is open: it was launched meanwhile"), "nor is its staging");
    assert_eq!(town.convoy_record(&convoy).status(), "open");
}

#[test]
fn a_convoy_that_was_staged_before_is_not_put_away() {
    let mut town = busy_town();
    let convoy = town.staged(&["gt-a", "gt-b"]);
    town.stage(&[&convoy]);
    assert!(undo(&mut town).contains("planned afresh"));
    assert_eq!(town.convoy_record(&convoy).status(), "staged:warnings");
    undo(&mut town);
    assert_eq!(town.convoy_record(&convoy).status(), "closed");
}

fn preempted() -> Town {
    let mut town = busy_town();
    town.does(&retry("gt-a"));
    assert_eq!(town.start(), ["gt-a"]);
    town.does(&Command::Preempt { id: "gt-a".to_owned(), candidate: None });
    town
}

fn last_method(town: &Town) -> Option<Method> {
    town.log.iter().rev().find_map(|recorded| match &recorded.event {
        Event::Preemption(yard_engine::preempt::PreemptionEvent::Ended { method, .. }) => Some(*method),
        _ => None,
    })
}

#[test]
fn a_preemption_is_taken_back_while_its_victim_runs() {
    let mut town = preempted();
    assert_eq!(undo(&mut town), "took back: preempt gt-a");
    assert!(town.state.preemption().is_none());
    assert_eq!(last_method(&town), Some(Method::Withdrawn));
    assert_eq!(redo(&mut town), "done again: preempt gt-a");
    assert_eq!(town.state.preemption().map(|cycle| cycle.bead.as_str()), Some("gt-b"));
}

#[test]
fn who_has_given_way_has_given_way() {
    let mut town = preempted();
    town.exits("gt-a", 75, Category::Yielded);
    let said = undo(&mut town);
    let words = "gt-a has given way; a preemption cannot be taken back, its bead is queued again by itself";
    assert!(said.ends_with(words), "{said}");
    assert!(town.is_scheduled("gt-a"));
}

// Settings.

fn set_16() -> ConfigEdit {
    ConfigEdit {
        key: "scheduler.max_polecats".to_owned(),
        before: Some("max_polecats = 1\n".to_owned()),
        after: Some("max_polecats = 16\n".to_owned()),
    }
}

fn configures(town: &mut Town, edit: Result<ConfigEdit, Refusal>) -> Result<Answer, Refusal> {
    let key = set_16().key;
    town.kitchen.edits.insert(key.clone(), edit);
    let answer = town.command(&Command::Configure { key, value: Some("16".to_owned()) });
    town.kitchen.edits.clear();
    answer
}

fn edit_of(commands: &[Command]) -> &ConfigEdit {
    match commands {
        [Command::ConfigPutBack { edit }] => edit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_setting_is_taken_back_by_the_opposite_edit() {
    let mut town = busy_town();
    configures(&mut town, Ok(set_16())).expect("made");
    let entry = town.state.undoable().expect("an entry").clone();
    assert_eq!(entry.did, "config set scheduler.max_polecats 16");
    assert_eq!(*edit_of(&entry.inverse), set_16().reversed());
    assert_eq!(undo(&mut town), "took back: config set scheduler.max_polecats 16");
    assert_eq!(*edit_of(&town.state.redoable().expect("an entry").inverse), set_16());
    redo(&mut town);
    assert_eq!(town.state.undoable(), Some(&entry));
}

#[test]
fn a_setting_that_somebody_changed_since_is_left_alone() {
    let mut town = busy_town();
    configures(&mut town, Ok(set_16())).expect("made");
    let refusal = Refusal::new("config-changed", "it is 20 in the config file by now");
    town.kitchen.edits.insert(set_16().key, Err(refusal));
    let answer = town.does(&Command::Undo);
    assert!(!changed(&answer) && message(&answer).ends_with("it is 20 in the config file by now"));
    assert!(town.state.redoable().is_none());
}

#[test]
fn a_setting_that_was_refused_or_was_so_already_is_not_remembered() {
    let mut town = busy_town();
    let before = town.state.undoable().cloned();
    let refusal = configures(&mut town, Err(Refusal::new("bad-value", "no"))).expect_err("refused");
    assert_eq!(refusal.code, "bad-value");
    let same = ConfigEdit { before: set_16().after, ..set_16() };
    assert!(!changed(&configures(&mut town, Ok(same)).expect("nothing to do")));
    let nobody = Command::Configure { key: "store".to_owned(), value: None };
    assert_eq!(town.refuses(&nobody).code, "no-config");
    assert_eq!(town.state.undoable().cloned(), before);
}

// Logs of before there was a redo.

#[test]
fn old_logs_and_checkpoints_can_be_read() {
    let old = r#"{"type":"operator.undid","did":"hold gt-a","actor":"ada"}"#;
    Event::from_stored("operator.undid", old).expect("without what does it again");
    let did = r#"{"type":"operator.did","undoable":{"did":"scheduler resume","inverse":[{"do":"pause","reason":"lunch","until":null}]},"actor":"ada"}"#;
    Event::from_stored("operator.did", did).expect("without words");
    let mut town = busy_town();
    town.does(&Command::Hold { id: "gt-a".to_owned(), held: true });
    undo(&mut town);
    let row = town.state.take_changed_records().into_iter().find(|row| row.kind == "town").expect("a row");
    let mut body: serde_json::Value = serde_json::from_str(&row.body.expect("a body")).expect("JSON");
    assert!(body.as_object_mut().expect("an object").remove("redo").is_some());
    let text = body.to_string();
    let state = State::restore(town.state.seq(), [("town", "town", text.as_str())].into_iter());
    assert!(state.expect("readable").redoable().is_none());
}

#[test]
fn the_beads_of_an_undone_retry_are_not_fed_again() {
    let mut town = Town::deferred(1);
    town.beads(&["gt-a"]);
    let convoy = town.staged(&["gt-a"]);
    town.launch(&[&convoy]);
    breaks(&mut town, "gt-a");
    town.does(&retry("gt-a"));
    undo(&mut town);
    assert_eq!(town.pass().started, Vec::<String>::new());
    assert_eq!(town.state.standing(&bead_id("gt-a")), Some(Standing::CircuitBroken));
}
