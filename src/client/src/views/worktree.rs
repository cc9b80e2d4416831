//! `worktree list` and `worktree prune`.

use serde::{Deserialize, Serialize};
use yard_engine::{BeadId, DispatchId, RigName};

/// A worktree on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeView {
    /// The dispatch it was made for, whose name it bears.
    pub id: DispatchId,
    /// Its bead.
    pub bead: BeadId,
    /// Its rig, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rig: Option<RigName>,
    /// Where it is.
    pub path: String,
    /// Its branch, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Where that came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// `in-use`, `awaits-merge`, `kept`, `over`, or `stale` if no dispatch is known that has it.
    pub state: String,
    /// Whether a plain `worktree prune` takes it away.
    pub prunable: bool,
    /// What it takes on disk.
    pub bytes: u64,
}

/// `worktree list`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorktreeList {
    /// By id.
    pub worktrees: Vec<WorktreeView>,
    /// What they take together.
    pub bytes: u64,
}

/// `worktree prune`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PruneView {
    /// What went, or would go.
    pub pruned: Vec<WorktreeView>,
    /// What could not go.
    pub failed: Vec<PruneFailure>,
    /// What was freed on disk.
    pub bytes: u64,
    /// Nothing was done.
    pub dry_run: bool,
}

/// A worktree that could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PruneFailure {
    /// Which.
    pub id: DispatchId,
    /// Why not.
    pub error: String,
}
