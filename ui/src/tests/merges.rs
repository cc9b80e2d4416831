//! Branches that cannot be merged: among the problems, with their files and a way out.

use yard_engine::dispatch::Category;
use yard_engine::merge::MergeProblem;
use yard_engine::settings::Merge;
use yard_engine::worktree::Worktree;
use yard_engine::{Standing, WorkerExit};

use crate::testing::session::Session;
use crate::testing::{Yard, bead, commands, press, screen};

/// A town in which one branch is in line and another cannot be merged.
fn with_a_conflict() -> Yard {
    let mut yard = Yard::with_cap(5);
    yard.configure(|settings| settings.worker.merge = Some(Merge::Direct));
    for id in ["gt-torn", "gt-next"] {
        yard.bead(id, "Mend the points", |_| {});
        yard.sling(id);
        yard.pass();
        yard.runs(id);
        let dispatch = yard.live(id);
        let worktree = Worktree {
            made_for: dispatch.clone(),
            branch: format!("ym/{dispatch}"),
            base: "main".to_owned(),
            start: "c0".to_owned(),
            finished: true,
            head: Some("c1".to_owned()),
        };
        let worktree = Some(Box::new(worktree));
        let exit = WorkerExit { worktree, category: Category::Crash, ..WorkerExit::succeeded() };
        yard.act(|tx| tx.worker_ended(&dispatch, &exit));
    }
    let problem = MergeProblem::Conflict { files: vec!["src/points.rs".to_owned()] };
    yard.act(|tx| {
        tx.begin_merges();
        tx.merge_blocked(&bead("gt-torn"), problem);
    });
    yard
}

#[test]
fn a_conflict_is_a_problem_with_its_files_and_r_merges_again() {
    let yard = with_a_conflict();
    assert_eq!(yard.state.standing(&bead("gt-torn")), Some(Standing::Blocked));
    assert_eq!(yard.state.standing(&bead("gt-next")), Some(Standing::Done));
    let mut session = Session::on(yard, (120, 40), "terminal", false);
    session.press("5");
    let shown = screen(&session.console);
    assert!(shown.contains("CONFLICT") && shown.contains("conflicts in src/points.rs"), "{shown}");
    assert!(!shown.contains("gt-next"), "what only waits for its turn needs nobody: {shown}");
    let effects = press(&mut session.console, "r");
    assert_eq!(commands(&effects), ["scheduler retry gt-torn"]);
}
