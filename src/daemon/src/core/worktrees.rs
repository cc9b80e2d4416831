//! `ym worktree`: what there is on disk, and taking away what is no longer needed. Which ones may go is decided in the
//! loop, by the one who starts workers; looking at the disk and removing happens on a thread.

use std::collections::BTreeSet;
use std::path::PathBuf;

use yard_client::Reply;
use yard_client::views::{PruneFailure, PruneView, WorktreeList, WorktreeView};
use yard_engine::worktree::Fate;
use yard_engine::{DispatchId, Refusal};
use yard_workers::{Condemned, disk_use, remove_worktree};

use super::Core;
use crate::branches;
use crate::input::ReplyTo;

/// What a plain prune, or one that names more, takes away.
#[derive(Debug, Clone)]
pub(crate) struct PruneRequest {
    /// Only these.
    pub(crate) ids: Vec<String>,
    /// Also those of failed attempts whose bead is still open.
    pub(crate) all: bool,
    /// Their branches, too.
    pub(crate) branches: bool,
    /// Only say what would go.
    pub(crate) dry_run: bool,
}

impl Core {
    /// Answers with everything there is, sizes included.
    pub(super) fn list_worktrees(&self, reply_to: ReplyTo) {
        let mut worktrees = self.worktrees_on_disk();
        answer_later(reply_to, move || {
            measure(&mut worktrees);
            let bytes = worktrees.iter().map(|worktree| worktree.bytes).sum();
            Reply::document(&WorktreeList { worktrees, bytes })
        });
    }

    /// Takes away what is asked for and not needed.
    pub(super) fn prune_worktrees(&self, request: &PruneRequest, reply_to: ReplyTo) {
        let chosen = match self.choose(request) {
            Ok(chosen) => chosen,
            Err(refusal) => {
                reply_to.send(Reply::Error(refusal));
                return;
            }
        };
        let dry_run = request.dry_run;
        answer_later(reply_to, move || {
            let mut view = PruneView { dry_run, ..PruneView::default() };
            for (mut worktree, condemned) in chosen {
                worktree.bytes = disk_use(&condemned.path);
                let removed = if dry_run { Ok(()) } else { remove_worktree(&condemned) };
                match removed {
                    Ok(()) => {
                        view.bytes += worktree.bytes;
                        view.pruned.push(worktree);
                    }
                    Err(error) => {
                        view.failed.push(PruneFailure { id: worktree.id, error: error.to_string() });
                    }
                }
            }
            Reply::document(&view)
        });
    }

    fn choose(&self, request: &PruneRequest) -> Result<Vec<(WorktreeView, Condemned)>, Refusal> {
        let there = self.worktrees_on_disk();
        let mut wanted = BTreeSet::new();
        for text in &request.ids {
            let found = there.iter().find(|worktree| worktree.id.to_string() == *text);
            let Some(found) = found else {
                return Err(Refusal::new("unknown-worktree", format!("there is no worktree of {text}"))
                    .hint("ym worktree list shows what there is"));
            };
            if matches!(found.state.as_str(), "in-use" | "awaits-merge") {
                let message = format!("the worktree of {text} is needed: {}", found.state);
                return Err(
                    Refusal::new("in-use", message).hint(format!("ym cancel {} ends that", found.bead))
                );
            }
            wanted.insert(found.id.clone());
        }
        let goes = |worktree: &WorktreeView| {
            let is_kept = worktree.state == Fate::Kept.as_str();
            let by_itself = worktree.prunable || (request.all && is_kept);
            if wanted.is_empty() { by_itself } else { wanted.contains(&worktree.id) }
        };
        let chosen = there.into_iter().filter(goes);
        Ok(chosen.map(|worktree| (worktree.clone(), self.condemned(&worktree, request.branches))).collect())
    }

    /// How a worktree goes: whatever is in no commit is committed to its branch first, so that nothing is lost.
    fn condemned(&self, worktree: &WorktreeView, with_branch: bool) -> Condemned {
        let path = PathBuf::from(&worktree.path);
        let repo = worktree.rig.as_ref().and_then(|rig| self.store.state().rig(rig));
        let repo = repo.map_or_else(|| path.clone(), |rig| self.town.rig_path(&rig.path));
        let known = self.store.state().worktree(&worktree.id);
        let commit = known.map(|known| known.head.clone().unwrap_or_else(|| known.start.clone()));
        let branch = worktree.branch.clone().zip(commit).filter(|_| with_branch);
        let message = format!("What was left in the worktree of {}", worktree.id);
        Condemned { repo, path, branch, commit_first: Some(message) }
    }

    fn worktrees_on_disk(&self) -> Vec<WorktreeView> {
        let entries = std::fs::read_dir(self.town.worktrees()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let ids: BTreeSet<DispatchId> = names.filter_map(|name| DispatchId::parse(&name).ok()).collect();
        ids.into_iter().map(|id| self.worktree_view(id)).collect()
    }

    fn worktree_view(&self, id: DispatchId) -> WorktreeView {
        let state = self.store.state();
        let known = state.worktree(&id);
        let fate = state.worktree_fate(&id);
        let is_checked = self.live_checks().contains(&id);
        let is_live = state.dispatch(&id).is_some_and(yard_engine::dispatch::Dispatch::is_live);
        let word = match fate {
            None if is_checked || is_live => Fate::InUse.as_str(),
            None => "stale",
            Some(fate) => fate.as_str(),
        };
        let entry = state.bead(id.bead());
        let superseded = state.dispatches_of(id.bead()).any(|dispatch| dispatch.id.attempt() > id.attempt());
        let done_with = entry.is_none_or(|entry| entry.bead.is_closed()) || superseded;
        let prunable = match word {
            "stale" | "over" => true,
            word => word == Fate::Kept.as_str() && done_with,
        };
        WorktreeView {
            bead: id.bead().clone(),
            rig: state.dispatch(&id).map(|dispatch| dispatch.rig.clone()),
            path: branches::path_of(&self.town, &id).to_string_lossy().into_owned(),
            branch: known.map(|known| known.branch.clone()),
            base: known.map(|known| known.base.clone()),
            state: word.to_owned(),
            prunable,
            bytes: 0,
            id,
        }
    }
}

/// Answers from a thread of its own, for what takes as long as the disk does.
fn answer_later(reply_to: ReplyTo, work: impl FnOnce() -> Reply + Send + 'static) {
    let spare = reply_to.clone();
    let thread = std::thread::Builder::new().name("ym-worktrees".to_owned());
    if let Err(error) = thread.spawn(move || reply_to.send(work())) {
        spare.send(Reply::Error(Refusal::new("internal", format!("cannot start a thread: {error}"))));
    }
}

fn measure(worktrees: &mut [WorktreeView]) {
    for worktree in worktrees {
        worktree.bytes = disk_use(std::path::Path::new(&worktree.path));
    }
}
