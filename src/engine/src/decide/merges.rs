//! What follows from the work of a branch, and from what git says about merging it.

use super::Asker;
use super::alerts::{Condition, merge_key};
use crate::alert::AlertKind;
use crate::bead::Verdict;
use crate::command::Answer;
use crate::dispatch::Dispatch;
use crate::merge::{MergeEvent, MergeProblem, MergeRequest, MergeStage};
use crate::refusal::Refusal;
use crate::settings::Merge;
use crate::tx::Tx;
use crate::worktree::Worktree;
use crate::{BeadId, DispatchId};

/// So often a merge is begun again that did not come to an end through no fault of its own.
const MOST_RESTARTS: u32 = 5;
/// Digits of a commit that people read.
const SHORT_COMMIT: usize = 10;

impl Tx<'_> {
    /// Asks for the branch of a finished dispatch to be merged, if there is anything on it.
    pub(super) fn request_merge(&mut self, dispatch: &Dispatch, worktree: &Worktree, head: &str) {
        let Some(context) = self.state().context(&dispatch.context) else { return };
        let strategy = self.state().merge_strategy(&context.fields);
        let stage = if strategy == Merge::Direct { MergeStage::Waiting } else { MergeStage::Offered };
        let merge = MergeRequest {
            bead: dispatch.id.bead().clone(),
            work: worktree.made_for.clone(),
            rig: dispatch.rig.clone(),
            base: worktree.base.clone(),
            branch: worktree.branch.clone(),
            head: head.to_owned(),
            strategy,
            order: self.state().seq().next().0,
            requested_at: self.now(),
            restarts: 0,
            stage,
        };
        let (bead, branch, base) = (merge.bead.clone(), merge.branch.clone(), merge.base.clone());
        self.end_alert(&merge_key(&bead));
        self.emit(MergeEvent::Requested { merge: Box::new(merge) });
        if strategy == Merge::Mr {
            let message = format!("{bead} is ready to be merged: git merge {branch} (into {base})");
            self.tell_about_merge(&bead, AlertKind::MergeRequest, message);
        }
    }

    /// Lets the next merge of each rig and base begin. For whoever dispatches by itself.
    pub fn begin_merges(&mut self) {
        for bead in self.state().merges_to_begin() {
            self.emit(MergeEvent::Began { bead });
        }
    }

    /// The merged tree is there; neither branch was touched by that.
    pub fn merge_composed(&mut self, bead: &BeadId, onto: &str, commit: &str, is_checked: bool) {
        if self.stage_of(bead) != Some(&MergeStage::Composing) {
            return;
        }
        let (bead, onto, commit) = (bead.clone(), onto.to_owned(), commit.to_owned());
        if is_checked {
            let attempt = self.state().work(&bead).map_or(0, |work| work.attempts) + 1;
            let run = DispatchId::new(bead.clone(), attempt);
            self.emit(MergeEvent::Checking { bead, run, onto, commit });
        } else {
            self.emit(MergeEvent::Landing { bead, onto, commit });
        }
    }

    /// The check of a merged tree ended.
    pub fn merge_checked(&mut self, run: &DispatchId, failure: Option<&str>) {
        let Some((bead, onto, commit)) = self.being_checked(run) else { return };
        match failure {
            None => self.emit(MergeEvent::Landing { bead, onto, commit }),
            Some(message) => {
                let (run, message) = (run.clone(), message.to_owned());
                self.block_merge(&bead, MergeProblem::Check { run, message });
            }
        }
    }

    /// The check of a merged tree did not come to an end, which says nothing about the tree.
    pub fn merge_check_lost(&mut self, run: &DispatchId, why: &str) {
        if let Some((bead, ..)) = self.being_checked(run) {
            self.restart_merge(&bead, why);
        }
    }

    /// It cannot be merged as it is.
    pub fn merge_blocked(&mut self, bead: &BeadId, problem: MergeProblem) {
        if self.state().merge_of(bead).is_some_and(MergeRequest::is_under_way) {
            self.block_merge(bead, problem);
        }
    }

    /// The base has moved, or something else has changed under our hands: from the beginning.
    pub fn merge_overtaken(&mut self, bead: &BeadId, why: &str) {
        if self.state().merge_of(bead).is_some_and(MergeRequest::is_under_way) {
            self.restart_merge(bead, why);
        }
    }

    /// The base has it, by us or by somebody else.
    pub fn merge_landed(&mut self, bead: &BeadId, commit: &str) {
        let Some(merge) = self.state().merge_of(bead).filter(|merge| !merge.is_merged()) else { return };
        let base = merge.base.clone();
        self.emit(MergeEvent::Merged { bead: bead.clone(), commit: commit.to_owned() });
        self.end_alert(&merge_key(bead));
        let entry = self.state().bead(bead);
        if entry.is_some_and(|entry| !entry.bead.is_closed() && entry.bead.source.is_none()) {
            let short = commit.get(..SHORT_COMMIT).unwrap_or(commit);
            // Gas Town looks for these words when it asks whether something is merged.
            self.close_bead(bead, &format!("Merged in {short} ({base})"), "scheduler");
        }
    }

    fn stage_of(&self, bead: &BeadId) -> Option<&MergeStage> {
        self.state().merge_of(bead).map(|merge| &merge.stage)
    }

    fn being_checked(&self, run: &DispatchId) -> Option<(BeadId, String, String)> {
        match &self.state().merge_checked_by(run)?.stage {
            MergeStage::Checking { onto, commit, .. } => {
                Some((run.bead().clone(), onto.clone(), commit.clone()))
            }
            _ => None,
        }
    }

    fn restart_merge(&mut self, bead: &BeadId, why: &str) {
        let restarts = self.state().merge_of(bead).map_or(0, |merge| merge.restarts);
        if restarts >= MOST_RESTARTS {
            let why =
                format!("it was begun {} times and never came to an end; the last time: {why}", restarts + 1);
            return self.block_merge(bead, MergeProblem::Refused { why });
        }
        self.emit(MergeEvent::Requeued { bead: bead.clone(), why: why.to_owned(), afresh: false });
    }

    fn block_merge(&mut self, bead: &BeadId, problem: MergeProblem) {
        let Some(merge) = self.state().merge_of(bead) else { return };
        let message = format!(
            "{bead} cannot be merged into {}: {}; mend its branch {} or the base, then ym scheduler retry {bead}",
            merge.base,
            problem.words(),
            merge.branch,
        );
        self.emit(MergeEvent::Blocked { bead: bead.clone(), problem });
        self.tell_about_merge(bead, AlertKind::MergeConflict, message);
    }

    fn tell_about_merge(&mut self, bead: &BeadId, kind: AlertKind, message: String) {
        let ids = vec![bead.to_string()];
        self.raise(Condition { key: merge_key(bead), kind, message, ids, watchers: Vec::new() });
    }

    /// Tries a merge again that a person had to look at; none if there is no such thing.
    pub(super) fn retry_merge(&mut self, asker: &Asker<'_>, bead: &BeadId) -> Option<Answer> {
        self.state().merge_of(bead)?.problem()?;
        let why = format!("asked for by {}", asker.actor);
        self.end_alert(&merge_key(bead));
        self.emit(MergeEvent::Requeued { bead: bead.clone(), why, afresh: true });
        self.cannot_be_undone(
            asker,
            format!("scheduler retry {bead}"),
            "its merge may have begun".to_owned(),
        );
        let message = format!("{bead} stands in line to be merged again");
        Some(Answer::Done { changed: true, message, ids: vec![bead.to_string()] })
    }

    /// Takes back the merge of a bead: it is to be worked on anew, or was called off.
    pub(super) fn withdraw_merge(&mut self, bead: &BeadId, why: &str, verdict: Option<Verdict>) {
        let Some(merge) = self.state().merge_of(bead).filter(|merge| !merge.is_merged()) else { return };
        let run = merge.check().cloned();
        self.end_alert(&merge_key(bead));
        self.emit(MergeEvent::Withdrawn { bead: bead.clone(), why: why.to_owned(), run, verdict });
    }

    /// Why nobody may touch a bead while git is at its branches.
    pub(super) fn refuse_while_merging(&self, bead: &BeadId) -> Result<(), Refusal> {
        let merge = self.state().merge_of(bead);
        match merge.filter(|merge| matches!(merge.stage, MergeStage::Composing | MergeStage::Landing { .. }))
        {
            None => Ok(()),
            Some(merge) => {
                let message = format!("{bead} is just being merged into {}", merge.base);
                Err(Refusal::new("awaiting-merge", message).hint(format!("ym why {bead} says how far it is")))
            }
        }
    }

    /// Calls off a bead whose branch waits to be merged; none if it does not.
    pub(super) fn cancel_merge(
        &mut self,
        asker: &Asker<'_>,
        bead: &BeadId,
    ) -> Result<Option<Answer>, Refusal> {
        let awaits = self.state().merge_of(bead).filter(|merge| match merge.stage {
            MergeStage::Offered | MergeStage::Merged { .. } => false,
            MergeStage::Waiting
            | MergeStage::Composing
            | MergeStage::Checking { .. }
            | MergeStage::Landing { .. }
            | MergeStage::Blocked { .. } => true,
        });
        let Some(merge) = awaits else { return Ok(None) };
        let message = format!("{bead} is not merged; its work stays on the branch {}", merge.branch);
        self.refuse_while_merging(bead)?;
        self.withdraw_merge(bead, &format!("called off by {}", asker.actor), Some(Verdict::Cancelled));
        let why = format!("its work is on a branch; ym sling {bead} does it anew");
        self.cannot_be_undone(asker, format!("cancel {bead}"), why);
        Ok(Some(Answer::Done { changed: true, message, ids: vec![bead.to_string()] }))
    }
}
