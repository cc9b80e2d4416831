//! What workers report, and what follows from it.

use yard_engine::bead::{BeadStatus, Verdict};
use yard_engine::command::WorkerSays;
use yard_engine::context::CloseReason;
use yard_engine::dispatch::{Category, Outcome, StopReason};
use yard_engine::{Command, Millis, Standing, Timestamp};

use crate::town::{Town, exit, stopped};

fn one_running() -> Town {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    town.sling_with("gt-a", |r| {
        r.args = Some("with care".to_owned());
        r.priority = Some(77);
    });
    town.start();
    town
}

fn cancel(town: &mut Town, at_once: bool) {
    town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once });
}

#[test]
fn a_crash_is_retried_after_its_backoff_until_attempts_run_out() {
    let mut town = one_running();
    for minutes in [1, 5, 15, 30] {
        town.crashes("gt-a");
        assert!(town.pass().started.is_empty());
        town.advance(Millis::minutes(minutes));
        assert_eq!(town.start(), ["gt-a"], "after {minutes} minutes");
    }
    town.crashes("gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Failed);
    assert_eq!(town.dispatches("gt-a").len(), 5);
}

#[test]
fn an_unavailable_service_has_a_budget_of_its_own_and_then_waits_for_a_person() {
    let mut town = one_running();
    town.configure(|s| {
        s.retry_unavailable.max_attempts = 2;
        s.retry_unavailable.backoff = vec![Millis(10)];
    });
    town.crashes("gt-a");
    town.advance(Millis::minutes(1));
    town.start();
    town.exits("gt-a", 69, Category::Unavailable);
    let context = town.context("gt-a");
    assert_eq!((context.crashes, context.unavailables), (1, 1));
    town.advance(Millis(10));
    town.start();
    town.exits("gt-a", 69, Category::Unavailable);
    assert_eq!(town.standing("gt-a"), Standing::Blocked);
    assert_eq!(town.work("gt-a").verdict, Some(Verdict::Unavailable));
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert_eq!((town.context("gt-a").crashes, town.context("gt-a").unavailables), (0, 0));
}

#[test]
fn a_yield_costs_nothing_and_a_hard_cap_everything() {
    let mut town = one_running();
    town.exits("gt-a", 75, Category::Yielded);
    assert_eq!(town.context("gt-a").crashes, 0);
    town.advance(Millis::seconds(1));
    town.start();
    town.exits("gt-a", 1, Category::HardCap);
    assert_eq!(town.standing("gt-a"), Standing::Failed);
}

#[test]
fn a_requeue_keeps_fields_time_enqueued_place_and_counters() {
    let mut town = one_running();
    let first = town.last_closed("gt-a").0.clone();
    town.advance(Millis::minutes(3));
    town.lost("gt-a");
    let next = town.context("gt-a");
    assert_eq!(next.fields, first.fields);
    assert_eq!((next.priority, next.order), (77, first.order));
    assert_eq!((next.predecessor.as_ref(), next.crashes), (Some(&first.id), 1));
    assert_ne!(next.id, first.id);
}

#[test]
fn a_lost_worker_is_retried_and_said_so() {
    let mut town = one_running();
    town.lost("gt-a");
    assert!(matches!(town.last_outcome("gt-a"), Outcome::Lost { .. }));
    town.advance(Millis::minutes(1));
    assert_eq!(town.start(), ["gt-a"]);
    assert_eq!(town.live("gt-a").to_string(), "gt-a@2");
}

#[test]
fn a_start_that_never_ran_is_back_in_the_queue_uncounted_under_a_new_id() {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.pass();
    town.never_ran("gt-a");
    assert_eq!(town.context("gt-a").fields.dispatch_failures, 0);
    assert_eq!(town.pass().started, ["gt-a"]);
    assert_eq!(town.live("gt-a").to_string(), "gt-a@2");
}

#[test]
fn a_start_that_could_not_be_handed_over_rests_a_moment_uncounted() {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.pass();
    let id = town.live("gt-a");
    town.act(|tx| tx.worker_not_started(&id, "no processes left"));
    assert_eq!(town.context("gt-a").fields.dispatch_failures, 0);
    assert_eq!(town.pass().started, Vec::<String>::new(), "a busy machine is not asked again at once");
    town.advance(Millis::seconds(1));
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn late_reports_change_nothing_and_are_noted() {
    let mut town = one_running();
    let old = town.live("gt-a");
    town.lost("gt-a");
    town.advance(Millis::minutes(1));
    town.start();
    let before = (town.live("gt-a"), town.log.len());
    town.act(|tx| tx.worker_running(&old, Some(9)));
    town.act(|tx| tx.worker_ended(&old, &exit(0, Category::Crash)));
    town.act(|tx| tx.worker_start_failed(&old, "late"));
    town.act(|tx| tx.worker_never_ran(&old, "late"));
    town.act(|tx| tx.worker_lost(&old, "late"));
    town.act(|tx| tx.worker_step_done(&old, "late"));
    assert_eq!(town.live("gt-a"), before.0);
    assert_eq!(town.standing("gt-a"), Standing::Running);
    assert_eq!(town.kinds_since(before.1), ["dispatch.late_report"; 5]);
}

#[test]
fn a_report_twice_is_heard_once() {
    let mut town = one_running();
    let id = town.live("gt-a");
    let before = town.log.len();
    town.act(|tx| tx.worker_running(&id, Some(8)));
    assert_eq!(town.log.len(), before);
    town.exits_ok("gt-a");
    town.act(|tx| tx.worker_ended(&id, &exit(1, Category::Crash)));
    assert_eq!((town.standing("gt-a"), town.last_outcome("gt-a")), (Standing::Closed, Outcome::Succeeded));
}

#[test]
fn a_lost_running_report_is_made_up_for_by_the_next() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b"]);
    town.sling(&["gt-a", "gt-b"]);
    town.pass();
    town.exits_ok("gt-a");
    assert_eq!(town.close_reason("gt-a"), CloseReason::Dispatched);
    let id = town.live("gt-b");
    town.act(|tx| tx.worker_step_done(&id, "work"));
    assert_eq!(town.close_reason("gt-b"), CloseReason::Dispatched);
    assert_eq!(town.dispatches("gt-b")[0].step.as_deref(), Some("work"));
}

// Calling off.

#[test]
fn a_cancelled_worker_is_asked_to_stop_and_its_end_settles_it() {
    let mut town = one_running();
    cancel(&mut town, false);
    assert_eq!(town.standing("gt-a"), Standing::Running, "it holds its slot until it ended");
    let id = town.live("gt-a");
    town.act(|tx| tx.worker_ended(&id, &stopped()));
    assert_eq!(town.standing("gt-a"), Standing::Cancelled);
    assert_eq!(town.last_outcome("gt-a"), Outcome::Stopped { reason: StopReason::UserCancelled });
    assert!(town.pass().started.is_empty());
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn a_cancel_holds_also_when_the_worker_failed_by_itself() {
    for report in ["crash", "lost", "start failed", "never ran"] {
        let mut town = Town::deferred(1);
        town.bead("gt-a");
        town.sling(&["gt-a"]);
        town.pass();
        cancel(&mut town, false);
        match report {
            "crash" => town.crashes("gt-a"),
            "lost" => town.lost("gt-a"),
            "start failed" => town.start_fails("gt-a", "no such program"),
            _ => town.never_ran("gt-a"),
        }
        assert_eq!(town.standing("gt-a"), Standing::Cancelled, "{report}");
        assert!(!town.is_scheduled("gt-a"), "{report}");
    }
}

#[test]
fn a_cancelled_worker_that_finished_first_has_succeeded() {
    let mut town = one_running();
    cancel(&mut town, false);
    town.exits_ok("gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Closed);
}

#[test]
fn a_kill_follows_a_cancel_and_needs_a_worker() {
    let mut town = one_running();
    cancel(&mut town, false);
    cancel(&mut town, true);
    assert_eq!(town.count("dispatch.stop_requested"), 2);
    town.bead("gt-b");
    town.sling(&["gt-b"]);
    let kill = Command::Cancel { id: "gt-b".to_owned(), at_once: true };
    assert_eq!(town.refuses(&kill).code, "not-running");
}

#[test]
fn a_drained_worker_is_requeued_uncounted() {
    let mut town = one_running();
    let id = town.live("gt-a");
    town.act(|tx| tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon"));
    town.act(|tx| tx.worker_ended(&id, &stopped()));
    assert_eq!((town.context("gt-a").crashes, town.context("gt-a").not_before), (0, None));
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn a_start_that_took_too_long_counts_as_failed() {
    let mut town = Town::deferred(1);
    town.configure(|s| s.max_dispatch_failures = 1);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.pass();
    let id = town.live("gt-a");
    town.act(|tx| tx.terminate(&id, StopReason::SpawnTimeout, false, "daemon"));
    town.never_ran("gt-a");
    assert_eq!(town.standing("gt-a"), Standing::CircuitBroken);
}

#[test]
fn a_start_that_ran_after_its_time_is_retried_like_a_crash() {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.pass();
    let id = town.live("gt-a");
    town.act(|tx| tx.terminate(&id, StopReason::SpawnTimeout, false, "daemon"));
    town.act(|tx| tx.worker_ended(&id, &stopped()));
    assert_eq!(town.context("gt-a").crashes, 1);
}

// Beads that change while they are worked on.

#[test]
fn a_bead_closed_while_its_start_was_under_way_leaves_nothing_behind() {
    for (report, cancelled) in [
        ("never ran", false),
        ("start failed", false),
        ("never ran", true),
        ("start failed", true),
        ("crash", false),
    ] {
        let mut town = Town::deferred(1);
        town.configure(|s| s.max_dispatch_failures = 1);
        town.bead("gt-a");
        town.sling(&["gt-a"]);
        town.pass();
        town.close("gt-a");
        if cancelled {
            cancel(&mut town, false);
        }
        match report {
            "never ran" => town.never_ran("gt-a"),
            "start failed" => town.start_fails("gt-a", "no such program"),
            _ => town.crashes("gt-a"),
        }
        assert!(!town.is_scheduled("gt-a"), "{report}");
        assert_eq!(town.work("gt-a").verdict, None, "{report}");
        assert_eq!(town.state.settled().count(), 0, "{report}");
    }
}

#[test]
fn a_bead_taken_while_it_ran_is_not_tried_again() {
    let mut town = one_running();
    town.status("gt-a", BeadStatus::InProgress, Some("bob"));
    town.crashes("gt-a");
    assert_eq!(town.close_reason("gt-a"), CloseReason::StaleWorkBead);
    assert!(!town.is_scheduled("gt-a"));
}

#[test]
fn an_endless_backoff_still_can_be_written_down() {
    let mut town = one_running();
    town.configure(|s| s.retry_crash.backoff = vec![Millis(u64::MAX)]);
    town.crashes("gt-a");
    let end = Timestamp::parse_rfc3339("9999-12-31T23:59:59.999Z").expect("valid");
    assert_eq!(town.context("gt-a").not_before, Some(end));
}

#[test]
fn a_service_that_refused_is_a_failure_whatever_the_exit_code() {
    let mut town = one_running();
    town.exits("gt-a", 0, Category::Unavailable);
    let Outcome::Failed { code, category, .. } = town.last_outcome("gt-a") else { panic!("not failed") };
    assert_eq!((code, category), (Some(0), Category::Unavailable));
    assert_eq!(town.context("gt-a").unavailables, 1);
}

#[test]
fn what_a_worker_says_counts_more_than_what_it_writes_until_its_next_step() {
    let mut town = one_running();
    let id = town.live("gt-a");
    town.act(|tx| tx.worker_steps(&id, &["work".to_owned(), "check".to_owned()]));
    town.act(|tx| tx.worker_wrote(&id, "compiling"));
    let dispatch = |town: &Town| town.state.dispatch(&id).expect("known").clone();
    assert_eq!((dispatch(&town).running_step(), dispatch(&town).doing()), (Some(0), Some("compiling")));
    let says = WorkerSays::Progress { text: "half".to_owned() };
    town.does(&Command::Worker { dispatch: id.to_string(), says });
    town.act(|tx| tx.worker_wrote(&id, "linking"));
    assert_eq!(dispatch(&town).doing(), Some("half"));
    town.act(|tx| tx.worker_step_done(&id, "work"));
    assert_eq!((dispatch(&town).running_step(), dispatch(&town).doing()), (Some(1), None));
    let before = town.state.seq();
    town.act(|tx| {
        tx.worker_wrote(&id, "testing");
        tx.worker_wrote(&id, "testing");
        tx.worker_steps(&id, &["work".to_owned(), "check".to_owned()]);
    });
    assert_eq!(town.state.seq().0, before.0 + 1, "the same is no news");
}

#[test]
fn what_was_seen_running_and_is_said_never_to_have_run_is_lost() {
    let mut town = one_running();
    let id = town.live("gt-a");
    town.never_ran("gt-a");
    let ended = town.state.dispatch(&id).and_then(|dispatch| dispatch.ended.clone()).expect("it is over");
    assert!(matches!(ended.outcome, Outcome::Lost { .. }), "{ended:?}");
}
