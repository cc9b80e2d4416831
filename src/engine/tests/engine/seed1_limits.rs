//! Seed 1, tables "Capacity Management", "Circuit Breaker" and "Safety Properties": one test per row.

use yard_engine::command::SlingAction;
use yard_engine::context::CloseReason;
use yard_engine::plan::{Plan, PlanReason, plan};
use yard_engine::rig::RigSwitch;
use yard_engine::{Command, FormulaName, Millis, Settings, Standing};

use crate::town::{Passed, Town, actions, item, rig_name, why_not};

fn five_queued(max_polecats: i64) -> Town {
    let mut town = Town::deferred(max_polecats);
    town.beads(&["gt-a", "gt-b", "gt-c", "gt-d", "gt-e"]);
    town.sling(&["gt-a", "gt-b", "gt-c", "gt-d", "gt-e"]);
    town
}

// Configuration.

#[test]
fn config_max_polecats_caps_live_workers() {
    assert_eq!(Settings::default().max_polecats, -1);
    let mut town = five_queued(2);
    assert_eq!(
        town.pass(),
        Passed {
            started: vec!["gt-a".to_owned(), "gt-b".to_owned()],
            skipped: 3,
            reason: PlanReason::Capacity
        }
    );
    // Lowered below what runs: nothing is ended, nothing starts until it fits again.
    town.configure(|s| s.max_polecats = 1);
    town.exits_ok("gt-a");
    assert!(town.pass().started.is_empty());
    town.exits_ok("gt-b");
    assert_eq!(town.pass().started, ["gt-c"]);
}

#[test]
fn config_batch_size_caps_starts_per_pass() {
    let mut town = five_queued(5);
    town.configure(|s| s.batch_size = 1);
    let passed = town.pass();
    assert_eq!((passed.started.len(), passed.skipped, passed.reason), (1, 4, PlanReason::Batch));
    town.configure(|s| s.batch_size = 2);
    assert_eq!(town.pass().started.len(), 2);
    // Ours starts everything by default.
    town.configure(|s| s.batch_size = Settings::default().batch_size);
    assert_eq!(town.pass().started.len(), 2);
}

#[test]
fn config_spawn_delay_spaces_the_spawns_of_a_pass() {
    assert_eq!(Settings::default().spawn_delay, Millis(0));
    let mut town = five_queued(3);
    town.configure(|s| s.spawn_delay = Millis::seconds(3));
    // Time has passed since the last event: what counts is the time of the pass.
    town.now = town.in_time(Millis::minutes(10));
    assert_eq!(town.pass().started, ["gt-a"]);
    assert_eq!(town.pass().started, Vec::<String>::new(), "the next one waits its turn, in any pass");
    assert_eq!(town.state.next_spawn_at(), Some(town.in_time(Millis::seconds(3))));
    town.advance(Millis::seconds(3));
    town.pause();
    assert_eq!(town.pass().started, Vec::<String>::new(), "what is put off can be paused");
    town.resume();
    assert_eq!(town.pass().started, ["gt-b"]);
}

#[test]
fn dispatch_count_formula_is_min_of_capacity_batch_and_ready() {
    for capacity in -2..6_i64 {
        for batch in 1..6_u32 {
            for ready in 0..6_u64 {
                let Plan { to_dispatch, skipped, .. } = plan(Some(capacity), batch, ready);
                let expected = u64::try_from(capacity.max(0)).expect("positive").min(batch.into()).min(ready);
                assert_eq!(
                    (to_dispatch, skipped),
                    (expected, ready - expected),
                    "{capacity} {batch} {ready}"
                );
            }
        }
    }
}

#[test]
fn active_polecats_count_every_live_worker_also_directly_slung_ones() {
    let mut town = Town::new();
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.ym_sling(&["gt-a", "gt-b"], |_| {});
    town.configure(|s| s.max_polecats = 2);
    town.sling(&["gt-c"]);
    assert_eq!(town.pass().reason, PlanReason::Capacity);
    assert_eq!(town.state.live_count(), 2);
}

// Circuit Breaker.

fn break_it(town: &mut Town) {
    town.bead("gt-x");
    town.sling_one("gt-x");
    for _ in 0..3 {
        town.run(None, false);
        town.start_fails("gt-x", "no such program");
    }
}

#[test]
fn circuit_breaker_threshold_is_three() {
    assert_eq!(Settings::default().max_dispatch_failures, 3);
    let mut town = Town::deferred(5);
    town.bead("gt-x");
    town.sling_one("gt-x");
    for failures in 1..=2 {
        town.run(None, false);
        town.start_fails("gt-x", "no such program");
        assert_eq!(town.context("gt-x").fields.dispatch_failures, failures);
    }
    town.run(None, false);
    town.start_fails("gt-x", "no such program");
    assert!(!town.is_scheduled("gt-x"));
}

#[test]
fn circuit_breaker_counter_is_in_the_context_and_counts_only_failed_starts() {
    let mut town = Town::deferred(1);
    town.beads(&["gt-x", "gt-y"]);
    town.sling_with("gt-x", |r| r.priority = Some(90));
    town.sling_one("gt-y");
    // Pause, a parked rig, a busy host and a full town never count.
    town.pause();
    town.run(None, false);
    town.resume();
    town.switch("gastown", RigSwitch::Park);
    town.run(None, false);
    town.switch("gastown", RigSwitch::Unpark);
    town.act(|tx| tx.host_observed(Some("load 9".to_owned())));
    town.run(None, false);
    town.act(|tx| tx.host_observed(None));
    town.start();
    town.run(None, false);
    assert_eq!(town.context("gt-y").fields.dispatch_failures, 0);
    // Nor does a start that provably never happened, nor a crash of a started worker.
    town.crashes("gt-x");
    assert_eq!((town.context("gt-x").fields.dispatch_failures, town.context("gt-x").crashes), (0, 1));
    town.pass();
    town.never_ran("gt-y");
    assert_eq!(town.context("gt-y").fields.dispatch_failures, 0);
    town.pass();
    town.start_fails("gt-y", "no such program");
    assert_eq!(town.context("gt-y").fields.dispatch_failures, 1);
}

#[test]
fn circuit_breaker_break_action_closes_the_context_and_leaves_the_bead() {
    let mut town = Town::deferred(5);
    break_it(&mut town);
    let (context, reason) = town.last_closed("gt-x");
    assert_eq!(reason, CloseReason::CircuitBroken);
    assert_eq!(context.fields.last_failure.as_deref(), Some("no such program"));
    assert!(!town.state.bead(&crate::town::bead_id("gt-x")).expect("known").bead.is_closed());
}

#[test]
fn circuit_breaker_reset_is_manual() {
    let mut town = Town::deferred(5);
    break_it(&mut town);
    town.advance(Millis::minutes(60 * 24 * 30));
    assert!(town.pass().started.is_empty());
    assert_eq!(town.standing("gt-x"), Standing::CircuitBroken);
    town.does(&Command::Retry { bead: "gt-x".to_owned() });
    assert_eq!(town.context("gt-x").fields.dispatch_failures, 0);
    assert_eq!(town.pass().started, ["gt-x"]);
}

#[test]
fn circuit_breaker_flow_a_failed_bead_stays_scheduled_and_is_tried_in_the_next_cycle() {
    let mut town = Town::deferred(5);
    town.bead("gt-x");
    town.sling_one("gt-x");
    town.pass();
    town.start_fails("gt-x", "no such program");
    assert!(town.pass().started.is_empty(), "the daemon lets it rest for a moment");
    assert_eq!(town.run(None, true).started, ["gt-x"], "a dry run says what a run would do");
    assert_eq!(town.run(None, false).started, ["gt-x"]);
    town.start_fails("gt-x", "no such program");
    town.advance(Millis::seconds(1));
    assert_eq!(town.pass().started, ["gt-x"]);
}

// Safety Properties.

#[test]
fn safety_schedule_idempotency_skips_a_bead_with_an_open_context() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    let first = town.sling_one("gt-a");
    let again = town.sling_one("gt-a");
    assert_eq!(again.action, SlingAction::AlreadyScheduled);
    assert_eq!(again.context_id, first.context_id);
    town.start();
    let running = town.sling_one("gt-a");
    assert_eq!((running.action, running.dispatch_id), (SlingAction::AlreadyRunning, Some(town.live("gt-a"))));
    assert_eq!(town.state.contexts().count(), 1);
}

#[test]
fn safety_work_bead_pristine() {
    let mut town = Town::deferred(5);
    town.bead_with("gt-a", |b| {
        b.description = Some("as it is".to_owned());
        b.labels = vec!["mine".to_owned()];
    });
    let bead = |town: &Town| town.state.bead(&crate::town::bead_id("gt-a")).expect("known").bead.clone();
    let before = bead(&town);
    town.sling_one("gt-a");
    town.start();
    town.crashes("gt-a");
    town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
    assert_eq!(bead(&town), before);
}

#[test]
fn safety_cross_rig_guard_rejects_a_foreign_prefix_unless_forced() {
    let mut town = Town::deferred(5);
    town.rig("web", "w");
    town.bead("gt-a");
    let refused = town.sling_with("gt-a", |r| r.rig = Some(rig_name("web")));
    assert_eq!((refused.action, refused.code.as_deref()), (SlingAction::Refused, Some("cross-rig")));
    let message = refused.message.expect("says why");
    assert!(message.contains("belongs to rig gastown"), "{message}");
    let forced = town.sling_with("gt-a", |r| (r.rig, r.force) = (Some(rig_name("web")), true));
    assert_eq!((forced.action, forced.rig), (SlingAction::Scheduled, Some(rig_name("web"))));
}

#[test]
fn safety_dispatch_serialization_never_dispatches_twice() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.sling_one("gt-a");
    assert_eq!(town.pass().started, ["gt-a"]);
    assert!(town.pass().started.is_empty());
    assert!(town.run(None, false).started.is_empty());
    assert_eq!(town.dispatches("gt-a").len(), 1);
}

#[test]
fn safety_atomic_scheduling_one_event_makes_the_whole_context() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    let before = town.log.len();
    town.sling_with("gt-a", |r| r.no_convoy = true);
    assert_eq!(town.kinds_since(before), ["context.opened"]);
}

#[test]
fn safety_atomic_scheduling_a_refused_batch_of_adds_leaves_nothing() {
    let mut town = Town::deferred(5);
    let long = yard_engine::command::AddItem { name: Some("x".repeat(100_000)), ..item(None, &[]) };
    let refusal = town.add(vec![item(Some("gt-a"), &[]), long]).expect_err("too long");
    assert!(refusal.message.starts_with("item 2:"), "{refusal}");
    assert_eq!(town.state.bead_count(), 0);
}

#[test]
fn safety_formula_pre_cooking_refuses_a_bad_formula_when_slung() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b"]);
    let shell = FormulaName::parse("shell").expect("valid");
    town.kitchen.spoiled.insert((rig_name("gastown"), shell.clone()), "no step in it".to_owned());
    let result = town.sling_with("gt-a", |r| r.formula = Some(shell));
    assert_eq!((result.code.as_deref(), result.message.as_deref()), (Some("formula"), Some("no step in it")));
    assert!(!town.is_scheduled("gt-a"));
    assert_eq!(town.sling_one("gt-b").action, SlingAction::Scheduled);
}

#[test]
fn safety_fresh_state_on_save_a_pause_during_a_pass_is_never_lost() {
    let mut town = five_queued(5);
    town.configure(|s| s.batch_size = 2);
    town.pass();
    town.pause();
    // The pass that was under way reports; the pause stays.
    town.runs("gt-a");
    town.start_fails("gt-b", "no such program");
    town.exits_ok("gt-a");
    assert!(town.state.pause().is_some());
    assert_eq!(town.pass().reason, PlanReason::Paused);
}

#[test]
fn safety_force_never_overrides_closed_beads_nor_parked_or_docked_rigs() {
    for (rig, switch, code) in
        [("gastown", RigSwitch::Park, "rig-parked"), ("gastown", RigSwitch::Dock, "rig-docked")]
    {
        let mut town = Town::deferred(5);
        town.beads(&["gt-a", "gt-closed"]);
        town.close("gt-closed");
        town.switch(rig, switch);
        let mut request = crate::town::sling_of(&["gt-a", "gt-closed"]);
        request.force = true;
        let results = town.sling_request(request);
        assert_eq!(actions(&results), [SlingAction::Refused; 2]);
        assert_eq!(why_not(&results), [code, "closed"]);
    }
}
