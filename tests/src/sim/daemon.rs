//! The simulated daemon: the loop of the design around the real engine. Decide, append, only then acknowledge and
//! perform; after a crash rebuild from the log, look at every claim, go on.

use std::collections::BTreeSet;

use yard_engine::bead::BeadEvent;
use yard_engine::dispatch::{Dispatch, DispatchEvent, StopReason};
use yard_engine::plan::Scope;
use yard_engine::preempt::{Method, PreemptionEvent};
use yard_engine::settings::CostSettings;
use yard_engine::town::TownEvent;
use yard_engine::{
    AlertId, Answer, Asker, Command, ContextId, DispatchId, Event, Kitchen, Millis, Recorded, Refusal,
    SourceReading, State, Tx,
};

use super::deep::brief;
use super::history::World;
use super::mutant::{feed_again, give_up_the_living};
use super::workers::{Record, Report};
use super::{Broken, Mutant};

/// Why the daemon's current step ends early.
pub(super) enum Halt {
    /// The process is gone; what it had in memory with it.
    Crash,
    /// A promise was broken.
    Broken(Broken),
}

impl From<Broken> for Halt {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<yard_engine::Violation> for Halt {
    fn from(violation: yard_engine::Violation) -> Self {
        Self::Broken(violation.into())
    }
}

/// Whether a decision became durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commit {
    Durable,
    /// The disk is full: nothing happened.
    Failed,
}

/// Something to do once its event is durable.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    Spawn(DispatchId),
    Stop(DispatchId),
    Yield(DispatchId, bool),
}

impl World {
    /// Makes a decision and carries it out.
    fn decide<R>(&mut self, decide: impl FnOnce(&mut Tx<'_>) -> R) -> Result<(R, Commit), Halt> {
        let mut tx = Tx::new(&mut self.state, self.now);
        let result = decide(&mut tx);
        let events = tx.finish();
        if !events.is_empty() {
            self.state.check_invariants()?;
        }
        Ok((result, self.commit(&events)?))
    }

    /// Appends all events of a decision in one durable transaction, then performs their effects.
    fn commit(&mut self, events: &[Recorded]) -> Result<Commit, Halt> {
        if events.is_empty() {
            return Ok(Commit::Durable);
        }
        let effects = effects_of(events);
        if self.mutant == Some(Mutant::StartBeforeCommit) {
            self.perform(&effects)?;
        }
        self.may_crash("before the commit")?;
        if self.disk.full {
            let half = events.len() / 2;
            let written = if self.mutant == Some(Mutant::HalfWritten) { &events[..half] } else { &[] };
            self.append(written)?;
            self.tell(|| format!("disk full: {} events did not happen", events.len()));
            self.state = self.disk.replay(false)?;
            return Ok(Commit::Failed);
        }
        self.append(events)?;
        self.may_crash("after the commit")?;
        if self.mutant != Some(Mutant::StartBeforeCommit) {
            self.perform(&effects)?;
        }
        Ok(Commit::Durable)
    }

    fn append(&mut self, events: &[Recorded]) -> Result<(), Broken> {
        self.disk.append(events);
        for recorded in events {
            self.tell(|| format!("  {} {}", recorded.seq, recorded.event.body()));
            self.oracle.becomes_durable(recorded, &self.workers, &self.tracker, &self.wanted)?;
        }
        Ok(())
    }

    fn perform(&mut self, effects: &[Effect]) -> Result<(), Halt> {
        for effect in effects {
            match effect {
                Effect::Spawn(id) => {
                    self.spawn(id)?;
                }
                Effect::Stop(id) => {
                    self.tell(|| format!("stop of {id} is written"));
                    self.workers.request_stop(id);
                    self.may_crash("after a stop request")?;
                }
                Effect::Yield(id, wanted) => {
                    self.tell(|| format!("{id} should give way: {wanted}"));
                    self.workers.request_yield(id, *wanted);
                }
            }
        }
        Ok(())
    }

    fn spawn(&mut self, id: &DispatchId) -> Result<(), Halt> {
        self.workers.create_claim(id);
        self.may_crash("after a claim was created")?;
        self.tell(|| format!("{id} is launched"));
        self.workers.launch(id);
        self.may_crash("after a launch")
    }

    pub(super) fn may_crash(&mut self, when: &str) -> Result<(), Halt> {
        if self.faults && self.dice.one_in(24) {
            self.tell(|| format!("crash {when}"));
            return Err(Halt::Crash);
        }
        Ok(())
    }

    /// One turn of the loop: what came in is decided together with what it makes startable.
    fn turn<R>(&mut self, input: impl FnOnce(&mut Tx<'_>) -> R) -> Result<(R, Commit), Halt> {
        let (result, commit) = self.decide(|tx| {
            tx.tick();
            let result = input(tx);
            tx.pass(Scope::Everything, None);
            tx.preempt();
            result
        })?;
        if commit == Commit::Durable {
            self.state.check_nothing_waits_needlessly()?;
        }
        Ok((result, commit))
    }

    /// A command's turn without a daemon: only what it scheduled itself starts.
    fn turn_alone<R>(&mut self, input: impl FnOnce(&mut Tx<'_>) -> R) -> Result<(R, Commit), Halt> {
        let known: BTreeSet<ContextId> = self.state.open_contexts().map(|c| c.id.clone()).collect();
        self.decide(|tx| {
            let result = input(tx);
            let opened = tx.state().open_contexts().map(|c| c.id.clone()).filter(|id| !known.contains(id));
            let opened: BTreeSet<ContextId> = opened.collect();
            tx.pass(Scope::Only(&opened), None);
            result
        })
    }

    /// The daemon is told to go: every worker is asked to stop, for now.
    pub(super) fn drain(&mut self) -> Result<(), Halt> {
        self.tell(|| "drain".to_owned());
        if self.is_deep() {
            return self.deep_drain();
        }
        let live: Vec<DispatchId> = self.state.live_dispatches().map(|d| d.id.clone()).collect();
        let asked = |tx: &mut Tx<'_>| {
            for id in &live {
                tx.terminate(id, StopReason::GracefulShutdown, false, "daemon");
            }
        };
        self.decide(asked)?;
        Err(Halt::Crash)
    }

    /// An idle turn: timers and a pass.
    pub(super) fn idle(&mut self) -> Result<(), Halt> {
        if self.is_deep() {
            return self.deep_idle();
        }
        self.turn(|_| ()).map(|_| ())
    }

    /// A command, acknowledged when it is durable; whether it was.
    pub(super) fn ask(&mut self, command: &Command) -> Result<bool, Halt> {
        self.tell(|| format!("asked: {}", brief(command)));
        if self.is_deep() {
            return self.deep_ask("op", command);
        }
        let kitchen = Kitchen::default();
        let asker = Asker { actor: "op", kitchen: &kitchen };
        let before = self.state.seq();
        let promises_early = self.mutant == Some(Mutant::AcknowledgeBeforeCommit);
        let gives_up = self.mutant == Some(Mutant::RecoversTheLiving)
            && matches!(command, Command::Recover { dry_run: false });
        let decided = |tx: &mut Tx<'_>| -> (Result<Answer, Refusal>, yard_engine::Seq) {
            let answer = tx.decide(&asker, command);
            if gives_up {
                give_up_the_living(tx);
            }
            (answer, tx.state().seq())
        };
        if promises_early {
            let mut copy = self.state.clone();
            let mut tx = Tx::new(&mut copy, self.now);
            tx.tick();
            let (_, seq) = decided(&mut tx);
            self.oracle.acknowledges(seq);
        }
        let ((answer, seq), commit) =
            if self.faults && self.dice.one_in(8) { self.turn_alone(decided)? } else { self.turn(decided)? };
        match (answer, commit) {
            (Ok(_), Commit::Durable) => {
                self.oracle.acknowledges(seq.max(before));
                Ok(true)
            }
            (Ok(_), Commit::Failed) | (Err(_), _) => Ok(false),
        }
    }

    /// New settings from the config file.
    pub(super) fn configure(&mut self) -> Result<(), Halt> {
        if self.is_deep() {
            return self.deep_configure();
        }
        let mut settings = self.wanted.clone();
        if self.mutant == Some(Mutant::CapIgnored) {
            settings.max_polecats *= 2;
        }
        if self.mutant == Some(Mutant::BudgetIgnored) {
            settings.cost = CostSettings::default();
        }
        if self.mutant == Some(Mutant::YoungPushedOut) {
            settings.preemption.min_run = Millis(0);
        }
        self.tell(|| format!("config: {settings:?}"));
        self.turn(|tx| tx.settings_read(&settings)).map(|_| ())
    }

    /// The host is busy, or has room again.
    pub(super) fn observe_host(&mut self, busy: bool) -> Result<(), Halt> {
        if self.is_deep() {
            return self.deep_observe_host(busy);
        }
        self.turn(|tx| tx.host_observed(busy.then(|| "load".to_owned()))).map(|_| ())
    }

    /// A report arrives. If it cannot be made durable, it is kept for later.
    pub(super) fn hear(&mut self, mut report: Report) -> Result<(), Halt> {
        self.tell(|| format!("heard: {report:?}"));
        if self.is_deep() {
            return self.deep_hear(&report);
        }
        if self.mutant == Some(Mutant::FencingTokenIgnored) {
            let current = |id: &DispatchId| {
                let live = self.state.bead(id.bead()).and_then(|e| e.work.live.clone());
                live.unwrap_or_else(|| id.clone())
            };
            report = match report {
                Report::Running(id) => Report::Running(current(&id)),
                Report::StepDone(id) => Report::StepDone(current(&id)),
                Report::StartFailed(id) => Report::StartFailed(current(&id)),
                Report::Ended(id, exit) => Report::Ended(current(&id), exit),
                other => other,
            };
        }
        let ((), commit) = self.turn(|tx| match &report {
            Report::Running(id) => tx.worker_running(id, None),
            Report::StepDone(id) => tx.worker_step_done(id, "work"),
            Report::StartFailed(id) => tx.worker_start_failed(id, "it could not be run"),
            Report::Ended(id, exit) => tx.worker_ended(id, exit),
            Report::Lost(id) => tx.worker_lost(id, "its shim died"),
            Report::NeverRan(id) => tx.worker_not_started(id, "no shim took it"),
            Report::Isolated(_) | Report::Metered(_) => {}
        })?;
        if commit == Commit::Failed {
            self.workers.reports.push(report);
        }
        Ok(())
    }

    /// A reading arrives; whether it became durable.
    pub(super) fn hear_reading(&mut self, reading: &SourceReading, closes_again: bool) -> Result<bool, Halt> {
        if self.is_deep() {
            return self.deep_hear_reading(reading).map(|()| true);
        }
        let ((), commit) = self.turn(|tx| {
            tx.source_read(reading);
            for bead in reading.beads.iter().filter(|bead| closes_again && bead.is_closed()) {
                let (id, actor) = (bead.id.clone(), "beads".to_owned());
                tx.emit(BeadEvent::Closed { id, reason: String::new(), actor, closed_at: bead.closed_at });
            }
        })?;
        Ok(commit == Commit::Durable)
    }

    /// The alert command was told.
    pub(super) fn alert_is_told(&mut self, id: &AlertId) -> Result<(), Halt> {
        self.turn(|tx| tx.alert_told(id, None)).map(|_| ())
    }

    /// A start took too long: it is called off, and its claim settled.
    pub(super) fn time_out(&mut self, id: &DispatchId) -> Result<(), Halt> {
        self.tell(|| format!("{id} takes too long to start"));
        if self.is_deep() {
            self.now = self.now.after(self.wanted.spawn_timeout.duration());
            return self.deep_scan();
        }
        self.turn(|tx| tx.terminate(id, StopReason::SpawnTimeout, false, "daemon"))?;
        self.settle(id)
    }

    /// Looks at the claim of a live dispatch, and reports what it proves. The lock is held from the look to the
    /// revocation.
    pub(super) fn settle(&mut self, id: &DispatchId) -> Result<(), Halt> {
        if self.is_deep() {
            return self.deep_scan();
        }
        if self.state.dispatch(id).is_none_or(|d| !d.is_live()) {
            return Ok(());
        }
        if self.mutant == Some(Mutant::DeathsOverlooked) {
            return Ok(());
        }
        let claim = self.workers.claims.get(id).cloned();
        self.tell(|| format!("claim of {id}: {claim:?}"));
        let busy = claim.as_ref().is_some_and(|c| c.held);
        if busy && self.mutant != Some(Mutant::AdoptNothing) {
            // Adopted: it runs on, and will be heard of again.
            return self.turn(|tx| tx.worker_running(id, None)).map(|_| ());
        }
        match claim.map(|c| c.record) {
            None | Some(Record::Empty | Record::Revoked) => {
                if self.mutant == Some(Mutant::RevokeWithoutLock) {
                    self.shims_go_on(3)?;
                }
                if self.mutant != Some(Mutant::RevokeSkipped) {
                    self.workers.revoke(id);
                    self.may_crash("after a revocation")?;
                }
                self.turn(|tx| tx.worker_never_ran(id, "its claim is revoked"))?;
            }
            Some(Record::StartFailed) => {
                self.turn(|tx| tx.worker_start_failed(id, "it could not be run"))?;
            }
            Some(Record::Exited(_)) if self.mutant == Some(Mutant::ExitOverlooked) => {
                self.turn(|tx| tx.worker_lost(id, "its shim died"))?;
            }
            Some(Record::Exited(exit)) => {
                self.turn(|tx| tx.worker_ended(id, &exit))?;
            }
            Some(Record::Claimed) => {
                self.turn(|tx| tx.worker_lost(id, "its shim died"))?;
            }
        }
        Ok(())
    }

    /// The safety scan, in slices. It must find nothing.
    pub(super) fn scan(&mut self) -> Result<(), Halt> {
        if self.is_deep() {
            return self.deep_scan();
        }
        let mut from = None;
        loop {
            let feeds_twice = self.mutant == Some(Mutant::FeedsTwice);
            let (next, _) = self.turn(|tx| {
                if feeds_twice {
                    feed_again(tx);
                }
                tx.scan(from.as_ref(), 3)
            })?;
            match next {
                Some(last) => from = Some(last),
                None => return Ok(()),
            }
        }
    }

    /// Writes a checkpoint of what is durable.
    pub(super) fn checkpoint(&mut self) -> Result<(), Halt> {
        self.tell(|| "checkpoint".to_owned());
        if self.is_deep() {
            return self.deep_checkpoint();
        }
        self.disk.write_checkpoint(&mut self.state, self.mutant);
        Ok(())
    }

    /// Starts the daemon on what is durable; it may crash again while it recovers.
    pub(super) fn recover(&mut self) -> Result<(), Halt> {
        if self.is_deep() {
            return self.deep_recover();
        }
        let written = self.dice.one_in(8);
        let from_checkpoint = self.dice.one_in(2);
        self.tell(|| format!("restart, checkpoint: {from_checkpoint}"));
        self.state = if from_checkpoint { self.disk.restore(written)? } else { self.disk.replay(written)? };
        self.oracle.check_recovered(&self.state)?;
        if self.mutant == Some(Mutant::PauseForgotten) {
            self.state = self.without_pauses();
        }
        for id in self.state.live_dispatches().map(|d: &Dispatch| d.id.clone()).collect::<Vec<_>>() {
            self.settle(&id)?;
        }
        self.turn(|tx| {
            tx.close_stale_contexts();
        })
        .map(|_| ())
    }

    fn without_pauses(&self) -> State {
        let mut state = State::default();
        for recorded in self.disk.log() {
            let mut recorded = recorded.clone();
            if matches!(recorded.event, Event::Town(TownEvent::Paused { .. })) {
                recorded.event = TownEvent::ClockAdvanced {}.into();
            }
            state.apply(&recorded);
        }
        state
    }
}

fn effects_of(events: &[Recorded]) -> Vec<Effect> {
    let effect = |recorded: &Recorded| match &recorded.event {
        Event::Dispatch(DispatchEvent::Started { dispatch }) => Some(Effect::Spawn(dispatch.id.clone())),
        Event::Dispatch(DispatchEvent::StopRequested { id, .. }) => Some(Effect::Stop(id.clone())),
        Event::Preemption(PreemptionEvent::Requested { cycle, .. }) => {
            Some(Effect::Yield(cycle.victim.clone(), true))
        }
        Event::Preemption(PreemptionEvent::Ended { victim, method: Method::Withdrawn, .. }) => {
            Some(Effect::Yield(victim.clone(), false))
        }
        _ => None,
    };
    events.iter().filter_map(effect).collect()
}
