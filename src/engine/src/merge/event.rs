//! What can happen to a merge.

use serde::{Deserialize, Serialize};

use super::{MergeProblem, MergeRequest, MergeStage};
use crate::bead::Verdict;
use crate::state::State;
use crate::{BeadId, DispatchId};

/// What can happen to a merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum MergeEvent {
    /// A worker left a branch behind that is to get into its base.
    #[serde(rename = "merge.requested")]
    Requested {
        /// The record.
        merge: Box<MergeRequest>,
    },
    /// It is its turn: the merged tree is to be made.
    #[serde(rename = "merge.began")]
    Began {
        /// Whose.
        bead: BeadId,
    },
    /// The merged tree is there, and is to be checked.
    #[serde(rename = "merge.checking")]
    Checking {
        /// Whose.
        bead: BeadId,
        /// The run of the check.
        run: DispatchId,
        /// The base it was made for.
        onto: String,
        /// The merged tree.
        commit: String,
    },
    /// The base may move; only after this is on disk it does.
    #[serde(rename = "merge.landing")]
    Landing {
        /// Whose.
        bead: BeadId,
        /// Where the base has to be.
        onto: String,
        /// Where it goes.
        commit: String,
    },
    /// It is in the base, by us or by somebody else.
    #[serde(rename = "merge.merged")]
    Merged {
        /// Whose.
        bead: BeadId,
        /// As this commit.
        commit: String,
    },
    /// A person has to look.
    #[serde(rename = "merge.blocked")]
    Blocked {
        /// Whose.
        bead: BeadId,
        /// What is in the way.
        problem: MergeProblem,
    },
    /// It stands in line again.
    #[serde(rename = "merge.requeued")]
    Requeued {
        /// Whose.
        bead: BeadId,
        /// Why.
        why: String,
        /// Its restarts start to count anew.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        afresh: bool,
    },
    /// Nobody wants it merged any more; its branch stays.
    #[serde(rename = "merge.withdrawn")]
    Withdrawn {
        /// Whose.
        bead: BeadId,
        /// Why.
        why: String,
        /// The check that is to be ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<DispatchId>,
        /// What the bead is left with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<Verdict>,
    },
}

impl MergeEvent {
    /// The bead this is about.
    pub fn bead(&self) -> &BeadId {
        match self {
            Self::Requested { merge } => &merge.bead,
            Self::Began { bead }
            | Self::Checking { bead, .. }
            | Self::Landing { bead, .. }
            | Self::Merged { bead, .. }
            | Self::Blocked { bead, .. }
            | Self::Requeued { bead, .. }
            | Self::Withdrawn { bead, .. } => bead,
        }
    }
}

impl State {
    pub(crate) fn apply_merge(&mut self, event: &MergeEvent) {
        let bead = event.bead().clone();
        let was_unmerged = self.is_unmerged(&bead);
        self.leave_merge_line(&bead);
        match event {
            MergeEvent::Requested { merge } => {
                self.merges.insert(bead.clone(), MergeRequest::clone(merge));
            }
            MergeEvent::Began { .. } => self.set_merge_stage(&bead, MergeStage::Composing),
            MergeEvent::Checking { run, onto, commit, .. } => {
                if let Some(work) = self.work_mut(&bead) {
                    work.attempts = work.attempts.max(run.attempt());
                }
                let (run, onto, commit) = (run.clone(), onto.clone(), commit.clone());
                self.set_merge_stage(&bead, MergeStage::Checking { run, onto, commit });
            }
            MergeEvent::Landing { onto, commit, .. } => {
                let (onto, commit) = (onto.clone(), commit.clone());
                self.set_merge_stage(&bead, MergeStage::Landing { onto, commit });
            }
            MergeEvent::Merged { commit, .. } => {
                self.set_merge_stage(&bead, MergeStage::Merged { commit: commit.clone() });
            }
            MergeEvent::Blocked { problem, .. } => {
                self.set_merge_stage(&bead, MergeStage::Blocked { problem: problem.clone() });
            }
            MergeEvent::Requeued { afresh, .. } => {
                self.set_merge_stage(&bead, MergeStage::Waiting);
                if let Some(merge) = self.merges.get_mut(&bead) {
                    merge.restarts = if *afresh { 0 } else { merge.restarts.saturating_add(1) };
                }
            }
            MergeEvent::Withdrawn { verdict, .. } => {
                self.merges.remove(&bead);
                if self.work(&bead).is_some_and(|work| work.verdict == Some(Verdict::Done)) {
                    self.set_verdict(&bead, *verdict);
                }
            }
        }
        self.join_merge_line(&bead);
        self.merging_changed(&bead, was_unmerged);
        self.touch_merge(&bead);
        self.remember(&bead);
    }

    fn set_merge_stage(&mut self, bead: &BeadId, stage: MergeStage) {
        if let Some(merge) = self.merges.get_mut(bead) {
            merge.stage = stage;
        }
    }

    fn leave_merge_line(&mut self, bead: &BeadId) {
        let Some(merge) = self.merges.get(bead).filter(|merge| merge.stands_in_line()) else { return };
        let (line, place) = (merge.line(), (merge.order, bead.clone()));
        if let Some(waiting) = self.merge_lines.get_mut(&line) {
            waiting.remove(&place);
            if waiting.is_empty() {
                self.merge_lines.remove(&line);
            }
        }
    }

    fn join_merge_line(&mut self, bead: &BeadId) {
        if let Some(merge) = self.merges.get(bead).filter(|merge| merge.stands_in_line()) {
            self.merge_lines.entry(merge.line()).or_default().insert((merge.order, bead.clone()));
        }
    }

    /// Forgets the merge of a bead that is forgotten for good.
    pub(crate) fn forget_merge(&mut self, bead: &BeadId) {
        self.leave_merge_line(bead);
        if self.merges.remove(bead).is_some() {
            self.touch_merge(bead);
        }
    }
}
