//! Closed beads rest: they take little room, are stored as one row, and are as they were for whoever looks.

use std::collections::BTreeMap;

use serde_json::Value;
use yard_engine::dispatch::Outcome;
use yard_engine::{Command, State};

use crate::town::{Town, bead_id};

/// What a checkpoint holds, by kind and id.
type Rows = BTreeMap<(String, String), String>;

fn save(state: &mut State, rows: &mut Rows) {
    for row in state.take_changed_records() {
        match row.body {
            Some(body) => rows.insert((row.kind.to_owned(), row.id), body),
            None => rows.remove(&(row.kind.to_owned(), row.id)),
        };
    }
}

fn restore(state: &State, rows: &Rows) -> State {
    let rows = rows.iter().map(|((kind, id), body)| (kind.as_str(), id.as_str(), body.as_str()));
    State::restore(state.seq(), rows).expect("what was saved can be read")
}

fn kinds(rows: &Rows) -> Vec<&str> {
    let kinds = rows.keys().map(|(kind, _)| kind.as_str());
    kinds.filter(|kind| ["bead", "context", "dispatch", "rest"].contains(kind)).collect()
}

/// A town in which one bead crashed, was tried again and is done, and another waits for a third.
fn town() -> Town {
    let mut town = Town::deferred(1);
    town.beads(&["gt-a", "gt-b"]);
    town.bead_needing("gt-c", &["gt-a", "gt-b"]);
    town.sling(&["gt-a"]);
    town.start();
    town.runs("gt-a");
    town.crashes("gt-a");
    town.advance(yard_engine::Millis::minutes(60));
    town.start();
    town.runs("gt-a");
    town.exits_ok("gt-a");
    town
}

#[test]
fn a_bead_that_is_done_is_one_row_and_as_it_was_for_whoever_looks() {
    let mut state = town().replayed().clone();
    let awake = state.clone();
    let mut rows = Rows::new();
    save(&mut state, &mut rows);
    assert_eq!(kinds(&rows), ["bead", "bead", "rest"]);
    for state in [&state, &restore(&state, &rows)] {
        state.check_same_as(&awake).expect("rest changes nothing");
        state.check_indexes().expect("the indexes hold");
        let id = bead_id("gt-a");
        assert_eq!(state.bead(&id), awake.bead(&id));
        let outcomes: Vec<bool> = state
            .dispatches_of(&id)
            .map(|dispatch| {
                matches!(dispatch.ended.as_ref().map(|end| &end.outcome), Some(Outcome::Succeeded))
            })
            .collect();
        assert_eq!(outcomes, [false, true]);
        let last =
            state.bead(&id).and_then(|entry| entry.work.last_context.clone()).expect("it was asked for");
        assert!(state.context(&last).is_some_and(|context| context.predecessor.is_some()));
    }
}

#[test]
fn a_bead_that_is_opened_again_is_awake_with_all_that_happened_to_it() {
    let mut town = town();
    let mut rows = Rows::new();
    let mut state = town.replayed().clone();
    save(&mut state, &mut rows);
    let before = town.replayed().seq();
    town.does(&Command::BeadReopen { id: "gt-a".to_owned() });
    for recorded in town.log.iter().filter(|recorded| recorded.seq > before) {
        state.apply(recorded);
    }
    state.check_same_as(town.replayed()).expect("waking changes nothing");
    save(&mut state, &mut rows);
    assert_eq!(kinds(&rows), ["bead", "bead", "bead", "context", "context", "dispatch", "dispatch"]);
    restore(&state, &rows).check_same_as(town.replayed()).expect("what was stored apart is there");
}

#[test]
fn what_happened_before_it_was_opened_again_stays_known_after_it_is_done_anew() {
    let mut town = town();
    for times in 1..4 {
        town.does(&Command::BeadReopen { id: "gt-a".to_owned() });
        town.sling(&["gt-a"]);
        town.start();
        town.runs("gt-a");
        town.exits_ok("gt-a");
        // The town is compared with its replay and with its checkpoint at each of these steps.
        assert_eq!(town.dispatches("gt-a").len(), 2 + times);
    }
}

#[test]
fn those_that_wait_for_a_bead_at_rest_hear_of_its_second_life() {
    let mut town = town();
    town.close("gt-b");
    town.close("gt-c");
    town.does(&Command::BeadReopen { id: "gt-b".to_owned() });
    town.does(&Command::BeadReopen { id: "gt-c".to_owned() });
    let blockers =
        |town: &Town| town.state.bead(&bead_id("gt-c")).map(yard_engine::bead::BeadEntry::open_blockers);
    assert_eq!(blockers(&town), Some(1));
    town.does(&Command::BeadReopen { id: "gt-a".to_owned() });
    assert_eq!(blockers(&town), Some(2));
}

#[test]
fn beads_that_an_older_version_stored_record_by_record_are_read_and_then_rest() {
    let awake = town().replayed().clone();
    let mut rows = Rows::new();
    save(&mut awake.clone(), &mut rows);
    let stored = rows.remove(&("rest".to_owned(), "gt-a".to_owned())).expect("it rests");
    let stored: Value = serde_json::from_str(&stored).expect("JSON");
    rows.insert(("bead".to_owned(), "gt-a".to_owned()), stored["entry"].to_string());
    for (kind, list) in [("context", "contexts"), ("dispatch", "dispatches")] {
        for record in stored[list].as_array().expect("a list") {
            let id = record["id"].as_str().expect("an id").to_owned();
            rows.insert((kind.to_owned(), id), record.to_string());
        }
    }
    let mut restored = restore(&awake, &rows);
    restored.check_same_as(&awake).expect("the older rows say the same");
    save(&mut restored, &mut rows);
    assert_eq!(kinds(&rows), ["bead", "bead", "rest"]);
    restore(&awake, &rows).check_same_as(&awake).expect("and so do the newer ones");
}
