//! Seed 3, the routing table and the one terminate path: every reason for which a dispatch is ended, and where it leaves
//! its bead.

use yard_engine::alert::AlertKind;
use yard_engine::dispatch::{Category, Outcome, Recovery, STOP_REASONS, StopReason};
use yard_engine::{Command, Millis, Standing};

use crate::town::{Town, exit, stopped};

/// A bead that has run for a minute, with a crash and an unavailable service behind it.
fn tried_before() -> Town {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    town.sling_with("gt-a", |r| r.priority = Some(33));
    town.start();
    town.crashes("gt-a");
    town.advance(Millis::minutes(1));
    town.start();
    town.exits("gt-a", 69, Category::Unavailable);
    town.advance(Millis::minutes(2));
    town.start();
    let id = town.live("gt-a");
    town.act(|tx| tx.worker_step_done(&id, "plan"));
    town.advance(Millis::minutes(1));
    town
}

fn ended_for(reason: StopReason) -> Town {
    let mut town = tried_before();
    let id = town.live("gt-a");
    assert!(town.act(|tx| tx.terminate(&id, reason, false, "test")));
    assert_eq!(town.standing("gt-a"), Standing::Running, "it holds its slot until its tree is gone");
    town.act(|tx| tx.worker_ended(&id, &stopped()));
    assert_eq!(town.last_outcome("gt-a"), Outcome::Stopped { reason });
    assert_eq!(town.state.live_count(), 0, "its slot is free");
    town
}

fn is_back_at_its_place(town: &Town) {
    let context = town.context("gt-a");
    assert_eq!((context.crashes, context.unavailables), (1, 1), "nothing counted, nothing reset");
    assert_eq!((context.not_before, context.priority), (None, 33));
    assert_eq!(context.resume.after.as_deref(), Some("plan"));
    assert_eq!(town.state.alerts().count(), 0);
}

#[test]
fn cooperative_preemption_leads_back_to_the_queue() {
    let mut town = ended_for(StopReason::CooperativePreemption);
    is_back_at_its_place(&town);
    assert_eq!(town.standing("gt-a"), Standing::Queued);
    assert_eq!(town.start(), ["gt-a"]);
}

#[test]
fn preemption_timeout_leads_back_to_the_queue() {
    let mut town = ended_for(StopReason::PreemptionTimeout);
    is_back_at_its_place(&town);
    assert_eq!(town.standing("gt-a"), Standing::Queued);
    assert_eq!(town.start(), ["gt-a"]);
}

#[test]
fn graceful_shutdown_leads_back_to_the_queue() {
    let mut town = ended_for(StopReason::GracefulShutdown);
    is_back_at_its_place(&town);
    assert_eq!(town.standing("gt-a"), Standing::Queued);
    assert_eq!(town.start(), ["gt-a"]);
}

#[test]
fn hard_cap_exceeded_leads_to_failed_and_an_alert() {
    let mut town = ended_for(StopReason::HardCapExceeded);
    assert_eq!(town.standing("gt-a"), Standing::Failed);
    let alert = town.state.alerts().next().expect("a person is told");
    assert_eq!(alert.kind, AlertKind::BeadFailed);
    assert!(alert.message.contains("active time") && alert.message.contains("ym scheduler retry gt-a"));
    assert!(town.why("gt-a").contains("active time"), "{}", town.why("gt-a"));
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert_eq!((town.context("gt-a").active, town.state.alerts().count()), (Millis(0), 0));
    assert_eq!(town.start(), ["gt-a"]);
}

#[test]
fn deadline_exceeded_leads_to_failed_and_an_alert() {
    let town = ended_for(StopReason::DeadlineExceeded);
    assert_eq!(town.standing("gt-a"), Standing::Failed);
    assert_eq!(town.state.alerts().count(), 1);
    assert!(town.why("gt-a").contains("deadline"), "{}", town.why("gt-a"));
}

#[test]
fn user_cancelled_leads_to_cancelled_without_an_alert() {
    let mut town = ended_for(StopReason::UserCancelled);
    assert_eq!(town.standing("gt-a"), Standing::Cancelled);
    assert_eq!(town.state.alerts().count(), 0);
    assert!(town.start().is_empty());
}

#[test]
fn spawn_timeout_goes_by_the_retry_policy() {
    let town = ended_for(StopReason::SpawnTimeout);
    assert_eq!((town.context("gt-a").crashes, town.standing("gt-a")), (2, Standing::Queued));
}

#[test]
fn every_reason_has_its_row() {
    let recoveries: Vec<(&str, Recovery)> = STOP_REASONS.iter().map(|r| (r.as_str(), r.recovery())).collect();
    assert_eq!(
        recoveries,
        [
            ("cooperative_preemption", Recovery::Queued),
            ("preemption_timeout", Recovery::Queued),
            ("graceful_shutdown", Recovery::Queued),
            ("hard_cap_exceeded", Recovery::Failed),
            ("deadline_exceeded", Recovery::Failed),
            ("cost_limit_reached", Recovery::Blocked),
            ("user_cancelled", Recovery::Cancelled),
            ("spawn_timeout", Recovery::Retried(Category::Crash)),
            ("lease_expired", Recovery::Queued),
            ("released", Recovery::Queued),
        ]
    );
}

// The one terminate path.

#[test]
fn the_first_reason_wins() {
    let mut town = tried_before();
    let id = town.live("gt-a");
    assert!(town.act(|tx| tx.terminate(&id, StopReason::PreemptionTimeout, false, "a")));
    let before = town.log.len();
    for later in [StopReason::HardCapExceeded, StopReason::CostLimitReached, StopReason::GracefulShutdown] {
        assert!(!town.act(|tx| tx.terminate(&id, later, false, "b")), "the second is ignored");
    }
    assert_eq!(town.log.len(), before, "without a trace");
    town.act(|tx| tx.worker_ended(&id, &stopped()));
    assert_eq!(town.last_outcome("gt-a"), Outcome::Stopped { reason: StopReason::PreemptionTimeout });
}

#[test]
fn a_persons_word_beats_ours_and_ours_never_beats_his() {
    let mut town = tried_before();
    let id = town.live("gt-a");
    town.act(|tx| tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon"));
    town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
    assert!(!town.act(|tx| tx.terminate(&id, StopReason::HardCapExceeded, false, "scheduler")));
    town.act(|tx| tx.worker_ended(&id, &stopped()));
    assert_eq!(town.standing("gt-a"), Standing::Cancelled);
}

#[test]
fn to_end_what_has_ended_is_harmless() {
    let mut town = tried_before();
    let id = town.live("gt-a");
    town.exits_ok("gt-a");
    let before = town.log.len();
    assert!(!town.act(|tx| tx.terminate(&id, StopReason::UserCancelled, true, "bob")));
    assert_eq!(town.log.len(), before);
}

#[test]
fn a_worker_that_fails_after_it_was_ended_has_not_crashed() {
    for code in [1, 130, 143] {
        let mut town = tried_before();
        let id = town.live("gt-a");
        town.act(|tx| tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon"));
        let torn_down = yard_engine::WorkerExit { stopped: true, ..exit(code, Category::Crash) };
        town.act(|tx| tx.worker_ended(&id, &torn_down));
        assert_eq!(town.context("gt-a").crashes, 1, "termination wins over exit {code}");
    }
}

#[test]
fn a_late_result_of_an_old_dispatch_changes_nothing_and_says_so() {
    let mut town = tried_before();
    let old = town.live("gt-a");
    town.act(|tx| tx.terminate(&old, StopReason::PreemptionTimeout, false, "scheduler"));
    town.lost("gt-a");
    town.start();
    let fresh = town.live("gt-a");
    assert_ne!(old, fresh);
    let before = town.log.len();
    town.act(|tx| tx.worker_ended(&old, &exit(0, Category::Crash)));
    town.act(|tx| tx.worker_step_done(&old, "work"));
    assert_eq!(town.kinds_since(before), ["dispatch.late_report"; 2]);
    assert_eq!((town.live("gt-a"), town.standing("gt-a")), (fresh, Standing::Running));
}

// Natural ends, by their own rules.

#[test]
fn a_success_closes_a_crash_waits_and_an_unavailable_service_waits_longer() {
    let mut town = Town::deferred(3);
    for (bead, code, category) in [
        ("gt-ok", 0, Category::Crash),
        ("gt-crash", 1, Category::Crash),
        ("gt-away", 69, Category::Unavailable),
    ] {
        town.bead(bead);
        town.sling(&[bead]);
        town.start();
        town.exits(bead, code, category);
    }
    assert_eq!(town.standing("gt-ok"), Standing::Closed);
    assert_eq!(town.context("gt-crash").not_before, Some(town.in_time(Millis::minutes(1))));
    assert_eq!(town.context("gt-away").not_before, Some(town.in_time(Millis::minutes(2))));
}

#[test]
fn crashes_and_preemptions_in_turn_use_the_budget_up_all_the_same() {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    for attempt in 1..=5 {
        town.advance(Millis::minutes(30));
        town.start();
        let id = town.live("gt-a");
        town.act(|tx| tx.terminate(&id, StopReason::PreemptionTimeout, false, "scheduler"));
        town.act(|tx| tx.worker_ended(&id, &stopped()));
        town.start();
        town.crashes("gt-a");
        let expected = if attempt == 5 { Standing::Failed } else { Standing::Queued };
        assert_eq!(town.standing("gt-a"), expected, "after {attempt} crashes");
    }
}

#[test]
fn equality_is_eligible() {
    let mut town = Town::deferred(1);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.start();
    town.crashes("gt-a");
    town.advance(Millis(59_999));
    assert!(town.start().is_empty());
    town.advance(Millis(1));
    assert_eq!(town.start(), ["gt-a"]);
}
