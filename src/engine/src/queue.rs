//! The ready queue: every context that could start if there were room, in the order it would.
//!
//! Contexts form classes (same lane, same limits). A lane offers the best head of its classes; the lane with the
//! fewest running, then the one served longest ago, goes first. A class whose limit is full waits on that
//! limit's list, outside its lane, and returns when the limit frees: it never blocks the others.

mod class;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use class::Class;

use crate::capacity::Limit;
use crate::context::Context;
use crate::settings::{Fairness, Settings};
use crate::tidy::close_up;
use crate::{ContextId, ConvoyId, Millis, RigName, Timestamp};

/// What the lanes of agents of the HTTP API begin with.
const OF_AGENTS: &str = "http ";

/// Whose queue a context stands in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lane(pub String);

impl Lane {
    /// The lane of a context under the configured fairness; tasks stand in those of their agents in any case.
    pub(crate) fn of(context: &Context, fairness: Fairness) -> Self {
        if let Some(task) = &context.task {
            return Self::of_agent(&task.agent);
        }
        let fields = &context.fields;
        Self::named(fairness, &fields.target_rig, fields.convoy.as_ref(), fields.agent.as_deref())
    }

    /// The lane of an agent of the HTTP API.
    pub(crate) fn of_agent(agent: &str) -> Self {
        Self(format!("{OF_AGENTS}{agent}"))
    }

    fn is_of_agent(&self) -> bool {
        self.0.starts_with(OF_AGENTS)
    }

    /// The lane of a request with this rig, convoy and agent.
    pub(crate) fn named(
        fairness: Fairness,
        rig: &RigName,
        convoy: Option<&ConvoyId>,
        agent: Option<&str>,
    ) -> Self {
        Self(match fairness {
            Fairness::Town => "town".to_owned(),
            Fairness::Rig => format!("rig {rig}"),
            Fairness::Convoy => match convoy {
                Some(convoy) => format!("convoy {convoy}"),
                None => "town".to_owned(),
            },
            Fairness::Agent => match agent {
                Some(agent) => format!("agent {agent}"),
                None => "town".to_owned(),
            },
        })
    }
}

/// Contexts that count against the same limits and stand in the same lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassKey {
    lane: Lane,
    limits: Vec<Limit>,
}

impl ClassKey {
    pub(crate) fn of(context: &Context, settings: &Settings, limits: impl Iterator<Item = Limit>) -> Self {
        Self { lane: Lane::of(context, settings.fairness), limits: limits.collect() }
    }
}

/// Where a context stands in its lane; smaller is sooner. Ageing is linear, hence static.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderKey {
    rank: i64,
    enqueued_at: i64,
    order: u64,
}

impl OrderKey {
    pub(crate) fn of(context: &Context, settings: &Settings, now: Timestamp) -> Self {
        let enqueued_at = context.fields.enqueued_at.as_millis();
        let key = match &context.task {
            None => Self::new(context.priority, enqueued_at, context.order, settings.aging),
            Some(task) => Self::of_task(task.priority, enqueued_at, context.order, settings.aging),
        };
        if context.ahead_from.is_some_and(|from| from <= now) { key.ahead() } else { key }
    }

    /// The place of a request that was not pushed out.
    pub(crate) fn new(priority: u8, enqueued_at: i64, order: u64, aging: Option<Millis>) -> Self {
        let priority = i64::from(priority);
        let rank = match aging {
            None => -priority,
            Some(interval) => {
                let interval = i64::try_from(interval.0).unwrap_or(i64::MAX);
                enqueued_at.saturating_sub(priority.saturating_mul(interval))
            }
        };
        Self { rank, enqueued_at, order }
    }

    /// The place of a task, whose numbers mean the opposite: lower is sooner.
    fn of_task(priority: i64, enqueued_at: i64, order: u64, aging: Option<Millis>) -> Self {
        let rank = match aging {
            // One above the rank that is kept for the head of the lane.
            None => priority.max(i64::MIN + 1),
            Some(interval) => {
                let interval = i64::try_from(interval.0).unwrap_or(i64::MAX);
                enqueued_at.saturating_add(priority.saturating_mul(interval))
            }
        };
        Self { rank, enqueued_at, order }
    }

    /// The same at the head of the lane.
    pub(crate) fn ahead(self) -> Self {
        Self { rank: i64::MIN, ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct LaneState {
    running: u64,
    served: u64,
    /// How many stand in it, also those whose limits are full.
    waiting: u64,
    /// The place of the first of them.
    first: Option<OrderKey>,
    heads: BTreeSet<(OrderKey, Arc<ClassKey>)>,
}

impl LaneState {
    /// Where the lane stands among those that offer something.
    fn place(&self, lane: &Lane) -> Option<(u64, u64, OrderKey, Lane)> {
        let (best, _) = self.heads.first()?;
        Some((self.running, self.served, *best, lane.clone()))
    }
}

/// Where a context stands: its class, which many share, its order there and its priority.
type Standing = (Arc<ClassKey>, OrderKey, u8);

/// The ready queue of the town.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    places: BTreeMap<ContextId, Standing>,
    classes: BTreeMap<Arc<ClassKey>, Class>,
    lanes: BTreeMap<Lane, LaneState>,
    /// Lanes that offer something, in the order they are served; equal ones by what they offer.
    serving: BTreeSet<(u64, u64, OrderKey, Lane)>,
    waiting: BTreeMap<Limit, BTreeSet<Arc<ClassKey>>>,
    /// Classes that need no worker.
    without_worker: usize,
    /// Lanes of tasks in which somebody stands.
    busy_task_lanes: BTreeSet<Lane>,
}

impl Queue {
    /// How many contexts could start if there were room.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn contains(&self, id: &ContextId) -> bool {
        self.places.contains_key(id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &ContextId> {
        self.places.keys()
    }

    /// Gives back the room that lists keep for more to come.
    pub(crate) fn tidy(&mut self) {
        close_up(&mut self.places);
        self.classes.values_mut().for_each(Class::tidy);
    }

    /// Puts a context where it belongs, also if it stands elsewhere.
    pub(crate) fn insert(&mut self, id: &ContextId, class: ClassKey, order: OrderKey, priority: u8) {
        let known = self.classes.get_key_value(&class).map(|(known, _)| Arc::clone(known));
        let place = (known.unwrap_or_else(|| Arc::new(class)), order, priority);
        if self.places.get(id) == Some(&place) {
            return;
        }
        self.remove(id);
        let class = &place.0;
        self.withdraw_head(class);
        if !self.classes.contains_key(class) && !class.limits.contains(&Limit::Town) {
            self.without_worker += 1;
        }
        if class.lane.is_of_agent() && !self.busy_task_lanes.contains(&class.lane) {
            self.busy_task_lanes.insert(class.lane.clone());
        }
        self.change_lane(&class.lane, |lane| {
            lane.waiting += 1;
            lane.first = Some(lane.first.map_or(order, |first| first.min(order)));
        });
        let members = self.classes.entry(Arc::clone(class)).or_default();
        members.insert(order, priority, id.clone());
        self.offer_head(class);
        self.places.insert(id.clone(), place);
    }

    pub(crate) fn remove(&mut self, id: &ContextId) {
        let Some((class, order, priority)) = self.places.remove(id) else { return };
        self.withdraw_head(&class);
        if let Some(members) = self.classes.get_mut(&class) {
            members.remove(&order, priority);
            if members.is_empty() {
                if let Some(limit) = members.waits_on.take() {
                    self.forget_waiting(&limit, &class);
                }
                self.classes.remove(&class);
                if !class.limits.contains(&Limit::Town) {
                    self.without_worker -= 1;
                }
            }
        }
        self.leave_lane(&class.lane, order);
        self.offer_head(&class);
    }

    /// The context that starts next, given which limits have room. It stays in the queue until its start is
    /// recorded.
    pub(crate) fn pick(&mut self, has_room: impl Fn(&Limit) -> bool) -> Option<ContextId> {
        loop {
            let (.., lane) = self.serving.first()?;
            let (_, class) = self.lanes.get(lane)?.heads.first()?;
            let class = Arc::clone(class);
            let full = class.limits.iter().find(|limit| !has_room(limit)).cloned();
            match full {
                Some(full) => self.wait_on(class, full),
                None => return self.classes.get(&class)?.head().map(|(_, id)| id.clone()),
            }
        }
    }

    /// The context that stands before all others, whether or not there is room for it.
    pub(crate) fn head(&self) -> Option<&ContextId> {
        let (.., lane) = self.serving.first()?;
        let (_, class) = self.lanes.get(lane)?.heads.first()?;
        self.classes.get(class)?.head().map(|(_, id)| id)
    }

    /// Whether everybody who is ready stands in this lane.
    pub(crate) fn has_only(&self, lane: &Lane) -> bool {
        self.classes.keys().all(|class| class.lane == *lane)
    }

    /// The best context of an explicit set, whatever its lane, that has room.
    pub(crate) fn pick_among<'a>(
        &self,
        wanted: impl Iterator<Item = &'a ContextId>,
        has_room: impl Fn(&Limit) -> bool,
    ) -> Option<ContextId> {
        let places = wanted.filter_map(|id| self.places.get(id).map(|place| (id, place)));
        let fits = places.filter(|(_, (class, ..))| class.limits.iter().all(&has_room));
        fits.min_by_key(|(_, (_, order, _))| *order).map(|(id, _)| id.clone())
    }

    /// The most urgent context of each class, by priority and then as they stand in their lanes.
    pub(crate) fn most_urgent(&self) -> Vec<(u8, ContextId)> {
        let mut heads: Vec<_> = self.classes.values().filter_map(Class::most_urgent).collect();
        heads.sort_unstable_by_key(|(priority, order, _)| (Reverse(*priority), **order));
        heads.into_iter().map(|(priority, _, id)| (priority, id.clone())).collect()
    }

    /// A limit has room again: what waited for it comes back.
    pub(crate) fn limit_freed(&mut self, limit: &Limit) {
        for class in self.waiting.remove(limit).unwrap_or_default() {
            if let Some(members) = self.classes.get_mut(&class) {
                members.waits_on = None;
            }
            self.offer_head(&class);
        }
    }

    pub(crate) fn lane_started(&mut self, lane: &Lane, served: u64) {
        self.change_lane(lane, |state| {
            state.running += 1;
            state.served = state.served.max(served);
        });
    }

    pub(crate) fn lane_ended(&mut self, lane: &Lane) {
        self.change_lane(lane, |state| state.running = state.running.saturating_sub(1));
    }

    fn change_lane(&mut self, lane: &Lane, change: impl FnOnce(&mut LaneState)) {
        let state = self.lanes.entry(lane.clone()).or_default();
        if let Some(place) = state.place(lane) {
            self.serving.remove(&place);
        }
        change(state);
        if let Some(place) = state.place(lane) {
            self.serving.insert(place);
        }
    }

    fn head_of(&self, class: &ClassKey) -> Option<(OrderKey, Arc<ClassKey>)> {
        let (class, members) = self.classes.get_key_value(class)?;
        if members.waits_on.is_some() {
            return None;
        }
        members.head().map(|(order, _)| (*order, Arc::clone(class)))
    }

    fn withdraw_head(&mut self, class: &ClassKey) {
        if let Some(head) = self.head_of(class) {
            self.change_lane(&class.lane, |lane| {
                lane.heads.remove(&head);
            });
        }
    }

    fn offer_head(&mut self, class: &ClassKey) {
        if let Some(head) = self.head_of(class) {
            self.change_lane(&class.lane, |lane| {
                lane.heads.insert(head);
            });
        }
    }

    fn wait_on(&mut self, class: Arc<ClassKey>, limit: Limit) {
        self.withdraw_head(&class);
        if let Some(members) = self.classes.get_mut(&class) {
            members.waits_on = Some(limit.clone());
        }
        self.waiting.entry(limit).or_default().insert(class);
    }

    fn forget_waiting(&mut self, limit: &Limit, class: &ClassKey) {
        if let Some(classes) = self.waiting.get_mut(limit) {
            classes.remove(class);
            if classes.is_empty() {
                self.waiting.remove(limit);
            }
        }
    }

    /// Notes when a lane was last served, for those of which no dispatch is left that would tell.
    pub(crate) fn lane_served(&mut self, lane: &Lane, served: u64) {
        self.change_lane(lane, |state| state.served = state.served.max(served));
    }

    /// Forgets a lane that nobody stands in.
    pub(crate) fn forget_lane(&mut self, lane: &Lane) {
        if self.lanes.get(lane).is_some_and(|state| state.running == 0 && state.waiting == 0) {
            self.lanes.remove(lane);
        }
    }

    /// Whether somebody stands there who needs room under this limit.
    pub(crate) fn counts_against(&self, limit: &Limit) -> bool {
        self.classes.keys().any(|class| class.limits.contains(limit))
    }

    /// Whether something waits for which the limits on workers do not count.
    pub(crate) fn offers_work_without_worker(&self) -> bool {
        self.without_worker > 0
    }

    /// How many tasks would start before this one, and it, if all could start one after the other; none if it does not
    /// wait for room alone.
    pub(crate) fn position(&self, id: &ContextId) -> Option<u64> {
        let (own, order, _) = self.places.get(id)?;
        let ours = self.lanes.get(&own.lane)?;
        let ahead_in_lane: u64 = self.classes_of(&own.lane).map(|class| class.ahead_of(order)).sum();
        // Lanes are served level by level: whoever has fewest running. Of two on the same level the one that joined it
        // with more running goes first, because it was served longer ago.
        let level = ours.running + ahead_in_lane;
        let others = self.busy_task_lanes.iter().filter(|lane| **lane != own.lane);
        let before = others.filter_map(|lane| self.lanes.get(lane)).map(|state| {
            let below = level.saturating_sub(state.running).min(state.waiting);
            let turn = (Reverse(state.running), state.served).cmp(&(Reverse(ours.running), ours.served));
            let goes_first = turn.then_with(|| state.first.cmp(&ours.first)).is_lt();
            below + u64::from(goes_first && state.running <= level && below < state.waiting)
        });
        Some(1 + ahead_in_lane + before.sum::<u64>())
    }

    fn classes_of(&self, lane: &Lane) -> impl Iterator<Item = &Class> {
        let first = ClassKey { lane: lane.clone(), limits: Vec::new() };
        let lane = lane.clone();
        self.classes.range(first..).take_while(move |(class, _)| class.lane == lane).map(|(_, class)| class)
    }

    /// Somebody who stood there in a lane does so no longer.
    fn leave_lane(&mut self, lane: &Lane, place: OrderKey) {
        let was_first = self.lanes.get(lane).is_some_and(|state| state.first == Some(place));
        let first = was_first
            .then(|| self.classes_of(lane).filter_map(|class| class.head().map(|(order, _)| *order)).min());
        self.change_lane(lane, |state| {
            state.waiting = state.waiting.saturating_sub(1);
            state.first = first.unwrap_or(state.first);
        });
        if self.lanes.get(lane).is_some_and(|state| state.waiting == 0) {
            self.busy_task_lanes.remove(lane);
        }
    }

    /// How many of a lane run, and when it was last served.
    pub(crate) fn lane(&self, lane: &Lane) -> (u64, u64) {
        self.lanes.get(lane).map_or((0, 0), |lane| (lane.running, lane.served))
    }

    /// The limits some class waits on; each must really be full.
    pub(crate) fn waited_limits(&self) -> impl Iterator<Item = &Limit> {
        self.waiting.keys()
    }

    /// Whether both would serve the same contexts in the same order.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        let used = |queue: &Self| -> Vec<(Lane, u64, u64)> {
            let lanes = queue.lanes.iter().filter(|(_, lane)| lane.served > 0);
            lanes.map(|(name, lane)| (name.clone(), lane.running, lane.served)).collect()
        };
        self.places == other.places && used(self) == used(other)
    }

    /// Internal consistency, for the invariant checker.
    pub(crate) fn check(&self) -> Result<(), String> {
        let members: usize = self.classes.values().map(Class::len).sum();
        if members != self.places.len() {
            return Err(format!("queue holds {members} items but {} places", self.places.len()));
        }
        for (key, class) in &self.classes {
            let offered = self.lanes.get(&key.lane).is_some_and(|lane| {
                class.head().is_some_and(|(order, _)| lane.heads.contains(&(*order, key.clone())))
            });
            let waits =
                class.waits_on.as_ref().is_some_and(|l| self.waiting.get(l).is_some_and(|w| w.contains(key)));
            if offered == waits {
                return Err(format!("class {key:?}: offered {offered}, waiting {waits}"));
            }
        }
        let places: BTreeSet<_> = self.lanes.iter().filter_map(|(lane, state)| state.place(lane)).collect();
        if places != self.serving {
            return Err(format!("lanes {places:?}, but serving {:?}", self.serving));
        }
        Ok(())
    }
}
