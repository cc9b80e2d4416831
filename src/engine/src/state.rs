//! The state of the town: the fold of its log. Only [`State::apply`] changes it; the indexes are derived and can
//! be rebuilt from the records at any time.

use std::collections::{BTreeMap, BTreeSet};

use crate::bead::{BeadEntry, Verdict};
use crate::capacity::Limit;
use crate::checkpoint::Entity;
use crate::context::Context;
use crate::convoy::Convoy;
use crate::dispatch::Dispatch;
use crate::event::{Event, Recorded};
use crate::graph::Edges;
use crate::queue::{ClassKey, OrderKey, Queue};
use crate::rig::Rig;
use crate::settings::Settings;
use crate::town::{Pause, Undoable};
use crate::{BeadId, ContextId, ConvoyId, DispatchId, RigName, Seq, Timestamp};

/// The town as the log tells it.
#[derive(Debug, Clone, Default)]
pub struct State {
    // Records.
    pub(crate) seq: Seq,
    pub(crate) clock: Timestamp,
    pub(crate) settings: Settings,
    pub(crate) pause: Option<Pause>,
    pub(crate) host_gate: Option<String>,
    pub(crate) undo: Vec<Undoable>,
    pub(crate) last_dispatch_at: Option<Timestamp>,
    pub(crate) rigs: BTreeMap<RigName, Rig>,
    pub(crate) beads: BTreeMap<BeadId, BeadEntry>,
    pub(crate) contexts: BTreeMap<ContextId, Context>,
    pub(crate) dispatches: BTreeMap<DispatchId, Dispatch>,
    pub(crate) convoys: BTreeMap<ConvoyId, Convoy>,
    // Indexes, derived from the records.
    pub(crate) rig_by_prefix: BTreeMap<String, RigName>,
    pub(crate) dependents: Edges,
    pub(crate) children: Edges,
    /// Some beads may wait for themselves. While this is false, which is the rule, nobody looks for cycles.
    pub(crate) may_cycle: bool,
    pub(crate) tracking: BTreeMap<BeadId, BTreeSet<ConvoyId>>,
    pub(crate) convoy_open_beads: BTreeMap<ConvoyId, usize>,
    pub(crate) open_contexts: BTreeSet<ContextId>,
    pub(crate) settled: BTreeMap<BeadId, Verdict>,
    pub(crate) live: BTreeSet<DispatchId>,
    pub(crate) active: BTreeMap<Limit, u64>,
    pub(crate) queue: Queue,
    /// When waits end: rung as soon as the clock passes, by whatever event.
    pub(crate) timers: BTreeSet<(Timestamp, ContextId)>,
    /// Deadlines of contexts that have not started; each stays until a tick expires its context.
    pub(crate) deadlines: BTreeSet<(Timestamp, ContextId)>,
    // What the next checkpoint must write.
    pub(crate) dirty: BTreeSet<Entity>,
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
        }
        self.ring_due_timers();
    }

    /// Derives every index from the records.
    pub(crate) fn rebuild_indexes(&mut self) {
        self.dependents.clear();
        self.children.clear();
        self.tracking.clear();
        self.convoy_open_beads.clear();
        let beads: Vec<BeadId> = self.beads.keys().cloned().collect();
        for id in &beads {
            let dependencies = self.beads[id].bead.dependencies.clone();
            self.edges_added(id, &dependencies);
            let count = self.count_open_blockers(id);
            if let Some(entry) = self.beads.get_mut(id) {
                entry.open_blockers = count;
            }
        }
        for id in &beads {
            let blocked = self.derive_blocked(id);
            if let Some(entry) = self.beads.get_mut(id) {
                entry.blocked = blocked;
            }
        }
        self.may_cycle = self.derive_may_cycle();
        let convoys: Vec<Convoy> = self.convoys.values().filter(|c| c.is_open()).cloned().collect();
        for convoy in &convoys {
            self.track(convoy);
        }
        self.settled =
            self.beads.values().filter_map(|e| Some((e.bead.id.clone(), e.work.verdict?))).collect();
        self.open_contexts = self.contexts.values().filter(|c| c.is_open()).map(|c| c.id.clone()).collect();
        self.rebuild_queue();
    }

    /// Derives what depends on rigs and settings: prefixes, slots, alarms and the queue, not the graph.
    pub(crate) fn rebuild_queue(&mut self) {
        self.rig_by_prefix = self.rigs.values().map(|rig| (rig.prefix.clone(), rig.name.clone())).collect();
        self.timers.clear();
        self.deadlines.clear();
        self.queue = Queue::default();
        self.reoccupy_slots();
        for id in self.open_contexts.clone() {
            self.refresh_context(&id);
        }
    }

    /// Puts a context into the queue, or takes it out, according to the one readiness function.
    pub(crate) fn refresh_context(&mut self, id: &ContextId) {
        let Some(context) = self.contexts.get(id) else { return };
        if !context.is_open() {
            return;
        }
        for due in [context.not_before, context.rest_until].into_iter().flatten() {
            if due > self.clock {
                self.timers.insert((due, id.clone()));
            }
        }
        if let Some(deadline) = context.deadline
            && self.beads.get(context.bead()).is_none_or(|e| e.work.live.is_none())
        {
            self.deadlines.insert((deadline, id.clone()));
        }
        if self.could_start(context) {
            let class = ClassKey::of(context, &self.settings);
            let order = OrderKey::of(context, &self.settings);
            self.queue.insert(id, class, order);
        } else {
            self.queue.remove(id);
        }
    }

    /// Takes a context out of the queue before its record changes.
    pub(crate) fn unqueue(&mut self, id: &ContextId) {
        self.queue.remove(id);
        let Some(context) = self.contexts.get(id) else { return };
        for due in [context.not_before, context.rest_until].into_iter().flatten() {
            self.timers.remove(&(due, id.clone()));
        }
        if let Some(deadline) = context.deadline {
            self.deadlines.remove(&(deadline, id.clone()));
        }
    }

    pub(crate) fn refresh_bead(&mut self, id: &BeadId) {
        if let Some(context) = self.beads.get(id).and_then(|e| e.work.context.clone()) {
            self.refresh_context(&context);
        }
    }

    pub(crate) fn refresh_contexts_of_rig(&mut self, name: &RigName) {
        let of_rig = self.open_contexts().filter(|c| c.fields.target_rig == *name);
        for id in of_rig.map(|c| c.id.clone()).collect::<Vec<_>>() {
            self.refresh_context(&id);
        }
    }

    /// Lets contexts into the queue whose time has come.
    fn ring_due_timers(&mut self) {
        while let Some((due, id)) = self.timers.first().cloned() {
            if due > self.clock {
                break;
            }
            self.timers.pop_first();
            self.refresh_context(&id);
        }
    }

    /// The one way a bead gets, or loses, a verdict.
    pub(crate) fn set_verdict(&mut self, id: &BeadId, verdict: Option<Verdict>) {
        let Some(entry) = self.beads.get_mut(id) else { return };
        entry.work.verdict = verdict;
        match verdict {
            Some(verdict) => self.settled.insert(id.clone(), verdict),
            None => self.settled.remove(id),
        };
    }

    /// Notes that the event being applied named this bead.
    pub(crate) fn remember(&mut self, id: &BeadId) {
        let seq = self.seq;
        if let Some(entry) = self.beads.get_mut(id) {
            if entry.work.history.last() != Some(&seq) {
                entry.work.history.push(seq);
            }
            self.dirty.insert(Entity::Bead(id.clone()));
        }
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
    pub(crate) fn touch_convoy(&mut self, id: &ConvoyId) {
        self.dirty.insert(Entity::Convoy(id.clone()));
    }
}
