//! Worktrees: where a dispatch works on a branch of its own, and what is to become of that place.
//!
//! Two dispatches never share one: each has its own, except that an attempt which goes on where an earlier one left off
//! takes over the place of that one, whose end is certain.

use serde::{Deserialize, Serialize};

use crate::dispatch::{Dispatch, Outcome};
use crate::merge::MergeStage;
use crate::state::State;
use crate::{BeadId, DispatchId};

/// A working directory with a branch of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The dispatch it was made for, whose name it bears.
    pub made_for: DispatchId,
    /// Its branch.
    pub branch: String,
    /// The branch it came from, and is to be merged into.
    pub base: String,
    /// The commit it began with.
    pub start: String,
    /// Everything its worker left is on its branch; before that nobody knows what is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
    /// The commit its work ended with; none if there is nothing but what it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// What is to become of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// A worker is in it, or an attempt will go on in it.
    InUse,
    /// Its branch waits to be merged, or for a person to mend what is in the way.
    Awaited,
    /// Its work came to nothing: it is kept to be looked at.
    Kept,
    /// Nobody needs it any more; its branch stays.
    Over,
    /// Nobody needs it any more, nor its branch.
    OverWithBranch,
}

impl Fate {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InUse => "in-use",
            Self::Awaited => "awaits-merge",
            Self::Kept => "kept",
            Self::Over | Self::OverWithBranch => "over",
        }
    }

    /// Whether it is removed without being asked for.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Over | Self::OverWithBranch)
    }
}

impl State {
    /// The worktree that was made for a dispatch, as the last attempt in it left it.
    pub fn worktree(&self, made_for: &DispatchId) -> Option<&Worktree> {
        self.last_in_worktree(made_for).and_then(|dispatch| dispatch.worktree.as_deref())
    }

    /// What is to become of the worktree that was made for a dispatch; none if no such thing is known.
    pub fn worktree_fate(&self, made_for: &DispatchId) -> Option<Fate> {
        let last = self.last_in_worktree(made_for)?;
        let worktree = last.worktree.as_ref()?;
        let Some(ended) = &last.ended else { return Some(Fate::InUse) };
        if self.goes_on_in(made_for.bead(), made_for) {
            return Some(Fate::InUse);
        }
        let merge = self.merges.get(made_for.bead()).filter(|merge| merge.work == *made_for);
        Some(match merge.map(|merge| &merge.stage) {
            Some(MergeStage::Merged { .. }) => Fate::OverWithBranch,
            Some(MergeStage::Offered) => Fate::Over,
            Some(_) => Fate::Awaited,
            None if worktree.finished && worktree.head.is_none() && ended.outcome == Outcome::Succeeded => {
                Fate::OverWithBranch
            }
            None => Fate::Kept,
        })
    }

    /// The last attempt that worked in the worktree that was made for a dispatch.
    fn last_in_worktree(&self, made_for: &DispatchId) -> Option<&Dispatch> {
        let is_in = |dispatch: &&Dispatch| {
            dispatch.worktree.as_ref().is_some_and(|worktree| worktree.made_for == *made_for)
        };
        self.dispatches_of(made_for.bead()).rfind(is_in)
    }

    /// Whether the bead is scheduled to go on in a worktree.
    fn goes_on_in(&self, bead: &BeadId, made_for: &DispatchId) -> bool {
        let context = self.work(bead).and_then(|work| self.context(work.context.as_ref()?));
        let resumed = context.and_then(|context| context.resume.worktree.as_ref());
        resumed.is_some_and(|worktree| worktree.made_for == *made_for)
    }
}
