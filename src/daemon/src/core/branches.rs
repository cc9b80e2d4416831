//! The loop's side of branches: what git is to do now, and what follows from what it did.

use std::collections::BTreeSet;
use std::time::Duration;

use yard_engine::dispatch::DispatchEvent;
use yard_engine::merge::{MergeEvent, MergeProblem, MergeRequest, MergeStage};
use yard_engine::worktree::Fate;
use yard_engine::{BeadId, DispatchId, Event, Recorded, RigName};
use yard_workers::{Condemned, MergeOrder, Recovered, WorkerReport};

use super::Core;
use crate::branches::{self, GitJob, GitNews, Offer};
use crate::launch;

/// How often branches are looked at that somebody else is to merge.
const LOOK_AT_OFFERS: Duration = Duration::from_secs(30);

impl Core {
    /// Does what the now durable events order of git.
    pub(super) fn perform_merges(&mut self, events: &[Recorded]) {
        for recorded in events {
            match &recorded.event {
                Event::Merge(MergeEvent::Withdrawn { run: Some(run), .. }) => {
                    let grace = self.grace();
                    if let Err(error) = self.pool.request_stop(run, grace, "its merge was withdrawn") {
                        tracing::warn!(dispatch = %run, %error, "cannot end the check of a merge");
                    }
                }
                Event::Merge(MergeEvent::Withdrawn { .. }) => {}
                Event::Merge(event @ (MergeEvent::Blocked { .. } | MergeEvent::Requeued { .. })) => {
                    self.forget_checks_of(event.bead());
                }
                Event::Merge(event) => {
                    self.forget_checks_of(event.bead());
                    self.go_on_merging(event.bead());
                }
                Event::Dispatch(DispatchEvent::Ended { id, .. }) => self.clear_worktree_of(id),
                _ => {}
            }
        }
    }

    /// Does what is next for the merge of a bead.
    fn go_on_merging(&mut self, bead: &BeadId) {
        let Some(merge) = self.store.state().merge_of(bead).cloned() else { return };
        if !self.role.dispatches_by_itself() {
            // Whoever serves the town next begins with what is under way.
            return;
        }
        match &merge.stage {
            MergeStage::Composing => match self.order_of(&merge) {
                Some(order) => self.order_git(GitJob::Compose(bead.clone(), order)),
                None => self.rig_is_gone(bead),
            },
            MergeStage::Landing { onto, commit } => match self.order_of(&merge) {
                Some(order) => {
                    let (bead, onto, commit) = (bead.clone(), onto.clone(), commit.clone());
                    self.order_git(GitJob::Land { bead, order, onto, commit });
                }
                None => self.rig_is_gone(bead),
            },
            MergeStage::Checking { run, commit, .. } => {
                let order = launch::check_order(self.store.state(), &self.town, &merge, run, commit);
                match order {
                    Ok(order) => self.hand_over(run, order),
                    Err(error) => {
                        self.own_reports.push(WorkerReport::StartFailed { dispatch: run.clone(), error });
                    }
                }
            }
            MergeStage::Merged { .. } | MergeStage::Offered => self.clear_worktree(&merge.work),
            MergeStage::Waiting | MergeStage::Blocked { .. } => {}
        }
    }

    fn order_git(&mut self, job: GitJob) {
        match &mut self.stage {
            Some(stage) => stage.git(job),
            None => self.git.take(job),
        }
    }

    fn order_of(&self, merge: &MergeRequest) -> Option<MergeOrder> {
        let state = self.store.state();
        let repo = self.town.rig_path(&state.rig(&merge.rig)?.path);
        let title = state.bead(&merge.bead).map(|entry| entry.bead.title.as_str()).unwrap_or_default();
        let MergeRequest { branch, base, bead, work, .. } = merge;
        let message = format!("Merge {bead}: {title}\n\nBead: {bead}\nDispatch: {work}\n");
        Some(MergeOrder { repo, branch: branch.clone(), base: base.clone(), message })
    }

    fn rig_is_gone(&mut self, bead: &BeadId) {
        let why = "its rig is gone".to_owned();
        let (bead, problem) = (bead.clone(), MergeProblem::Refused { why });
        self.own_news.push(GitNews::Blocked { bead, problem });
    }

    /// What git found out.
    pub(super) fn take_git_news(&mut self, news: GitNews) {
        let now = self.now;
        match news {
            GitNews::Composed { bead, onto, commit } => {
                let Some(merge) = self.store.state().merge_of(&bead) else { return };
                let check = launch::check_of(self.store.state(), &self.town, merge);
                self.store.decide(now, |tx| match check {
                    Ok(check) => tx.merge_composed(&bead, &onto, &commit, check.is_some()),
                    Err(why) => tx.merge_blocked(&bead, MergeProblem::Refused { why }),
                });
            }
            GitNews::Landed { bead, commit } => self.store.decide(now, |tx| tx.merge_landed(&bead, &commit)),
            GitNews::Moved { bead } => {
                self.store.decide(now, |tx| tx.merge_overtaken(&bead, "the base moved meanwhile"));
            }
            GitNews::Looked(found) => {
                self.next_offers = Some(self.clock.instant() + LOOK_AT_OFFERS);
                self.store.decide(now, |tx| {
                    for (bead, commit) in &found {
                        tx.merge_landed(bead, commit);
                    }
                });
            }
            GitNews::Branches(names) => {
                for made_for in names.iter().filter_map(|name| branches::dispatch_of(name)) {
                    self.clear_worktree(&made_for);
                }
            }
            GitNews::Blocked { bead, problem } => {
                self.store.decide(now, |tx| tx.merge_blocked(&bead, problem));
            }
        }
    }

    /// What a worker says that checks a merged tree; false if it is somebody else's.
    pub(super) fn take_check_report(&mut self, report: &WorkerReport) -> bool {
        let run = report.dispatch();
        if self.store.state().merge_checked_by(run).is_none() {
            return false;
        }
        let now = self.now;
        match report {
            WorkerReport::Running { .. }
            | WorkerReport::Isolated { .. }
            | WorkerReport::StepDone { .. }
            | WorkerReport::Metered { .. } => return true,
            WorkerReport::StartFailed { error, .. } => {
                self.store.decide(now, |tx| tx.merge_checked(run, Some(error)));
            }
            WorkerReport::Ended { exit, .. } => {
                let went_well = exit.code == Some(0) && exit.cause == yard_workers::ExitCause::Exit;
                let failure = (!went_well).then(|| launch::exit_words(exit));
                self.store.decide(now, |tx| tx.merge_checked(run, failure.as_deref()));
            }
            WorkerReport::Lost { why, .. } | WorkerReport::NeverRan { why, .. } => {
                self.store.decide(now, |tx| tx.merge_check_lost(run, why));
            }
        }
        true
    }

    /// The last word of a run that nobody waits for any more, such as the check of a merge that was withdrawn.
    pub(super) fn is_nobodys(&mut self, report: &WorkerReport) -> bool {
        let run = report.dispatch();
        if self.store.state().dispatch(run).is_some() {
            return false;
        }
        match report {
            WorkerReport::Ended { .. }
            | WorkerReport::StartFailed { .. }
            | WorkerReport::Lost { .. }
            | WorkerReport::NeverRan { .. } => self.pool.forget(run),
            WorkerReport::Running { .. }
            | WorkerReport::Isolated { .. }
            | WorkerReport::StepDone { .. }
            | WorkerReport::Metered { .. } => {}
        }
        true
    }

    /// Removes the claims of a bead's checks that are over, now that this is on disk.
    fn forget_checks_of(&mut self, bead: &BeadId) {
        let state = self.store.state();
        let tried = state.bead(bead).map_or(0, |entry| entry.work.attempts);
        let runs = (1..=tried).map(|attempt| DispatchId::new(bead.clone(), attempt));
        let is_over =
            |run: &DispatchId| state.dispatch(run).is_none() && state.merge_checked_by(run).is_none();
        for run in runs.filter(is_over).collect::<Vec<_>>() {
            self.pool.forget(&run);
        }
    }

    /// After a start: what was under way goes on, what is no longer needed goes away.
    pub(super) fn recover_merges(&mut self) {
        let under_way: Vec<MergeRequest> =
            self.store.state().merges_in_line().filter(|merge| merge.is_under_way()).cloned().collect();
        for merge in under_way {
            match &merge.stage {
                MergeStage::Checking { run, .. } => self.recover_check(run),
                _ => self.go_on_merging(&merge.bead),
            }
        }
        if self.role.dispatches_by_itself() {
            self.clear_worktrees();
        }
    }

    /// The checks that run now, as the state says.
    pub(super) fn live_checks(&self) -> Vec<DispatchId> {
        self.store.state().merges_in_line().filter_map(MergeRequest::check).cloned().collect()
    }

    /// Finds out how a check stands that the state says runs.
    pub(super) fn recover_check(&mut self, run: &DispatchId) {
        match self.pool.recover(run) {
            Ok(Recovered::Adopted { .. }) => {}
            Ok(Recovered::NeverRan) => {
                let why = "nothing had been started when the daemon ended".to_owned();
                self.take_check_report(&WorkerReport::NeverRan { dispatch: run.clone(), why });
            }
            Ok(found) => self.take_recovered(run, found),
            Err(error) => {
                tracing::warn!(dispatch = %run, %error, "cannot tell how a check stands; the safety scan looks again");
            }
        }
    }

    /// Asks from time to time whether somebody has merged what is offered.
    pub(super) fn look_at_offers(&mut self, at_once: bool) {
        let is_time = at_once || self.next_offers.is_some_and(|at| at <= self.clock.instant());
        if !self.role.dispatches_by_itself() || !is_time {
            return;
        }
        let merges = self.store.state().merges();
        let offered = merges.filter(|merge| merge.stage == MergeStage::Offered || merge.problem().is_some());
        let offers: Vec<Offer> = offered
            .filter_map(|merge| {
                let (bead, last_known) = (merge.bead.clone(), merge.head.clone());
                Some(Offer { bead, order: self.order_of(merge)?, last_known })
            })
            .collect();
        self.next_offers = offers.is_empty().then(|| self.clock.instant() + LOOK_AT_OFFERS);
        if !offers.is_empty() {
            self.order_git(GitJob::Look(offers));
        }
    }

    /// Removes the worktree of an ended dispatch if nobody needs it.
    fn clear_worktree_of(&mut self, id: &DispatchId) {
        let worktree = self.store.state().dispatch(id).and_then(|dispatch| dispatch.worktree.as_ref());
        if let Some(made_for) = worktree.map(|worktree| worktree.made_for.clone()) {
            self.clear_worktree(&made_for);
        }
    }

    fn clear_worktree(&mut self, made_for: &DispatchId) {
        let state = self.store.state();
        let Some(fate) = state.worktree_fate(made_for).filter(|fate| fate.is_over()) else { return };
        if let Some(condemned) = self.condemn(made_for, fate) {
            self.order_git(GitJob::Remove(condemned));
        }
    }

    fn condemn(&self, made_for: &DispatchId, fate: Fate) -> Option<Condemned> {
        let state = self.store.state();
        let worktree = state.worktree(made_for)?;
        let rig = state.rig(&state.dispatch(made_for)?.rig)?;
        let commit = worktree.head.clone().unwrap_or_else(|| worktree.start.clone());
        Some(Condemned {
            repo: self.town.rig_path(&rig.path),
            path: branches::path_of(&self.town, made_for),
            branch: (fate == Fate::OverWithBranch).then(|| (worktree.branch.clone(), commit)),
            commit_first: None,
        })
    }

    /// Removes every worktree that nobody needs; for what a former daemon had no time for.
    fn clear_worktrees(&mut self) {
        let entries = std::fs::read_dir(self.town.worktrees()).into_iter().flatten().flatten();
        let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        for made_for in names.iter().filter_map(|name| DispatchId::parse(name).ok()) {
            self.clear_worktree(&made_for);
        }
        // A worktree may be gone already, and its branch not yet.
        let state = self.store.state();
        let rigs: BTreeSet<&RigName> = state.merges().map(|merge| &merge.rig).collect();
        let paths = rigs.into_iter().filter_map(|rig| Some(self.town.rig_path(&state.rig(rig)?.path)));
        for repo in paths.collect::<Vec<_>>() {
            self.order_git(GitJob::List(repo));
        }
    }
}
