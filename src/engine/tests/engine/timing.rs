//! Waits, deadlines, and whether anything can still move.

use yard_engine::context::CloseReason;
use yard_engine::readiness::ReasonCode;
use yard_engine::rig::RigSwitch;
use yard_engine::{Command, Millis, Standing};

use crate::town::{Town, bead_id, new_bead};

#[test]
fn not_before_waits_for_its_time() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    let at = town.in_time(Millis::minutes(10));
    town.sling_with("gt-a", |r| r.not_before = Some(at));
    assert_eq!((town.codes("gt-a"), town.state.next_due()), (vec![ReasonCode::NotBefore], Some(at)));
    assert_eq!(town.standing("gt-a"), Standing::Queued);
    town.advance(Millis::minutes(9));
    assert!(town.pass().started.is_empty());
    town.now = at;
    assert_eq!(town.pass().started, ["gt-a"], "a pass does what is due");
}

#[test]
fn a_deadline_expires_work_that_has_not_started() {
    let mut town = Town::deferred(1);
    town.beads(&["gt-a", "gt-b"]);
    let deadline = town.in_time(Millis::seconds(30));
    town.sling_with("gt-a", |r| r.deadline = Some(deadline));
    town.sling_with("gt-b", |r| r.deadline = Some(deadline));
    town.start();
    town.advance(Millis::seconds(30));
    assert_eq!(town.close_reason("gt-b"), CloseReason::Expired);
    assert_eq!((town.standing("gt-b"), town.standing("gt-a")), (Standing::Failed, Standing::Running));
    assert_eq!(town.state.next_due(), None);
}

#[test]
fn a_deadline_is_kept_also_when_another_event_passes_it_first() {
    let mut town = Town::deferred(1);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    let deadline = town.in_time(Millis::seconds(30));
    town.sling(&["gt-a"]);
    town.start();
    town.sling_with("gt-b", |r| r.deadline = Some(deadline));
    // The pause ends and a worker reports at the very moment of the deadline.
    town.does(&Command::Pause { reason: None, until: Some(deadline) });
    town.now = deadline;
    town.exits_ok("gt-a");
    assert!(town.pass().started.is_empty());
    assert_eq!(town.close_reason("gt-b"), CloseReason::Expired);
}

#[test]
fn a_deadline_that_passed_during_a_start_expires_what_comes_back() {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    let deadline = town.in_time(Millis::seconds(30));
    town.sling_with("gt-a", |r| r.deadline = Some(deadline));
    town.pass();
    town.advance(Millis::minutes(1));
    assert_eq!(town.standing("gt-a"), Standing::Running, "what has been started is let be");
    town.never_ran("gt-a");
    assert!(town.pass().started.is_empty());
    assert_eq!(town.close_reason("gt-a"), CloseReason::Expired);
}

#[test]
fn time_never_runs_backwards_in_the_log() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    let before = town.now;
    town.now = yard_engine::Timestamp::from_millis(before.as_millis() - 3_600_000);
    town.sling(&["gt-a"]);
    assert!(town.log.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert_eq!(town.context("gt-a").fields.enqueued_at, before);
}

// Progress.

fn progresses(town: &Town, bead: &str) -> bool {
    town.state.can_progress(&bead_id(bead), true)
}

#[test]
fn work_that_runs_waits_for_room_time_or_such_work_can_progress() {
    let mut town = Town::deferred(1);
    town.beads(&["gt-a", "gt-b", "gt-t"]);
    town.bead_needing("gt-c", &["gt-a", "gt-b", "gt-t"]);
    let at = town.in_time(Millis::minutes(10));
    town.sling_with("gt-t", |r| r.not_before = Some(at));
    town.sling(&["gt-a", "gt-b", "gt-c"]);
    town.start();
    for bead in ["gt-a", "gt-b", "gt-t", "gt-c"] {
        assert!(progresses(&town, bead), "{bead}");
    }
    assert!(!town.state.can_progress(&bead_id("gt-b"), false), "without a daemon nothing starts");
    assert!(town.state.can_progress(&bead_id("gt-a"), false), "but what runs goes on");
}

#[test]
fn work_that_needs_a_person_cannot_progress() {
    let mut town = Town::deferred(5);
    town.rig("web", "w");
    town.beads(&["gt-held", "gt-unslung", "w-parked", "gt-queued", "gt-later"]);
    town.bead_needing("gt-c", &["gt-queued", "gt-unslung"]);
    town.bead_needing("gt-d", &["gt-queued"]);
    town.bead_needing("gt-e", &["gt-d"]);
    town.sling(&["gt-held", "w-parked", "gt-queued", "gt-c", "gt-d", "gt-e"]);
    let at = town.in_time(Millis::minutes(10));
    town.sling_with("gt-later", |r| r.not_before = Some(at));
    town.does(&Command::Hold { id: "gt-held".to_owned(), held: true });
    town.does(&Command::Hold { id: "gt-later".to_owned(), held: true });
    town.does(&Command::Hold { id: "gt-d".to_owned(), held: true });
    town.switch("web", RigSwitch::Park);
    assert!(progresses(&town, "gt-queued"));
    for bead in ["gt-held", "gt-later", "gt-unslung", "w-parked", "gt-c", "gt-d", "gt-e"] {
        assert!(!progresses(&town, bead), "{bead}");
    }
}

#[test]
fn a_cycle_cannot_progress_nor_what_waits_for_one_among_others() {
    let mut town = Town::deferred(5);
    town.import(vec![new_bead("gt-a", &["gt-b"]), new_bead("gt-b", &["gt-a"]), new_bead("gt-ok", &[])]);
    town.bead_needing("gt-x", &["gt-ok", "gt-a"]);
    town.sling(&["gt-a", "gt-b", "gt-ok", "gt-x"]);
    assert!(progresses(&town, "gt-ok"));
    for bead in ["gt-a", "gt-b", "gt-x"] {
        assert!(!progresses(&town, bead), "{bead}");
    }
}

#[test]
fn a_pause_stops_progress_unless_it_ends_by_itself() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.pause();
    assert!(!progresses(&town, "gt-a"));
    let until = town.in_time(Millis::minutes(1));
    town.does(&Command::Pause { reason: None, until: Some(until) });
    assert!(progresses(&town, "gt-a"));
}

#[test]
fn a_limit_of_zero_never_has_room() {
    let mut town = Town::deferred(5);
    town.rig_with("shut", "s", |r| r.max_polecats = Some(0));
    town.bead("s-a");
    town.sling(&["s-a"]);
    assert!(town.pass().started.is_empty());
    assert!(!progresses(&town, "s-a"));
}
