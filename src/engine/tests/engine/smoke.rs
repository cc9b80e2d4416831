//! The shortest stories.

use yard_engine::Standing;
use yard_engine::context::CloseReason;
use yard_engine::plan::PlanReason;

use crate::town::{Passed, Town};

#[test]
fn a_slung_bead_runs_and_closes() {
    let mut town = Town::new();
    town.bead("gt-a");
    town.sling(&["gt-a"]);
    assert_eq!(town.standing("gt-a"), Standing::Queued);
    assert_eq!(
        town.pass(),
        Passed { started: vec!["gt-a".to_owned()], skipped: 0, reason: PlanReason::Ready }
    );
    assert_eq!(town.standing("gt-a"), Standing::Running);
    assert!(town.is_scheduled("gt-a"));
    town.runs("gt-a");
    assert_eq!(town.close_reason("gt-a"), CloseReason::Dispatched);
    town.exits_ok("gt-a");
    assert_eq!(town.standing("gt-a"), Standing::Closed);
}

#[test]
fn ten_beads_blocked_by_one_all_start_in_the_pass_after_it_closes() {
    let mut town = Town::deferred(20);
    town.bead("gt-root");
    let ids: Vec<String> = (0..10).map(|n| format!("gt-leaf{n}")).collect();
    for id in &ids {
        town.bead_needing(id, &["gt-root"]);
    }
    town.sling(&ids.iter().map(String::as_str).chain(["gt-root"]).collect::<Vec<_>>());
    assert_eq!(town.start(), ["gt-root"]);
    town.exits_ok("gt-root");
    assert_eq!(town.pass().started, ids);
}
