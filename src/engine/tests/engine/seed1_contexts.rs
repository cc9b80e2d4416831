//! Seed 1, tables "Context Fields" and "Bead State Machine": one test per row.

use yard_engine::bead::BeadEvent;
use yard_engine::context::CloseReason;
use yard_engine::settings::Merge;
use yard_engine::{AccountName, Command, Event, FormulaName, Standing};

use crate::town::Town;

/// The record of a sling, as JSON.
fn record(change: impl FnOnce(&mut yard_engine::command::SlingRequest)) -> serde_json::Value {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    town.sling_with("gt-abc", change);
    fields(&town)
}

fn fields(town: &Town) -> serde_json::Value {
    serde_json::to_value(&town.context("gt-abc").fields).expect("a record is JSON")
}

// Context Fields.

#[test]
fn context_field_version() {
    assert_eq!(record(|_| {})["version"], 1);
}

#[test]
fn context_field_work_bead_id() {
    assert_eq!(record(|_| {})["work_bead_id"], "gt-abc");
}

#[test]
fn context_field_target_rig() {
    assert_eq!(record(|_| {})["target_rig"], "gastown");
}

#[test]
fn context_field_formula() {
    assert_eq!(record(|_| {})["formula"], "mol-polecat-work");
    let named = FormulaName::parse("shell").ok();
    assert_eq!(record(|r| r.formula = named)["formula"], "shell");
}

#[test]
fn context_field_args() {
    assert_eq!(record(|r| r.args = Some("be careful".to_owned()))["args"], "be careful");
    assert!(record(|_| {}).get("args").is_none());
}

#[test]
fn context_field_vars() {
    let vars = [("b", "2"), ("a", "1=1")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(record(|r| r.vars = vars.into())["vars"], "a=1=1\nb=2");
}

#[test]
fn context_field_enqueued_at() {
    let town = Town::new();
    assert_eq!(record(|_| {})["enqueued_at"], town.now.to_string());
}

#[test]
fn context_field_merge() {
    for (merge, word) in [(Merge::Direct, "direct"), (Merge::Mr, "mr"), (Merge::Local, "local")] {
        assert_eq!(record(|r| r.merge = Some(merge))["merge"], word);
    }
}

#[test]
fn context_field_convoy() {
    let convoy = record(|_| {})["convoy"].as_str().map(str::to_owned);
    assert!(convoy.is_some_and(|id| id.starts_with("hq-cv-")));
    assert!(record(|r| r.no_convoy = true).get("convoy").is_none());
}

#[test]
fn context_field_base_branch() {
    assert_eq!(record(|r| r.base_branch = Some("next".to_owned()))["base_branch"], "next");
}

#[test]
fn context_field_no_merge() {
    assert_eq!(record(|r| r.no_merge = true)["no_merge"], true);
    assert!(record(|_| {}).get("no_merge").is_none());
}

#[test]
fn context_field_account() {
    assert_eq!(record(|r| r.account = AccountName::parse("main").ok())["account"], "main");
}

#[test]
fn context_field_agent() {
    assert_eq!(record(|r| r.agent = Some("codex".to_owned()))["agent"], "codex");
}

#[test]
fn context_field_hook_raw_bead() {
    let mut town = Town::deferred(5);
    town.bead_with("gt-abc", |b| b.argv = Some(vec!["make".to_owned()]));
    town.sling_with("gt-abc", |r| r.hook_raw_bead = true);
    assert_eq!(fields(&town)["hook_raw_bead"], true);
    assert!(fields(&town).get("formula").is_none());
}

#[test]
fn context_field_owned() {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    town.sling_with("gt-abc", |r| r.owned = true);
    assert_eq!(fields(&town)["owned"], true);
    assert!(town.state.convoys().all(|c| c.owned));
}

#[test]
fn context_field_mode() {
    assert_eq!(record(|r| r.ralph = true)["mode"], "ralph");
    assert!(record(|_| {}).get("mode").is_none());
}

#[test]
fn context_field_dispatch_failures() {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    town.sling_one("gt-abc");
    assert_eq!(fields(&town)["dispatch_failures"], 0);
    town.pass();
    town.start_fails("gt-abc", "no such program");
    assert_eq!(fields(&town)["dispatch_failures"], 1);
}

#[test]
fn context_field_last_failure() {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    town.sling_one("gt-abc");
    town.pass();
    town.start_fails("gt-abc", "no such program");
    assert_eq!(fields(&town)["last_failure"], "no such program");
}

// Bead State Machine.

#[test]
fn state_scheduled_is_an_open_context() {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    town.sling_one("gt-abc");
    assert!(town.context("gt-abc").is_open());
    assert_eq!(town.standing("gt-abc"), Standing::Queued);
}

#[test]
fn state_dispatched_is_a_context_closed_when_its_program_runs() {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    town.sling_one("gt-abc");
    town.pass();
    assert!(town.is_scheduled("gt-abc"), "a start alone closes nothing");
    town.runs("gt-abc");
    assert_eq!(town.close_reason("gt-abc"), CloseReason::Dispatched);
}

#[test]
fn state_circuit_broken_is_a_context_closed_after_three_failed_starts() {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    town.sling_one("gt-abc");
    for _ in 0..3 {
        assert!(town.is_scheduled("gt-abc"));
        town.run(None, false);
        town.start_fails("gt-abc", "no such program");
    }
    assert_eq!(town.close_reason("gt-abc"), CloseReason::CircuitBroken);
    assert_eq!(town.standing("gt-abc"), Standing::CircuitBroken);
}

#[test]
fn state_cleared_is_a_context_closed_by_clear() {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    town.sling_one("gt-abc");
    town.does(&Command::Clear { bead: None });
    assert_eq!(town.close_reason("gt-abc"), CloseReason::Cleared);
}

#[test]
fn key_invariant_the_work_bead_is_never_modified_by_the_scheduler() {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    let before = town.state.bead(&crate::town::bead_id("gt-abc")).expect("known").bead.clone();
    town.sling_one("gt-abc");
    for _ in 0..3 {
        town.run(None, false);
        town.start_fails("gt-abc", "no such program");
    }
    let after = &town.state.bead(&crate::town::bead_id("gt-abc")).expect("known").bead;
    assert_eq!(*after, before);
    let touched = town
        .log
        .iter()
        .filter(|r| matches!(&r.event, Event::Bead(e) if !matches!(e, BeadEvent::Added { .. })));
    assert_eq!(touched.count(), 0);
}
