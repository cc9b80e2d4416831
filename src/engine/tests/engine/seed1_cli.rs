//! Seed 1, table "Common CLI": one test per row, as far as the engine carries it.

use yard_engine::command::SlingAction;
use yard_engine::context::CloseReason;
use yard_engine::plan::PlanReason;
use yard_engine::{Answer, Command, Standing};

use crate::town::{Passed, Town, actions, rig_name};

#[test]
fn sling_bead_rig_slings_it_as_configured() {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    let result = town.sling_with("gt-abc", |r| r.rig = Some(rig_name("gastown")));
    assert_eq!(result.action, SlingAction::Scheduled);
    town.configure(|s| s.max_polecats = -1);
    town.bead("gt-def");
    assert_eq!(town.ym_sling(&["gt-def"], |r| r.rig = Some(rig_name("gastown"))), ["gt-def"]);
}

#[test]
fn sling_beads_rig_slings_a_batch() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-abc", "gt-def", "gt-ghi"]);
    let results = town.sling(&["gt-abc", "gt-def", "gt-ghi"]);
    assert_eq!(actions(&results), [SlingAction::Scheduled; 3]);
}

#[test]
fn sling_convoy_slings_all_tracked_issues() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-abc", "gt-def"]);
    let convoy = town.convoy(&["gt-abc", "gt-def"]);
    assert!(convoy.starts_with("hq-cv-") && convoy.len() == 11, "{convoy}");
    assert_eq!(actions(&town.sling(&[&convoy])), [SlingAction::Scheduled; 2]);
}

#[test]
fn sling_epic_slings_all_children() {
    let mut town = Town::deferred(5);
    town.epic("gt-epic-123");
    town.child("gt-abc", "gt-epic-123");
    assert_eq!(actions(&town.sling(&["gt-epic-123"])), [SlingAction::Scheduled]);
}

#[test]
fn scheduler_status_shows_state_and_capacity() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-abc", "gt-def"]);
    town.bead_needing("gt-ghi", &["gt-def"]);
    town.sling(&["gt-abc"]);
    town.start();
    town.sling(&["gt-def", "gt-ghi"]);
    // "Queued: 2 total, 1 ready".
    assert_eq!((town.state.open_context_count(), town.state.ready_count()), (2, 1));
    let limits = town.state.limits();
    assert_eq!((limits[0].1.max, limits[0].1.active, limits[0].1.free()), (Some(5), 1, Some(4)));
    assert!(town.state.pause().is_none());
    assert_eq!(town.state.last_dispatch_at(), Some(town.now));
}

#[test]
fn scheduler_list_lists_scheduled_beads_by_rig_and_marks_blocked_ones() {
    let mut town = Town::deferred(5);
    town.rig("web", "w");
    town.beads(&["gt-a", "w-a"]);
    town.bead_needing("w-b", &["gt-a"]);
    town.sling(&["gt-a", "w-a", "w-b"]);
    let of_rig = |rig: &str| -> Vec<(String, bool)> {
        let mine = town.state.open_contexts().filter(|c| c.fields.target_rig == rig_name(rig));
        mine.map(|c| (c.bead().to_string(), town.state.is_ready(&c.id))).collect()
    };
    assert_eq!(of_rig("gastown"), [("gt-a".to_owned(), true)]);
    assert_eq!(of_rig("web"), [("w-a".to_owned(), true), ("w-b".to_owned(), false)]);
    assert_eq!(town.standing("w-b"), Standing::Blocked);
}

#[test]
fn scheduler_run_triggers_dispatch_and_a_dry_run_only_previews_it() {
    let mut town = Town::deferred(5);
    town.bead("gt-abc");
    town.sling(&["gt-abc"]);
    let ready = || Passed { started: vec!["gt-abc".to_owned()], skipped: 0, reason: PlanReason::Ready };
    let before = town.log.len();
    assert_eq!(town.run(None, true), ready());
    assert_eq!(town.log.len(), before);
    assert_eq!(town.run(None, false), ready());
    assert_eq!(town.run(None, false), Passed { started: vec![], skipped: 0, reason: PlanReason::None });
}

#[test]
fn scheduler_pause_stops_all_dispatch_town_wide() {
    let mut town = Town::new();
    town.rig("web", "w");
    town.beads(&["gt-a", "w-a"]);
    town.does(&Command::Pause { reason: Some("lunch".to_owned()), until: None });
    assert!(town.ym_sling(&["gt-a", "w-a"], |_| {}).is_empty());
    assert_eq!(town.run(None, false), Passed { started: vec![], skipped: 2, reason: PlanReason::Paused });
    let pause = town.state.pause().expect("paused");
    assert_eq!((pause.by.as_str(), pause.at, pause.reason.as_deref()), ("ada", town.now, Some("lunch")));
    assert!(town.why("gt-a").contains("paused by ada: lunch"));
}

#[test]
fn scheduler_resume_lets_dispatch_go_on() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.pause();
    town.sling(&["gt-a"]);
    assert!(town.pass().started.is_empty());
    town.resume();
    assert_eq!(town.pass().started, ["gt-a"]);
    let again = town.does(&Command::Resume);
    assert!(matches!(again, Answer::Done { changed: false, .. }), "{again:?}");
}

#[test]
fn scheduler_clear_removes_beads_from_the_scheduler() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.sling(&["gt-a", "gt-b", "gt-c"]);
    town.does(&Command::Clear { bead: Some("gt-b".to_owned()) });
    assert_eq!(town.close_reason("gt-b"), CloseReason::Cleared);
    assert_eq!(town.state.open_context_count(), 2);
    town.does(&Command::Clear { bead: None });
    assert_eq!(town.state.open_context_count(), 0);
    assert_eq!(town.standing("gt-a"), Standing::Open);
}
