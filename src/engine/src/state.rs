//! The state of the town: the fold of its log. Only [`State::apply`] changes it; the indexes are derived and can
//! be rebuilt from the records at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::agent::{Agent, Roster};
use crate::alert::Alert;
use crate::bead::{Beads, Counts, Marks, Verdict, Work};
use crate::capacity::Limit;
use crate::checkpoint::Entity;
use crate::context::Context;
use crate::convoy::Convoy;
use crate::dispatch::Dispatch;
use crate::edges::Edges;
use crate::event::{Event, Recorded};
use crate::forecast::History;
use crate::graph::Cycles;
use crate::merge::{MergeLines, MergeRequest};
use crate::preempt::{Cycle, VictimKey};
use crate::queue::{ClassKey, Lane, OrderKey, Queue};
use crate::rig::Rig;
use crate::settings::Settings;
use crate::spending::Spending;
use crate::task::{Task, TaskCounts, TaskIndex};
use crate::town::{Pause, Undoable};
use crate::trackers::Tracking;
use crate::watch::Looks;
use crate::{
    AccountName, AgentName, AlertId, BeadId, ContextId, ConvoyId, DispatchId, RigName, Seq, Timestamp,
};

/// The town as the log tells it.
#[derive(Debug, Clone, Default)]
pub struct State {
    // Records.
    pub(crate) seq: Seq,
    pub(crate) clock: Timestamp,
    pub(crate) settings: Settings,
    pub(crate) pause: Option<Pause>,
    pub(crate) host_gate: Option<String>,
    /// How many jobs of ours the cluster has room for, as last seen; none = not known.
    pub(crate) cluster_room: Option<u64>,
    pub(crate) undo: Vec<Undoable>,
    /// What was taken back, the last one last.
    pub(crate) redo: Vec<Undoable>,
    pub(crate) last_dispatch_at: Option<Timestamp>,
    pub(crate) rigs: BTreeMap<RigName, Rig>,
    pub(crate) beads: Beads,
    /// The events that opened them share them, so that each is in memory once.
    pub(crate) contexts: BTreeMap<ContextId, Arc<Context>>,
    pub(crate) dispatches: BTreeMap<DispatchId, Dispatch>,
    pub(crate) convoys: BTreeMap<ConvoyId, Convoy>,
    pub(crate) alerts: BTreeMap<AlertId, Alert>,
    /// Tasks of the HTTP API.
    pub(crate) tasks: BTreeMap<BeadId, Task>,
    /// Registered agents.
    pub(crate) agents: BTreeMap<AgentName, Agent>,
    /// What is to become of the branches that workers left behind, by bead.
    pub(crate) merges: BTreeMap<BeadId, MergeRequest>,
    /// What became of all of them so far.
    pub(crate) task_counts: TaskCounts,
    /// Beads that vanished from their workspace, with their history, for when they come back.
    pub(crate) gone: Beads,
    /// What each rig's workspace looked like when it was last read; none if it must be read anew.
    pub(crate) sources: BTreeMap<RigName, Option<String>>,
    /// Beads that rigs' workspaces show although they belong to somebody else.
    pub(crate) contested: BTreeMap<RigName, BTreeSet<BeadId>>,
    /// What was spent.
    pub(crate) spending: Spending,
    /// Until when accounts rest whose service was unavailable.
    pub(crate) cooling: BTreeMap<AccountName, Timestamp>,
    /// When lanes were last served by attempts that are forgotten.
    pub(crate) served_before: BTreeMap<Lane, u64>,
    /// The preemption under way.
    pub(crate) preemption: Option<Cycle>,
    /// What is next in line, by the dispatch that it stands behind.
    pub(crate) lined: BTreeMap<DispatchId, Dispatch>,
    /// The context that a slot was freed for by a preemption; it goes before all others.
    pub(crate) promised: Option<ContextId>,
    // Indexes, derived from the records.
    pub(crate) rig_by_prefix: BTreeMap<String, RigName>,
    pub(crate) dependents: Edges,
    pub(crate) children: Edges,
    pub(crate) cycles: Cycles,
    /// The convoys that track a bead, by id.
    pub(crate) tracking: Tracking,
    pub(crate) convoy_open_beads: BTreeMap<ConvoyId, usize>,
    pub(crate) open_contexts: BTreeSet<ContextId>,
    /// How many open contexts there are of each priority.
    pub(crate) open_priorities: BTreeMap<u8, u32>,
    pub(crate) settled: BTreeMap<BeadId, Verdict>,
    pub(crate) live: BTreeSet<DispatchId>,
    pub(crate) active: BTreeMap<Limit, u64>,
    pub(crate) queue: Queue,
    pub(crate) alert_keys: BTreeMap<String, AlertId>,
    /// Beads that the next pass puts on the schedule, because a convoy wants them started.
    pub(crate) hungry: BTreeSet<BeadId>,
    /// When beads that were put off come back.
    pub(crate) alarms: BTreeSet<(Timestamp, BeadId)>,
    /// Until when finished beads are to be closed in their tracker.
    pub(crate) awaited_closes: BTreeSet<(Timestamp, BeadId)>,
    /// When waits end: rung as soon as the clock passes, by whatever event.
    pub(crate) timers: BTreeSet<(Timestamp, ContextId)>,
    /// Deadlines of contexts that have not started; each stays until a tick expires its context.
    pub(crate) deadlines: BTreeSet<(Timestamp, ContextId)>,
    /// Live dispatches in the order in which they would have to give way.
    pub(crate) victims: BTreeSet<VictimKey>,
    /// When live dispatches must be looked at.
    pub(crate) looks: Looks<DispatchId>,
    /// When the town may spend again; none while it may.
    pub(crate) renewed_at: Option<Timestamp>,
    pub(crate) task_index: TaskIndex,
    pub(crate) roster: Roster,
    /// Merges that wait for their turn or are under way.
    pub(crate) merge_lines: MergeLines,
    /// How long work took, for forecasts.
    pub(crate) history: History,
    // What the next checkpoint must write.
    pub(crate) dirty: BTreeSet<Entity>,
    pub(crate) dirty_beads: Marks,
}

impl State {
    /// The position of the last event applied.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The time of the last event applied.
    pub fn clock(&self) -> Timestamp {
        self.clock
    }

    /// Folds one event in. Never refuses: whatever is in the log has happened.
    pub fn apply(&mut self, recorded: &Recorded) {
        self.seq = recorded.seq;
        self.clock = self.clock.max(recorded.at);
        match &recorded.event {
            Event::Town(event) => self.apply_town(event),
            Event::Rig(event) => self.apply_rig(event),
            Event::Bead(event) => self.apply_bead(event, recorded.at),
            Event::Context(event) => self.apply_context(event, recorded.at),
            Event::Dispatch(event) => self.apply_dispatch(event, recorded.at),
            Event::Convoy(event) => self.apply_convoy(event, recorded.at),
            Event::Alert(event) => self.apply_alert(event),
            Event::Preemption(event) => self.apply_preemption(event, recorded.at),
            Event::Task(event) => self.apply_task(event, recorded.at),
            Event::Agent(event) => self.apply_agent(event, recorded.at),
            Event::Merge(event) => self.apply_merge(event),
        }
        self.ring_due_timers();
    }

    /// Derives every index from the records.
    pub(crate) fn rebuild_indexes(&mut self) {
        self.dependents.clear();
        self.children.clear();
        self.tracking.clear();
        self.convoy_open_beads.clear();
        let beads: Vec<u32> = self.beads.keys().filter_map(|id| self.beads.number(id)).collect();
        for number in beads.iter().copied() {
            self.index_edges(number);
            let open_blockers = self.count_open_blockers_at(number);
            self.beads.set_counts(number, Counts { open_blockers, blocked: open_blockers > 0 });
        }
        let has_parent = |number: &u32| self.beads.ends(*number).iter().any(|end| end.is_parent());
        for number in beads.into_iter().filter(has_parent).collect::<Vec<_>>() {
            let blocked = self.derive_blocked_at(number);
            if let Some(counts) = self.beads.counts(number) {
                self.beads.set_counts(number, Counts { blocked, ..counts });
            }
        }
        self.cycles = Cycles::default();
        for convoy in self.convoys.keys().cloned().collect::<Vec<_>>() {
            self.track(&convoy);
        }
        self.alert_keys = self.alerts.values().map(|alert| (alert.key.clone(), alert.id.clone())).collect();
        let put_off = self.beads.awake().filter_map(|e| Some((e.bead.defer_until?, e.bead.id.clone())));
        self.alarms = put_off.filter(|(until, _)| *until > self.clock).collect();
        let awaited = self.beads.awake().filter_map(|e| Some((e.work.close_by?, e.bead.id.clone())));
        self.awaited_closes = awaited.collect();
        self.settled =
            self.beads.awake().filter_map(|e| Some((e.bead.id.clone(), e.work.verdict?))).collect();
        self.open_contexts = self.contexts.values().filter(|c| c.is_open()).map(|c| c.id.clone()).collect();
        self.open_priorities = self.derive_open_priorities();
        self.merge_lines = self.derive_merge_lines();
        self.rebuild_hands();
        self.rebuild_queue();
        self.rebuild_tasks();
    }

    /// Derives what depends on rigs and settings: prefixes, slots, alarms and the queue, not the graph.
    pub(crate) fn rebuild_queue(&mut self) {
        self.rig_by_prefix = self.rigs.values().map(|rig| (rig.prefix.clone(), rig.name.clone())).collect();
        self.timers.clear();
        self.deadlines.clear();
        self.queue = Queue::default();
        self.renewed_at = self.derive_renewal();
        self.reoccupy_slots();
        self.rebuild_roster();
        for (agent, counts) in &self.task_counts.agents {
            self.queue.lane_served(&Lane::of_agent(agent), counts.served);
        }
        for id in self.open_contexts.clone() {
            self.refresh_context(&id);
        }
        self.hungry = self.derive_hungry();
    }

    /// All beads that the next pass is to feed.
    fn derive_hungry(&self) -> BTreeSet<BeadId> {
        if self.offers_all_that_is_ready() {
            return self.beads.keys().filter(|id| self.derive_hunger(id)).cloned().collect();
        }
        let tracked =
            self.convoys.values().filter(|convoy| convoy.is_fed()).flat_map(|convoy| &convoy.tracked);
        tracked.filter(|id| self.derive_hunger(id)).cloned().collect()
    }

    /// Puts a context into the queue, or takes it out, according to the one readiness function.
    pub(crate) fn refresh_context(&mut self, id: &ContextId) {
        let Some(context) = self.contexts.get(id).filter(|context| context.is_open()) else { return };
        let waits = self.work(context.bead()).is_none_or(|work| work.live.is_none() && !work.lined);
        if waits {
            let ahead = context.turning_points().filter(|due| *due > self.clock);
            self.timers.extend(ahead.map(|due| (due, id.clone())));
            self.deadlines.extend(context.deadline.map(|due| (due, id.clone())));
        }
        if context.assign.is_some() {
            return self.refresh_offer(id);
        }
        if self.could_start(context) {
            let class = ClassKey::of(context, &self.settings, self.limits_for(context));
            let order = OrderKey::of(context, &self.settings, self.clock);
            self.queue.insert(id, class, order, context.priority);
        } else {
            self.queue.remove(id);
        }
    }

    /// Takes a context out of the queue before its record changes.
    pub(crate) fn unqueue(&mut self, id: &ContextId) {
        self.queue.remove(id);
        self.roster.offers.remove(id);
        // Nothing is due about a request that rests.
        let Some(context) = self.contexts.get(id) else { return };
        for due in context.turning_points() {
            self.timers.remove(&(due, id.clone()));
        }
        if let Some(deadline) = context.deadline {
            self.deadlines.remove(&(deadline, id.clone()));
        }
    }

    pub(crate) fn refresh_bead(&mut self, id: &BeadId) {
        if let Some(context) = self.work(id).and_then(|work| work.context.clone()) {
            self.refresh_context(&context);
        }
        self.refresh_hunger(id);
    }

    pub(crate) fn refresh_contexts_of_rig(&mut self, name: &RigName) {
        let of_rig = self.open_contexts().filter(|c| c.fields.target_rig == *name);
        for id in of_rig.map(|c| c.id.clone()).collect::<Vec<_>>() {
            self.refresh_context(&id);
        }
        self.hungry = self.derive_hungry();
    }

    /// Lets contexts into the queue whose time has come.
    pub(crate) fn ring_due_timers(&mut self) {
        while let Some((due, id)) = self.timers.first().cloned() {
            if due > self.clock {
                break;
            }
            self.timers.pop_first();
            self.refresh_context(&id);
        }
        while let Some((due, id)) = self.alarms.first().cloned() {
            if due > self.clock {
                break;
            }
            self.alarms.pop_first();
            self.refresh_bead(&id);
        }
        self.end_cooldowns();
        if self.renewed_at.is_some_and(|at| at <= self.clock) {
            self.refresh_budget();
        }
    }

    /// Lets accounts go on that have rested long enough.
    fn end_cooldowns(&mut self) {
        let rested = self.cooling.iter().filter(|(_, until)| **until <= self.clock);
        for account in rested.map(|(account, _)| account.clone()).collect::<Vec<_>>() {
            self.cooling.remove(&account);
            self.refresh_contexts_of_account(&account);
        }
    }

    pub(crate) fn refresh_contexts_of_account(&mut self, account: &AccountName) {
        let theirs = self.open_contexts().filter(|c| c.fields.account.as_ref() == Some(account));
        for id in theirs.map(|c| c.id.clone()).collect::<Vec<_>>() {
            self.refresh_context(&id);
        }
    }

    /// A context that a slot was freed for waits no longer.
    pub(crate) fn unpromise(&mut self, id: &ContextId) {
        if self.promised.as_ref() == Some(id) {
            self.promised = None;
            self.touch_town();
        }
    }

    /// The one way a bead gets, or loses, a verdict.
    pub(crate) fn set_verdict(&mut self, id: &BeadId, verdict: Option<Verdict>) {
        let known = self.beads.contains_key(id);
        let Some(work) = self.work_mut(id) else { return };
        // What was never asked for has neither, and takes no memory for it.
        if work.verdict != verdict {
            work.verdict = verdict;
        }
        if let Some(due) = work.close_by {
            work.close_by = None;
            self.awaited_closes.remove(&(due, id.clone()));
        }
        match verdict.filter(|_| known) {
            Some(verdict) => self.settled.insert(id.clone(), verdict),
            None => self.settled.remove(id),
        };
        self.refresh_hunger(id);
    }

    /// The scheduler's side of a bead, be it gone from its workspace.
    pub(crate) fn work(&self, id: &BeadId) -> Option<&Work> {
        self.beads.get(id).or_else(|| self.gone.get(id)).map(|entry| &entry.work)
    }

    /// The same, to be changed.
    pub(crate) fn work_mut(&mut self, id: &BeadId) -> Option<&mut Work> {
        let entry = self.beads.get_mut(id).or_else(|| self.gone.get_mut(id));
        entry.map(|entry| &mut entry.work)
    }

    /// Notes that the event being applied named this bead.
    pub(crate) fn remember(&mut self, id: &BeadId) {
        let seq = self.seq;
        if let Some(work) = self.work_mut(id) {
            work.history.add(seq);
            self.touch_bead(id);
        }
        self.refresh_task(id);
    }

    /// Forgets a bead for good, with all its requests and attempts. Nobody may wait for it.
    pub(crate) fn forget_bead(&mut self, id: &BeadId) {
        self.bring_back(id);
        self.vanish(id);
        let Some(entry) = self.gone.remove(id) else { return };
        let work = &entry.work;
        let mut next = work.context.clone().or_else(|| work.last_context.clone());
        while let Some(context) = next.and_then(|id| self.contexts.remove(&id)) {
            self.touch_context(&context.id);
            let before = context.predecessor.clone();
            next = before;
        }
        for dispatch in self.dispatches_of(id).map(|dispatch| dispatch.id.clone()).collect::<Vec<_>>() {
            self.dispatches.remove(&dispatch);
            self.touch_dispatch(&dispatch);
        }
        self.forget_merge(id);
        self.dirty.insert(Entity::Bead(id.clone()));
        for name in entry.bead.dependencies.iter().map(|edge| &edge.on).chain([id]) {
            self.forget_name(name);
        }
        self.gone.forget_name(id);
    }

    /// Forgets an id that only a forgotten bead had or named.
    fn forget_name(&mut self, id: &BeadId) {
        if self.tracking.of(self.beads.number(id)).next().is_none() {
            self.beads.forget_name(id);
        }
    }

    pub(crate) fn touch_bead(&mut self, id: &BeadId) {
        let number = self.beads.give_number(id);
        self.dirty_beads.insert(number);
    }
    pub(crate) fn touch_town(&mut self) {
        self.dirty.insert(Entity::Town);
    }
    pub(crate) fn touch_rig(&mut self, name: &RigName) {
        self.dirty.insert(Entity::Rig(name.clone()));
    }
    pub(crate) fn touch_context(&mut self, id: &ContextId) {
        self.dirty.insert(Entity::Context(id.clone()));
    }
    pub(crate) fn touch_dispatch(&mut self, id: &DispatchId) {
        self.dirty.insert(Entity::Dispatch(id.clone()));
    }
    pub(crate) fn touch_task(&mut self, id: &BeadId) {
        self.dirty.insert(Entity::Task(id.clone()));
    }
    pub(crate) fn touch_agent(&mut self, name: &AgentName) {
        self.dirty.insert(Entity::Agent(name.clone()));
    }
    pub(crate) fn touch_merge(&mut self, bead: &BeadId) {
        self.dirty.insert(Entity::Merge(bead.clone()));
    }
    pub(crate) fn touch_alert(&mut self, id: &AlertId) {
        self.dirty.insert(Entity::Alert(id.clone()));
    }
    pub(crate) fn touch_convoy(&mut self, id: &ConvoyId) {
        self.dirty.insert(Entity::Convoy(id.clone()));
    }
}
