//! What workers report, and what follows from it. A dispatch id is a fencing token: a report for a dispatch that
//! has ended changes nothing, and says so in the log.

use std::time::Duration;

use super::Asker;
use super::alerts::stuck_key;
use crate::bead::Verdict;
use crate::context::{CloseReason, Context, ContextEvent, Passed, Resume};
use crate::dispatch::{Category, Dispatch, DispatchEvent, Next, Outcome, Recovery, Said, StopReason};
use crate::merge::MergeStage;
use crate::retry;
use crate::town::TownEvent;
use crate::tx::Tx;
use crate::worktree::Worktree;
use crate::{BeadId, DispatchId, Millis};

/// How long the daemon lets a context rest after a failed start.
const REST_AFTER_FAILED_START: Millis = Millis::seconds(1);

/// How a worker's program ended, as its shim recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerExit {
    /// Exit code, if it exited.
    pub code: Option<i32>,
    /// Signal, if it was killed.
    pub signal: Option<i32>,
    /// The step that was running.
    pub step: Option<String>,
    /// Whether we ended it.
    pub stopped: bool,
    /// Its formula leaves the close to the agent, also of a native bead.
    pub awaits_close: bool,
    /// What class a failure is of. `Unavailable` is a failure whatever the exit code.
    pub category: Category,
    /// How long it ran, if the shim says so; otherwise as long as we knew of it.
    pub active: Option<Millis>,
    /// Its formula goes on with the step that failed instead of beginning again.
    pub resumes: bool,
    /// The worktree it worked in, as it left it.
    pub worktree: Option<Box<Worktree>>,
    /// A failure in words.
    pub message: String,
}

impl WorkerExit {
    /// A good end, of which nothing more is known.
    pub fn succeeded() -> Self {
        Self {
            code: Some(0),
            signal: None,
            step: None,
            stopped: false,
            awaits_close: false,
            category: Category::Crash,
            active: None,
            resumes: false,
            worktree: None,
            message: String::new(),
        }
    }

    fn is_success(&self) -> bool {
        // Some agents exit well although their service refused, and nothing was done.
        let refused = self.category == Category::Unavailable;
        self.code == Some(0) && self.signal.is_none() && !self.stopped && !refused
    }
}

/// What the next attempt gets from the one that ended.
#[derive(Debug, Clone, Copy)]
struct Legacy {
    /// How long it ran, if that is known better than by our own clock.
    active: Option<Millis>,
    /// Go on after the last finished step.
    resumes: bool,
}

impl Legacy {
    /// Of an attempt that ended through no fault of its own.
    const BLAMELESS: Self = Self { active: None, resumes: true };
}

impl Tx<'_> {
    /// The live dispatch of this id, or a late report in the log.
    fn live(&mut self, id: &DispatchId, report: &str) -> Option<Dispatch> {
        match self.state().dispatch(id) {
            Some(dispatch) if dispatch.is_live() => Some(dispatch.clone()),
            Some(_) => {
                self.emit(DispatchEvent::LateReport { id: id.clone(), report: report.to_owned() });
                None
            }
            None => None,
        }
    }

    /// A dispatch's first program runs.
    pub fn worker_running(&mut self, id: &DispatchId, pid: Option<u32>) {
        if self.state().dispatch(id).is_some_and(|d| d.is_live() && d.running_at.is_none()) {
            self.emit(DispatchEvent::Running { id: id.clone(), pid });
        }
    }

    /// A step of a dispatch finished, which proves that it runs.
    pub fn worker_step_done(&mut self, id: &DispatchId, step: &str) {
        if self.live(id, "step done").is_some() {
            self.worker_running(id, None);
            self.emit(DispatchEvent::StepDone { id: id.clone(), step: step.to_owned() });
        }
    }

    /// A dispatch works in a worktree of its own, or left it like this.
    pub fn worker_isolated(&mut self, id: &DispatchId, worktree: &Worktree) {
        let live = self.state().dispatch(id).filter(|dispatch| dispatch.is_live());
        if live.is_some_and(|dispatch| dispatch.worktree.as_deref() != Some(worktree)) {
            self.emit(DispatchEvent::Isolated { id: id.clone(), worktree: Box::new(worktree.clone()) });
        }
    }

    /// A dispatch's first program could not be run: counts toward the breaker, and only this does.
    pub fn worker_start_failed(&mut self, id: &DispatchId, error: &str) {
        let Some(dispatch) = self.live(id, "start failed") else { return };
        if dispatch.stop == Some(StopReason::UserCancelled) {
            return self.end_stopped(&dispatch, StopReason::UserCancelled, Legacy::BLAMELESS);
        }
        self.end(id, Outcome::StartFailed { error: error.to_owned() }, Next::BackInQueue);
        let asker = Asker { actor: "scheduler", kitchen: &super::Kitchen::default() };
        // A bead that was closed or taken meanwhile has no breaker to trip.
        self.close_stale_context(&asker, id.bead());
        let Some(context) = self.state().context(&dispatch.context).filter(|c| c.is_open()) else { return };
        let context_id = context.id.clone();
        let failures = context.fields.dispatch_failures + 1;
        self.emit(ContextEvent::StartFailed {
            id: context_id.clone(),
            dispatch: id.clone(),
            failures,
            error: error.to_owned(),
            rest_until: self.now().after(REST_AFTER_FAILED_START.duration()),
        });
        if crate::breaker::trips(failures, self.state().settings.max_dispatch_failures) {
            let detail = Some(format!("{failures} starts failed, the last: {error}"));
            self.close(&asker, &context_id, id.bead(), CloseReason::CircuitBroken, detail);
            self.alert_if_given_up(id.bead());
        }
    }

    /// Nothing ever ran under this id, and its claim is revoked: the context stands in the queue again, uncounted,
    /// unless it was the start itself that took too long.
    pub fn worker_never_ran(&mut self, id: &DispatchId, why: &str) {
        let Some(dispatch) = self.live(id, "never ran") else { return };
        if dispatch.running_at.is_some() {
            // It was seen running: what is gone is the claim that could tell how it ended.
            return self.worker_lost(id, why);
        }
        match dispatch.stop {
            Some(reason @ StopReason::UserCancelled) => {
                return self.end_stopped(&dispatch, reason, Legacy::BLAMELESS);
            }
            Some(StopReason::SpawnTimeout) => return self.worker_start_failed(id, why),
            // Whatever else it was to be ended for, nothing has run: it simply waits again.
            Some(
                StopReason::CooperativePreemption
                | StopReason::PreemptionTimeout
                | StopReason::GracefulShutdown
                | StopReason::HardCapExceeded
                | StopReason::DeadlineExceeded
                | StopReason::CostLimitReached
                | StopReason::LeaseExpired
                | StopReason::Released,
            )
            | None => {}
        }
        self.end(id, Outcome::NeverRan { why: why.to_owned() }, Next::BackInQueue);
        let asker = Asker { actor: "scheduler", kitchen: &super::Kitchen::default() };
        self.close_stale_context(&asker, id.bead());
    }

    /// A start could not even be handed over (no process, no descriptor): as `worker_never_ran`, and its context rests
    /// a moment, so that a busy machine is not asked again and again. Nothing is counted.
    pub fn worker_not_started(&mut self, id: &DispatchId, why: &str) {
        self.worker_never_ran(id, why);
        let context = self.state().dispatch(id).and_then(|d| self.state().context(&d.context));
        if let Some(context) = context.filter(|c| c.is_open()) {
            let until = self.now().after(REST_AFTER_FAILED_START.duration());
            self.emit(ContextEvent::Rested { id: context.id.clone(), until, why: why.to_owned() });
        }
    }

    /// The shim died, its tree is gone, and no exit was recorded: a crash, but not the work's fault.
    pub fn worker_lost(&mut self, id: &DispatchId, why: &str) {
        let Some(dispatch) = self.live(id, "lost") else { return };
        self.worker_running(id, None);
        if is_done_already(&dispatch) {
            return self.end_succeeded(&dispatch, false);
        }
        if let Some(reason) = dispatch.stop {
            return self.end_stopped(&dispatch, reason, Legacy::BLAMELESS);
        }
        let outcome = Outcome::Lost { why: why.to_owned() };
        self.end_failed(&dispatch, outcome, Category::Crash, Legacy::BLAMELESS);
    }

    /// A worker ended and left its exit record.
    pub fn worker_ended(&mut self, id: &DispatchId, exit: &WorkerExit) {
        if self.live(id, "ended").is_none() {
            return;
        }
        self.worker_running(id, None);
        if let Some(worktree) = &exit.worktree {
            self.worker_isolated(id, worktree);
        }
        let Some(dispatch) = self.state().dispatch(id).cloned() else { return };
        if is_done_already(&dispatch) {
            return self.end_succeeded(&dispatch, exit.awaits_close);
        }
        if let Some(reason) = stop_that_counts(&dispatch, exit) {
            return self.end_stopped(&dispatch, reason, Legacy { active: exit.active, resumes: true });
        }
        match &dispatch.said {
            Some(Said::Failed { message, category }) => {
                let exit = WorkerExit { message: message.clone(), category: *category, ..exit.clone() };
                self.end_unwell(&dispatch, &exit);
            }
            Some(Said::Done { .. }) | None if exit.is_success() => {
                self.end_succeeded(&dispatch, exit.awaits_close);
            }
            Some(Said::Done { .. }) | None => self.end_unwell(&dispatch, exit),
        }
    }

    /// A worker failed, gave way, or found its service unavailable.
    fn end_unwell(&mut self, dispatch: &Dispatch, exit: &WorkerExit) {
        let outcome = Outcome::Failed {
            code: exit.code,
            signal: exit.signal,
            step: exit.step.clone(),
            category: exit.category,
            message: exit.message.clone(),
        };
        let resumes = match exit.category {
            // A step that failed may have failed because of those before it.
            Category::Crash | Category::HardCap => exit.resumes,
            Category::Unavailable | Category::Yielded => true,
        };
        if exit.category == Category::Unavailable {
            self.cool_account(dispatch);
        }
        self.end_failed(dispatch, outcome, exit.category, Legacy { active: exit.active, resumes });
    }

    /// Nobody uses an account for a while whose service was unavailable.
    fn cool_account(&mut self, dispatch: &Dispatch) {
        let Some(account) = &dispatch.account else { return };
        let settings = self.state().settings.accounts.get(account);
        if let Some(span) = settings.and_then(|account| account.cooldown).filter(|span| span.0 > 0) {
            let until = self.now().after(span.duration());
            let (account, dispatch) = (account.clone(), dispatch.id.clone());
            self.emit(TownEvent::AccountCooling { account, until, dispatch });
        }
    }

    /// Native beads are closed by their worker's success, unless its formula leaves that to the agent; those of a
    /// workspace by whoever keeps it.
    fn end_succeeded(&mut self, dispatch: &Dispatch, awaits_close: bool) {
        let (id, bead) = (&dispatch.id, dispatch.id.bead());
        if let Some(worktree) = &dispatch.worktree
            && let Some(head) = &worktree.head
        {
            self.request_merge(dispatch, worktree, head);
        }
        let Some(entry) = self.state().bead(bead).filter(|entry| !entry.bead.is_closed()) else {
            return self.end(id, Outcome::Succeeded, Next::Finished);
        };
        if entry.bead.source.is_some() || awaits_close {
            let until = self.now().after(self.state().settings.close_grace.duration());
            return self.end(id, Outcome::Succeeded, Next::AwaitingClose { until });
        }
        if self.state().merge_of(bead).is_some_and(|merge| merge.stage == MergeStage::Waiting) {
            return self.end(id, Outcome::Succeeded, Next::AwaitingMerge);
        }
        self.end(id, Outcome::Succeeded, Next::Finished);
        let reason = match &dispatch.said {
            Some(Said::Done { reason: Some(reason) }) => reason.as_str(),
            Some(Said::Done { reason: None } | Said::Failed { .. }) | None => "completed",
        };
        self.close_bead(bead, reason, &id.to_string());
    }

    /// An agent says that it has done its bead.
    pub(super) fn claim_succeeded(&mut self, id: &DispatchId) {
        if let Some(dispatch) = self.state().dispatch(id).cloned() {
            self.end_succeeded(&dispatch, false);
        }
    }

    /// An agent says that its bead came to nothing.
    pub(super) fn claim_failed(&mut self, id: &DispatchId, message: &str, category: Category) {
        if let Some(dispatch) = self.state().dispatch(id).cloned() {
            let message = message.to_owned();
            let exit = WorkerExit { code: None, message, category, ..WorkerExit::succeeded() };
            self.end_unwell(&dispatch, &exit);
        }
    }

    /// The bead of an agent was closed, by whomever: it has it no longer.
    pub(super) fn claim_over(&mut self, bead: &BeadId) {
        let live = self.state().live_dispatch(bead).filter(|live| live.claim.is_some());
        if let Some(id) = live.map(|live| live.id.clone()) {
            self.end(&id, Outcome::Succeeded, Next::Finished);
        }
    }

    /// A finished bead was not closed by its tracker in time: its worker counts as crashed.
    pub(super) fn close_overdue(&mut self, bead: &BeadId) {
        self.withdraw_merge(bead, "its tracker did not close it in time", None);
        let Some(entry) = self.state().bead(bead) else { return };
        let id = DispatchId::new(bead.clone(), entry.work.attempts);
        let context = entry.work.last_context.as_ref().and_then(|c| self.state().context(c)).cloned();
        let Some(mut context) = context else { return };
        let dispatch = self.state().dispatch(&id).cloned();
        let ran = dispatch.as_ref().and_then(|d| Some(d.ended.as_ref()?.at.since(d.running_at?)));
        context.active = context.active.plus(ran.unwrap_or_default());
        context.resume = dispatch.map(|d| inherited(&d, &context, false)).unwrap_or_default();
        if context.is_own() {
            return self.emit(DispatchEvent::CloseOverdue { id, next: Next::GivenBack });
        }
        match retry::next_try(&self.state().settings, &context, Category::Crash) {
            retry::NextTry::Never(verdict) => {
                self.emit(DispatchEvent::CloseOverdue { id, next: Next::Settled(verdict) });
                self.alert_if_given_up(bead);
            }
            retry::NextTry::After(wait) => {
                self.emit(DispatchEvent::CloseOverdue { id, next: Next::Requeued });
                context.not_before = (wait.0 > 0).then(|| self.now().after(wait.duration()));
                context.crashes += 1;
                self.open_successor("scheduler", context);
                let asker = Asker { actor: "scheduler", kitchen: &super::Kitchen::default() };
                self.close_stale_context(&asker, bead);
            }
        }
    }

    /// The one end of a dispatch. A preemption that it was the victim of is over with it.
    fn end(&mut self, id: &DispatchId, outcome: Outcome, next: Next) {
        self.preemption_over(id, &outcome);
        self.emit(DispatchEvent::Ended { id: id.clone(), outcome, next });
        self.begin_next(id);
        self.end_alert(&stuck_key(id));
    }

    /// Ends a dispatch that we asked to end, by the routing table.
    fn end_stopped(&mut self, dispatch: &Dispatch, reason: StopReason, legacy: Legacy) {
        let outcome = Outcome::Stopped { reason };
        let bead = dispatch.id.bead();
        let asker = Asker { actor: "scheduler", kitchen: &super::Kitchen::default() };
        if self.state().is_closed(bead) {
            self.end(&dispatch.id, outcome, Next::Finished);
            return self.close_stale_context(&asker, bead);
        }
        match reason.recovery() {
            Recovery::Cancelled => {
                self.end(&dispatch.id, outcome, Next::Settled(Verdict::Cancelled));
                if self.state().context(&dispatch.context).is_some_and(Context::is_open) {
                    self.close(&asker, &dispatch.context, bead, CloseReason::Cancelled, None);
                }
            }
            Recovery::Queued if reason.is_preemption() => {
                let ahead_from = Some(self.state().goes_ahead_from(self.now()));
                let (began, got_on_at) = (dispatch.running_at.unwrap_or_default(), dispatch.got_on_at);
                // What it lost was taken from it: only what it keeps counts as its active time.
                let kept = got_on_at.map(|at| Millis(0).plus(at.since(began))).unwrap_or_default();
                let legacy = Legacy { active: Some(kept), ..legacy };
                self.requeue(dispatch, outcome, legacy, |context| {
                    let in_vain = context.pushed_out.saturating_add(1);
                    context.pushed_out = if got_on_at.is_some() { 0 } else { in_vain };
                    context.ahead_from = ahead_from;
                });
            }
            Recovery::Queued if dispatch.claim.is_some() => {
                let wait = match reason {
                    StopReason::Released => self.state().settings.agents.claim_timeout,
                    _ => Millis(0),
                };
                let until = self.now().after(wait.duration());
                let agent = dispatch.claim.as_ref().map(|claim| claim.agent.clone());
                self.requeue(dispatch, outcome, legacy, |context| {
                    context.passed.retain(|passed| Some(&passed.agent) != agent.as_ref());
                    context.passed.extend(agent.map(|agent| Passed { agent, until }));
                });
            }
            // What a used-up budget keeps back stands on the schedule; readiness names the budget.
            Recovery::Queued | Recovery::Blocked => self.requeue(dispatch, outcome, legacy, |_| {}),
            Recovery::Failed => {
                self.end(&dispatch.id, outcome, Next::Settled(Verdict::Failed));
                self.alert_if_given_up(bead);
            }
            Recovery::Retried(category) => self.end_failed(dispatch, outcome, category, legacy),
        }
    }

    fn end_failed(&mut self, dispatch: &Dispatch, outcome: Outcome, category: Category, legacy: Legacy) {
        if self.state().is_closed(dispatch.id.bead()) {
            return self.end(&dispatch.id, outcome, Next::Finished);
        }
        let Some(context) = self.state().context(&dispatch.context) else {
            return self.end(&dispatch.id, outcome, Next::Settled(Verdict::Failed));
        };
        if context.is_own() {
            return self.end(&dispatch.id, outcome, Next::GivenBack);
        }
        if self.state().used_up(context.active.plus(self.active_time(dispatch, legacy))) {
            // It came to its own end a moment before we would have ended it: there is no time for another attempt.
            self.end(&dispatch.id, outcome, Next::Settled(Verdict::Failed));
            return self.alert_given_up(dispatch.id.bead(), StopReason::HardCapExceeded.words());
        }
        match retry::next_try(&self.state().settings, context, category) {
            retry::NextTry::Never(verdict) => {
                self.end(&dispatch.id, outcome, Next::Settled(verdict));
                self.alert_if_given_up(dispatch.id.bead());
            }
            retry::NextTry::After(wait) => {
                let not_before = (wait.0 > 0).then(|| self.now().after(wait.duration()));
                self.requeue(dispatch, outcome, legacy, |context| {
                    context.not_before = not_before;
                    match category {
                        Category::Crash | Category::HardCap => context.crashes += 1,
                        Category::Unavailable => context.unavailables += 1,
                        Category::Yielded => {}
                    }
                });
            }
        }
    }

    /// Ends a dispatch and puts its bead back on the schedule, with what the attempt used up and left behind.
    fn requeue(
        &mut self,
        dispatch: &Dispatch,
        outcome: Outcome,
        legacy: Legacy,
        change: impl FnOnce(&mut Context),
    ) {
        let Some(mut context) = self.state().context(&dispatch.context).cloned() else {
            return self.end(&dispatch.id, outcome, Next::Settled(Verdict::Failed));
        };
        if context.is_own() {
            return self.end(&dispatch.id, outcome, Next::GivenBack);
        }
        let asker = Asker { actor: "scheduler", kitchen: &super::Kitchen::default() };
        if context.is_open() {
            self.end(&dispatch.id, outcome, Next::BackInQueue);
            return self.close_stale_context(&asker, dispatch.id.bead());
        }
        context.active = context.active.plus(self.active_time(dispatch, legacy));
        self.end(&dispatch.id, outcome, Next::Requeued);
        (context.not_before, context.ahead_from) = (None, None);
        context.resume = inherited(dispatch, &context, legacy.resumes);
        change(&mut context);
        self.open_successor("scheduler", context);
        self.close_stale_context(&asker, dispatch.id.bead());
    }

    /// How long an attempt that ends now has run.
    fn active_time(&self, dispatch: &Dispatch, legacy: Legacy) -> Duration {
        let known = dispatch.running_at.map(|since| self.now().since(since));
        legacy.active.map(Millis::duration).or(known).unwrap_or_default()
    }

    /// The one way to end what runs. The first reason counts, unless a person calls it off; asking again only makes it
    /// quicker.
    pub fn terminate(&mut self, id: &DispatchId, reason: StopReason, at_once: bool, actor: &str) -> bool {
        let Some(dispatch) = self.state().dispatch(id).filter(|dispatch| dispatch.is_live()) else {
            return false;
        };
        let counts = dispatch.stop.is_none_or(|earlier| reason.replaces(earlier));
        if !counts && !at_once {
            return false;
        }
        let (id, actor) = (id.clone(), actor.to_owned());
        let elsewhere = (!dispatch.has_worker()).then(|| dispatch.clone());
        self.emit(DispatchEvent::StopRequested { id, reason, at_once, actor });
        // There is no worker to wait for: whoever forwards an action drops it, and an agent is told.
        match elsewhere {
            Some(claim) if claim.claim.is_some() => self.end_stopped(&claim, reason, Legacy::BLAMELESS),
            Some(action) => self.end_action(&action, reason),
            None => {}
        }
        true
    }

    /// An action over HTTP is given up. Once it was sent nobody knows what came of it, so it is never sent again.
    fn end_action(&mut self, dispatch: &Dispatch, reason: StopReason) {
        if dispatch.running_at.is_none() && reason != StopReason::UserCancelled {
            return self.worker_never_ran(&dispatch.id, "it had not been sent yet");
        }
        let verdict = match reason.recovery() {
            Recovery::Cancelled => Verdict::Cancelled,
            Recovery::Queued | Recovery::Blocked | Recovery::Failed | Recovery::Retried(_) => Verdict::Failed,
        };
        self.worker_running(&dispatch.id, None);
        self.end(&dispatch.id, Outcome::Stopped { reason }, Next::Settled(verdict));
    }

    /// An action over HTTP was under way when the daemon ended: nobody knows what came of it.
    pub fn action_lost(&mut self, id: &DispatchId) {
        let Some(dispatch) = self.live(id, "lost") else { return };
        if dispatch.running_at.is_none() {
            return self.worker_never_ran(id, "it had not been sent yet when the daemon ended");
        }
        let why = "outcome unknown: the daemon ended while the action was under way".to_owned();
        self.end(id, Outcome::Lost { why }, Next::Settled(Verdict::Failed));
    }
}

/// What the next attempt finds out about this one.
fn inherited(dispatch: &Dispatch, context: &Context, resumes: bool) -> Resume {
    let Resume { note, session, worktree, .. } = context.resume.clone();
    Resume {
        after: dispatch.step.clone().filter(|_| resumes),
        note: dispatch.checkpoint.clone().or(note),
        // Who begins again does so in a session of his own: the old one may be what failed.
        session: dispatch.session.clone().or(session).filter(|_| resumes),
        worktree: dispatch.worktree.clone().or(worktree).filter(|_| resumes),
    }
}

/// Whether the worker declared the work done and nobody called it off: whatever ended it after that came too late to
/// matter.
fn is_done_already(dispatch: &Dispatch) -> bool {
    // Of a worktree that was not finished nobody knows whether all of the work is on its branch.
    let is_whole = dispatch.worktree.as_ref().is_none_or(|worktree| worktree.finished);
    let is_said = matches!(dispatch.said, Some(Said::Done { .. }));
    is_said && is_whole && dispatch.stop != Some(StopReason::UserCancelled)
}

/// The reason for which we ended a dispatch, if it is that which ended it. What came to its own end before it noticed
/// counts as it came out, except that called off is called off.
fn stop_that_counts(dispatch: &Dispatch, exit: &WorkerExit) -> Option<StopReason> {
    let succeeded = exit.is_success() && !matches!(dispatch.said, Some(Said::Failed { .. }));
    if succeeded {
        return None;
    }
    match dispatch.stop {
        Some(reason @ StopReason::UserCancelled) => Some(reason),
        Some(reason) if exit.stopped || exit.category == Category::Yielded => Some(reason),
        // A shim without a daemon keeps the time itself.
        Some(_) | None if exit.category == Category::HardCap => Some(StopReason::HardCapExceeded),
        None if exit.category == Category::Yielded && dispatch.yield_asked.is_some() => {
            Some(StopReason::CooperativePreemption)
        }
        Some(_) | None => None,
    }
}
