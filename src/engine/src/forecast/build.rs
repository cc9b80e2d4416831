//! Building the model of what is left, with the engine's own functions: readiness says until when something cannot start,
//! the graph what it waits for, the queue where it stands, capacity what there is room for.

use std::collections::{BTreeMap, BTreeSet};

use super::chance::number_of;
use super::history::{Class as Alike, Estimate, Estimator, already_done, millis_between};
use super::model::{Class, Launched, Model, NEVER, NONE, Place, Unit};
use crate::bead::{BeadEntry, Verdict};
use crate::capacity::Limit;
use crate::command::SlingRequest;
use crate::context::{Context, ContextFields};
use crate::convoy::Convoy;
use crate::decide::sling_priority;
use crate::dispatch::{Dispatch, SLURM_EXECUTOR};
use crate::lookup::Lookup;
use crate::queue::{Lane, OrderKey};
use crate::settings::RigAssign;
use crate::state::State;
use crate::{BeadId, ConvoyId, Timestamp};

/// What class and estimate of a scheduled bead follow from.
struct Likeness<'a> {
    fields: &'a ContextFields,
    kind: &'a str,
    argv: Option<&'a [String]>,
    task: Option<(&'a str, bool)>,
    by_agent: bool,
    executor: Option<&'a str>,
}

impl Likeness<'_> {
    fn is_like(&self, other: &Self) -> bool {
        let (a, b) = (self.fields, other.fields);
        a.target_rig == b.target_rig
            && (self.task, self.by_agent, self.executor) == (other.task, other.by_agent, other.executor)
            && (&a.account, &a.convoy, &a.agent) == (&b.account, &b.convoy, &b.agent)
            && (&a.formula, self.kind, self.argv) == (&b.formula, other.kind, other.argv)
    }
}

/// Builds a model bead by bead.
pub(super) struct Builder<'a> {
    state: &'a State,
    now: Timestamp,
    launched: Option<&'a ConvoyId>,
    launched_beads: BTreeSet<&'a BeadId>,
    estimator: Estimator<'a>,
    estimates: Vec<Estimate>,
    known_estimates: BTreeMap<Alike, u32>,
    lanes: BTreeMap<Lane, u32>,
    limits: Vec<Limit>,
    known_limits: BTreeMap<Limit, u32>,
    classes: Vec<Class>,
    known_classes: BTreeMap<(u32, [u32; 5]), u32>,
    units: Vec<Unit<'a>>,
    by_number: Vec<u32>,
    /// What the last unit was like, which the next one mostly is too.
    last: Option<(Likeness<'a>, u32, u32)>,
    edges: Vec<(u32, u32)>,
    waits: Vec<u32>,
    doors: Lookup<u32, u32>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(state: &'a State, now: Timestamp, launched: Launched<'a>) -> Self {
        let mut new = Self {
            state,
            now,
            launched: launched.map(|(id, _)| id),
            launched_beads: launched.into_iter().flat_map(|(_, beads)| beads).collect(),
            estimator: Estimator::new(&state.history),
            estimates: Vec::new(),
            known_estimates: BTreeMap::new(),
            lanes: BTreeMap::new(),
            limits: Vec::new(),
            known_limits: BTreeMap::new(),
            classes: Vec::new(),
            known_classes: BTreeMap::new(),
            units: Vec::new(),
            by_number: vec![NONE; state.beads.numbers()],
            last: None,
            edges: Vec::new(),
            waits: Vec::new(),
            doors: Lookup::default(),
        };
        new.limit(Limit::Town);
        new
    }

    pub(super) fn build(mut self) -> Model<'a> {
        let asked_for = self.asked_for();
        let mut numbers = Vec::with_capacity(asked_for.len());
        for (_, number) in asked_for {
            if let Some(unit) = self.state.beads.at(number).and_then(|entry| self.unit(entry)) {
                self.by_number[number as usize] = self.units.len() as u32;
                self.units.push(unit);
                numbers.push(number);
            }
        }
        self.waits = vec![0; self.units.len()];
        for (unit, number) in numbers.into_iter().enumerate() {
            self.connect(unit as u32, number);
        }
        self.finish()
    }

    /// Every bead that somebody or some convoy wants run, by id, which is the order they are fed in.
    fn asked_for(&self) -> Vec<(&'a BeadId, u32)> {
        let state = self.state;
        let scheduled = state.open_contexts().map(Context::bead);
        let live = state.live.iter().map(crate::DispatchId::bead);
        let fed = state.convoys.values().filter(|convoy| convoy.is_fed()).flat_map(|convoy| &convoy.tracked);
        let finished = state.awaited_closes.iter().map(|(_, bead)| bead);
        let launched = self.launched_beads.iter().copied();
        let all = scheduled.chain(live).chain(fed).chain(finished).chain(launched);
        let numbered = all.filter_map(|id| Some((id, state.beads.number(id)?)));
        let mut open: Vec<_> = numbered.filter(|(_, number)| !state.beads.is_closed_at(*number)).collect();
        open.sort_unstable();
        open.dedup();
        open
    }

    fn unit(&mut self, entry: &'a BeadEntry) -> Option<Unit<'a>> {
        let state = self.state;
        let work = &entry.work;
        if let Some(dispatch) = work.live.as_ref().and_then(|id| state.dispatch(id)) {
            return Some(self.running(entry, dispatch));
        }
        if work.verdict == Some(Verdict::Done) {
            return Some(Self::new_unit(entry, Place::Finished, 0, 0));
        }
        if let Some(context) = work.context.as_ref().and_then(|id| state.context(id)) {
            return Some(self.scheduled(entry, context));
        }
        let launched = self.launched.filter(|_| self.launched_beads.contains(&entry.bead.id));
        let convoy = match launched {
            // A bead that was given up or called off comes back by a person's word only.
            Some(_) if work.verdict.is_some() || state.taken_off(entry) => None,
            Some(id) => state.convoys.get(id),
            None => state.feeder(entry),
        };
        convoy.map(|convoy| self.fed(entry, convoy, launched.is_some()))
    }

    fn running(&mut self, entry: &'a BeadEntry, dispatch: &'a Dispatch) -> Unit<'a> {
        let context = self.state.context(&dispatch.context);
        let before = context.map_or(0, already_done);
        let ran = dispatch.running_at.map_or(0, |since| millis_between(since, self.now));
        let class = self.class(dispatch.lane.clone(), dispatch.limits());
        let estimate = match context {
            Some(context) => self.estimate(Alike::of_request(&entry.bead, &context.fields)),
            None => self.estimate(Alike::of(&entry.bead, &dispatch.rig, None)),
        };
        let failures = context.map_or(0, |context| context.crashes);
        let key = context.map(|context| OrderKey::of(context, &self.state.settings, self.now));
        let unit = Self::new_unit(entry, Place::Running, class, estimate);
        Unit { key, done: before.saturating_add(ran), ran, failures, ..unit }
    }

    fn scheduled(&mut self, entry: &'a BeadEntry, context: &'a Context) -> Unit<'a> {
        let (state, fields) = (self.state, &context.fields);
        let task = context.task.as_ref().map(|task| (task.agent.as_str(), task.takes_worker));
        let (by_agent, executor) = (context.assign.is_some(), context.executor.as_deref());
        let likeness = Likeness {
            fields,
            kind: &entry.bead.kind,
            argv: entry.bead.argv.as_deref(),
            task,
            by_agent,
            executor,
        };
        let (class, estimate) = match &self.last {
            Some((last, class, estimate)) if last.is_like(&likeness) => (*class, *estimate),
            Some(_) | None => {
                let lane = Lane::of(context, state.settings.fairness);
                let class = self.class(lane, state.limits_for(context));
                let estimate = self.estimate(Alike::of_request(&entry.bead, fields));
                self.last = Some((likeness, class, estimate));
                (class, estimate)
            }
        };
        let prospect = state.prospect(entry, Some(context), false);
        let place = if prospect.never.is_some() { Place::Never } else { Place::Scheduled };
        Unit {
            key: Some(OrderKey::of(context, &state.settings, self.now)),
            done: already_done(context),
            release: self.time_of(prospect.from).unwrap_or(0),
            deadline: self.time_of(context.deadline).unwrap_or(NEVER),
            ahead: self.time_of(context.ahead_from).unwrap_or(NEVER),
            failures: context.crashes,
            ..Self::new_unit(entry, place, class, estimate)
        }
    }

    fn fed(&mut self, entry: &'a BeadEntry, convoy: &Convoy, launched: bool) -> Unit<'a> {
        let state = self.state;
        let bead = &entry.bead;
        let Some(rig) = state.rig_of(&bead.id) else {
            return Self::new_unit(entry, Place::Never, NONE, NONE);
        };
        let lane = Lane::named(state.settings.fairness, &rig.name, Some(&convoy.id), None);
        let by_agent = state.assign_of(&rig.name) != RigAssign::Off;
        let on_cluster = state.executor_for(None, &rig.name) == SLURM_EXECUTOR;
        let class = self.class(lane, Limit::of(&rig.name, None, None, by_agent, on_cluster));
        let formula = state.formula_for(bead, &rig.name, &SlingRequest::default());
        let alike = Alike::of(bead, &rig.name, formula.as_ref().map(crate::FormulaName::as_str));
        let estimate = self.estimate(alike);
        let prospect = state.prospect(entry, None, launched);
        let place = if prospect.never.is_some() { Place::Never } else { Place::Fed(sling_priority(bead)) };
        let release = self.time_of(prospect.from).unwrap_or(0);
        Unit { release, ..Self::new_unit(entry, place, class, estimate) }
    }

    fn new_unit(entry: &'a BeadEntry, place: Place, class: u32, estimate: u32) -> Unit<'a> {
        let id = &entry.bead.id;
        Unit {
            id,
            place,
            key: None,
            class,
            estimate,
            done: 0,
            ran: 0,
            release: 0,
            deadline: NEVER,
            ahead: NEVER,
            failures: 0,
            number: number_of(id.as_str()),
        }
    }

    fn time_of(&self, moment: Option<Timestamp>) -> Option<i64> {
        moment.map(|moment| moment.as_millis().saturating_sub(self.now.as_millis()).max(0))
    }

    fn estimate(&mut self, alike: Alike) -> u32 {
        if let Some(known) = self.known_estimates.get(&alike) {
            return *known;
        }
        let number = self.estimates.len() as u32;
        self.estimates.push(self.estimator.estimate(&alike));
        self.known_estimates.insert(alike, number);
        number
    }

    fn class(&mut self, lane: Lane, counts_against: impl Iterator<Item = Limit>) -> u32 {
        let lanes = self.lanes.len() as u32;
        let lane = *self.lanes.entry(lane).or_insert(lanes);
        let mut limits = [NONE; 5];
        for (place, limit) in limits.iter_mut().zip(counts_against) {
            *place = self.limit(limit);
        }
        let number = self.classes.len() as u32;
        *self.known_classes.entry((lane, limits)).or_insert_with(|| {
            self.classes.push(Class { lane, limits });
            number
        })
    }

    fn limit(&mut self, limit: Limit) -> u32 {
        if let Some(known) = self.known_limits.get(&limit) {
            return *known;
        }
        let number = self.limits.len() as u32;
        self.limits.push(limit.clone());
        self.known_limits.insert(limit, number);
        number
    }

    /// Notes what a unit waits for: its own blockers, and behind their doors those of its open parents.
    fn connect(&mut self, unit: u32, number: u32) {
        let state = self.state;
        let waits = match self.units[unit as usize].place {
            Place::Scheduled | Place::Fed(_) => true,
            Place::Running | Place::Finished | Place::Never => false,
        };
        if !state.beads.at(number).is_some_and(|entry| waits && entry.blocked) {
            return;
        }
        for on in state.open_blockers_at(number) {
            self.wait(unit, Some(on));
        }
        for parent in state.beads.ends(number).iter().filter(|end| end.is_parent()).map(|end| end.number()) {
            let open = state.beads.at(parent).filter(|parent| parent.blocked && !parent.bead.is_closed());
            if let Some(entry) = open {
                let door = self.door(parent, &entry.bead.id);
                self.waits[unit as usize] += 1;
                self.edges.push((door, unit));
            }
        }
    }

    fn door(&mut self, number: u32, parent: &BeadId) -> u32 {
        if let Some(known) = self.doors.get(&number) {
            return *known;
        }
        let door = self.waits.len() as u32;
        self.waits.push(0);
        self.doors.insert(number, door);
        for (_, on) in self.state.waits_for(parent) {
            self.wait(door, self.state.beads.number(&on));
        }
        door
    }

    /// What waits for a bead that is no unit waits for ever.
    fn wait(&mut self, node: u32, on: Option<u32>) {
        self.waits[node as usize] += 1;
        let unit = on.map_or(NONE, |number| self.by_number[number as usize]);
        if unit != NONE {
            self.edges.push((unit, node));
        }
    }

    fn finish(self) -> Model<'a> {
        let (state, now) = (self.state, self.now);
        let mut lanes = vec![(0, 0); self.lanes.len()];
        for (lane, number) in &self.lanes {
            lanes[*number as usize] = state.queue.lane(lane);
        }
        let rooms: Vec<_> = self.limits.iter().map(|limit| state.room(limit)).collect();
        let (offsets, waiting) = sorted_edges(&self.edges, self.waits.len());
        let paused_until = match &state.pause {
            None => 0,
            Some(pause) => self.time_of(pause.until).unwrap_or(NEVER),
        };
        let preferred = state.preferred().and_then(|id| state.beads.number(state.context(id)?.bead()));
        Model {
            state,
            now,
            paused_until,
            spawn_delay: i64::try_from(state.settings.spawn_delay.0).unwrap_or(i64::MAX),
            next_spawn: self.time_of(state.next_spawn_at()).unwrap_or(0),
            preferred: preferred.map_or(NONE, |number| self.by_number[number as usize]),
            aging: state.settings.aging,
            backoff: &state.settings.retry_crash.backoff,
            max_attempts: state.settings.retry_crash.max_attempts,
            caps: rooms.iter().map(|room| room.max.unwrap_or(u64::MAX)).collect(),
            active: rooms.iter().map(|room| room.active).collect(),
            units: self.units,
            classes: self.classes,
            estimates: self.estimates,
            limits: self.limits,
            lanes,
            waits: self.waits,
            offsets,
            waiting,
            by_number: self.by_number,
        }
    }
}

/// Edges by where they start: of node n, `ends[starts[n]..starts[n + 1]]`, in the order they were noted.
fn sorted_edges(edges: &[(u32, u32)], nodes: usize) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0_u32; nodes + 1];
    for (from, _) in edges {
        starts[*from as usize] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let mut ends = vec![0; edges.len()];
    for (from, to) in edges.iter().rev() {
        let start = &mut starts[*from as usize];
        *start -= 1;
        ends[*start as usize] = *to;
    }
    (starts, ends)
}
