//! Seed 1, tables "Dispatch Modes", "CLI Entry Points" and "Dispatch Paths": one test per row.

use yard_engine::command::SlingAction;

use crate::town::{Town, actions};

fn town(max_polecats: i64) -> Town {
    let mut town = Town::new();
    town.configure(|s| s.max_polecats = max_polecats);
    town
}

// Dispatch Modes.

#[test]
fn dispatch_mode_minus_one_is_direct_and_the_default() {
    let mut town = Town::new();
    assert_eq!(town.state.settings().max_polecats, -1);
    town.bead("gt-abc");
    assert_eq!(town.ym_sling(&["gt-abc"], |_| {}), ["gt-abc"]);
}

#[test]
fn dispatch_mode_zero_is_direct_too() {
    let mut town = town(0);
    town.bead("gt-abc");
    assert_eq!(town.ym_sling(&["gt-abc"], |_| {}), ["gt-abc"]);
    assert_eq!(town.state.settings().town_cap(), None);
}

#[test]
fn dispatch_mode_n_is_deferred_a_sling_opens_a_context_and_a_pass_dispatches() {
    let mut town = town(5);
    town.bead("gt-abc");
    assert!(town.ym_sling(&["gt-abc"], |_| {}).is_empty());
    assert!(town.is_scheduled("gt-abc") && town.running().is_empty());
    assert_eq!(town.pass().started, ["gt-abc"]);
}

// CLI Entry Points: each command in direct and in deferred mode.

#[test]
fn entry_point_sling_bead_rig_dispatches_at_once_or_schedules() {
    for (mode, at_once) in [(-1, vec!["gt-a"]), (5, vec![])] {
        let mut town = town(mode);
        town.bead("gt-a");
        let rig = Some(crate::town::rig_name("gastown"));
        assert_eq!(town.ym_sling(&["gt-a"], |r| r.rig = rig), at_once);
        assert!(town.is_scheduled("gt-a"));
    }
}

#[test]
fn entry_point_sling_batch_dispatches_or_schedules_all() {
    for (mode, at_once) in [(-1, vec!["gt-a", "gt-b", "gt-c"]), (5, vec![])] {
        let mut town = town(mode);
        town.beads(&["gt-a", "gt-b", "gt-c"]);
        let rig = Some(crate::town::rig_name("gastown"));
        assert_eq!(town.ym_sling(&["gt-a", "gt-b", "gt-c"], |r| r.rig = rig), at_once);
        assert_eq!(town.state.open_context_count(), 3);
    }
}

#[test]
fn entry_point_sling_epic_takes_all_children() {
    for (mode, at_once) in [(-1, vec!["gt-c1", "gt-c2"]), (5, vec![])] {
        let mut town = town(mode);
        town.epic("gt-epic");
        town.child("gt-c1", "gt-epic");
        town.child("gt-c2", "gt-epic");
        assert_eq!(town.ym_sling(&["gt-epic"], |_| {}), at_once);
        assert!(town.is_scheduled("gt-c1") && town.is_scheduled("gt-c2") && !town.is_scheduled("gt-epic"));
    }
}

#[test]
fn entry_point_sling_convoy_takes_all_tracked() {
    for (mode, at_once) in [(-1, vec!["gt-a", "gt-b"]), (5, vec![])] {
        let mut town = town(mode);
        town.beads(&["gt-a", "gt-b", "gt-other"]);
        let convoy = town.convoy(&["gt-a", "gt-b"]);
        assert_eq!(town.ym_sling(&[&convoy], |_| {}), at_once);
        assert!(town.is_scheduled("gt-a") && town.is_scheduled("gt-b") && !town.is_scheduled("gt-other"));
    }
}

// Dispatch Paths.

#[test]
fn dispatch_path_direct_starts_every_open_issue_of_a_convoy_at_once_without_capacity_control() {
    let mut town = town(-1);
    let ids: Vec<String> = (0..40).map(|n| format!("gt-{n:02}")).collect();
    for id in &ids {
        town.bead(id);
    }
    let convoy = town.convoy(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    town.close("gt-00");
    assert_eq!(town.ym_sling(&[&convoy], |_| {}), ids[1..]);
}

#[test]
fn dispatch_path_deferred_feeds_a_convoy_through_max_polecats_and_batch_size() {
    let mut town = town(3);
    town.configure(|s| s.batch_size = 2);
    town.beads(&["gt-a", "gt-b", "gt-c", "gt-d", "gt-e"]);
    let convoy = town.convoy(&["gt-a", "gt-b", "gt-c", "gt-d", "gt-e"]);
    assert_eq!(actions(&town.sling(&[&convoy])), [SlingAction::Scheduled; 5]);
    assert_eq!(town.start(), ["gt-a", "gt-b"]);
    assert_eq!(town.start(), ["gt-c"]);
    assert!(town.start().is_empty());
    town.exits_ok("gt-b");
    assert_eq!(town.start(), ["gt-d"]);
}

#[test]
fn rig_resolution_sends_each_bead_of_a_set_to_its_own_rig_and_skips_the_towns() {
    let mut town = town(5);
    town.rig("web", "w");
    town.beads(&["gt-a", "w-a", "hq-note"]);
    let convoy = town.convoy(&["gt-a", "w-a", "hq-note"]);
    let results = town.sling(&[&convoy]);
    let rigs: Vec<Option<&str>> =
        results.iter().map(|r| r.rig.as_ref().map(yard_engine::RigName::as_str)).collect();
    assert_eq!(rigs, [Some("gastown"), Some("web"), None]);
    assert_eq!(actions(&results), [SlingAction::Scheduled, SlingAction::Scheduled, SlingAction::Skipped]);
}
