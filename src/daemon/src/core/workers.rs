//! The loop and its workers: reports in, starts and stops out, and finding out how things stand after a crash.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use tracing::warn;
use yard_engine::capacity::Limit;
use yard_engine::command::{Recovery, RecoveryKind};
use yard_engine::dispatch::{Dispatch, DispatchEvent, Next, Outcome, StopReason};
use yard_engine::preempt::{Method, PreemptionEvent};
use yard_engine::task::TaskEvent;
use yard_engine::town::TownEvent;
use yard_engine::{DispatchId, Event, Millis, Recorded, Timestamp};
use yard_workers::{Recovered, StartOrder, WorkerReport, is_machines_fault};

use super::Core;
use crate::launch;

impl Core {
    pub(super) fn take_report(&mut self, report: &WorkerReport) {
        self.note_pace(report);
        if self.take_check_report(report) || self.take_line_report(report) || self.is_nobodys(report) {
            return;
        }
        let now = self.now;
        let (state, town) = (self.store.state(), &self.town);
        match report {
            WorkerReport::Isolated { dispatch, worktree } => {
                self.store.decide(now, |tx| tx.worker_isolated(dispatch, worktree));
            }
            WorkerReport::Running { dispatch, pid, .. } => {
                let steps = self.steps.remove(dispatch).unwrap_or_default();
                self.store.decide(now, |tx| {
                    tx.worker_running(dispatch, Some(*pid));
                    tx.worker_steps(dispatch, &steps);
                });
            }
            WorkerReport::StepDone { dispatch, step, .. } => {
                self.store.decide(now, |tx| tx.worker_step_done(dispatch, step));
            }
            WorkerReport::Metered { dispatch, usd, tokens, session, line } => {
                self.store.decide(now, |tx| {
                    tx.worker_metered(dispatch, *usd, *tokens, session.as_ref());
                    if let Some(line) = line {
                        tx.worker_wrote(dispatch, line);
                    }
                });
            }
            WorkerReport::StartFailed { dispatch, error } => {
                self.store.decide(now, |tx| tx.worker_start_failed(dispatch, error));
            }
            WorkerReport::Ended { dispatch, exit } => {
                if state.dispatch(dispatch).is_some_and(|d| d.ended.is_some()) {
                    return;
                }
                let ended = launch::worker_exit(state, town, dispatch, exit);
                let answer = self.answer_of_worker(dispatch, &ended);
                self.store.decide(now, |tx| {
                    if let Some(answer) = answer {
                        tx.task_answered(dispatch, answer);
                    }
                    // The record is the last word on these, whatever was heard before.
                    tx.worker_metered(dispatch, exit.usd, exit.tokens, exit.session.as_ref());
                    tx.worker_ended(dispatch, &ended);
                });
            }
            WorkerReport::Lost { dispatch, why } => {
                warn!(%dispatch, why, "a worker was lost");
                self.store.decide(now, |tx| tx.worker_lost(dispatch, why));
            }
            WorkerReport::NeverRan { dispatch, why } => {
                self.store.decide(now, |tx| tx.worker_not_started(dispatch, why));
            }
        }
    }

    /// How many workers may have to be started at once when one of those that run ends: all that wait, as far as there is
    /// room.
    pub(super) fn starts_to_expect(&self) -> usize {
        let state = self.store.state();
        if !self.dispatches() || state.pause().is_some() || state.live_workers().next().is_none() {
            return 0;
        }
        let room = state.room(&Limit::Town).free().unwrap_or(u64::MAX);
        state.open_context_count().min(usize::try_from(room).unwrap_or(usize::MAX))
    }

    /// Removes the claims of dispatches that are over. To be called before anything is decided: what ends now is over only
    /// when that is on disk.
    pub(super) fn forget_what_is_over(&mut self) {
        let in_line = self.line().into_iter().map(|(_, next)| next);
        let claimed =
            self.live().into_iter().chain(self.live_checks()).chain(in_line).chain(self.strangers());
        let claimed: BTreeSet<DispatchId> = claimed.collect();
        self.pool.forget_all_but(&claimed);
    }

    fn live(&self) -> BTreeSet<DispatchId> {
        self.store.state().live_dispatches().map(|dispatch| dispatch.id.clone()).collect()
    }

    /// Finds out about every dispatch that the journal says is live: adopt, finish, revoke or declare lost.
    pub(super) fn recover(&mut self) {
        let line = self.line();
        for id in &self.live() {
            if self.is_action(id) {
                self.recover_action(id);
                continue;
            }
            if self.has_worker(id) {
                self.recover_worker(id);
            }
        }
        self.call_back_all();
        for (_, next) in line {
            if self.store.state().dispatch(&next).is_some_and(Dispatch::is_live) {
                self.recover_worker(&next);
            }
        }
        self.pool.close_leftover_windows();
    }

    fn recover_worker(&mut self, id: &DispatchId) {
        match self.pool.recover(id) {
            Ok(found) => {
                self.take_recovered(id, found);
                self.ask_again_to_stop(id);
            }
            Err(error) => {
                warn!(dispatch = %id, %error, "cannot tell how it stands; the safety scan looks again");
            }
        }
    }

    /// The dispatches that have a claim, but were never started as far as the journal knows: it has lost events, or is an
    /// older copy.
    fn strangers(&self) -> Vec<DispatchId> {
        let state = self.store.state();
        let tried = |id: &DispatchId| state.bead(id.bead()).map_or(0, |entry| entry.work.attempts);
        self.pool.strangers(&|id| id.attempt() <= tried(id))
    }

    /// Ends what runs without the journal's knowledge, before its beads are started again.
    pub(super) fn evict_strangers(&mut self) -> std::io::Result<()> {
        for id in self.strangers() {
            if self.pool.evict(&id)? {
                warn!(dispatch = %id, "the journal does not know of it: it was ended");
                self.store.decide(self.now, |tx| tx.stranger_ended(&id));
            }
        }
        Ok(())
    }

    /// Asks the claims about every live worker now; says which were found dead.
    pub(super) fn look_for_dead_workers(&mut self) -> Vec<Recovery> {
        let live: Vec<DispatchId> = self.store.state().live_dispatches().map(|d| d.id.clone()).collect();
        self.safety_scan(self.now);
        let dead = live.into_iter().filter_map(|id| {
            let ended = self.store.state().dispatch(&id)?.ended.as_ref()?;
            let Outcome::Lost { why } = &ended.outcome else { return None };
            Some(Recovery {
                kind: RecoveryKind::DeadWorker,
                id: id.to_string(),
                message: why.clone(),
                action: match ended.next {
                    Next::Requeued | Next::BackInQueue => "tried again".to_owned(),
                    Next::Finished
                    | Next::Settled(_)
                    | Next::GivenBack
                    | Next::AwaitingMerge
                    | Next::AwaitingClose { .. } => "ended".to_owned(),
                },
            })
        });
        dead.collect()
    }

    /// A stop that was requested may not have reached the worker.
    pub(super) fn ask_again_to_stop(&mut self, id: &DispatchId) {
        let live = self.store.state().dispatch(id).filter(|d| d.is_live());
        let Some(dispatch) = live else { return };
        let (stop, should_yield) = (dispatch.stop, dispatch.yield_asked.is_some());
        if let Some(reason) = stop {
            self.stop_worker(id, self.grace(), reason);
        } else if should_yield {
            self.ask_to_yield(id, true);
        }
    }

    pub(super) fn take_recovered(&mut self, id: &DispatchId, found: Recovered) {
        if let Some(worktree) = self.pool.worktree(id) {
            self.store.decide(self.now, |tx| tx.worker_isolated(id, &worktree));
        }
        let dispatch = id.clone();
        let report = match found {
            Recovered::Adopted { running } => {
                if let Some((pid, at)) = running {
                    let steps = launch::step_names(self.store.state(), &self.town, id);
                    self.steps.insert(id.clone(), steps);
                    self.take_report(&WorkerReport::Running { dispatch, pid, at });
                }
                return;
            }
            Recovered::Ended(exit) => WorkerReport::Ended { dispatch, exit },
            Recovered::StartFailed(error) => WorkerReport::StartFailed { dispatch, error },
            Recovered::Lost(why) => WorkerReport::Lost { dispatch, why },
            Recovered::NeverRan => {
                // Nothing stood in its way but our own end: no rest.
                let why = "nothing had been started when the daemon ended";
                return self.store.decide(self.now, |tx| tx.worker_never_ran(&dispatch, why));
            }
        };
        self.take_report(&report);
    }

    /// Does what the now durable events order.
    pub(super) fn perform(&mut self, events: &[Recorded]) {
        let mut woken = BTreeSet::new();
        let mut ended = Vec::new();
        for recorded in events {
            if let Event::Preemption(event) = &recorded.event {
                self.perform_preemption(event);
            }
            if let Event::Task(TaskEvent::Retired { workers, .. })
            | Event::Town(TownEvent::Retired { workers, .. }) = &recorded.event
            {
                self.remove_logs_of(workers);
            }
            let Event::Dispatch(event) = &recorded.event else { continue };
            match event {
                // An agent has it: there is nothing to start.
                DispatchEvent::Started { dispatch } if dispatch.claim.is_some() => {}
                DispatchEvent::LinedUp { dispatch, after } => self.hand_on(dispatch, after),
                DispatchEvent::Started { dispatch } => {
                    // What was lined up is with its worker already.
                    if !dispatch.lined_up {
                        self.spawn(&dispatch.id);
                    }
                    if self.store.state().context(&dispatch.context).is_some_and(|c| !c.no_boot) {
                        woken.insert(dispatch.rig.clone());
                    }
                }
                DispatchEvent::Running { id, .. } => self.send_action(id),
                // What no worker runs has ended by now; nobody has to be told.
                DispatchEvent::StopRequested { id, .. } if !self.has_worker(id) => {}
                DispatchEvent::StopRequested { id, reason, at_once, .. } => {
                    let grace = if *at_once { Millis(0) } else { self.grace() };
                    self.stop_worker(id, grace, *reason);
                }
                DispatchEvent::Ended { id, .. } => {
                    self.steps.remove(id);
                    ended.push(id);
                }
                DispatchEvent::CalledBack { .. }
                | DispatchEvent::StepDone { .. }
                | DispatchEvent::Isolated { .. }
                | DispatchEvent::Checkpoint { .. }
                | DispatchEvent::Session { .. }
                | DispatchEvent::Progress { .. }
                | DispatchEvent::LastLine { .. }
                | DispatchEvent::Steps { .. }
                | DispatchEvent::Cost { .. }
                | DispatchEvent::Said { .. }
                | DispatchEvent::Heard { .. }
                | DispatchEvent::Stuck { .. }
                | DispatchEvent::TakenUp { .. }
                | DispatchEvent::CloseOverdue { .. }
                | DispatchEvent::LateReport { .. } => {}
            }
        }
        self.perform_merges(events);
        // What starts does not wait for tidying up.
        for id in ended {
            if self.is_action(id) {
                self.http.drop_action(id);
            } else if self.has_worker(id) {
                self.pool.forget(id);
            }
        }
        for rig in woken {
            if let Some(argv) = self.store.state().settings().rigs.get(&rig).and_then(|r| r.wake.clone()) {
                match &mut self.stage {
                    Some(stage) => stage.wake(&rig),
                    None => crate::wake::wake(&self.town, &rig, &argv),
                }
            }
        }
        if let Some(last) = events.last() {
            self.published.publish(last.seq);
        }
    }

    pub(super) fn grace(&self) -> Millis {
        let configured = self.store.state().settings().kill_grace;
        match &self.drain {
            None => configured,
            Some(drain) => {
                let left = drain.until.saturating_duration_since(self.clock.instant());
                configured.min(Millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX)))
            }
        }
    }

    /// Passes on to a victim that it should give way, or need not any more.
    fn perform_preemption(&mut self, event: &PreemptionEvent) {
        match event {
            PreemptionEvent::Requested { cycle, .. } => self.ask_to_yield(&cycle.victim, true),
            PreemptionEvent::Ended { victim, method: Method::Withdrawn, .. } => {
                self.ask_to_yield(victim, false);
            }
            PreemptionEvent::Ended { .. } => {}
        }
    }

    /// A worker that does not hear of it is asked again, then ended: nothing is lost by trying only once.
    fn ask_to_yield(&mut self, id: &DispatchId, wanted: bool) {
        if let Err(error) = self.pool.request_yield(id, wanted) {
            warn!(dispatch = %id, %error, "cannot ask it to give way");
        }
    }

    /// Looks at the output of workers that seem silent: who writes is alive.
    pub(super) fn listen_for_output(&mut self) {
        for (id, since) in self.store.state().silent_dispatches(self.now) {
            let Some(written) = self.last_output(&id) else { continue };
            let written = written.min(self.now);
            if written > since {
                self.store.decide(self.now, |tx| tx.worker_heard(&id, written));
            }
        }
    }

    fn last_output(&mut self, id: &DispatchId) -> Option<Timestamp> {
        if let Some(stage) = &mut self.stage {
            return stage.last_output(id);
        }
        let log = std::fs::metadata(launch::log_path(&self.town, id)).ok()?;
        log.modified().ok().map(crate::clock::timestamp)
    }

    /// Whether a dispatch is an action over HTTP, of which no worker knows.
    pub(super) fn is_action(&self, id: &DispatchId) -> bool {
        self.store.state().dispatch(id).is_some_and(yard_engine::dispatch::Dispatch::is_action)
    }

    /// Whether a worker of ours runs it.
    pub(super) fn has_worker(&self, id: &DispatchId) -> bool {
        self.store.state().dispatch(id).is_none_or(yard_engine::dispatch::Dispatch::has_worker)
    }

    pub(super) fn stop_worker(&mut self, id: &DispatchId, grace: Millis, reason: StopReason) {
        if let Err(error) = self.pool.request_stop(id, grace, reason.as_str()) {
            warn!(dispatch = %id, %error, "cannot ask it to stop; the safety scan tries again");
            self.unasked.insert(id.clone());
        }
    }

    /// Remembers the steps of a start, if there are several, until it runs.
    pub(super) fn note_steps(&mut self, order: &StartOrder) {
        if order.spec.steps.len() > 1 {
            let names = order.spec.steps.iter().map(|step| step.id.clone());
            self.steps.insert(order.dispatch.clone(), names.collect());
        }
    }

    /// Hands a dispatch over whose start is durable.
    pub(super) fn spawn(&mut self, id: &DispatchId) {
        let Some(dispatch) = self.store.state().dispatch(id).filter(|d| d.is_live()) else { return };
        if dispatch.is_action() {
            return self.to_send.push(id.clone());
        }
        match launch::order(self.store.state(), &self.town, &self.sources, dispatch) {
            Ok(order) => {
                self.note_steps(&order);
                self.hand_over(id, order);
            }
            Err(error) => {
                self.own_reports.push(WorkerReport::StartFailed { dispatch: id.clone(), error });
            }
        }
    }

    /// Hands an order to the pool. What the machine is short of is not the order's fault.
    pub(super) fn hand_over(&mut self, id: &DispatchId, order: StartOrder) {
        let Err(error) = self.pool.start(order) else { return };
        let dispatch = id.clone();
        let report = if error.kind() == ErrorKind::AlreadyExists {
            // Its number was used before, by a start that the journal has lost; what that one left behind has ended.
            let why = format!("{error}; an attempt of this number is not in the journal");
            match self.pool.recover(id) {
                Ok(Recovered::Ended(exit)) => WorkerReport::Ended { dispatch, exit },
                Ok(_) => WorkerReport::NeverRan { dispatch, why },
                Err(error) => return warn!(dispatch = %id, %error, "cannot tell how it stands"),
            }
        } else if is_machines_fault(&error) {
            warn!(dispatch = %id, %error, "the machine is short of something; it is tried again");
            WorkerReport::NeverRan { dispatch, why: error.to_string() }
        } else {
            WorkerReport::StartFailed { dispatch, error: error.to_string() }
        };
        self.own_reports.push(report);
    }
}
