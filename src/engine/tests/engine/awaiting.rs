//! Workers of workspace beads: their tracker closes the bead, we only wait for it. And claims: whose is a bead that
//! somebody is said to be on?

use yard_engine::alert::AlertKind;
use yard_engine::bead::Verdict;
use yard_engine::context::CloseReason;
use yard_engine::dispatch::{Category, Outcome};
use yard_engine::readiness::ReasonCode;
use yard_engine::settings::RetryPolicy;
use yard_engine::{Command, Millis, Standing, WorkerExit};

use crate::town::{Town, exit};
use crate::workspace::Workspace;

const GRACE: Millis = Millis::minutes(5);

/// A town in which `ox-a` of a workspace runs, asked for by its convoy.
fn running() -> (Town, Workspace) {
    let mut town = Town::deferred(5);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    town.reads(&mut tracker);
    town.convoy(&["ox-a"]);
    assert_eq!(town.start(), ["ox-a"]);
    (town, tracker)
}

#[test]
fn a_zero_exit_leaves_the_bead_done_until_its_tracker_closes_it() {
    let (mut town, mut tracker) = running();
    town.exits_ok("ox-a");
    assert_eq!(
        (town.standing("ox-a"), town.codes("ox-a")),
        (Standing::Done, vec![ReasonCode::AwaitingClose])
    );
    assert_eq!(town.pass().started, [""; 0], "it is not tried again meanwhile");
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!((town.standing("ox-a"), town.work("ox-a").verdict), (Standing::Closed, None));
    town.advance(GRACE);
    assert_eq!((town.work("ox-a").attempts, town.count("dispatch.close_overdue")), (1, 0));
}

#[test]
fn a_bead_that_was_closed_before_its_worker_exits_is_closed() {
    let (mut town, mut tracker) = running();
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!((town.standing("ox-a"), town.running()), (Standing::Closed, vec!["ox-a".to_owned()]));
    town.exits_ok("ox-a");
    assert_eq!((town.standing("ox-a"), town.last_outcome("ox-a")), (Standing::Closed, Outcome::Succeeded));
    town.advance(GRACE);
    assert_eq!(town.count("dispatch.close_overdue"), 0);
}

#[test]
fn a_failure_after_the_close_is_not_tried_again() {
    let (mut town, mut tracker) = running();
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    town.crashes("ox-a");
    town.advance(Millis::minutes(60));
    assert_eq!(town.pass().started, [""; 0]);
    assert_eq!((town.work("ox-a").attempts, town.alerts_of(AlertKind::BeadFailed).len()), (1, 0));
}

#[test]
fn a_close_that_does_not_come_counts_as_a_crash() {
    let (mut town, _tracker) = running();
    town.configure(|s| s.retry_crash = RetryPolicy { backoff: vec![Millis::seconds(10)], max_attempts: 2 });
    town.exits_ok("ox-a");
    town.advance(Millis(GRACE.0 - 1));
    assert_eq!(town.standing("ox-a"), Standing::Done);
    town.advance(Millis(1));
    assert_eq!((town.standing("ox-a"), town.codes("ox-a")), (Standing::Queued, vec![ReasonCode::NotBefore]));
    town.advance(Millis::seconds(10));
    assert_eq!(town.start(), ["ox-a"]);
    assert_eq!(town.live("ox-a").to_string(), "ox-a@2");
    town.exits_ok("ox-a");
    town.advance(GRACE);
    assert_eq!((town.standing("ox-a"), town.work("ox-a").verdict), (Standing::Failed, Some(Verdict::Failed)));
    assert_eq!(town.alerts_of(AlertKind::BeadFailed).len(), 1);
    town.advance(Millis::minutes(600));
    assert_eq!(
        (town.pass().started, town.count("alert.raised")),
        (Vec::new(), 1),
        "and that is the end of it"
    );
}

#[test]
fn a_close_that_comes_late_calls_off_the_retry() {
    let (mut town, mut tracker) = running();
    town.exits_ok("ox-a");
    town.advance(GRACE);
    assert!(town.is_scheduled("ox-a"));
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!(town.close_reason("ox-a"), CloseReason::StaleWorkBead);
    town.advance(Millis::minutes(60));
    assert_eq!((town.pass().started, town.work("ox-a").attempts), (Vec::new(), 1));
}

#[test]
fn a_close_that_comes_after_all_retries_ends_the_alert() {
    let (mut town, mut tracker) = running();
    town.configure(|s| s.retry_crash.max_attempts = 1);
    town.exits_ok("ox-a");
    town.advance(GRACE);
    assert_eq!(town.alert_kinds(), [AlertKind::BeadFailed]);
    tracker.closes("ox-a");
    town.reads(&mut tracker);
    assert_eq!(town.standing("ox-a"), Standing::Closed);
    assert_eq!(town.alerts_of(AlertKind::BeadFailed).len(), 0);
}

#[test]
fn a_close_is_awaited_across_a_restart() {
    let (mut town, _tracker) = running();
    town.exits_ok("ox-a");
    town.restart();
    assert_eq!(town.standing("ox-a"), Standing::Done);
    town.advance(GRACE);
    assert_eq!(town.count("dispatch.close_overdue"), 1);
}

#[test]
fn a_finished_bead_that_vanishes_and_returns_is_still_awaited() {
    let (mut town, mut tracker) = running();
    town.exits_ok("ox-a");
    let lost = tracker.loses("ox-a");
    town.reads(&mut tracker);
    town.advance(GRACE);
    assert_eq!(town.count("dispatch.close_overdue"), 0, "nobody has it");
    tracker.regains(lost);
    town.reads(&mut tracker);
    assert_eq!(town.standing("ox-a"), Standing::Done);
    town.advance(Millis(1));
    assert_eq!(town.count("dispatch.close_overdue"), 1);
}

#[test]
fn a_sling_of_a_finished_bead_runs_it_again_at_once() {
    let (mut town, _tracker) = running();
    town.exits_ok("ox-a");
    town.sling(&["ox-a"]);
    assert_eq!(town.start(), ["ox-a"]);
    town.advance(GRACE);
    assert_eq!((town.running(), town.count("dispatch.close_overdue")), (vec!["ox-a".to_owned()], 0));
}

// Claims.

#[test]
fn a_bead_claimed_by_our_own_worker_counts_as_open_once_that_has_ended() {
    let (mut town, mut tracker) = running();
    tracker.claims("ox-a", "ym/ox-a@1");
    town.reads(&mut tracker);
    assert_eq!(town.standing("ox-a"), Standing::Running);
    town.crashes("ox-a");
    assert_eq!(town.codes("ox-a"), [ReasonCode::NotBefore], "only the wait before the retry");
    town.advance(Millis::minutes(1));
    assert_eq!(town.start(), ["ox-a"]);
}

#[test]
fn somebody_elses_claim_takes_a_bead_off_the_schedule_and_its_release_brings_it_back() {
    let mut town = Town::deferred(5);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    town.reads(&mut tracker);
    town.convoy(&["ox-a"]);
    town.pause();
    town.pass();
    assert!(town.is_scheduled("ox-a"));
    tracker.claims("ox-a", "bob");
    town.reads(&mut tracker);
    assert_eq!(
        (town.close_reason("ox-a"), town.codes("ox-a")),
        (CloseReason::StaleWorkBead, vec![ReasonCode::ClaimedElsewhere])
    );
    town.resume();
    assert_eq!(town.pass().started, [""; 0]);
    tracker.releases("ox-a");
    assert_eq!(town.turn_hearing(&tracker.news()), ["ox-a"]);
}

#[test]
fn a_bead_that_was_taken_by_force_stays_on_the_schedule() {
    let mut town = Town::deferred(5);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    tracker.claims("ox-a", "bob");
    town.reads(&mut tracker);
    town.sling_with("ox-a", |request| request.force = true);
    tracker.changes("ox-a", |bead| bead.title = "bob renames it".to_owned());
    town.reads(&mut tracker);
    assert_eq!(town.start(), ["ox-a"]);
}

#[test]
fn a_bead_put_off_until_a_time_wakes_by_itself() {
    let mut town = Town::deferred(5);
    let mut tracker = town.workspace("ox", "ox");
    tracker.has(&["ox-a"]);
    let until = town.in_time(Millis::seconds(30));
    tracker.changes("ox-a", |bead| bead.defer_until = Some(until));
    town.reads(&mut tracker);
    town.convoy(&["ox-a"]);
    assert_eq!((town.pass().started, town.codes("ox-a")), (Vec::new(), vec![ReasonCode::Deferred]));
    assert_eq!(town.stranded(), [], "it goes on by itself");
    assert_eq!(town.state.next_due(), Some(until));
    town.advance(Millis::seconds(30));
    assert_eq!(town.start(), ["ox-a"]);
}

#[test]
fn a_bead_that_is_no_longer_put_off_starts_at_once() {
    let mut town = Town::deferred(5);
    let mut tracker = town.workspace("ox", "ox");
    let until = town.in_time(Millis::minutes(30));
    tracker.has_with("ox-a", |bead| bead.defer_until = Some(until));
    town.reads(&mut tracker);
    town.convoy(&["ox-a"]);
    assert_eq!(town.sling_one("ox-a").code.as_deref(), Some("deferred"));
    tracker.changes("ox-a", |bead| bead.defer_until = None);
    assert_eq!(town.turn_hearing(&tracker.news()), ["ox-a"]);
    assert_eq!(town.state.next_due(), None);
}

#[test]
fn a_cancelled_worker_leaves_its_bead_cancelled_until_a_person_says_otherwise() {
    let (mut town, _tracker) = running();
    town.does(&Command::Cancel { id: "ox-a".to_owned(), at_once: false });
    let id = town.live("ox-a");
    town.act(|tx| tx.worker_ended(&id, &crate::town::stopped()));
    assert_eq!((town.standing("ox-a"), town.pass().started), (Standing::Cancelled, Vec::new()));
    town.does(&Command::Retry { bead: "ox-a".to_owned() });
    assert_eq!(town.start(), ["ox-a"]);
}

#[test]
fn a_native_bead_whose_formula_leaves_the_close_to_its_agent_awaits_it() {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.pass();
    town.runs("gt-a");
    let id = town.live("gt-a");
    let done = WorkerExit { awaits_close: true, ..exit(0, Category::Crash) };
    town.act(|tx| tx.worker_ended(&id, &done));
    assert_eq!(town.standing("gt-a"), Standing::Done);
    town.close("gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Closed);
}
