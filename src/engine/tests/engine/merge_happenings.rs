//! Random histories of branches and merges, among all else that may happen to a town.

use proptest::prelude::*;
use yard_engine::dispatch::Category;
use yard_engine::merge::MergeProblem;
use yard_engine::settings::Merge;
use yard_engine::{BeadId, Command, WorkerExit};

use crate::merging::worktree_of;
use crate::town::{Town, exit};

/// What may happen to branches; numbers are taken modulo what there is.
#[derive(Debug, Clone)]
pub(crate) enum MergeHappening {
    Strategy(u8),
    /// A live worker gets a branch.
    Isolated(usize),
    /// A live worker ends well, and may have left something on its branch.
    Finished {
        nth: usize,
        with_work: bool,
    },
    Began,
    Composed {
        nth: usize,
        is_checked: bool,
    },
    Checked {
        nth: usize,
        well: bool,
    },
    CheckLost(usize),
    Overtaken(usize),
    Landed(usize),
    Blocked(usize),
    Retried(usize),
    Cancelled(usize),
}

pub(crate) fn merge_happening() -> impl Strategy<Value = MergeHappening> {
    use MergeHappening as H;
    let nth = || 0_usize..8;
    prop_oneof![
        1 => (0_u8..4).prop_map(H::Strategy),
        4 => nth().prop_map(H::Isolated),
        4 => (nth(), any::<bool>()).prop_map(|(nth, with_work)| H::Finished { nth, with_work }),
        4 => Just(H::Began),
        3 => (nth(), any::<bool>()).prop_map(|(nth, is_checked)| H::Composed { nth, is_checked }),
        2 => (nth(), any::<bool>()).prop_map(|(nth, well)| H::Checked { nth, well }),
        1 => nth().prop_map(H::CheckLost),
        1 => nth().prop_map(H::Overtaken),
        3 => nth().prop_map(H::Landed),
        1 => nth().prop_map(H::Blocked),
        1 => nth().prop_map(H::Retried),
        1 => nth().prop_map(H::Cancelled),
    ]
}

/// Lets it happen.
pub(crate) fn merge_happens(town: &mut Town, happening: &MergeHappening) {
    use MergeHappening as H;
    match happening {
        H::Strategy(nth) => {
            let strategies = [None, Some(Merge::Direct), Some(Merge::Mr), Some(Merge::Local)];
            town.configure(|s| s.worker.merge = strategies[usize::from(*nth)]);
        }
        H::Isolated(nth) => {
            let live: Vec<_> = town.state.live_workers().map(|dispatch| dispatch.id.clone()).collect();
            if let Some(id) = pick(&live, *nth) {
                town.act(|tx| tx.worker_isolated(&id, &worktree_of(&id, None)));
            }
        }
        H::Finished { nth, with_work } => {
            let isolated = town.state.live_workers().filter(|dispatch| dispatch.worktree.is_some());
            let isolated: Vec<_> = isolated.map(|dispatch| dispatch.id.clone()).collect();
            if let Some(id) = pick(&isolated, *nth) {
                let worktree = worktree_of(&id, with_work.then_some("c9"));
                let exit = WorkerExit { worktree: Some(Box::new(worktree)), ..exit(0, Category::Crash) };
                town.act(|tx| tx.worker_ended(&id, &exit));
            }
        }
        H::Began => town.begins(),
        H::Composed { nth, is_checked } => {
            with(town, *nth, |town, bead| {
                town.act(|tx| tx.merge_composed(bead, "c0", "c1", *is_checked));
            });
        }
        H::Checked { nth, well } => with(town, *nth, |town, bead| {
            if let Some(run) = run_of(town, bead) {
                town.act(|tx| tx.merge_checked(&run, (!well).then_some("exit 1")));
            }
        }),
        H::CheckLost(nth) => with(town, *nth, |town, bead| {
            if let Some(run) = run_of(town, bead) {
                town.act(|tx| tx.merge_check_lost(&run, "its shim died"));
            }
        }),
        H::Overtaken(nth) => {
            with(town, *nth, |town, bead| town.act(|tx| tx.merge_overtaken(bead, "it moved")));
        }
        H::Landed(nth) => with(town, *nth, |town, bead| town.act(|tx| tx.merge_landed(bead, "c1"))),
        H::Blocked(nth) => with(town, *nth, |town, bead| {
            let problem = MergeProblem::Conflict { files: vec!["a.rs".to_owned()] };
            town.act(|tx| tx.merge_blocked(bead, problem));
        }),
        H::Retried(nth) => with(town, *nth, |town, bead| {
            let _ = town.command(&Command::Retry { bead: bead.to_string() });
        }),
        H::Cancelled(nth) => with(town, *nth, |town, bead| {
            let _ = town.command(&Command::Cancel { id: bead.to_string(), at_once: false });
        }),
    }
}

fn pick<T: Clone>(things: &[T], nth: usize) -> Option<T> {
    things.get(nth % things.len().max(1)).cloned()
}

fn run_of(town: &Town, bead: &BeadId) -> Option<yard_engine::DispatchId> {
    town.state.merge_of(bead)?.check().cloned()
}

fn with(town: &mut Town, nth: usize, act: impl FnOnce(&mut Town, &BeadId)) {
    let beads: Vec<BeadId> = town.state.merges().map(|merge| merge.bead.clone()).collect();
    if let Some(bead) = pick(&beads, nth) {
        act(town, &bead);
    }
}
