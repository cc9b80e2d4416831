//! Seed 3, limits: active time, silence, deadlines and money, each with exact times or amounts, each told once.

use yard_engine::alert::{Alert, AlertKind};
use yard_engine::command::WorkerSays;
use yard_engine::dispatch::{Outcome, StopReason};
use yard_engine::money::Usd;
use yard_engine::readiness::ReasonCode;
use yard_engine::{Command, Millis, Standing, WorkerExit};

use crate::town::{Town, stopped};

fn usd(text: &str) -> Usd {
    text.parse().expect("an amount")
}

fn running(slots: i64, beads: &[&str]) -> Town {
    let mut town = Town::deferred(slots);
    town.beads(beads);
    town.sling(beads);
    town.start();
    town
}

fn says(town: &mut Town, bead: &str, says: WorkerSays) {
    let dispatch = town.live(bead).to_string();
    town.does(&Command::Worker { dispatch, says });
}

fn costs(town: &mut Town, bead: &str, amount: &str) {
    says(town, bead, WorkerSays::Cost { usd: usd(amount), total: false, tokens: None });
}

fn ends(town: &mut Town, bead: &str) {
    let id = town.live(bead);
    town.act(|tx| tx.worker_ended(&id, &stopped()));
}

fn asked_to_stop(town: &Town, bead: &str) -> Option<StopReason> {
    town.dispatches(bead).last().and_then(|dispatch| dispatch.stop)
}

fn alerts(town: &Town) -> Vec<(AlertKind, &str)> {
    town.state.alerts().map(|alert: &Alert| (alert.kind, alert.message.as_str())).collect()
}

fn kinds(town: &Town) -> Vec<AlertKind> {
    town.state.alerts().map(|alert| alert.kind).collect()
}

// Active time.

#[test]
fn the_hard_cap_counts_the_active_time_of_all_attempts_and_no_waiting() {
    let mut town = running(1, &["gt-a"]);
    town.advance(Millis::minutes(5 * 60));
    let id = town.live("gt-a");
    town.act(|tx| tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon"));
    ends(&mut town, "gt-a");
    assert_eq!(town.context("gt-a").active, Millis::minutes(5 * 60));
    town.advance(Millis::minutes(10 * 60));
    assert_eq!(town.start(), ["gt-a"], "waiting is not working");
    assert_eq!(town.state.active_time_left(town.dispatches("gt-a")[1]), Some(Millis::minutes(3 * 60)));
    town.advance(Millis(3 * 3_600_000 - 1));
    town.pass();
    assert_eq!(asked_to_stop(&town, "gt-a"), None);
    town.advance(Millis(1));
    town.pass();
    assert_eq!(asked_to_stop(&town, "gt-a"), Some(StopReason::HardCapExceeded));
    ends(&mut town, "gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Failed);
    assert_eq!(kinds(&town), [AlertKind::BeadFailed]);
}

#[test]
fn the_shims_clock_counts_more_than_ours() {
    let mut town = running(1, &["gt-a"]);
    town.advance(Millis::minutes(90));
    let id = town.live("gt-a");
    let exit = WorkerExit {
        active: Some(Millis::minutes(2)),
        ..crate::town::exit(1, yard_engine::dispatch::Category::Crash)
    };
    town.act(|tx| tx.worker_ended(&id, &exit));
    assert_eq!(town.context("gt-a").active, Millis::minutes(2), "the daemon was away for the rest");
}

#[test]
fn an_attempt_without_time_left_is_not_made() {
    let mut town = running(1, &["gt-a"]);
    town.configure(|s| s.hard_cap = Millis::minutes(10));
    town.advance(Millis(600_000 - 1));
    let id = town.live("gt-a");
    let exit = WorkerExit {
        active: Some(Millis::minutes(10)),
        ..crate::town::exit(1, yard_engine::dispatch::Category::Crash)
    };
    town.act(|tx| tx.worker_ended(&id, &exit));
    assert_eq!(town.standing("gt-a"), Standing::Failed);
    assert!(alerts(&town)[0].1.contains("limits.hard_cap"), "{:?}", alerts(&town));
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert_eq!(town.start(), ["gt-a"]);
    assert_eq!(town.state.active_time_left(town.dispatches("gt-a")[1]), Some(Millis::minutes(10)));
}

#[test]
fn a_cap_of_zero_is_none() {
    let mut town = running(1, &["gt-a"]);
    town.configure(|s| (s.hard_cap, s.stuck_after) = (Millis(0), Millis(0)));
    town.advance(Millis::minutes(60 * 24 * 365));
    town.pass();
    assert_eq!(asked_to_stop(&town, "gt-a"), None);
    assert!(kinds(&town).is_empty());
}

// Silence.

#[test]
fn a_silent_worker_is_reported_once_and_works_on() {
    let mut town = running(1, &["gt-a"]);
    town.advance(Millis(30 * 60_000 - 1));
    town.pass();
    assert!(kinds(&town).is_empty());
    town.advance(Millis(1));
    town.pass();
    assert_eq!(kinds(&town), [AlertKind::Stuck]);
    assert!(town.state.live_dispatches().all(|dispatch| dispatch.stuck));
    town.advance(Millis::minutes(60));
    town.pass();
    assert_eq!((kinds(&town).len(), asked_to_stop(&town, "gt-a")), (1, None));
    says(&mut town, "gt-a", WorkerSays::Progress { text: "back".to_owned() });
    assert!(kinds(&town).is_empty(), "it lives");
    town.advance(Millis::minutes(30));
    town.pass();
    assert_eq!(kinds(&town), [AlertKind::Stuck], "and is silent again");
    town.exits_ok("gt-a");
    assert!(kinds(&town).is_empty(), "over with the worker");
}

#[test]
fn every_sign_of_life_puts_the_report_off() {
    let signs: [fn(&mut Town); 4] = [
        |town| says(town, "gt-a", WorkerSays::Checkpoint { note: "half".to_owned(), session: None }),
        |town| costs(town, "gt-a", "0.01"),
        |town| {
            let id = town.live("gt-a");
            town.act(|tx| tx.worker_step_done(&id, "plan"));
        },
        |town| {
            let (id, now) = (town.live("gt-a"), town.now);
            town.act(|tx| tx.worker_heard(&id, now));
        },
    ];
    for sign in signs {
        let mut town = running(1, &["gt-a"]);
        town.advance(Millis::minutes(29));
        sign(&mut town);
        town.advance(Millis::minutes(29));
        town.pass();
        assert!(kinds(&town).is_empty());
        assert_eq!(town.state.next_due(), Some(town.in_time(Millis::minutes(1))));
    }
}

#[test]
fn output_is_looked_for_before_a_worker_counts_as_silent() {
    let mut town = running(1, &["gt-a"]);
    town.now = town.in_time(Millis::minutes(30));
    let silent = town.state.silent_dispatches(town.now);
    assert_eq!(silent.len(), 1);
    let (id, since) = silent[0].clone();
    let wrote = since.after(Millis::minutes(20).duration());
    town.act(|tx| tx.worker_heard(&id, wrote));
    town.pass();
    assert!(kinds(&town).is_empty());
    town.advance(Millis::minutes(20));
    town.pass();
    assert_eq!(kinds(&town), [AlertKind::Stuck]);
}

// Deadlines.

#[test]
fn a_deadline_ends_queued_and_running_work_alike() {
    let mut town = Town::deferred(1);
    let deadline = town.in_time(Millis::minutes(10));
    town.beads(&["gt-runs", "gt-waits"]);
    for bead in ["gt-runs", "gt-waits"] {
        town.sling_with(bead, |r| r.deadline = Some(deadline));
    }
    assert_eq!(town.start(), ["gt-runs"]);
    town.advance(Millis(600_000 - 1));
    town.pass();
    assert_eq!((asked_to_stop(&town, "gt-runs"), town.is_scheduled("gt-waits")), (None, true));
    town.advance(Millis(1));
    town.pass();
    assert_eq!(asked_to_stop(&town, "gt-runs"), Some(StopReason::DeadlineExceeded));
    assert_eq!((town.standing("gt-waits"), kinds(&town)), (Standing::Failed, vec![AlertKind::BeadFailed]));
    ends(&mut town, "gt-runs");
    assert_eq!(town.standing("gt-runs"), Standing::Failed);
}

// Money.

#[test]
fn a_bead_is_warned_about_at_80_percent_and_ended_at_100() {
    let mut town = running(1, &["gt-a"]);
    town.configure(|s| s.cost.per_bead = Some(usd("10")));
    costs(&mut town, "gt-a", "7.99");
    assert!(kinds(&town).is_empty());
    costs(&mut town, "gt-a", "0.01");
    assert_eq!(kinds(&town), [AlertKind::CostWarning]);
    costs(&mut town, "gt-a", "1.99");
    assert_eq!((kinds(&town).len(), asked_to_stop(&town, "gt-a")), (1, None));
    costs(&mut town, "gt-a", "0.01");
    assert_eq!(kinds(&town), [AlertKind::CostLimit], "told before the worker has settled");
    assert_eq!(asked_to_stop(&town, "gt-a"), Some(StopReason::CostLimitReached));
    costs(&mut town, "gt-a", "0.50");
    assert_eq!(kinds(&town).len(), 1, "and once");
    ends(&mut town, "gt-a");
    assert_eq!(town.last_outcome("gt-a"), Outcome::Stopped { reason: StopReason::CostLimitReached });
    assert_eq!((town.standing("gt-a"), town.codes("gt-a")), (Standing::Blocked, vec![ReasonCode::CostLimit]));
    assert!(town.start().is_empty());
}

fn spent() -> Town {
    let mut town = running(1, &["gt-a"]);
    town.configure(|s| s.cost.per_bead = Some(usd("10")));
    costs(&mut town, "gt-a", "10");
    ends(&mut town, "gt-a");
    town
}

#[test]
fn a_bead_at_its_limit_goes_on_when_the_limit_is_raised() {
    let mut town = spent();
    town.configure(|s| s.cost.per_bead = Some(usd("20")));
    assert!(kinds(&town).is_empty());
    assert_eq!(town.start(), ["gt-a"]);
    costs(&mut town, "gt-a", "10");
    assert_eq!(asked_to_stop(&town, "gt-a"), Some(StopReason::CostLimitReached), "all attempts count");
}

#[test]
fn a_bead_at_its_limit_goes_on_with_a_fresh_budget_when_a_person_retries() {
    let mut town = spent();
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert!(kinds(&town).is_empty());
    assert_eq!(town.start(), ["gt-a"]);
    costs(&mut town, "gt-a", "7");
    assert_eq!((asked_to_stop(&town, "gt-a"), town.work("gt-a").cost), (None, usd("17")));
}

#[test]
fn a_total_adds_only_what_is_new() {
    let mut town = running(1, &["gt-a"]);
    for total in ["0.5", "0.5", "0.8"] {
        says(&mut town, "gt-a", WorkerSays::Cost { usd: usd(total), total: true, tokens: None });
    }
    assert_eq!(town.work("gt-a").cost, usd("0.8"));
    let id = town.live("gt-a");
    let session = "claude/s-1".parse().ok();
    for _ in 0..2 {
        town.act(|tx| tx.worker_metered(&id, usd("0.2"), 100, session.as_ref()));
    }
    let dispatch = town.dispatches("gt-a")[0];
    assert_eq!((dispatch.cost, dispatch.tokens, &dispatch.session), (usd("1"), 100, &session));
}

#[test]
fn a_convoy_pays_for_all_its_beads_and_stops_them_all() {
    let mut town = Town::deferred(3);
    town.configure(|s| s.cost.per_convoy = Some(usd("10")));
    town.beads(&["gt-a", "gt-b", "gt-other"]);
    let convoy = town.convoy(&["gt-a", "gt-b"]);
    town.sling_with("gt-other", |r| r.no_convoy = true);
    town.start();
    costs(&mut town, "gt-a", "6");
    costs(&mut town, "gt-b", "2");
    assert_eq!(alerts(&town)[0].0, AlertKind::CostWarning);
    costs(&mut town, "gt-a", "2");
    assert_eq!(kinds(&town), [AlertKind::CostLimit]);
    assert!(alerts(&town)[0].1.contains("2 workers are ended"), "{:?}", alerts(&town));
    for bead in ["gt-a", "gt-b"] {
        assert_eq!(asked_to_stop(&town, bead), Some(StopReason::CostLimitReached));
        ends(&mut town, bead);
    }
    assert_eq!(asked_to_stop(&town, "gt-other"), None, "it is paid by nobody else");
    assert!(town.start().is_empty());
    assert!(town.why("gt-a").contains(&convoy), "{}", town.why("gt-a"));
    town.configure(|s| s.cost.per_convoy = Some(usd("50")));
    assert_eq!(town.start().len(), 2);
}

#[test]
fn the_towns_budget_stops_everything_until_the_next_day_with_one_alert() {
    let mut town = running(3, &["gt-a", "gt-b"]);
    town.configure(|s| s.cost.daily = Some(usd("5")));
    costs(&mut town, "gt-a", "5");
    assert_eq!(kinds(&town), [AlertKind::CostLimit]);
    assert!(alerts(&town)[0].1.contains("2 workers are ended"), "{:?}", alerts(&town));
    ends(&mut town, "gt-a");
    ends(&mut town, "gt-b");
    town.bead("gt-c");
    town.sling(&["gt-c"]);
    assert!(town.start().is_empty());
    let midnight = yard_engine::Timestamp::parse_rfc3339("2023-11-15T00:00:00Z").expect("a time");
    let reasons = town.state.reasons(&crate::town::bead_id("gt-c"));
    assert_eq!((reasons[0].code, reasons[0].until), (ReasonCode::CostLimit, Some(midnight)));
    assert!(town.state.next_due().is_some_and(|due| due <= midnight));
    town.advance(Millis(midnight.since(town.now).as_millis() as u64 - 1));
    assert!(town.start().is_empty());
    town.advance(Millis(1));
    assert_eq!(town.start().len(), 3, "a new day");
    assert!(kinds(&town).is_empty());
}

#[test]
fn the_month_lasts_longer_than_the_day() {
    let mut town = running(1, &["gt-a"]);
    town.configure(|s| (s.cost.daily, s.cost.monthly) = (Some(usd("5")), Some(usd("5"))));
    costs(&mut town, "gt-a", "6");
    assert_eq!(kinds(&town), [AlertKind::CostLimit; 2]);
    ends(&mut town, "gt-a");
    let reasons = town.state.reasons(&crate::town::bead_id("gt-a"));
    let december = yard_engine::Timestamp::parse_rfc3339("2023-12-01T00:00:00Z").expect("a time");
    assert!(reasons.iter().all(|reason| reason.until == Some(december)), "{reasons:?}");
    town.advance(Millis(december.since(town.now).as_millis() as u64));
    assert_eq!(town.start(), ["gt-a"]);
}

#[test]
fn a_budget_that_is_lowered_ends_what_runs_and_tells() {
    let mut town = running(2, &["gt-a", "gt-b"]);
    town.configure(|s| s.cost.daily = Some(usd("10")));
    costs(&mut town, "gt-a", "5");
    assert!(kinds(&town).is_empty());
    town.configure(|s| s.cost.daily = Some(usd("6")));
    assert_eq!(kinds(&town), [AlertKind::CostWarning]);
    town.configure(|s| s.cost.daily = Some(usd("1")));
    assert_eq!(kinds(&town), [AlertKind::CostLimit]);
    for bead in ["gt-a", "gt-b"] {
        assert_eq!(asked_to_stop(&town, bead), Some(StopReason::CostLimitReached));
    }
}

#[test]
fn a_warning_about_a_day_is_over_with_it() {
    let mut town = running(1, &["gt-a"]);
    town.configure(|s| (s.cost.daily, s.hard_cap, s.stuck_after) = (Some(usd("10")), Millis(0), Millis(0)));
    costs(&mut town, "gt-a", "8.5");
    assert_eq!(kinds(&town), [AlertKind::CostWarning]);
    let midnight = yard_engine::Timestamp::parse_rfc3339("2023-11-15T00:00:00Z").expect("a time");
    assert_eq!(town.state.next_due(), Some(midnight));
    town.advance(Millis(midnight.since(town.now).as_millis() as u64));
    assert!(kinds(&town).is_empty());
    costs(&mut town, "gt-a", "8.5");
    assert_eq!(kinds(&town), [AlertKind::CostWarning], "another day, another warning");
}

#[test]
fn a_warning_about_a_bead_is_over_with_its_request() {
    let mut town = running(1, &["gt-a"]);
    town.configure(|s| s.cost.per_bead = Some(usd("10")));
    costs(&mut town, "gt-a", "9");
    town.exits_ok("gt-a");
    assert!(kinds(&town).is_empty());
    town.does(&Command::BeadReopen { id: "gt-a".to_owned() });
    town.sling(&["gt-a"]);
    town.start();
    costs(&mut town, "gt-a", "9");
    assert_eq!((kinds(&town), asked_to_stop(&town, "gt-a")), (vec![AlertKind::CostWarning], None));
}

#[test]
fn what_was_taken_by_preemption_does_not_count_as_active_time() {
    let mut town = running(1, &["gt-a"]);
    town.advance(Millis::minutes(10));
    let id = town.live("gt-a");
    town.act(|tx| tx.worker_step_done(&id, "plan"));
    town.advance(Millis::minutes(50));
    town.act(|tx| tx.terminate(&id, StopReason::PreemptionTimeout, false, "scheduler"));
    ends(&mut town, "gt-a");
    assert_eq!(town.context("gt-a").active, Millis::minutes(10), "only what it keeps");
}

#[test]
fn a_drain_past_the_hard_cap_leads_back_to_the_queue_all_the_same() {
    let mut town = running(1, &["gt-a"]);
    town.configure(|s| s.hard_cap = Millis::minutes(10));
    town.advance(Millis::minutes(9));
    let id = town.live("gt-a");
    town.act(|tx| tx.terminate(&id, StopReason::GracefulShutdown, false, "daemon"));
    town.advance(Millis::minutes(2));
    ends(&mut town, "gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Queued);
    town.start();
    town.pass();
    assert_eq!(asked_to_stop(&town, "gt-a"), Some(StopReason::HardCapExceeded), "for its own reason");
}

#[test]
fn a_raised_budget_lets_work_go_on_at_once() {
    let mut town = running(1, &["gt-a"]);
    town.configure(|s| s.cost.daily = Some(usd("5")));
    costs(&mut town, "gt-a", "5");
    ends(&mut town, "gt-a");
    assert!(town.start().is_empty());
    town.configure(|s| s.cost.daily = None);
    assert_eq!(town.start(), ["gt-a"]);
}
