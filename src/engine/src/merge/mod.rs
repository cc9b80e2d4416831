//! Merges: what becomes of the branch that a dispatch left behind.
//!
//! Promises: of each rig and base one merge at a time is under way, in the order in which they were asked for; the base
//! moves only after it is on record from where to where (`merge.landing`); whatever was under way when the daemon ended
//! is done again, or found done. A bead counts as unmerged from the moment its worker gets a branch until that branch is
//! in the base, and `merge-blocks` dependencies wait for exactly that.

mod event;

use std::collections::{BTreeMap, BTreeSet};

pub use event::MergeEvent;
use serde::{Deserialize, Serialize};

use crate::context::ContextFields;
use crate::settings::Merge;
use crate::state::State;
use crate::{BeadId, ConvoyId, DispatchId, RigName, Timestamp};

/// A branch that is to get into its base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRequest {
    /// Whose work it is.
    pub bead: BeadId,
    /// The dispatch whose worktree it is in.
    pub work: DispatchId,
    /// Where.
    pub rig: RigName,
    /// Into what.
    pub base: String,
    /// The branch.
    pub branch: String,
    /// Its last commit when it was asked for.
    pub head: String,
    /// Who merges it: we, or somebody else.
    pub strategy: Merge,
    /// Position of the request in the log; earlier ones go first.
    pub order: u64,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// How often it was begun and did not come to an end, through no fault of its own.
    #[serde(default, skip_serializing_if = "crate::stored::is_default")]
    pub restarts: u32,
    /// How far it is.
    pub stage: MergeStage,
}

/// How far a merge is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "kebab-case")]
pub enum MergeStage {
    /// It waits for its turn.
    Waiting,
    /// The merged tree is being made; neither branch is touched by that.
    Composing,
    /// The formula's check runs on the merged tree.
    Checking {
        /// The run of the check, which has an id like any dispatch.
        run: DispatchId,
        /// The base it was made for.
        onto: String,
        /// The merged tree.
        commit: String,
    },
    /// The base may move from one commit to the other.
    Landing {
        /// Where the base has to be.
        onto: String,
        /// Where it goes.
        commit: String,
    },
    /// A person has to look.
    Blocked {
        /// What is in the way.
        problem: MergeProblem,
    },
    /// Somebody else is to merge it.
    Offered,
    /// It is in the base.
    Merged {
        /// As this commit.
        commit: String,
    },
}

/// What is in the way of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum MergeProblem {
    /// Both sides changed the same places.
    Conflict {
        /// Of these files.
        files: Vec<String>,
    },
    /// The check failed on the merged tree.
    Check {
        /// Its run.
        run: DispatchId,
        /// How.
        message: String,
    },
    /// Something else, such as local changes in the way.
    Refused {
        /// In words.
        why: String,
    },
}

impl MergeProblem {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::Conflict { files } => format!("conflicts in {}", listed(files)),
            Self::Check { run, message } => format!("the check {run} failed on the merged tree: {message}"),
            Self::Refused { why } => why.clone(),
        }
    }
}

/// File names in a sentence, not more than ten of them.
fn listed(files: &[String]) -> String {
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    crate::readiness::list_names(&names)
}

impl MergeRequest {
    /// Whether it is in the base.
    pub fn is_merged(&self) -> bool {
        matches!(self.stage, MergeStage::Merged { .. })
    }

    /// What is in its way, if a person has to look.
    pub fn problem(&self) -> Option<&MergeProblem> {
        match &self.stage {
            MergeStage::Blocked { problem } => Some(problem),
            _ => None,
        }
    }

    /// The run that checks its merged tree now.
    pub fn check(&self) -> Option<&DispatchId> {
        match &self.stage {
            MergeStage::Checking { run, .. } => Some(run),
            _ => None,
        }
    }

    /// Whether we are at it.
    pub fn is_under_way(&self) -> bool {
        match self.stage {
            MergeStage::Composing | MergeStage::Checking { .. } | MergeStage::Landing { .. } => true,
            MergeStage::Waiting
            | MergeStage::Blocked { .. }
            | MergeStage::Offered
            | MergeStage::Merged { .. } => false,
        }
    }

    /// Whether it stands in line, be it at the head of it.
    fn stands_in_line(&self) -> bool {
        self.stage == MergeStage::Waiting || self.is_under_way()
    }

    fn line(&self) -> MergeLine {
        MergeLine { rig: self.rig.clone(), base: self.base.clone() }
    }
}

/// Where merges go one at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MergeLine {
    pub(crate) rig: RigName,
    pub(crate) base: String,
}

/// The lines, each in the order in which its merges were asked for.
pub(crate) type MergeLines = BTreeMap<MergeLine, BTreeSet<(u64, BeadId)>>;

impl State {
    /// The merge of a bead's branch, if one was ever asked for.
    pub fn merge_of(&self, bead: &BeadId) -> Option<&MergeRequest> {
        self.merges.get(bead)
    }

    /// All merges, by bead.
    pub fn merges(&self) -> impl Iterator<Item = &MergeRequest> {
        self.merges.values()
    }

    /// The merges that stand in line.
    pub fn merges_in_line(&self) -> impl Iterator<Item = &MergeRequest> {
        let beads = self.merge_lines.values().flatten().map(|(_, bead)| bead);
        beads.filter_map(|bead| self.merges.get(bead))
    }

    /// Whether some merge is under way.
    pub fn is_merging(&self) -> bool {
        self.merges_in_line().any(MergeRequest::is_under_way)
    }

    /// The merge whose check this is.
    pub fn merge_checked_by(&self, run: &DispatchId) -> Option<&MergeRequest> {
        self.merges.get(run.bead()).filter(|merge| merge.check() == Some(run))
    }

    /// The branches of a convoy's beads that are not in their base yet.
    pub fn unmerged_of(&self, convoy: &ConvoyId) -> Vec<&MergeRequest> {
        let tracked = self.convoys.get(convoy).into_iter().flat_map(|convoy| &convoy.tracked);
        tracked.filter_map(|bead| self.merges.get(bead)).filter(|merge| !merge.is_merged()).collect()
    }

    /// Who merges what a request leaves behind.
    pub(crate) fn merge_strategy(&self, fields: &ContextFields) -> Merge {
        if fields.no_merge {
            return Merge::Local;
        }
        let of_rig = self.settings.rigs.get(&fields.target_rig).and_then(|rig| rig.worker.merge);
        fields.merge.or(of_rig).or(self.settings.worker.merge).unwrap_or(Merge::Mr)
    }

    /// Whether a bead has a branch that is not in its base yet: a worker is on it, or its merge is still to come.
    pub(crate) fn is_unmerged(&self, bead: &BeadId) -> bool {
        let live = self.work(bead).and_then(|work| self.dispatch(work.live.as_ref()?));
        live.is_some_and(|live| live.worktree.is_some())
            || self.merges.get(bead).is_some_and(|merge| !merge.is_merged())
    }

    /// The next merge of each line that nobody is at, and that may begin now.
    pub(crate) fn merges_to_begin(&self) -> Vec<BeadId> {
        if self.pause.is_some() {
            return Vec::new();
        }
        let moves = |line: &MergeLine| self.rigs.get(&line.rig).is_some_and(|rig| !rig.parked && !rig.docked);
        let of_line = |waiting: &BTreeSet<(u64, BeadId)>| {
            let mut merges = waiting.iter().filter_map(|(_, bead)| self.merges.get(bead));
            if merges.clone().any(MergeRequest::is_under_way) {
                return None;
            }
            // A workspace's bead is merged when its agent has closed it, and not if it never does.
            merges.find(|merge| !self.awaits_close(&merge.bead)).map(|merge| merge.bead.clone())
        };
        let lines = self.merge_lines.iter().filter(|(line, _)| moves(line));
        lines.filter_map(|(_, waiting)| of_line(waiting)).collect()
    }

    fn awaits_close(&self, bead: &BeadId) -> bool {
        self.work(bead).is_some_and(|work| work.close_by.is_some())
    }

    pub(crate) fn derive_merge_lines(&self) -> MergeLines {
        let mut lines = MergeLines::new();
        for merge in self.merges.values().filter(|merge| merge.stands_in_line()) {
            lines.entry(merge.line()).or_default().insert((merge.order, merge.bead.clone()));
        }
        lines
    }
}
