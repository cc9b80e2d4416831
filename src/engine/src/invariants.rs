//! The invariant checker: what must hold of the state after every event. Unit tests, property tests, the
//! simulation and the safety scan all use this one.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::Matcher;
use crate::bead::DepKind;
use crate::capacity::Limit;
use crate::context::Context;
use crate::dispatch::Dispatch;
use crate::readiness::claimed_elsewhere;
use crate::state::State;
use crate::task::TaskIndex;
use crate::{BeadId, ContextId, ConvoyId, DispatchId};

/// A broken promise of the engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invariant broken: {0}")]
pub struct Violation(String);

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation(what())) }
}

impl State {
    /// Checks everything that must hold after a decision.
    pub fn check_invariants(&self) -> Result<(), Violation> {
        self.check_indexes()?;
        self.check_line()?;
        self.check_nothing_stale()?;
        ensure(self.may_cycle() || !self.derive_may_cycle(), || "a cycle went unnoticed".to_owned())?;
        self.check_convoys()
    }

    /// Checks what must hold after every single event, also between the events of one decision: at most one request
    /// and one run per bead, slots counted right, and every index as the records give it.
    pub fn check_indexes(&self) -> Result<(), Violation> {
        self.check_one_request_and_one_run_per_bead()?;
        self.check_slots()?;
        self.check_graph()?;
        self.check_queue()?;
        self.check_tasks()?;
        self.check_agents()?;
        self.check_merges()?;
        self.check_hunger()
    }

    /// What is kept about tasks is what the records give, and no more wait or run than were let in.
    fn check_tasks(&self) -> Result<(), Violation> {
        if self.tasks.is_empty() {
            return ensure(self.task_index == TaskIndex::default(), || {
                "forgotten tasks are listed".to_owned()
            });
        }
        let mut derived = self.clone();
        derived.rebuild_tasks();
        ensure(derived.task_index == self.task_index, || {
            format!("tasks {:?}, derived {:?}", self.task_index, derived.task_index)
        })?;
        for task in self.tasks.values().filter(|task| task.ended.is_some()) {
            let work = self.work(&task.id);
            ensure(work.is_none_or(|work| work.live.is_none() && work.context.is_none()), || {
                format!("{} is over, but goes on", task.id)
            })?;
        }
        Ok(())
    }

    /// What is kept about agents is what the records give, each does what its work says, and nobody has two orders.
    fn check_agents(&self) -> Result<(), Violation> {
        let mut derived = self.clone();
        derived.rebuild_hands();
        derived.rebuild_roster();
        for id in self.open_contexts.clone() {
            derived.refresh_context(&id);
        }
        ensure(derived.roster == self.roster, || {
            format!("roster {:?}, derived {:?}", self.roster, derived.roster)
        })?;
        for agent in self.agents.values() {
            let state = self.derive_agent_state(agent);
            ensure(agent.state == state, || {
                format!("{} is {:?}, derived {state:?}", agent.name(), agent.state)
            })?;
            let orders = self.roster.ordered.get(agent.name()).map_or(0, BTreeSet::len);
            ensure(orders <= 1, || format!("{} has {orders} orders", agent.name()))?;
        }
        for context in self.contexts.values().filter(|context| context.sent.is_some()) {
            ensure(context.is_open(), || format!("{} is closed, but ordered", context.id))?;
        }
        Ok(())
    }

    /// One merge at a time per rig and base, and the lines are what the records give.
    fn check_merges(&self) -> Result<(), Violation> {
        let derived = self.derive_merge_lines();
        ensure(derived == self.merge_lines, || {
            format!("merge lines {:?}, derived {derived:?}", self.merge_lines)
        })?;
        for (line, waiting) in &self.merge_lines {
            let under_way = waiting.iter().filter(|(_, bead)| self.merges[bead].is_under_way()).count();
            ensure(under_way <= 1, || format!("{under_way} merges into {} of {}", line.base, line.rig))?;
        }
        Ok(())
    }

    /// Exactly those beads are to be fed that a convoy wants and nothing but room keeps back; none of a staged one.
    fn check_hunger(&self) -> Result<(), Violation> {
        let derived: BTreeSet<&BeadId> = self.beads.keys().filter(|id| self.derive_hunger(id)).collect();
        ensure(derived.iter().copied().eq(&self.hungry), || {
            format!("hungry {:?}, derived {derived:?}", self.hungry)
        })?;
        for context in self.open_contexts() {
            let convoy = context.fields.convoy.as_ref().and_then(|id| self.convoys.get(id));
            ensure(convoy.is_none_or(|convoy| convoy.staged.is_none()), || {
                format!("{} is scheduled by a staged convoy", context.bead())
            })?;
        }
        Ok(())
    }

    /// No request outlives its bead: once that is closed or taken, only a live dispatch keeps it open.
    fn check_nothing_stale(&self) -> Result<(), Violation> {
        for context in self.open_contexts() {
            let bead = context.bead();
            let Some(entry) = self.beads.get(bead) else { continue };
            let taken = entry.bead.is_closed() || (!context.forced && claimed_elsewhere(entry).is_some());
            ensure(!taken || entry.work.live.is_some(), || {
                format!("{} is open for {bead}, which is closed or taken", context.id)
            })?;
        }
        Ok(())
    }

    /// At most one live dispatch and one open context per bead, and both sides agree.
    fn check_one_request_and_one_run_per_bead(&self) -> Result<(), Violation> {
        let mut open: BTreeMap<&BeadId, &ContextId> = BTreeMap::new();
        for context in self.contexts.values().filter(|c| c.is_open()) {
            let bead = context.bead();
            if let Some(other) = open.insert(bead, &context.id) {
                return Err(Violation(format!("{bead} has two open contexts: {other}, {}", context.id)));
            }
            ensure(self.open_contexts.contains(&context.id), || format!("{} is not indexed", context.id))?;
        }
        ensure(open.len() == self.open_contexts.len(), || "stale ids among the open contexts".to_owned())?;
        let mut live: BTreeMap<&BeadId, &DispatchId> = BTreeMap::new();
        for dispatch in self.dispatches.values().filter(|d| d.is_live()) {
            let bead = dispatch.id.bead();
            if let Some(other) = live.insert(bead, &dispatch.id) {
                return Err(Violation(format!("{bead} runs twice: {other} and {}", dispatch.id)));
            }
            let context_open = self.context(&dispatch.context).is_some_and(Context::is_open);
            ensure(context_open == dispatch.running_at.is_none(), || {
                format!("{}: running {:?} but context open {context_open}", dispatch.id, dispatch.running_at)
            })?;
        }
        for entry in self.beads.values().chain(self.gone.values()) {
            let id = &entry.bead.id;
            ensure(entry.work.context.as_ref() == open.get(id).copied(), || {
                format!("{id}: context differs")
            })?;
            let verdict = entry.work.verdict.filter(|_| !entry.gone);
            ensure(verdict == self.settled.get(id).copied(), || format!("{id}: verdict differs"))?;
            let awaited = entry.work.close_by.filter(|_| !entry.gone);
            ensure(awaited.is_none_or(|due| self.awaited_closes.contains(&(due, id.clone()))), || {
                format!("{id}: nothing rings when its close is overdue")
            })?;
            ensure(entry.work.live.as_ref() == live.get(id).copied(), || {
                format!("{id}: live dispatch differs")
            })?;
        }
        Ok(())
    }

    /// Running ≤ every cap that was in force, and the counts are those of the live dispatches.
    pub(crate) fn check_slots(&self) -> Result<(), Violation> {
        let live: BTreeSet<&DispatchId> =
            self.dispatches.values().filter(|d| d.is_live()).map(|d| &d.id).collect();
        ensure(live.iter().copied().eq(self.live.iter()), || "live index differs".to_owned())?;
        let mut active: BTreeMap<Limit, u64> = BTreeMap::new();
        for dispatch in self.live_dispatches() {
            for limit in dispatch.limits() {
                *active.entry(limit).or_default() += 1;
            }
        }
        ensure(active == self.active, || format!("slots {:?} but counted {active:?}", self.active))?;
        self.check_watched()
    }

    /// Who is in line stands behind somebody that runs, or that is next there, and nobody else believes to be in line.
    fn check_line(&self) -> Result<(), Violation> {
        for (after, next) in self.lined_up() {
            let runs = |id: &DispatchId| self.dispatch(id).is_some_and(Dispatch::is_live);
            let is_second = self.lined_up().any(|(first, other)| other.id == *after && runs(first));
            ensure(runs(after) || is_second, || {
                format!("{} is in line behind {after}, which does not run, nor is next", next.id)
            })?;
            let free = self.dispatch(&next.id).is_none();
            ensure(free, || format!("{} is in line and a dispatch", next.id))?;
        }
        let lined: BTreeSet<&BeadId> =
            self.beads.values().filter(|entry| entry.work.lined).map(|entry| &entry.bead.id).collect();
        let known = self.lined_up().map(|(_, next)| next.id.bead()).filter(|id| self.bead(id).is_some());
        let known: BTreeSet<&BeadId> = known.collect();
        ensure(lined == known, || format!("{lined:?} believe to be in line, {known:?} are"))?;
        let priorities = self.derive_open_priorities();
        ensure(priorities == self.open_priorities, || "priorities are miscounted".to_owned())
    }

    /// Everything that runs is looked at when something about it is due, and nothing else is.
    fn check_watched(&self) -> Result<(), Violation> {
        let mut looks = 0;
        for id in &self.live {
            let due = self.derive_look(id);
            looks += usize::from(due.is_some());
            ensure(self.looks.of(id) == due, || format!("{id}: nobody looks at {due:?}"))?;
        }
        ensure(looks == self.looks.len(), || "somebody looks at what has ended".to_owned())?;
        ensure(self.victims.len() == self.live.len(), || "who may give way is not who runs".to_owned())?;
        let asked = |d: &&Dispatch| d.yield_asked.is_some();
        let asked: Vec<&DispatchId> = self.live_dispatches().filter(asked).map(|d| &d.id).collect();
        let cycle: Vec<&DispatchId> = self.preemption.iter().map(|cycle| &cycle.victim).collect();
        ensure(asked == cycle, || format!("asked to give way {asked:?}, but the cycle is about {cycle:?}"))?;
        ensure(self.renewed_at == self.derive_renewal(), || "the budget's end went unnoticed".to_owned())
    }

    /// Counters and reverse edges are those the beads' own edges give.
    fn check_graph(&self) -> Result<(), Violation> {
        let (mut blocking, mut parents) = (0, 0);
        let number = |id: &BeadId| self.beads.number(id).unwrap_or(u32::MAX);
        for (id, entry) in self.beads.keys().zip(self.beads.values()) {
            let count = self.count_open_blockers(id);
            ensure(entry.open_blockers == count, || {
                format!("{id}: {} open blockers, counted {count}", entry.open_blockers)
            })?;
            let blocked = self.derive_blocked(id);
            ensure(entry.blocked == blocked, || {
                format!("{id}: blocked {}, derived {blocked}", entry.blocked)
            })?;
            for edge in &entry.bead.dependencies {
                let known = match &edge.kind {
                    kind if kind.blocks() => {
                        blocking += 1;
                        self.dependents.has(&self.beads, number(&edge.on), number(id))
                    }
                    DepKind::ParentChild => {
                        parents += 1;
                        self.children.has(&self.beads, number(&edge.on), number(id))
                    }
                    _ => true,
                };
                ensure(known, || format!("{id}: its edge to {} is not indexed", edge.on))?;
            }
        }
        ensure(blocking == self.dependents.count(), || "dependents hold more than the edges".to_owned())?;
        ensure(parents == self.children.count(), || "children hold more than the edges".to_owned())
    }

    /// The queue holds exactly the contexts the readiness function lets start, and whoever waits on a limit waits
    /// on a full one.
    fn check_queue(&self) -> Result<(), Violation> {
        self.queue.check().map_err(Violation)?;
        let started = |c: &&Context| c.is_open() && c.assign.is_none() && self.could_start(c);
        let contexts = self.contexts.values().map(AsRef::as_ref);
        let derived: BTreeSet<&ContextId> = contexts.filter(started).map(|c| &c.id).collect();
        let queued: BTreeSet<&ContextId> = self.queue.ids().collect();
        ensure(derived == queued, || format!("queue {queued:?}, derived {derived:?}"))?;
        for context in self.open_contexts() {
            self.check_alarms(context)?;
        }
        for limit in self.queue.waited_limits() {
            ensure(!self.room(limit).has_room(), || {
                format!("work waits on {}, which has room", limit.name())
            })?;
        }
        Ok(())
    }

    /// Whatever a waiting context waits for in time will wake it.
    fn check_alarms(&self, context: &Context) -> Result<(), Violation> {
        let id = &context.id;
        // Nothing in time concerns who runs or is next in line.
        let waiting = self.work(context.bead()).is_some_and(|work| work.live.is_none() && !work.lined);
        for due in context.turning_points() {
            let rings = self.timers.contains(&(due, id.clone()));
            ensure(rings || due <= self.clock || !waiting, || format!("{id}: nothing rings at {due}"))?;
        }
        let Some(deadline) = context.deadline else { return Ok(()) };
        let expires = self.deadlines.contains(&(deadline, id.clone()));
        ensure(expires == waiting, || format!("{id}: waits {waiting}, but expires {expires}"))
    }

    fn check_convoys(&self) -> Result<(), Violation> {
        let convoys = self.convoys.values();
        let pairs: BTreeSet<(&BeadId, &ConvoyId)> =
            convoys.flat_map(|convoy| convoy.tracked.iter().map(|bead| (bead, &convoy.id))).collect();
        for (bead, convoy) in &pairs {
            let known = self.tracking.of(self.beads.number(bead)).any(|tracking| tracking == *convoy);
            ensure(known, || format!("{convoy} tracks {bead}, but nobody knows"))?;
        }
        ensure(pairs.len() == self.tracking.count(), || {
            "somebody tracks beads of a convoy that is forgotten".to_owned()
        })?;
        for convoy in self.convoys.values().filter(|c| c.is_open()) {
            let open = convoy.tracked.iter().filter(|b| !self.is_closed(b)).count();
            ensure(open == self.open_beads_of(&convoy.id), || format!("{}: open beads differ", convoy.id))?;
            ensure(open > 0 || convoy.owned || convoy.tracked.is_empty(), || {
                format!("{} is complete but open", convoy.id)
            })?;
        }
        Ok(())
    }

    /// After a planning pass: nothing ready waits while there is room.
    pub fn check_nothing_waits_needlessly(&self) -> Result<(), Violation> {
        let put_off = self.settings.batch_size > 0 || self.settings.spawn_delay.0 > 0;
        ensure(self.hungry.is_empty(), || format!("convoys are not fed: {:?}", self.hungry))?;
        if self.pause.is_some() || self.host_gate.is_some() {
            return Ok(());
        }
        let unsent = self.next_match(&Matcher::of(self));
        ensure(unsent.is_none(), || format!("an agent is free, and work waits for it: {unsent:?}"))?;
        if put_off {
            return Ok(());
        }
        for id in self.queue.ids() {
            let context = &self.contexts[id];
            let full = self.limits_for(context).any(|limit| !self.room(&limit).has_room());
            ensure(full, || format!("{} is ready and there is room", context.bead()))?;
        }
        Ok(())
    }

    /// Checks that another fold of the same log is the same town. What the next checkpoint must write and which
    /// classes have been found waiting so far are no part of it.
    pub fn check_same_as(&self, other: &Self) -> Result<(), Violation> {
        let same =
            |name: &str, holds: bool| ensure(holds, || format!("the two states differ in their {name}"));
        same("position", self.seq == other.seq)?;
        same("clock", self.clock == other.clock)?;
        same("settings", self.settings == other.settings)?;
        same("pause", self.pause == other.pause)?;
        same("host gate", self.host_gate == other.host_gate)?;
        same("room on the cluster", self.cluster_room == other.cluster_room)?;
        same("undo list", self.undo == other.undo)?;
        same("redo list", self.redo == other.redo)?;
        same("last dispatch", self.last_dispatch_at == other.last_dispatch_at)?;
        same("rigs", self.rigs == other.rigs)?;
        same("beads", self.beads == other.beads)?;
        same("contexts", self.contexts().eq(other.contexts()))?;
        same("dispatches", self.dispatches().eq(other.dispatches()))?;
        same("convoys", self.convoys == other.convoys)?;
        same("merges", self.merges == other.merges)?;
        same("lines of merges", self.merge_lines == other.merge_lines)?;
        same("prefixes", self.rig_by_prefix == other.rig_by_prefix)?;
        let (ours, theirs) = (&self.beads, &other.beads);
        same("dependents", self.dependents.by_id(ours) == other.dependents.by_id(theirs))?;
        same("children", self.children.by_id(ours) == other.children.by_id(theirs))?;
        same("convoy counts", self.convoy_open_beads == other.convoy_open_beads)?;
        same("open contexts", self.open_contexts == other.open_contexts)?;
        same("priorities", self.open_priorities == other.open_priorities)?;
        same("line", self.lined == other.lined)?;
        same("verdicts", self.settled == other.settled)?;
        same("live dispatches", self.live == other.live)?;
        same("slots", self.active == other.active)?;
        same("queue", self.queue.same_as(&other.queue))?;
        same("timers", self.timers == other.timers)?;
        same("deadlines", self.deadlines == other.deadlines)?;
        same("vanished beads", self.gone == other.gone)?;
        same("sources", self.sources == other.sources && self.contested == other.contested)?;
        same("alerts", self.alerts == other.alerts)?;
        same("alert keys", self.alert_keys == other.alert_keys)?;
        same("beads to be fed", self.hungry == other.hungry)?;
        same("alarms", self.alarms == other.alarms)?;
        same("spending", self.spending == other.spending)?;
        same("resting accounts", self.cooling == other.cooling)?;
        same("lanes served before", self.served_before == other.served_before)?;
        same("preemption", self.preemption == other.preemption)?;
        same("promise", self.promised == other.promised)?;
        same("victims", self.victims == other.victims)?;
        same("looks", self.looks == other.looks)?;
        same("renewal", self.renewed_at == other.renewed_at)?;
        same("tasks", self.tasks == other.tasks)?;
        same("counts of tasks", self.task_counts == other.task_counts)?;
        same("lists of tasks", self.task_index == other.task_index)?;
        same("agents", self.agents == other.agents)?;
        same("roster", self.roster == other.roster)?;
        same("awaited closes", self.awaited_closes == other.awaited_closes)
    }
}
