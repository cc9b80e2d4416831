//! Beads of workspaces: what a reading shows becomes the town's, each change once, and nothing is ever written back.

use yard_engine::alert::AlertKind;
use yard_engine::bead::{BeadChange, BeadEvent, BeadStatus, DepKind};
use yard_engine::context::{CloseReason, Context};
use yard_engine::readiness::ReasonCode;
use yard_engine::{Command, Event, Millis, Standing};

use crate::town::{Town, bead_id, new_bead, rig_name};
use crate::workspace::{Workspace, closed_at};

/// A town with the workspace rig `ox` that shows these beads.
fn town_with(ids: &[&str]) -> (Town, Workspace) {
    let mut town = Town::deferred(5);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(ids);
    town.reads(&mut tracker);
    (town, tracker)
}

// What readings show.

#[test]
fn a_close_is_recorded_once_however_often_and_however_it_is_read() {
    let (mut town, mut tracker) = town_with(&["ox-a", "ox-b"]);
    tracker.closes("ox-a");
    let reading = tracker.news();
    town.hears(&reading);
    town.hears(&reading);
    town.reads(&mut tracker);
    town.reads_all(&mut tracker);
    assert_eq!(town.count("bead.closed"), 1);
    town.restart();
    let before = town.log.len();
    town.reads_all(&mut tracker);
    town.hears(&reading);
    assert_eq!(town.kinds_since(before), [""; 0], "a restart sees nothing new");
}

#[test]
fn a_close_is_told_with_its_trackers_time_and_reason() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    let closed = town.log.iter().find_map(|recorded| match &recorded.event {
        Event::Bead(BeadEvent::Closed { reason, actor, closed_at, .. }) => {
            Some((reason.clone(), actor.clone(), *closed_at))
        }
        _ => None,
    });
    assert_eq!(closed, Some(("done".to_owned(), "beads:ox".to_owned(), Some(closed_at()))));
    let bead = &town.state.bead(&bead_id("ox-a")).expect("known").bead;
    assert_eq!((bead.closed_at, bead.close_reason.as_deref()), (Some(closed_at()), Some("done")));
}

#[test]
fn a_close_that_nobody_saw_is_seen_by_the_next_reading() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    tracker.closes("ox-a");
    let _lost = tracker.news();
    town.restart();
    town.reads_all(&mut tracker);
    assert_eq!((town.standing("ox-a"), town.count("bead.closed")), (Standing::Closed, 1));
}

#[test]
fn a_bead_that_arrives_closed_satisfies_whoever_waits_for_it() {
    let (mut town, mut tracker) = town_with(&[]);
    tracker.has_needing("ox-b", &["ox-a"]);
    town.reads(&mut tracker);
    assert_eq!(town.codes("ox-b"), [ReasonCode::MissingDependency]);
    tracker.has(&["ox-a"]);
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!(town.codes("ox-b"), []);
}

#[test]
fn a_deleted_bead_satisfies_whoever_waits_for_it_as_trackers_have_it() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    tracker.has_needing("ox-b", &["ox-a"]);
    tracker.changes("ox-a", |bead| bead.status = BeadStatus::Tombstone);
    town.reads(&mut tracker);
    assert_eq!((town.standing("ox-a"), town.codes("ox-b")), (Standing::Closed, Vec::new()));
}

#[test]
fn a_reopened_bead_blocks_again() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    tracker.has_needing("ox-b", &["ox-a"]);
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    tracker.reopens("ox-a");
    town.reads(&mut tracker);
    assert_eq!((town.count("bead.reopened"), town.codes("ox-b")), (1, vec![ReasonCode::BlockedBy]));
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!((town.count("bead.closed"), town.codes("ox-b")), (2, vec![]));
}

#[test]
fn changed_fields_are_taken_over_and_unchanged_beads_left_alone() {
    let (mut town, mut tracker) = town_with(&["ox-a", "ox-b"]);
    let before = town.count("bead.observed");
    tracker.changes("ox-a", |bead| (bead.title, bead.priority) = ("sharper".to_owned(), 0));
    town.reads_all(&mut tracker);
    assert_eq!(town.count("bead.observed"), before + 1);
    town.sling(&["ox-a"]);
    let bead = &town.state.bead(&bead_id("ox-a")).expect("known").bead;
    assert_eq!((bead.title.as_str(), town.context("ox-a").priority), ("sharper", 90));
}

#[test]
fn a_close_with_other_changes_is_one_close() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    tracker.changes("ox-a", |bead| bead.title = "sharper".to_owned());
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    let bead = &town.state.bead(&bead_id("ox-a")).expect("known").bead;
    assert_eq!((bead.title.as_str(), bead.is_closed(), town.count("bead.closed")), ("sharper", true, 1));
}

#[test]
fn dependencies_follow_the_tracker() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    tracker.has_needing("ox-b", &["ox-a"]);
    town.reads(&mut tracker);
    assert_eq!(town.codes("ox-b"), [ReasonCode::BlockedBy]);
    tracker.changes("ox-b", |bead| bead.dependencies.clear());
    town.reads(&mut tracker);
    assert_eq!(town.codes("ox-b"), []);
}

// Disappearing.

#[test]
fn only_certain_disappearances_are_believed() {
    let (mut town, mut tracker) = town_with(&["ox-a", "ox-b"]);
    tracker.loses("ox-a");
    let mut doubtful = tracker.whole();
    doubtful.vanished = false;
    town.hears(&doubtful);
    assert_eq!((town.standing("ox-a"), town.count("bead.vanished")), (Standing::Open, 0));
    town.reads_all(&mut tracker);
    assert_eq!(town.state.standing(&bead_id("ox-a")), None);
    assert_eq!((town.standing("ox-b"), town.count("bead.vanished")), (Standing::Open, 1));
}

#[test]
fn a_reading_makes_only_beads_of_its_own_workspace_disappear() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    let mut other = town.workspace("cow", "cow");
    other.has(&["cow-a"]);
    town.reads(&mut other);
    town.bead("gt-a");
    let mut reading = tracker.news();
    reading.gone = ["cow-a", "gt-a", "ox-nobody"].map(bead_id).to_vec();
    town.hears(&reading);
    town.reads_all(&mut tracker);
    assert_eq!((town.count("bead.vanished"), town.state.bead_count()), (0, 3));
}

#[test]
fn whoever_waits_for_a_vanished_bead_names_it_as_its_tracker_wrote_it() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    let mut other = town.workspace("cow", "cow");
    other.has_needing("cow-b", &["external:ox:ox-a"]);
    town.reads(&mut other);
    assert_eq!(town.codes("cow-b"), [ReasonCode::BlockedBy]);
    tracker.loses("ox-a");
    town.reads(&mut tracker);
    assert_eq!(town.codes("cow-b"), [ReasonCode::MissingDependency]);
    assert!(town.why("cow-b").contains("external:ox:ox-a"), "{}", town.why("cow-b"));
}

#[test]
fn a_bead_that_vanishes_while_queued_leaves_the_schedule() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    town.sling(&["ox-a"]);
    let context = town.context("ox-a").id.clone();
    tracker.loses("ox-a");
    assert_eq!(town.turn_hearing(&tracker.news()), [""; 0]);
    let closed = town.state.context(&context).and_then(|c| c.closed.as_ref()).map(|c| c.reason);
    assert_eq!((closed, town.state.open_context_count()), (Some(CloseReason::StaleWorkBead), 0));
}

#[test]
fn a_file_that_was_cut_short_costs_no_request_and_raises_one_alert_until_it_is_whole_again() {
    let (mut town, mut tracker) = town_with(&["ox-a", "ox-b", "ox-c"]);
    town.pause();
    town.sling(&["ox-a", "ox-b"]);
    let lost = [tracker.loses("ox-a"), tracker.loses("ox-c")];
    town.reads(&mut tracker);
    let alerts = town.alerts_of(AlertKind::Source);
    assert_eq!(
        alerts.iter().map(|alert| alert.ids.clone()).collect::<Vec<_>>(),
        [["ox-a"]],
        "nobody misses ox-c"
    );
    for bead in lost {
        tracker.regains(bead);
    }
    town.reads(&mut tracker);
    assert_eq!(town.standing("ox-a"), Standing::Queued, "it is on the schedule again");
    assert_eq!((town.alerts_of(AlertKind::Source).len(), town.count("alert.raised")), (0, 1));
}

#[test]
fn a_conflict_is_over_when_the_second_workspace_shows_the_bead_no_longer() {
    let (mut town, _tracker) = town_with(&["ox-a"]);
    let mut other = town.workspace("cow", "cow");
    other.has(&["cow-a", "ox-a"]);
    town.reads(&mut other);
    assert_eq!(town.alert_kinds(), [AlertKind::SourceConflict]);
    other.loses("ox-a");
    town.reads(&mut other);
    assert_eq!(town.alert_kinds(), []);
}

#[test]
fn a_bead_that_vanished_comes_back_with_its_attempts_and_its_history() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    town.convoy(&["ox-a"]);
    town.start();
    let lost = tracker.loses("ox-a");
    town.reads(&mut tracker);
    let first = town.state.live_dispatches().next().expect("its worker runs on").id.clone();
    town.act(|tx| tx.worker_lost(&first, "its shim died"));
    assert_eq!(town.state.open_context_count(), 0, "nothing is tried again for a bead nobody has");
    tracker.regains(lost);
    assert_eq!(
        town.turn_hearing(&tracker.news()),
        [""; 0],
        "it keeps its place, and its wait after the crash"
    );
    assert_eq!(town.codes("ox-a"), [ReasonCode::NotBefore]);
    town.advance(Millis::minutes(1));
    assert_eq!(
        (town.pass().started, town.live("ox-a").to_string()),
        (vec!["ox-a".to_owned()], "ox-a@2".to_owned())
    );
    assert!(town.work("ox-a").history.len() > 5, "what happened before is part of its history");
}

#[test]
fn a_bead_that_vanishes_and_returns_while_its_worker_runs_is_not_started_again() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    town.convoy(&["ox-a"]);
    town.start();
    let lost = tracker.loses("ox-a");
    town.reads(&mut tracker);
    tracker.regains(lost);
    assert_eq!(town.turn_hearing(&tracker.news()), [""; 0]);
    assert_eq!(town.running(), ["ox-a"]);
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    town.exits_ok("ox-a");
    assert_eq!((town.standing("ox-a"), town.work("ox-a").attempts), (Standing::Closed, 1));
}

#[test]
fn a_start_under_way_outlives_its_bead() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    let soon = town.in_time(Millis::seconds(1));
    town.sling_with("ox-a", |request| request.deadline = Some(soon));
    town.pass();
    let (dispatch, context) = (town.live("ox-a"), town.context("ox-a").id.clone());
    tracker.loses("ox-a");
    town.reads(&mut tracker);
    town.advance(Millis::seconds(2));
    town.recover(false);
    let is_open = |town: &Town| town.state.context(&context).is_some_and(Context::is_open);
    assert!(is_open(&town), "its one end is still to come");
    town.act(|tx| tx.worker_never_ran(&dispatch, "its claim is revoked"));
    assert!(!is_open(&town));
}

#[test]
fn a_clear_leaves_a_start_under_way_alone_also_when_its_bead_has_vanished() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    town.sling(&["ox-a"]);
    town.pass();
    tracker.loses("ox-a");
    town.reads(&mut tracker);
    town.does(&Command::Clear { bead: None });
    assert_eq!(town.count("context.closed"), 0, "it has begun");
}

#[test]
fn the_worker_of_a_vanished_bead_can_be_called_off() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    town.sling(&["ox-a"]);
    town.start();
    let dispatch = town.live("ox-a");
    tracker.loses("ox-a");
    town.reads(&mut tracker);
    town.does(&Command::Cancel { id: dispatch.to_string(), at_once: false });
    town.act(|tx| tx.worker_ended(&dispatch, &crate::town::stopped()));
    assert_eq!(town.state.live_count(), 0);
}

#[test]
fn commands_about_a_vanished_bead_are_refused_by_whatever_name() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    town.sling(&["ox-a"]);
    let context = town.context("ox-a").id.to_string();
    town.start();
    town.crashes("ox-a");
    tracker.loses("ox-a");
    town.reads(&mut tracker);
    for id in ["ox-a", "ox-a@1", &context] {
        let id = id.to_owned();
        for command in [
            Command::Hold { id: id.clone(), held: true },
            Command::Priority { id: id.clone(), priority: 3 },
            Command::Cancel { id: id.clone(), at_once: false },
            Command::Retry { bead: id.clone() },
        ] {
            town.refuses(&command);
        }
    }
}

#[test]
fn a_rig_takes_its_beads_along_when_it_leaves() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    tracker.closes("ox-a");
    let late = tracker.news();
    town.does(&Command::RigRemove { name: rig_name("ox") });
    town.hears(&late);
    assert_eq!((town.state.bead_count(), town.count("bead.closed")), (0, 0));
}

// Owners, and trouble.

#[test]
fn an_id_belongs_to_whoever_had_it_first() {
    let mut town = Town::deferred(5);
    town.beads(&["ox-z", "ox-b"]);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a", "ox-b", "ox-z"]);
    tracker.closes("ox-b");
    tracker.closes("ox-z");
    let mut reading = tracker.whole();
    reading.beads.reverse();
    town.hears(&reading);
    town.hears(&reading);
    for (id, source) in [("ox-a", true), ("ox-b", false), ("ox-z", false)] {
        let entry = town.state.bead(&bead_id(id)).expect("known");
        assert_eq!((entry.bead.source.is_some(), entry.bead.is_closed()), (source, false), "{id}");
    }
    let [conflict] = town.alerts_of(AlertKind::SourceConflict)[..] else { panic!("one alert") };
    assert_eq!(conflict.ids, ["ox-b", "ox-z"]);
    tracker.loses("ox-b");
    tracker.loses("ox-z");
    town.reads_all(&mut tracker);
    assert_eq!(town.alert_kinds(), []);
}

#[test]
fn of_two_workspaces_with_one_id_the_first_keeps_it() {
    let (mut town, mut first) = town_with(&["ox-a"]);
    let mut second = town.workspace("cow", "cow");
    second.has(&["ox-a", "cow-a"]);
    second.closes("ox-a");
    town.reads_all(&mut second);
    assert_eq!((town.standing("ox-a"), town.standing("cow-a")), (Standing::Open, Standing::Open));
    assert_eq!(town.alert_kinds(), [AlertKind::SourceConflict]);
    second.loses("ox-a");
    town.reads(&mut second);
    assert_eq!(town.count("bead.vanished"), 0, "it was never the second one's to lose");
    first.closes("ox-a");
    town.reads(&mut first);
    assert_eq!(town.standing("ox-a"), Standing::Closed);
}

#[test]
fn an_id_that_comes_free_goes_to_the_workspace_that_shows_it_once_that_is_read_anew() {
    let mut town = Town::deferred(5);
    town.configure(|settings| settings.results_ttl = Millis::minutes(1));
    town.beads(&["ox-a", "ox-b"]);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    town.reads(&mut tracker);
    tracker.has(&["ox-b", "ox-c"]);
    town.reads(&mut tracker);
    let [conflict] = town.alerts_of(AlertKind::SourceConflict)[..] else { panic!("one alert") };
    assert_eq!(conflict.ids, ["ox-a", "ox-b"], "what is not in the last reading is still shown");
    town.close("ox-a");
    town.advance(Millis::minutes(5));
    (0..4).for_each(|_| town.scan());
    assert!(town.state.bead(&bead_id("ox-a")).is_none(), "its time is up");
    let ox = rig_name("ox");
    assert!(town.state.must_be_read_anew(&ox) && town.state.source_stamp(&ox).is_none());
    tracker.has(&["ox-d"]);
    town.reads(&mut tracker);
    town.restart();
    assert!(town.state.must_be_read_anew(&ox), "what changed since is not everything");
    town.reads_all(&mut tracker);
    assert!(!town.state.must_be_read_anew(&ox) && town.state.source_stamp(&ox).is_some());
    let owner = |id| town.state.bead(&bead_id(id)).and_then(|entry| entry.bead.source.clone());
    assert_eq!(["ox-a", "ox-b", "ox-d"].map(owner), [Some(ox.clone()), None, Some(ox)]);
    let [conflict] = town.alerts_of(AlertKind::SourceConflict)[..] else { panic!("one alert") };
    assert_eq!(conflict.ids, ["ox-b"]);
}

#[test]
fn a_bead_that_one_workspace_loses_is_the_other_ones_that_shows_it_too() {
    let (mut town, mut first) = town_with(&["ox-a"]);
    let mut second = town.workspace("cow", "cow");
    second.has(&["ox-a", "cow-a"]);
    town.reads(&mut second);
    first.loses("ox-a");
    town.reads(&mut first);
    assert!(town.state.must_be_read_anew(&rig_name("cow")));
    town.reads_all(&mut second);
    assert_eq!((town.standing("ox-a"), town.alert_kinds()), (Standing::Open, vec![]));
}

#[test]
fn trouble_with_a_workspace_is_one_alert_until_it_is_over() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    for (n, trouble) in ["line 3 is cut off", "line 3 is cut off", "it is a directory"].iter().enumerate() {
        let mut reading = tracker.news();
        reading.stamp = format!("bad {n}");
        reading.trouble = Some((*trouble).to_owned());
        town.hears(&reading);
    }
    let [alert] = town.alerts_of(AlertKind::Source)[..] else { panic!("one alert") };
    assert!(alert.message.contains("line 3 is cut off"), "{}", alert.message);
    assert_eq!(town.standing("ox-a"), Standing::Open, "what was read before stays");
    town.reads(&mut tracker);
    assert_eq!((town.alert_kinds(), town.count("alert.raised")), (Vec::new(), 1));
}

// Strictly read-only.

#[test]
fn what_a_workspace_shows_is_not_changed_by_commands() {
    let (mut town, mut tracker) = town_with(&["ox-a", "ox-done"]);
    tracker.closes("ox-done");
    town.reads(&mut tracker);
    town.bead("gt-a");
    let id = || "ox-a".to_owned();
    let change = BeadChange { priority: Some(0), ..BeadChange::default() };
    for command in [
        Command::BeadClose { ids: vec!["gt-a".to_owned(), id()], reason: None },
        Command::BeadUpdate { id: id(), change },
        Command::BeadReopen { id: "ox-done".to_owned() },
        Command::DependencyAdd { id: id(), on: "gt-a".to_owned(), kind: DepKind::Blocks },
        Command::DependencyRemove { id: id(), on: "gt-a".to_owned() },
        Command::BeadImport { beads: vec![new_bead("ox-a", &[])] },
    ] {
        let refusal = town.refuses(&command);
        assert_eq!(refusal.code, "read-only-bead", "{command:?}");
        assert!(refusal.hint.is_some_and(|hint| hint.contains("br or bd")), "{command:?}");
    }
    assert_eq!(town.standing("gt-a"), Standing::Open, "refused as a whole");
}

#[test]
fn a_native_bead_may_wait_for_one_of_a_workspace() {
    let (mut town, mut tracker) = town_with(&["ox-a"]);
    town.bead_needing("gt-b", &["ox-a"]);
    town.sling(&["gt-b"]);
    assert_eq!(town.pass().started, [""; 0]);
    tracker.closes("ox-a");
    assert_eq!(town.turn_hearing(&tracker.news()), ["gt-b"]);
}

#[test]
fn dependencies_across_rigs_are_found_wherever_the_bead_lives() {
    let (mut town, mut tracker) = town_with(&[]);
    let mut other = town.workspace("cow", "cow");
    tracker.has_needing("ox-plain", &["cow-a"]);
    tracker.has_needing("ox-external", &["external:cow:cow-a"]);
    tracker.has_needing("ox-lost", &["external:horse:pony"]);
    other.has(&["cow-a"]);
    town.reads(&mut tracker);
    assert_eq!(town.codes("ox-plain"), [ReasonCode::MissingDependency]);
    town.reads(&mut other);
    for id in ["ox-plain", "ox-external"] {
        assert_eq!(town.codes(id), [ReasonCode::BlockedBy], "{id}");
    }
    other.closes("cow-a");
    town.reads(&mut other);
    for id in ["ox-plain", "ox-external"] {
        assert_eq!(town.codes(id), [], "{id}");
    }
    assert!(town.why("ox-lost").contains("external:horse:pony, which nobody has"), "{}", town.why("ox-lost"));
}
