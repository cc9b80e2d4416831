//! What the world knows for certain, whatever the daemon believes: the durable log, what was acknowledged, which
//! payloads really ran. Each durable event is held against it, without the engine's own readiness or room.

use std::collections::{BTreeMap, BTreeSet};

use yard_engine::alert::AlertEvent;
use yard_engine::bead::{BeadEvent, BeadStatus, DepKind, Verdict};
use yard_engine::context::{Context, ContextEvent};
use yard_engine::dispatch::{Dispatch, DispatchEvent, Next, Outcome, Recovery, Said, StopReason};
use yard_engine::merge::MergeEvent;
use yard_engine::money::Usd;
use yard_engine::preempt::{Cycle, PreemptionEvent};
use yard_engine::town::TownEvent;
use yard_engine::{
    AlertId, BeadId, ContextId, DispatchId, Event, Millis, Recorded, Seq, Settings, State, Timestamp,
};

use super::Broken;
use super::tracker::Tracker;
use super::workers::{Record, Workers};

/// The day a moment lies in.
fn day(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(86_400_000)
}

#[derive(Default)]
pub(super) struct Oracle {
    /// The fold of the durable log.
    pub(super) durable: State,
    /// What the operator configured when the last settings became durable.
    configured: Settings,
    /// The last position somebody was told about.
    acknowledged: Seq,
    closings: BTreeMap<ContextId, u32>,
    begun: BTreeMap<BeadId, u32>,
    died: BTreeMap<BeadId, u32>,
    /// Checks of merges, each of which takes a number from its bead's attempts.
    checks: BTreeMap<BeadId, u32>,
    /// What was spent, by day.
    spent: BTreeMap<i64, Usd>,
    /// Who was ever asked to give way.
    asked: BTreeSet<DispatchId>,
    /// The alerts that the alert command was told.
    told: BTreeSet<AlertId>,
    /// The loop is the real one, which tells nobody if nobody is configured.
    is_real: bool,
    /// How often somebody of a bead was called back, each of which has used up a number.
    pub(super) called_back: BTreeMap<BeadId, u32>,
    /// Beads that were closed, and forgotten when their time was up.
    pub(super) forgotten: BTreeSet<BeadId>,
    /// Those who could not be called back, because their claims could not be read.
    pub(super) excused: BTreeSet<DispatchId>,
    /// Those who stood in line when a limit may have become smaller: one who has begun keeps the slot of the one before.
    pub(super) inherit: BTreeSet<DispatchId>,
}

impl Oracle {
    /// An oracle that watches the real loop, or the one that quick histories have.
    pub(super) fn watching(is_real: bool) -> Self {
        Self { is_real, ..Self::default() }
    }

    /// Holds against what is known that a bead is forgotten. Its attempts are counted anew should its id come again.
    fn is_forgotten(&mut self, id: &BeadId, now: Timestamp) -> Result<(), Broken> {
        let ttl = self.durable.settings().results_ttl.duration();
        let closed = self.durable.bead(id).filter(|entry| entry.bead.is_closed());
        let over = closed.and_then(|entry| entry.bead.closed_at).is_some_and(|at| at.after(ttl) <= now);
        Broken::unless(over, || format!("{id} was forgotten before its time"))?;
        let mut open = self
            .durable
            .dependents_of(id)
            .filter(|other| self.durable.bead(other).is_some_and(|entry| !entry.bead.is_closed()));
        let needed = open.next().cloned();
        Broken::unless(needed.is_none(), || format!("{id} was forgotten, but {needed:?} depends on it"))?;
        for counts in [&mut self.begun, &mut self.died, &mut self.checks, &mut self.called_back] {
            counts.remove(id);
        }
        self.forgotten.insert(id.clone());
        Ok(())
    }

    /// Holds an event that has just become durable against what is known, and folds it in.
    pub(super) fn becomes_durable(
        &mut self,
        recorded: &Recorded,
        workers: &Workers,
        tracker: &Tracker,
        wanted: &Settings,
    ) -> Result<(), Broken> {
        let (expected, seq) = (self.durable.seq().next(), recorded.seq);
        Broken::unless(seq == expected, || format!("event {seq} became durable, expected {expected}"))?;
        match &recorded.event {
            Event::Dispatch(DispatchEvent::Started { dispatch }) if dispatch.lined_up => {
                self.check_turn(dispatch)?;
            }
            Event::Dispatch(DispatchEvent::Started { dispatch }) => {
                self.check_start(dispatch, recorded.at)?;
            }
            Event::Dispatch(DispatchEvent::LinedUp { dispatch, after }) => {
                self.check_lined_up(dispatch, after, recorded.at)?;
            }
            Event::Dispatch(DispatchEvent::CalledBack { id }) => {
                self.check_called_back(id, workers)?;
                *self.called_back.entry(id.bead().clone()).or_default() += 1;
            }
            Event::Dispatch(DispatchEvent::Running { id, .. }) if !self.has_worker(id) => {
                if let Some(dispatch) = self.durable.dispatch(id) {
                    *self.closings.entry(dispatch.context.clone()).or_default() += 1;
                }
            }
            Event::Dispatch(DispatchEvent::Running { id, .. }) => {
                let claimed = workers
                    .claims
                    .get(id)
                    .is_some_and(|c| matches!(c.record, Record::Claimed | Record::Exited(_)));
                Broken::unless(claimed, || format!("{id} is said to run, but never claimed"))?;
                if let Some(dispatch) = self.durable.dispatch(id) {
                    *self.closings.entry(dispatch.context.clone()).or_default() += 1;
                }
            }
            Event::Dispatch(DispatchEvent::Ended { id, outcome, next }) => {
                if self.has_worker(id) {
                    self.check_end(id, outcome, workers)?;
                }
                self.check_routing(id, outcome, *next)?;
            }
            Event::Dispatch(DispatchEvent::Cost { usd, .. }) => {
                *self.spent.entry(day(recorded.at)).or_default() += *usd;
            }
            Event::Preemption(PreemptionEvent::Requested { cycle, .. }) => {
                self.check_preemption(cycle, recorded.at)?;
                self.asked.insert(cycle.victim.clone());
            }
            Event::Bead(BeadEvent::Closed { id, .. }) => {
                let open = self.durable.bead(id).is_some_and(|e| !e.bead.is_closed());
                Broken::unless(open, || format!("the close of {id} was seen twice"))?;
            }
            Event::Bead(BeadEvent::Vanished { id }) => {
                let lost = tracker.ever_lost(id);
                Broken::unless(lost, || format!("{id} vanished, but its tracker always had it"))?;
            }
            Event::Alert(AlertEvent::Raised { alert }) => {
                let again = self.durable.all_alerts().any(|known| known.key == alert.key);
                Broken::unless(!again, || format!("an alert was raised twice: {}", alert.key))?;
            }
            Event::Alert(AlertEvent::Told { id, .. }) => {
                let nobody_hears = self.durable.settings().alerts_command.is_none() && self.is_real;
                Broken::unless(nobody_hears || self.told.contains(id), || {
                    format!("{id} is said to be told, but is not")
                })?;
            }
            Event::Merge(MergeEvent::Checking { bead, .. }) => {
                *self.checks.entry(bead.clone()).or_default() += 1;
            }
            Event::Context(ContextEvent::Closed { id, .. }) => {
                *self.closings.entry(id.clone()).or_default() += 1;
            }
            Event::Town(TownEvent::SettingsChanged { .. }) => self.configured = wanted.clone(),
            Event::Town(TownEvent::Retired { beads, .. }) => {
                for id in beads {
                    self.is_forgotten(id, recorded.at)?;
                }
            }
            Event::Town(TownEvent::Repaired { difference }) => {
                return Err(Broken(format!("the safety scan found {difference}")));
            }
            _ => {}
        }
        if matches!(recorded.event, Event::Town(TownEvent::SettingsChanged { .. }) | Event::Rig(_)) {
            self.inherit.extend(self.durable.lined_up().map(|(_, next)| next.id.clone()));
        }
        self.durable.apply(recorded);
        Ok(self.durable.check_indexes()?)
    }

    /// A pool is given an order: its start is durable, or it checks a merge that is.
    pub(super) fn check_ordered(&self, id: &DispatchId) -> Result<(), Broken> {
        let live = self.durable.dispatch(id).is_some_and(Dispatch::is_live);
        let checks = self.durable.merge_checked_by(id).is_some();
        let in_line = self.durable.lined_up().any(|(_, next)| next.id == *id);
        Broken::unless(live || checks || in_line, || {
            format!("{id} was handed over, but no durable start of it is live")
        })
    }

    /// An action is sent: that it is, is durable.
    pub(super) fn check_sent(&self, id: &DispatchId) -> Result<(), Broken> {
        let noted = self.durable.dispatch(id).is_some_and(|it| it.running_at.is_some());
        Broken::unless(noted, || format!("{id} was sent, but that is not durable"))
    }

    /// A claim goes away: nobody calls its dispatch live.
    pub(super) fn check_forgotten(&self, id: &DispatchId) -> Result<(), Broken> {
        let live = self.durable.dispatch(id).is_some_and(Dispatch::is_live);
        Broken::unless(!live, || format!("the claim of {id} was removed, but it is live"))
    }

    fn has_worker(&self, id: &DispatchId) -> bool {
        self.durable.dispatch(id).is_none_or(Dispatch::has_worker)
    }

    /// A start must be allowed by everything that was durable before it.
    fn check_start(&self, dispatch: &Dispatch, at: Timestamp) -> Result<(), Broken> {
        self.check_allowed(dispatch, at)?;
        self.check_number(dispatch)?;
        self.check_room(dispatch)
    }

    /// The number of an attempt is the next one of its bead, which nobody runs.
    pub(super) fn check_number(&self, dispatch: &Dispatch) -> Result<(), Broken> {
        let id = &dispatch.id;
        let work = self.durable.bead(id.bead()).map(|entry| &entry.work);
        let fits = work.is_some_and(|work| work.live.is_none() && id.attempt() == work.attempts + 1);
        Broken::unless(fits, || format!("{id} started out of turn"))
    }

    /// Nothing but a lack of room would keep it from starting.
    pub(super) fn check_allowed(&self, dispatch: &Dispatch, at: Timestamp) -> Result<(), Broken> {
        let (id, state) = (&dispatch.id, &self.durable);
        let no = |why: &str| Err(Broken(format!("{id} started {why}")));
        if state.pause().is_some() || state.host_gate().is_some() {
            return no("while dispatch was stopped");
        }
        let Some(entry) = state.bead(id.bead()) else { return no("for a bead nobody has") };
        let Some(context) = state.context(&dispatch.context).filter(|c| c.is_open() && c.bead() == id.bead())
        else {
            return no("without an open context");
        };
        if entry.bead.is_closed() || self.waits(id.bead()) {
            return no("although its bead is closed or blocked");
        }
        let put_off = matches!(entry.bead.status, BeadStatus::Deferred | BeadStatus::Blocked)
            || entry.bead.defer_until.is_some_and(|until| until > at);
        let claimant = dispatch.claim.as_ref().map(|claim| claim.agent.as_str());
        let ours =
            entry.bead.assignee.as_deref().is_some_and(|who| who.starts_with("ym/") || Some(who) == claimant);
        let claimed = matches!(entry.bead.status, BeadStatus::InProgress | BeadStatus::Hooked);
        let taken = !ours && (claimed || entry.bead.assignee.is_some());
        if (put_off || taken) && !context.forced {
            return no("although a person has the bead");
        }
        if context.held
            || context.not_before.is_some_and(|t| t > at)
            || context.deadline.is_some_and(|t| t <= at)
        {
            return no("although it was held, or not in its time");
        }
        match state.rig(&dispatch.rig) {
            Some(rig) if !rig.parked && !rig.docked => {}
            _ => return no("in a rig that takes no work"),
        }
        let resting = |account| state.cooling_accounts().any(|(other, until)| other == account && until > at);
        if dispatch.account.as_ref().is_some_and(resting) {
            return no("although its account rests");
        }
        let used_up = |limit: Option<Usd>, spent: Usd| limit.is_some_and(|limit| spent >= limit);
        let cost = &self.configured.cost;
        if used_up(cost.per_bead, context.cost)
            || used_up(cost.daily, self.spent.get(&day(at)).copied().unwrap_or_default())
            || state.convoys_tracking(id.bead()).any(|convoy| used_up(cost.per_convoy, convoy.cost))
        {
            return no("although a budget is used up");
        }
        Ok(())
    }

    /// Somebody is asked to give way only to what is ready, much more urgent and without room, and only when he has run
    /// long enough; a person may overrule urgency and age.
    fn check_preemption(&self, cycle: &Cycle, at: Timestamp) -> Result<(), Broken> {
        let Cycle { victim, context, round, by_hand, .. } = cycle;
        let no = |why: &str| Err(Broken(format!("{victim} was asked to give way {why}")));
        let Some(dispatch) = self.durable.dispatch(victim).filter(|d| d.is_live() && d.stop.is_none()) else {
            return no("although it has ended or is ending");
        };
        let Some(candidate) = self.durable.context(context).filter(|c| c.is_open()) else {
            return no("to nothing");
        };
        let room = Dispatch {
            rig: candidate.fields.target_rig.clone(),
            account: candidate.fields.account.clone(),
            ..dispatch.clone()
        };
        if self.check_room(&room).is_ok() {
            return no("although there was room");
        }
        if *by_hand {
            return Ok(());
        }
        let own = self.durable.context(&dispatch.context);
        let (priority, in_vain) = own.map_or((0, 0), |c| (u32::from(c.priority), c.pushed_out));
        let settings = &self.configured.preemption;
        if u32::from(candidate.priority) < priority.saturating_add(settings.threshold) {
            return no("to work that is hardly more urgent");
        }
        if *round > 1 {
            return Ok(());
        }
        let least = settings.min_run.0 << in_vain.min(20);
        let young = dispatch.running_at.is_none_or(|since| at.since(since) < Millis(least).duration());
        if young { no("too early") } else { Ok(()) }
    }

    /// What follows an end is what the routing table says, unless the bead is closed, or its time used up.
    fn check_routing(&self, id: &DispatchId, outcome: &Outcome, next: Next) -> Result<(), Broken> {
        let Outcome::Stopped { reason } = outcome else { return Ok(()) };
        let failed = Next::Settled(Verdict::Failed);
        // What came of an action that was sent is unknown, and it is never sent again.
        let sent = |it: &Dispatch| it.is_action() && it.running_at.is_some();
        let context = self.durable.dispatch(id).and_then(|it| self.durable.context(&it.context));
        let is_own = context.is_some_and(Context::is_own);
        let fits = match reason.recovery() {
            Recovery::Queued | Recovery::Blocked if self.durable.dispatch(id).is_some_and(sent) => {
                next == failed
            }
            _ if next == Next::Finished => self.durable.bead(id.bead()).is_none_or(|e| e.bead.is_closed()),
            // What an agent took for himself, without a context that waited, goes back to where it was.
            Recovery::Queued | Recovery::Blocked if next == Next::GivenBack => is_own,
            Recovery::Queued | Recovery::Blocked => matches!(next, Next::Requeued | Next::BackInQueue),
            Recovery::Failed => next == failed,
            Recovery::Cancelled => next == Next::Settled(Verdict::Cancelled),
            Recovery::Retried(_) => true,
        };
        Broken::unless(fits, || format!("{id} ended for {}, and then {next:?}", reason.as_str()))
    }

    /// Whether a bead, or an open ancestor of it, has a blocker that is not closed.
    fn waits(&self, bead: &BeadId) -> bool {
        let closed = |id: &BeadId| self.durable.bead(id).is_some_and(|e| e.bead.is_closed());
        let mut seen = BTreeSet::new();
        let mut pending = vec![bead];
        while let Some(next) = pending.pop() {
            let Some(entry) = self.durable.bead(next) else { continue };
            if !seen.insert(next) || (next != bead && entry.bead.is_closed()) {
                continue;
            }
            for edge in &entry.bead.dependencies {
                match &edge.kind {
                    DepKind::ParentChild => pending.push(&edge.on),
                    kind if kind.blocks() && !closed(&edge.on) => return true,
                    _ => {}
                }
            }
        }
        false
    }

    pub(super) fn check_room(&self, dispatch: &Dispatch) -> Result<(), Broken> {
        let full = |limit: &str, cap: Option<u64>, counts: &dyn Fn(&Dispatch) -> bool| {
            let live = self.durable.live_workers().filter(|d| counts(d)).count() as u64;
            let fits = cap.is_none_or(|cap| live < cap);
            Broken::unless(fits, || format!("{} started with {limit} full: {live} live", dispatch.id))
        };
        // Agents and actions take no worker; whoever claims for himself is bound by no limit of ours.
        if !dispatch.has_worker() {
            return Ok(());
        }
        full("the town", self.configured.town_cap(), &|_| true)?;
        let of_rig = self.durable.rig(&dispatch.rig).and_then(|r| r.max_polecats);
        full("its rig", of_rig, &|d: &Dispatch| d.rig == dispatch.rig)?;
        let Some(account) = &dispatch.account else { return Ok(()) };
        let cap = self.configured.accounts.get(account).and_then(|a| a.max_polecats);
        full("its account", cap, &|d: &Dispatch| d.account.as_ref() == Some(account))
    }

    /// An end must be true: nothing of it runs, nothing of it can still start, and its exit code is the recorded one.
    fn check_end(&self, id: &DispatchId, outcome: &Outcome, workers: &Workers) -> Result<(), Broken> {
        let Some(dispatch) = self.durable.dispatch(id).filter(|d| d.is_live()) else {
            return Err(Broken(format!("{id} ended twice, or before it started")));
        };
        let Some(claim) = workers.claims.get(id) else {
            return Err(Broken(format!("{id} ended, but its claim could still be made")));
        };
        Broken::unless(!claim.held, || format!("{id} ended while its payload lives"))?;
        let stopped = match outcome {
            Outcome::Stopped { reason: StopReason::CooperativePreemption } => self.asked.contains(id),
            Outcome::Stopped { reason } => dispatch.stop == Some(*reason),
            _ => false,
        };
        let says_done = matches!(dispatch.said, Some(Said::Done { .. }));
        let says_failed = matches!(dispatch.said, Some(Said::Failed { .. }));
        let true_to_record = match (&claim.record, outcome) {
            (Record::Exited(exit), Outcome::Succeeded) => {
                (exit.code == Some(0) && !exit.stopped && !says_failed) || says_done
            }
            (Record::Exited(exit), Outcome::Failed { code, signal, .. }) => {
                (exit.code, exit.signal) == (*code, *signal)
            }
            (Record::Exited(exit), _) => stopped && (exit.code != Some(0) || says_failed),
            (Record::StartFailed, Outcome::StartFailed { .. })
            | (Record::Claimed, Outcome::Lost { .. })
            | (Record::Revoked, Outcome::NeverRan { .. } | Outcome::StartFailed { .. }) => true,
            (Record::Claimed, Outcome::Succeeded) => says_done,
            (Record::StartFailed | Record::Claimed | Record::Revoked, _) => stopped,
            (Record::Empty, _) => false,
        };
        Broken::unless(true_to_record, || {
            format!("{id} ended as {outcome:?}, but its claim says {:?}", claim.record)
        })
    }

    /// A payload begins to run.
    pub(super) fn begins(&mut self, id: &DispatchId, workers: &Workers) -> Result<(), Broken> {
        if self.durable.merge_checked_by(id).is_some() {
            // Checks of merges are no attempts of their beads.
            return Ok(());
        }
        let live = self.durable.dispatch(id).is_some_and(Dispatch::is_live);
        Broken::unless(live || self.is_its_turn(id, workers), || {
            format!("{id} runs, but no durable start of it is live")
        })?;
        let twins =
            workers.claims.iter().filter(|(other, claim)| claim.held && other.bead() == id.bead()).count();
        Broken::unless(twins <= 1, || format!("two payloads of {} run at once", id.bead()))?;
        let begun = self.begun.entry(id.bead().clone()).or_default();
        *begun += 1;
        let died = self.died.get(id.bead()).copied().unwrap_or(0);
        Broken::unless(*begun <= 1 + died, || format!("{} ran again without proof of an end", id.bead()))
    }

    /// A payload is gone.
    pub(super) fn dies(&mut self, id: &DispatchId) {
        *self.died.entry(id.bead().clone()).or_default() += 1;
    }

    /// The alert command is told.
    pub(super) fn is_told(&mut self, id: &AlertId) {
        self.told.insert(id.clone());
    }

    /// Somebody was told that everything up to here has happened.
    pub(super) fn acknowledges(&mut self, seq: Seq) {
        self.acknowledged = self.acknowledged.max(seq);
    }

    /// After a restart: what was acknowledged is there, and the town is the one the log tells of.
    pub(super) fn check_recovered(&self, state: &State) -> Result<(), Broken> {
        let (have, promised) = (state.seq(), self.acknowledged);
        Broken::unless(have >= promised, || {
            format!("event {promised} was acknowledged, but {have} is the last")
        })?;
        Ok(state.check_same_as(&self.durable)?)
    }

    /// At the end of a history: every context closed once, every dispatch ended, every bead ran as often as its
    /// attempts say, every alert was told, nothing runs.
    pub(super) fn check_balance(&self, workers: &Workers) -> Result<(), Broken> {
        for context in self.durable.contexts() {
            let closings = self.closings.get(&context.id).copied().unwrap_or(0);
            Broken::unless(closings == 1, || format!("{} closed {closings} times", context.id))?;
        }
        for entry in self.durable.beads() {
            let id = &entry.bead.id;
            let (all, attempts) = (self.durable.dispatches_of(id), entry.work.attempts);
            let (all, ran) = all.fold((0, 0), |(all, ran), d| {
                (all + 1, ran + u32::from(d.has_worker() && d.running_at.is_some()))
            });
            let all = all + self.checks.get(id).copied().unwrap_or(0);
            let all = all + self.called_back.get(id).copied().unwrap_or(0);
            Broken::unless(all == attempts, || {
                format!("{id} has {attempts} attempts, but {all} dispatches")
            })?;
            let begun = self.begun.get(id).copied().unwrap_or(0);
            Broken::unless(begun == ran, || format!("{id} ran {begun} times, but the log says {ran}"))?;
        }
        let untold = self.durable.untold_alerts().count();
        Broken::unless(untold == 0, || format!("{untold} alerts were never told"))?;
        let in_line = self.durable.lined_up().count();
        Broken::unless(in_line == 0, || format!("{in_line} still stand in line"))?;
        let live: Vec<&DispatchId> = self.durable.live_dispatches().map(|d| &d.id).collect();
        Broken::unless(live.is_empty(), || format!("{live:?} never ended"))?;
        let running = workers.running();
        Broken::unless(running.is_empty(), || format!("{running:?} still run"))
    }
}
