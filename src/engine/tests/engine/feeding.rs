//! Feeding: what a convoy under way tracks starts as soon as it is ready, by the same plan as everything else.

use yard_engine::bead::{BeadStatus, DepKind};
use yard_engine::command::SlingAction;
use yard_engine::context::CloseReason;
use yard_engine::dispatch::Category;
use yard_engine::readiness::ReasonCode;
use yard_engine::rig::RigSwitch;
use yard_engine::settings::Merge;
use yard_engine::{Command, Millis, Standing};

use crate::town::{Town, exit};
use crate::words::{add_of, close_of};

#[test]
fn beads_of_a_convoy_start_without_being_asked_for() {
    for mode in [-1, 5] {
        let mut town = Town::deferred(mode);
        town.beads(&["gt-a", "gt-b"]);
        let convoy = town.convoy(&["gt-a", "gt-b"]);
        assert_eq!(town.start(), ["gt-a", "gt-b"], "mode {mode}");
        let (context, _) = town.last_closed("gt-a");
        assert_eq!(context.fields.convoy.as_ref().map(ToString::to_string), Some(convoy));
    }
}

#[test]
fn a_convoy_that_its_owner_looks_after_waits_for_his_word() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b"]);
    let convoy = town.owned_convoy(&["gt-a", "gt-b"]);
    assert_eq!(town.pass().started, [""; 0]);
    town.sling(&["gt-a"]);
    assert_eq!(town.pass().started, ["gt-a"]);
    town.launch(&[&convoy]);
    assert_eq!(town.pass().started, ["gt-b"]);
}

#[test]
fn what_a_sling_asked_for_is_not_asked_for_again_by_the_convoy_it_made() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    town.does(&Command::Clear { bead: None });
    assert_eq!(town.pass().started, [""; 0]);
    town.sling(&["gt-a"]);
    town.status("gt-a", BeadStatus::InProgress, Some("bob"));
    town.status("gt-a", BeadStatus::Open, Some(""));
    assert_eq!(town.pass().started, [""; 0]);
}

#[test]
fn a_bead_of_two_convoys_gets_one_context() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.convoy(&["gt-a"]);
    town.convoy(&["gt-a"]);
    assert_eq!((town.start(), town.count("context.opened")), (vec!["gt-a".to_owned()], 1));
    town.exits_ok("gt-a");
    assert_eq!(town.count("convoy.closed"), 2);
}

#[test]
fn a_bead_is_run_as_its_convoy_would_have_it() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.convoy_with(|new| {
        new.beads = vec!["gt-a".to_owned()];
        (new.merge, new.base_branch) = (Some(Merge::Local), Some("release".to_owned()));
    });
    town.pass();
    let fields = &town.context("gt-a").fields;
    assert_eq!((fields.merge, fields.base_branch.as_deref()), (Some(Merge::Local), Some("release")));
}

#[test]
fn what_is_blocked_gets_its_context_when_it_is_ready_and_not_before() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    town.convoy(&["gt-b", "gt-a"]);
    assert_eq!(town.start(), ["gt-a"]);
    assert!(!town.is_scheduled("gt-b"));
    assert_eq!(town.turn(|_| ()), [""; 0]);
    let id = town.live("gt-a");
    assert_eq!(town.turn(|tx| tx.worker_ended(&id, &exit(0, Category::Crash))), ["gt-b"]);
}

#[test]
fn a_blocker_outside_the_convoy_releases_its_beads_too() {
    let mut town = Town::deferred(5);
    town.bead("gt-outside");
    town.bead_needing("gt-a", &["gt-outside"]);
    town.convoy(&["gt-a"]);
    assert_eq!(town.pass().started, [""; 0]);
    town.close("gt-outside");
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn an_edge_that_is_removed_releases_a_bead_and_one_that_is_added_holds_it() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b"]);
    town.needs("gt-b", "gt-a", DepKind::WaitsFor);
    town.convoy(&["gt-b"]);
    assert_eq!(town.pass().started, [""; 0]);
    town.does(&Command::DependencyRemove { id: "gt-b".to_owned(), on: "gt-a".to_owned() });
    town.needs("gt-b", "gt-a", DepKind::ParentChild);
    assert_eq!(town.pass().started, ["gt-b"], "a parent is no blocker");
}

#[test]
fn capacity_holds_what_is_fed_in_the_queue() {
    let mut town = Town::deferred(2);
    town.beads(&["gt-a", "gt-b", "gt-c"]);
    town.convoy(&["gt-a", "gt-b", "gt-c"]);
    assert_eq!(town.start(), ["gt-a", "gt-b"]);
    assert_eq!((town.standing("gt-c"), town.codes("gt-c")), (Standing::Queued, vec![ReasonCode::Capacity]));
    town.exits_ok("gt-b");
    assert_eq!(town.start(), ["gt-c"]);
}

// What holds feeding.

#[test]
fn a_pause_holds_a_convoy_and_its_end_releases_it() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.pause();
    town.convoy(&["gt-a"]);
    assert_eq!(town.pass().started, [""; 0]);
    town.resume();
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn a_parked_or_docked_rig_holds_its_beads_and_no_others() {
    for (stop, go) in [(RigSwitch::Park, RigSwitch::Unpark), (RigSwitch::Dock, RigSwitch::Undock)] {
        let mut town = Town::deferred(5);
        town.rig("web", "w");
        town.beads(&["gt-a", "w-a"]);
        town.switch("web", stop);
        town.convoy(&["gt-a", "w-a"]);
        assert_eq!((town.start(), town.is_scheduled("w-a")), (vec!["gt-a".to_owned()], false));
        town.switch("web", go);
        assert_eq!(town.start(), ["w-a"]);
    }
}

#[test]
fn a_busy_host_holds_a_convoy_and_a_quiet_one_releases_it() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.act(|tx| tx.host_observed(Some("load".to_owned())));
    town.convoy(&["gt-a"]);
    assert_eq!(town.pass().started, [""; 0]);
    assert_eq!(town.turn(|tx| tx.host_observed(None)), ["gt-a"]);
}

#[test]
fn a_rig_that_joins_later_releases_beads_without_a_home() {
    let mut town = Town::deferred(5);
    town.import(vec![crate::town::new_bead("w-a", &[])]);
    town.convoy(&["w-a"]);
    assert_eq!((town.pass().started, town.codes("w-a")), (Vec::new(), vec![ReasonCode::NoRig]));
    town.rig("web", "w");
    assert_eq!(town.pass().started, ["w-a"]);
}

#[test]
fn beads_that_are_no_work_are_never_fed() {
    let mut town = Town::deferred(5);
    town.epic("gt-epic");
    town.bead_with("gt-pinned", |bead| bead.pinned = true);
    town.bead_with("gt-wisp-1", |_| {});
    town.import(vec![crate::town::new_bead("hq-1", &[])]);
    town.convoy(&["gt-epic", "gt-pinned", "gt-wisp-1", "hq-1"]);
    assert_eq!((town.pass().started, town.state.open_context_count()), (Vec::new(), 0));
}

// What is not fed again.

#[test]
fn what_a_person_cleared_comes_back_by_a_sling_only() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.convoy(&["gt-a"]);
    town.pause();
    town.pass();
    town.does(&Command::Clear { bead: None });
    town.resume();
    assert_eq!((town.pass().started, town.close_reason("gt-a")), (Vec::new(), CloseReason::Cleared));
    assert_eq!(town.sling_one("gt-a").action, SlingAction::Scheduled);
    assert_eq!(town.start(), ["gt-a"]);
}

#[test]
fn a_clear_that_is_taken_back_puts_the_bead_back_once() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.convoy(&["gt-a"]);
    town.pause();
    town.pass();
    town.does(&Command::Clear { bead: None });
    town.does(&Command::Undo);
    town.resume();
    assert_eq!((town.pass().started, town.count("dispatch.started")), (vec!["gt-a".to_owned()], 1));
}

#[test]
fn what_was_called_off_comes_back_by_a_retry_only() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.convoy(&["gt-a"]);
    town.pause();
    town.pass();
    town.does(&Command::Cancel { id: "gt-a".to_owned(), at_once: false });
    town.resume();
    assert_eq!((town.pass().started, town.standing("gt-a")), (Vec::new(), Standing::Cancelled));
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn what_failed_for_good_comes_back_by_a_retry_only() {
    let mut town = Town::deferred(5);
    town.configure(|s| s.retry_crash.max_attempts = 1);
    town.bead("gt-a");
    town.convoy(&["gt-a"]);
    town.start();
    town.crashes("gt-a");
    town.advance(Millis::minutes(600));
    assert_eq!((town.pass().started, town.standing("gt-a")), (Vec::new(), Standing::Failed));
    town.does(&Command::Retry { bead: "gt-a".to_owned() });
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn what_could_not_be_started_comes_back_by_a_retry_only() {
    let mut town = Town::deferred(5);
    town.configure(|s| s.max_dispatch_failures = 1);
    town.bead("gt-a");
    town.convoy(&["gt-a"]);
    town.pass();
    town.start_fails("gt-a", "no such program");
    assert_eq!((town.pass().started, town.standing("gt-a")), (Vec::new(), Standing::CircuitBroken));
    town.sling(&["gt-a"]);
    assert_eq!(town.pass().started, ["gt-a"]);
}

#[test]
fn a_reopened_bead_of_a_convoy_under_way_runs_again() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a", "gt-b"]);
    town.convoy(&["gt-a", "gt-b"]);
    town.start();
    town.exits_ok("gt-a");
    town.does(&Command::BeadReopen { id: "gt-a".to_owned() });
    assert_eq!(town.start(), ["gt-a"]);
    assert_eq!(town.work("gt-a").attempts, 2);
}

#[test]
fn a_closed_convoy_feeds_nothing() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    let convoy = town.convoy(&["gt-a"]);
    town.does(&close_of(&convoy, true));
    assert_eq!(town.pass().started, [""; 0]);
    town.bead("gt-b");
    town.does(&add_of(&convoy, &["gt-b"]));
    assert_eq!(town.pass().started, ["gt-a", "gt-b"], "it is open again");
}

#[test]
fn a_command_without_a_daemon_starts_only_what_it_asked_for_itself() {
    let mut town = Town::new();
    town.beads(&["gt-a", "gt-b"]);
    town.convoy(&["gt-a"]);
    assert_eq!(town.ym_sling(&["gt-b"], |_| {}), ["gt-b"]);
    assert!(!town.is_scheduled("gt-a"));
    assert_eq!(town.run(None, true).started, ["gt-a"], "scheduler run would start it");
    assert!(!town.is_scheduled("gt-a"));
    assert_eq!(town.run(None, false).started, ["gt-a"]);
}

#[test]
fn feeding_survives_a_restart_without_feeding_twice() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    town.convoy(&["gt-a", "gt-b"]);
    town.start();
    town.exits_ok("gt-a");
    town.restart();
    assert_eq!(town.start(), ["gt-b"]);
    town.restart();
    assert_eq!((town.start(), town.count("context.opened")), (Vec::new(), 2));
}
