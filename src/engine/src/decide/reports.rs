//! What workers report, and what follows from it. A dispatch id is a fencing token: a report for a dispatch that
//! has ended changes nothing, and says so in the log.

use super::Asker;
use crate::bead::Verdict;
use crate::context::{CloseReason, Context, ContextEvent};
use crate::dispatch::{Category, Dispatch, DispatchEvent, Next, Outcome, StopReason};
use crate::retry;
use crate::tx::Tx;
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
    /// What class a failure is of; the formula's exit codes decide.
    pub category: Category,
    /// A failure in words.
    pub message: String,
}

impl WorkerExit {
    fn is_success(&self) -> bool {
        self.code == Some(0) && self.signal.is_none() && !self.stopped
    }
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

    /// A dispatch's first program could not be run: counts toward the breaker, and only this does.
    pub fn worker_start_failed(&mut self, id: &DispatchId, error: &str) {
        let Some(dispatch) = self.live(id, "start failed") else { return };
        if dispatch.stop == Some(StopReason::UserCancelled) {
            return self.end_stopped(&dispatch, StopReason::UserCancelled);
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
        match dispatch.stop {
            Some(StopReason::UserCancelled) => return self.end_stopped(&dispatch, StopReason::UserCancelled),
            Some(StopReason::SpawnTimeout) => return self.worker_start_failed(id, why),
            Some(StopReason::GracefulShutdown) | None => {}
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

    /// The shim died, its tree is gone, and no exit was recorded: a crash.
    pub fn worker_lost(&mut self, id: &DispatchId, why: &str) {
        let Some(dispatch) = self.live(id, "lost") else { return };
        self.worker_running(id, None);
        if let Some(reason) = dispatch.stop {
            return self.end_stopped(&dispatch, reason);
        }
        let outcome = Outcome::Lost { why: why.to_owned() };
        self.end_failed(&dispatch, outcome, Category::Crash);
    }

    /// A worker ended and left its exit record.
    pub fn worker_ended(&mut self, id: &DispatchId, exit: &WorkerExit) {
        let Some(dispatch) = self.live(id, "ended") else { return };
        self.worker_running(id, None);
        if exit.is_success() {
            return self.end_succeeded(id, exit.awaits_close);
        }
        match dispatch.stop {
            // Called off is called off, also when the worker failed by itself before it noticed.
            Some(StopReason::UserCancelled) => {
                return self.end_stopped(&dispatch, StopReason::UserCancelled);
            }
            Some(reason) if exit.stopped => return self.end_stopped(&dispatch, reason),
            Some(_) | None => {}
        }
        let outcome = Outcome::Failed {
            code: exit.code,
            signal: exit.signal,
            step: exit.step.clone(),
            category: exit.category,
            message: exit.message.clone(),
        };
        self.end_failed(&dispatch, outcome, exit.category);
    }

    /// Native beads are closed by their worker's success, unless its formula leaves that to the agent; those of a
    /// workspace by whoever keeps it.
    fn end_succeeded(&mut self, id: &DispatchId, awaits_close: bool) {
        let bead = id.bead();
        let Some(entry) = self.state().bead(bead).filter(|entry| !entry.bead.is_closed()) else {
            return self.end(id, Outcome::Succeeded, Next::Finished);
        };
        if entry.bead.source.is_some() || awaits_close {
            let until = self.now().after(self.state().settings.close_grace.duration());
            return self.end(id, Outcome::Succeeded, Next::AwaitingClose { until });
        }
        self.end(id, Outcome::Succeeded, Next::Finished);
        self.close_bead(bead, "completed", &id.to_string());
    }

    /// A finished bead was not closed by its tracker in time: its worker counts as crashed.
    pub(super) fn close_overdue(&mut self, bead: &BeadId) {
        let Some(entry) = self.state().bead(bead) else { return };
        let id = DispatchId::new(bead.clone(), entry.work.attempts);
        let context = entry.work.last_context.as_ref().and_then(|c| self.state().context(c)).cloned();
        let Some(mut context) = context else { return };
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

    fn end(&mut self, id: &DispatchId, outcome: Outcome, next: Next) {
        self.emit(DispatchEvent::Ended { id: id.clone(), outcome, next });
    }

    /// The routing table from stop reason to recovery.
    fn end_stopped(&mut self, dispatch: &Dispatch, reason: StopReason) {
        let outcome = Outcome::Stopped { reason };
        let bead = dispatch.id.bead();
        let asker = Asker { actor: "scheduler", kitchen: &super::Kitchen::default() };
        if self.state().is_closed(bead) {
            self.end(&dispatch.id, outcome, Next::Finished);
            return self.close_stale_context(&asker, bead);
        }
        match reason {
            StopReason::UserCancelled => {
                self.end(&dispatch.id, outcome, Next::Settled(Verdict::Cancelled));
                if self.state().context(&dispatch.context).is_some_and(Context::is_open) {
                    self.close(&asker, &dispatch.context, bead, CloseReason::Cancelled, None);
                }
            }
            StopReason::GracefulShutdown => self.requeue(dispatch, outcome, |_, _| {}),
            // It ran after all, but too late: tried again like any other failure, so that it cannot go on for ever.
            StopReason::SpawnTimeout => self.end_failed(dispatch, outcome, Category::Crash),
        }
    }

    fn end_failed(&mut self, dispatch: &Dispatch, outcome: Outcome, category: Category) {
        if self.state().is_closed(dispatch.id.bead()) {
            return self.end(&dispatch.id, outcome, Next::Finished);
        }
        let Some(context) = self.state().context(&dispatch.context) else {
            return self.end(&dispatch.id, outcome, Next::Settled(Verdict::Failed));
        };
        match retry::next_try(&self.state().settings, context, category) {
            retry::NextTry::Never(verdict) => {
                self.end(&dispatch.id, outcome, Next::Settled(verdict));
                self.alert_if_given_up(dispatch.id.bead());
            }
            retry::NextTry::After(wait) => {
                self.requeue(dispatch, outcome, |context, now| {
                    context.not_before = (wait.0 > 0).then(|| now.after(wait.duration()));
                    match category {
                        Category::Crash | Category::HardCap => context.crashes += 1,
                        Category::Unavailable => context.unavailables += 1,
                        Category::Yielded => {}
                    }
                });
            }
        }
    }

    /// Ends a dispatch and puts its bead back on the schedule.
    fn requeue(
        &mut self,
        dispatch: &Dispatch,
        outcome: Outcome,
        change: impl FnOnce(&mut Context, crate::Timestamp),
    ) {
        let Some(mut context) = self.state().context(&dispatch.context).cloned() else {
            return self.end(&dispatch.id, outcome, Next::Settled(Verdict::Failed));
        };
        let asker = Asker { actor: "scheduler", kitchen: &super::Kitchen::default() };
        if context.is_open() {
            self.end(&dispatch.id, outcome, Next::BackInQueue);
            return self.close_stale_context(&asker, dispatch.id.bead());
        }
        self.end(&dispatch.id, outcome, Next::Requeued);
        context.not_before = None;
        change(&mut context, self.now());
        self.open_successor("scheduler", context);
        self.close_stale_context(&asker, dispatch.id.bead());
    }

    /// Asks a dispatch to stop; the first reason wins.
    pub fn request_stop(&mut self, id: &DispatchId, reason: StopReason, actor: &str) {
        if self.state().dispatch(id).is_some_and(|d| d.is_live() && d.stop.is_none()) {
            let actor = actor.to_owned();
            self.emit(DispatchEvent::StopRequested { id: id.clone(), reason, at_once: false, actor });
        }
    }
}
