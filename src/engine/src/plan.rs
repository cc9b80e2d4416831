//! The one plan: how many start, and which. Launch, close events, freed slots, retries, manual runs and the
//! safety scan all end here: everything ready starts, up to capacity.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::capacity::Limit;
use crate::context::Context;
use crate::dispatch::{Dispatch, DispatchEvent, LOCAL_EXECUTOR};
use crate::money::Usd;
use crate::queue::Lane;
use crate::state::State;
use crate::tx::Tx;
use crate::{BeadId, ContextId, DispatchId, Millis, RigName, Timestamp};

/// What limited a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanReason {
    /// Nothing was ready.
    None,
    /// Everything ready starts.
    Ready,
    /// The batch size.
    Batch,
    /// A capacity limit.
    Capacity,
    /// Dispatch is paused.
    Paused,
}

/// How many start, how many wait, and what decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// How many start.
    pub to_dispatch: u64,
    /// How many ready ones wait.
    pub skipped: u64,
    /// What decided it.
    pub reason: PlanReason,
}

/// `min(capacity, batch, ready)`. No capacity limit and a batch of 0 both mean "as many as there are".
pub fn plan(capacity: Option<i64>, batch: u32, ready: u64) -> Plan {
    let capacity = capacity.map_or(u64::MAX, |free| u64::try_from(free).unwrap_or(0));
    let batch = if batch == 0 { u64::MAX } else { u64::from(batch) };
    let (to_dispatch, reason) = if ready == 0 {
        (0, PlanReason::None)
    } else if capacity == 0 {
        (0, PlanReason::Capacity)
    } else if capacity < batch && capacity < ready {
        (capacity, PlanReason::Capacity)
    } else if ready < batch && ready < capacity {
        (ready, PlanReason::Ready)
    } else {
        (batch.min(ready), if batch == u64::MAX { PlanReason::Ready } else { PlanReason::Batch })
    };
    Plan { to_dispatch, skipped: ready - to_dispatch, reason }
}

impl Plan {
    /// With a spawn delay one starts at a time, and only when its time has come: whatever is put off stays in the queue,
    /// where pause, hold and park reach it.
    fn spaced(self, next_spawn: Option<Timestamp>, now: Timestamp) -> Self {
        let Some(next) = next_spawn else { return self };
        let most = u64::from(next <= now);
        if self.to_dispatch <= most {
            return self;
        }
        let put_off = self.to_dispatch - most;
        Self { to_dispatch: most, skipped: self.skipped + put_off, reason: PlanReason::Batch }
    }
}

/// Which contexts a pass may start.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// All that are ready.
    Everything,
    /// Only these, for a direct sling without a daemon.
    Only(&'a BTreeSet<ContextId>),
}

/// One start that a pass decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The bead.
    pub id: BeadId,
    /// The context.
    pub context_id: ContextId,
    /// The dispatch.
    pub dispatch_id: DispatchId,
    /// Where.
    pub rig: RigName,
}

/// What a pass did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// What starts.
    pub starts: Vec<Start>,
    /// How many ready ones wait.
    pub skipped: u64,
    /// What limited it.
    pub reason: PlanReason,
}

impl State {
    /// How many contexts are ready, room aside.
    pub fn ready_count(&self) -> usize {
        self.queue.len() + self.roster.offers.len()
    }

    /// Whether a context would start now if there were room.
    pub fn is_ready(&self, context: &ContextId) -> bool {
        self.queue.contains(context) || self.roster.offers.contains(context)
    }

    /// When the next start may be made; none without a spawn delay.
    pub fn next_spawn_at(&self) -> Option<Timestamp> {
        let delay = self.settings.spawn_delay;
        (delay.0 > 0).then(|| self.last_dispatch_at.map_or(self.clock, |last| last.after(delay.duration())))
    }

    /// How many a pass would start.
    fn count(&self, scope: Scope<'_>, batch: u32) -> Plan {
        let ready = match scope {
            Scope::Everything => self.queue.len(),
            Scope::Only(ids) => ids.iter().filter(|id| self.queue.contains(id)).count(),
        };
        if self.pause.is_some() {
            return Plan { to_dispatch: 0, skipped: ready as u64, reason: PlanReason::Paused };
        }
        // What takes no worker starts however many are busy: then the limits of each decide, one by one.
        let town = Some(Limit::Town).filter(|_| !self.queue.offers_work_without_worker());
        let free = town.and_then(|town| self.room(&town).free());
        let free = if self.host_gate.is_some() { Some(0) } else { free };
        plan(free.map(|n| i64::try_from(n).unwrap_or(i64::MAX)), batch, ready as u64)
    }

    fn next_to_start(&mut self, scope: Scope<'_>) -> Option<ContextId> {
        let preferred = self.preferred().cloned().filter(|id| match scope {
            Scope::Everything => true,
            Scope::Only(ids) => ids.contains(id),
        });
        let mut queue = std::mem::take(&mut self.queue);
        let has_room = |limit: &Limit| self.room(limit).has_room();
        let next = queue.pick_among(preferred.iter(), has_room).or_else(|| match scope {
            Scope::Everything => queue.pick(has_room),
            Scope::Only(ids) => queue.pick_among(ids.iter(), has_room),
        });
        self.queue = queue;
        next
    }

    /// The executor that a context runs by: its own, else its rig's, else the configured one.
    pub(crate) fn executor_of<'a>(&'a self, context: &'a Context) -> &'a str {
        self.executor_for(context.executor.as_deref(), &context.fields.target_rig)
    }

    /// The same for what is not scheduled yet.
    pub(crate) fn executor_for<'a>(&'a self, asked: Option<&'a str>, rig: &RigName) -> &'a str {
        let of_rig = || self.rigs.get(rig).and_then(|rig| rig.executor.as_deref());
        let configured = || self.settings.executor(rig).map(String::as_str);
        asked.or_else(of_rig).or_else(configured).unwrap_or(LOCAL_EXECUTOR)
    }

    pub(crate) fn start_of(&self, context: &ContextId, now: Timestamp) -> Option<Dispatch> {
        let context = self.context(context)?;
        let attempt = self.beads.get(context.bead())?.work.attempts + 1;
        let rig = context.fields.target_rig.clone();
        Some(Dispatch {
            id: DispatchId::new(context.bead().clone(), attempt),
            context: context.id.clone(),
            account: context.fields.account.clone(),
            lane: Lane::of(context, self.settings.fairness),
            task: context.task.clone(),
            claim: None,
            executor: self.executor_of(context).to_owned(),
            order: self.seq.next().0,
            started_at: now,
            running_at: None,
            pid: None,
            lined_up: false,
            step: context.resume.after.clone(),
            checkpoint: None,
            session: None,
            worktree: None,
            progress: None,
            last_line: None,
            steps: Vec::new(),
            cost: Usd::ZERO,
            tokens: 0,
            metered: Usd::ZERO,
            metered_tokens: 0,
            said: None,
            heard_at: None,
            stuck: false,
            got_on_at: None,
            yield_asked: None,
            stop: None,
            ended: None,
            rig,
        })
    }

    /// What a pass would start, without starting it.
    pub fn preview(&self, batch: u32) -> Pass {
        let mut copy = self.clone();
        // A preview tells of the whole pass, which a spawn delay only stretches.
        copy.settings.spawn_delay = Millis(0);
        let at = self.clock;
        Tx::new(&mut copy, at).pass(Scope::Everything, Some(batch))
    }
}

impl Tx<'_> {
    /// One planning pass: does what is due, feeds the convoys, gives agents their orders, then starts everything ready, up to capacity and batch.
    pub fn pass(&mut self, scope: Scope<'_>, batch: Option<u32>) -> Pass {
        self.tick();
        match scope {
            Scope::Everything => {
                self.feed();
                self.assign();
            }
            Scope::Only(_) => {}
        }
        let batch = batch.unwrap_or(self.state().settings.batch_size);
        let planned = self.state().count(scope, batch).spaced(self.state().next_spawn_at(), self.now());
        let mut starts: Vec<Start> = Vec::new();
        while (starts.len() as u64) < planned.to_dispatch {
            let Some(context) = self.state_mut().next_to_start(scope) else { break };
            let Some(dispatch) = self.state().start_of(&context, self.now()) else { break };
            starts.push(Start {
                id: dispatch.id.bead().clone(),
                context_id: context,
                dispatch_id: dispatch.id.clone(),
                rig: dispatch.rig.clone(),
            });
            self.emit(DispatchEvent::Started { dispatch: Box::new(dispatch) });
        }
        let short = planned.to_dispatch - starts.len() as u64;
        let reason = if short > 0 { PlanReason::Capacity } else { planned.reason };
        Pass { starts, skipped: planned.skipped + short, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_is_the_minimum_of_capacity_batch_and_ready() {
        let cases = [
            // capacity, batch, ready -> started, skipped, reason
            ((Some(5), 1, 0), (0, 0, PlanReason::None)),
            ((Some(0), 1, 3), (0, 3, PlanReason::Capacity)),
            ((Some(-2), 1, 3), (0, 3, PlanReason::Capacity)),
            ((Some(5), 1, 3), (1, 2, PlanReason::Batch)),
            ((Some(2), 3, 5), (2, 3, PlanReason::Capacity)),
            ((Some(5), 3, 2), (2, 0, PlanReason::Ready)),
            ((Some(3), 3, 3), (3, 0, PlanReason::Batch)),
            ((Some(2), 0, 5), (2, 3, PlanReason::Capacity)),
            ((Some(9), 0, 5), (5, 0, PlanReason::Ready)),
            ((Some(5), 0, 5), (5, 0, PlanReason::Ready)),
            ((None, 0, 5), (5, 0, PlanReason::Ready)),
            ((None, 2, 5), (2, 3, PlanReason::Batch)),
        ];
        for ((capacity, batch, ready), (to_dispatch, skipped, reason)) in cases {
            let planned = plan(capacity, batch, ready);
            assert_eq!(planned, Plan { to_dispatch, skipped, reason }, "{capacity:?} {batch} {ready}");
        }
    }
}
