//! What blocks, and what does not.

use yard_engine::bead::{BeadStatus, DepKind, Dependency};
use yard_engine::command::{NewBead, SlingAction};
use yard_engine::readiness::ReasonCode;
use yard_engine::{Command, Standing};

use crate::town::{Town, bead_id, new_bead};

fn other(word: &str) -> DepKind {
    DepKind::from(word.to_owned())
}

#[test]
fn the_four_blocking_kinds_block_and_no_other_does() {
    let blocking = ["blocks", "conditional-blocks", "waits-for", "merge-blocks"];
    let relating = ["parent-child", "related", "tracks", "discovered-from", "anything"];
    for (kinds, blocks) in [(&blocking[..], true), (&relating[..], false)] {
        for kind in kinds {
            let mut town = Town::deferred(5);
            town.beads(&["gt-a", "gt-b"]);
            town.needs("gt-b", "gt-a", other(kind));
            town.sling(&["gt-b"]);
            assert_eq!(town.pass().started.is_empty(), blocks, "{kind}");
            if blocks {
                town.close("gt-a");
                assert_eq!(town.pass().started, ["gt-b"], "{kind}");
            }
        }
    }
}

#[test]
fn a_blocked_bead_is_refused_in_direct_mode_naming_its_blockers() {
    let mut town = Town::new();
    town.beads(&["gt-a", "gt-b"]);
    town.bead_needing("gt-c", &["gt-a", "gt-b"]);
    let result = town.sling_with("gt-c", |r| r.force = true);
    assert_eq!((result.action, result.code.as_deref()), (SlingAction::Refused, Some("blocked-by")));
    assert_eq!(result.message.as_deref(), Some("gt-c waits for gt-a, gt-b"));
    town.close("gt-a");
    assert_eq!(town.sling_one("gt-c").message.as_deref(), Some("gt-c waits for gt-b"));
}

#[test]
fn a_blocked_bead_is_queued_in_deferred_mode() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    assert_eq!(town.sling_one("gt-b").action, SlingAction::Scheduled);
    assert_eq!(town.standing("gt-b"), Standing::Blocked);
    assert_eq!(town.codes("gt-b"), [ReasonCode::BlockedBy]);
}

#[test]
fn blockers_of_a_blocked_parent_are_inherited_and_an_open_parent_alone_blocks_nothing() {
    let mut town = Town::deferred(5);
    town.epic("gt-epic");
    town.epic("gt-sub");
    town.needs("gt-sub", "gt-epic", DepKind::ParentChild);
    town.child("gt-task", "gt-sub");
    town.bead("gt-gate");
    town.sling(&["gt-task"]);
    assert!(town.state.is_ready(&town.context("gt-task").id), "open parents block nothing");
    town.needs("gt-epic", "gt-gate", DepKind::Blocks);
    assert!(town.pass().started.is_empty());
    assert_eq!(town.why("gt-task"), "waits for gt-gate (through its parent gt-epic)");
    // A closed parent hands nothing down.
    town.close("gt-sub");
    assert!(town.state.is_ready(&town.context("gt-task").id));
    town.does(&Command::BeadReopen { id: "gt-sub".to_owned() });
    assert!(!town.state.is_ready(&town.context("gt-task").id));
    town.close("gt-gate");
    assert_eq!(town.pass().started, ["gt-task"]);
}

#[test]
fn own_and_inherited_blockers_are_all_named() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-x", "gt-y"]);
    town.epic("gt-epic");
    town.needs("gt-epic", "gt-x", DepKind::Blocks);
    town.child("gt-task", "gt-epic");
    town.needs("gt-task", "gt-y", DepKind::Blocks);
    assert_eq!(town.why("gt-task"), "waits for gt-y; waits for gt-x (through its parent gt-epic)");
}

#[test]
fn a_dependency_nobody_has_blocks_and_says_so_until_it_appears_and_closes() {
    let mut town = Town::deferred(5);
    town.import(vec![new_bead("gt-b", &["gt-ghost"])]);
    town.sling(&["gt-b"]);
    assert_eq!(town.codes("gt-b"), [ReasonCode::MissingDependency]);
    assert!(town.why("gt-b").contains("gt-ghost, which nobody has"));
    town.bead("gt-ghost");
    assert_eq!(town.codes("gt-b"), [ReasonCode::BlockedBy]);
    town.close("gt-ghost");
    assert_eq!(town.pass().started, ["gt-b"]);
}

#[test]
fn a_dependency_that_arrives_closed_unblocks() {
    let mut town = Town::deferred(5);
    town.import(vec![new_bead("gt-b", &["gt-ghost"])]);
    town.sling(&["gt-b"]);
    town.import(vec![NewBead { status: BeadStatus::Closed, ..new_bead("gt-ghost", &[]) }]);
    assert_eq!(town.pass().started, ["gt-b"]);
}

#[test]
fn removing_the_last_blocking_edge_unblocks() {
    let mut town = Town::deferred(5);
    town.beads(&["gt-a"]);
    town.bead_needing("gt-b", &["gt-a"]);
    town.sling(&["gt-b"]);
    town.does(&Command::DependencyRemove { id: "gt-b".to_owned(), on: "gt-a".to_owned() });
    assert_eq!(town.pass().started, ["gt-b"]);
}

#[test]
fn a_reopened_blocker_blocks_again() {
    let mut town = Town::deferred(5);
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    town.sling(&["gt-b"]);
    town.close("gt-a");
    town.does(&Command::BeadReopen { id: "gt-a".to_owned() });
    assert!(town.pass().started.is_empty());
}

fn edge(id: &str, on: &str, kind: DepKind) -> Command {
    Command::DependencyAdd { id: id.to_owned(), on: on.to_owned(), kind }
}

#[test]
fn a_dependency_cycle_is_refused_with_its_path() {
    let mut town = Town::new();
    town.bead("gt-a");
    town.bead_needing("gt-b", &["gt-a"]);
    town.bead_needing("gt-c", &["gt-b"]);
    let refusal = town.refuses(&edge("gt-a", "gt-c", DepKind::Blocks));
    assert_eq!(refusal.code, "cycle");
    assert_eq!(refusal.message, "this would make a cycle: gt-a -> gt-c -> gt-b -> gt-a");
    assert_eq!(town.refuses(&edge("gt-a", "gt-a", DepKind::Blocks)).code, "cycle");
    // What does not block makes no cycle.
    town.does(&edge("gt-a", "gt-c", other("related")));
}

#[test]
fn a_parent_that_would_wait_for_its_own_child_is_a_cycle_too() {
    let mut town = Town::new();
    town.epic("gt-epic");
    town.child("gt-task", "gt-epic");
    let refusal = town.refuses(&edge("gt-epic", "gt-task", DepKind::Blocks));
    assert_eq!(refusal.message, "this would make a cycle: gt-epic -> gt-task -> gt-epic");
    town.bead("gt-x");
    town.needs("gt-x", "gt-task", DepKind::Blocks);
    let refusal = town.refuses(&edge("gt-epic", "gt-x", DepKind::ParentChild));
    assert_eq!(refusal.code, "cycle");
}

#[test]
fn a_new_bead_that_closes_a_cycle_through_a_missing_id_is_refused() {
    let mut town = Town::new();
    town.import(vec![new_bead("gt-a", &["gt-new"])]);
    let refusal = town.refuses(&Command::BeadAdd { bead: Box::new(new_bead("gt-new", &["gt-a"])) });
    assert_eq!(refusal.message, "this would make a cycle: gt-new -> gt-a -> gt-new");
}

#[test]
fn an_imported_cycle_is_kept_and_named() {
    let mut town = Town::deferred(5);
    town.import(vec![new_bead("gt-a", &["gt-b"]), new_bead("gt-b", &["gt-a"])]);
    town.sling(&["gt-a"]);
    assert_eq!(town.codes("gt-a"), [ReasonCode::BlockedBy, ReasonCode::Cycle]);
    assert!(town.why("gt-a").ends_with("waits for itself: gt-a -> gt-b -> gt-a"));
}

#[test]
fn a_cycle_through_a_closed_bead_is_named_once_that_is_reopened() {
    let mut town = Town::deferred(5);
    town.import(vec![
        new_bead("gt-a", &["gt-b"]),
        NewBead { status: BeadStatus::Closed, ..new_bead("gt-b", &["gt-a"]) },
    ]);
    assert!(town.codes("gt-a").is_empty());
    town.does(&Command::BeadReopen { id: "gt-b".to_owned() });
    assert_eq!(town.codes("gt-a"), [ReasonCode::BlockedBy, ReasonCode::Cycle]);
}

#[test]
fn a_circle_with_a_closed_bead_in_it_is_no_cycle() {
    let mut town = Town::deferred(5);
    town.import(vec![
        new_bead("gt-a", &["gt-b"]),
        new_bead("gt-b", &["gt-c"]),
        NewBead { status: BeadStatus::Closed, ..new_bead("gt-c", &["gt-a"]) },
    ]);
    assert_eq!(town.codes("gt-a"), [ReasonCode::BlockedBy]);
    assert!(town.codes("gt-b").is_empty());
}

#[test]
fn two_edges_between_the_same_beads_count_once_and_the_blocking_one_wins() {
    let mut town = Town::deferred(5);
    let twice = [other("related"), DepKind::WaitsFor].map(|kind| Dependency::new(bead_id("gt-a"), kind));
    town.bead("gt-a");
    town.import(vec![NewBead { dependencies: twice.into(), ..new_bead("gt-b", &[]) }]);
    town.sling(&["gt-b"]);
    assert!(town.pass().started.is_empty());
    town.close("gt-a");
    assert_eq!(town.pass().started, ["gt-b"]);
}

#[test]
fn the_longest_registered_prefix_owns_a_bead() {
    let mut town = Town::deferred(5);
    town.rig("inner", "gt-in");
    town.beads(&["gt-in-1", "gt-inn-1", "gt-in"]);
    let rig = |id: &str| town.state.rig_of(&bead_id(id)).map(|r| r.name.to_string());
    assert_eq!(rig("gt-in-1").as_deref(), Some("inner"));
    assert_eq!(rig("gt-inn-1").as_deref(), Some("gastown"));
    assert_eq!(rig("gt-in").as_deref(), Some("gastown"));
    assert_eq!(rig("other-1"), None);
    assert_eq!(town.sling_one("gt-in-1").rig, Some(crate::town::rig_name("inner")));
}

#[test]
fn hq_beads_are_never_dispatched_and_no_rig_may_own_them() {
    let mut town = Town::deferred(5);
    town.bead("hq-note");
    let result =
        town.sling_with("hq-note", |r| (r.force, r.rig) = (true, Some(crate::town::rig_name("gastown"))));
    assert_eq!(result.code.as_deref(), Some("not-dispatchable"));
    for prefix in ["hq", "hq-x", "gt-"] {
        let mut rig = town.state.rigs().next().expect("a rig").clone();
        (rig.name, rig.prefix) = (crate::town::rig_name("new"), prefix.to_owned());
        assert_eq!(town.refuses(&Command::RigAdd { rig }).code, "bad-prefix", "{prefix}");
    }
}
