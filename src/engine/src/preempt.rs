//! Preemption: work that is much more urgent may push other work out, one at a time. A cycle asks the victim to give
//! way, asks again after a while, then ends it; it is looked at again before every step, and over as soon as it is moot.
//!
//! Nothing starves: a worker is left alone for `preemption.min_run` at first, twice as long after each preemption that
//! cost it everything since its last step or checkpoint; and work that was pushed out moves to the head of its lane when
//! it has waited ten times as long.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::capacity::Limit;
use crate::context::Context;
use crate::dispatch::Dispatch;
use crate::state::State;
use crate::{BeadId, ContextId, DispatchId, Millis, Timestamp};

/// Least urgent first, then the last started, which loses least.
pub(crate) type VictimKey = (u8, Reverse<u64>, DispatchId);

/// Work that was pushed out waits so many times `preemption.min_run` before it goes ahead of everything else.
const WAITS: u64 = 10;
/// What is doubled, at least.
const LEAST_DOUBLED: u64 = 1000;
/// Doubling stops here.
const MOST_DOUBLINGS: u32 = 20;
/// How often a victim is asked before it is ended.
pub const ROUNDS: u8 = 2;

/// A preemption under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycle {
    /// Who is to give way.
    pub victim: DispatchId,
    /// To this bead.
    pub bead: BeadId,
    /// Its context.
    pub context: ContextId,
    /// How often the victim was asked.
    pub round: u8,
    /// Until when it may take to give way.
    pub until: Timestamp,
    /// A person asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
}

/// How a preemption came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The victim gave way by itself.
    Cooperative,
    /// It was ended.
    Forced,
    /// It came to its own end first.
    Finished,
    /// There was no reason for it any more.
    Withdrawn,
}

/// What can happen to a preemption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum PreemptionEvent {
    /// The victim is asked to give way, for the first or the second time.
    #[serde(rename = "preemption.requested")]
    Requested {
        /// Who, to whom, until when.
        cycle: Cycle,
        /// How much more urgent the candidate is.
        delta: i16,
        /// Who did it.
        actor: String,
    },
    /// It is over.
    #[serde(rename = "preemption.ended")]
    Ended {
        /// Who was to give way.
        victim: DispatchId,
        /// To this bead.
        bead: BeadId,
        /// How it came out.
        method: Method,
        /// Why.
        why: String,
    },
}

/// What may be said about preemption at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// There is nobody to push out, and will be nobody unless something changes.
    Nothing,
    /// There will be, when somebody has run long enough.
    At(Timestamp),
    /// This one, for that one.
    Now(DispatchId, ContextId),
}

/// Whether a priority exceeds another by the threshold. One of 100 is never reached, which switches preemption off.
fn is_more_urgent(priority: u8, other: u8, threshold: u32) -> bool {
    u32::from(priority.saturating_sub(other)) >= threshold
}

impl State {
    pub(crate) fn apply_preemption(&mut self, event: &PreemptionEvent, at: Timestamp) {
        match event {
            PreemptionEvent::Requested { cycle, .. } => {
                self.set_yield(&cycle.victim, Some(at));
                self.preemption = Some(cycle.clone());
                self.remember(cycle.victim.bead());
            }
            PreemptionEvent::Ended { victim, method, .. } => {
                self.set_yield(victim, None);
                if matches!(method, Method::Cooperative | Method::Forced) {
                    self.remember_lost_turn(victim, at);
                }
                let cycle = self.preemption.take();
                self.promised = match method {
                    Method::Cooperative | Method::Forced => cycle.map(|cycle| cycle.context),
                    Method::Finished | Method::Withdrawn => None,
                };
                self.remember(victim.bead());
            }
        }
        self.touch_town();
    }

    /// Whoever gave way before his turn came keeps his context, which remembers that as that of the next attempt would.
    fn remember_lost_turn(&mut self, victim: &DispatchId, at: Timestamp) {
        let waiting = self.dispatch(victim).filter(|dispatch| dispatch.running_at.is_none());
        let Some(context) = waiting.map(|dispatch| dispatch.context.clone()) else { return };
        let ahead_from = Some(self.goes_ahead_from(at));
        self.change_context(&context, |context| {
            context.pushed_out = context.pushed_out.saturating_add(1);
            context.ahead_from = ahead_from;
        });
    }

    fn set_yield(&mut self, victim: &DispatchId, since: Option<Timestamp>) {
        if let Some(dispatch) = self.dispatch_mut(victim).filter(|d| d.is_live()) {
            dispatch.yield_asked = since;
            self.touch_dispatch(victim);
        }
    }

    /// The preemption under way.
    pub fn preemption(&self) -> Option<&Cycle> {
        self.preemption.as_ref()
    }

    /// When something about preemption becomes due, while this process dispatches.
    pub fn next_preemption(&self) -> Option<Timestamp> {
        match &self.preemption {
            Some(cycle) => {
                let asked = self.dispatch(&cycle.victim).is_some_and(|victim| victim.stop.is_none());
                asked.then_some(cycle.until)
            }
            None => match self.preemption_outlook(self.clock) {
                Outlook::At(at) => Some(at),
                // What could begin now is begun by the next pass, whatever brings that about.
                Outlook::Nothing | Outlook::Now(..) => None,
            },
        }
    }

    /// Whom the most urgent waiting work may push out.
    pub(crate) fn preemption_outlook(&self, now: Timestamp) -> Outlook {
        let Some((least, ..)) = self.victims.first() else { return Outlook::Nothing };
        if self.preemption.is_some() || self.is_stopped() {
            return Outlook::Nothing;
        }
        let threshold = self.settings.preemption.threshold;
        let mut soonest: Option<Timestamp> = None;
        for (priority, id) in self.queue.most_urgent() {
            if !is_more_urgent(priority, *least, threshold) {
                break;
            }
            let Some(context) = self.context(&id) else { continue };
            let full = self.full_limits(context);
            if full.is_empty() || self.is_being_freed(&full) {
                continue;
            }
            for (other, _, victim) in &self.victims {
                if !is_more_urgent(priority, *other, threshold) {
                    break;
                }
                let Some(dispatch) = self.dispatch(victim) else { continue };
                let Some(from) =
                    self.may_give_way_from(dispatch).filter(|_| self.would_free(dispatch, &full))
                else {
                    continue;
                };
                if from <= now {
                    return Outlook::Now(victim.clone(), id);
                }
                soonest = Some(soonest.map_or(from, |at| at.min(from)));
            }
        }
        soonest.map_or(Outlook::Nothing, Outlook::At)
    }

    /// Whether nothing at all may be started.
    pub(crate) fn is_stopped(&self) -> bool {
        self.pause.is_some() || self.host_gate.is_some()
    }

    /// The limits that keep a context from starting.
    pub(crate) fn full_limits(&self, context: &Context) -> Vec<Limit> {
        self.limits_for(context).filter(|limit| !self.room(limit).has_room()).collect()
    }

    /// Whether the end of a dispatch would make room under every one of these limits.
    pub(crate) fn would_free(&self, dispatch: &Dispatch, full: &[Limit]) -> bool {
        let held: BTreeSet<Limit> = dispatch.limits().collect();
        full.iter().all(|limit| {
            let room = self.room(limit);
            held.contains(limit) && room.max.is_none_or(|max| room.active <= max)
        })
    }

    /// Whether somebody is on the way out whose end makes room: then nobody else has to go.
    fn is_being_freed(&self, full: &[Limit]) -> bool {
        let mut ending = self.live_dispatches().filter(|dispatch| dispatch.stop.is_some());
        ending.any(|dispatch| self.would_free(dispatch, full))
    }

    /// From when on a dispatch may be pushed out; none if it may not, or begins in a moment. For one that waits for its turn
    /// on a cluster, that turn is what it would lose.
    fn may_give_way_from(&self, dispatch: &Dispatch) -> Option<Timestamp> {
        let waits_since = dispatch.starts_elsewhere().then_some(dispatch.started_at);
        let since = dispatch.running_at.or(waits_since).filter(|_| !dispatch.should_yield())?;
        Some(since.after(self.protection(dispatch).duration()))
    }

    /// How long a dispatch is left alone: longer each time its work was for nothing.
    fn protection(&self, dispatch: &Dispatch) -> Millis {
        let in_vain = self.context(&dispatch.context).map_or(0, |context| context.pushed_out);
        let least = self.settings.preemption.min_run.0;
        // Also who need not be left alone at first is so after a preemption for nothing, or he would never get on.
        let least = if in_vain > 0 { least.max(LEAST_DOUBLED) } else { least };
        Millis(least.saturating_mul(1 << in_vain.min(MOST_DOUBLINGS)))
    }

    /// When work that is pushed out now goes ahead of everything else.
    pub(crate) fn goes_ahead_from(&self, now: Timestamp) -> Timestamp {
        let least = self.settings.preemption.min_run.0.max(1);
        now.after(Millis(least.saturating_mul(WAITS)).duration())
    }

    /// Why a preemption makes no sense any more, if so.
    pub(crate) fn is_moot(&self, cycle: &Cycle) -> Option<String> {
        let Cycle { victim, bead, context, by_hand, .. } = cycle;
        let Some(dispatch) = self.dispatch(victim).filter(|d| d.is_live()) else {
            return Some(format!("{victim} has ended"));
        };
        if self.is_stopped() {
            return Some("nothing may start at present".to_owned());
        }
        let waiting = self.context(context).filter(|c| c.is_open() && self.is_ready(&c.id));
        let Some(waiting) = waiting else { return Some(format!("{bead} does not wait for room any more")) };
        let full = self.full_limits(waiting);
        if full.is_empty() {
            return Some(format!("there is room for {bead}"));
        }
        if !self.would_free(dispatch, &full) {
            return Some(format!("the end of {victim} would not make room for {bead}"));
        }
        if *by_hand {
            return None;
        }
        let own = self.context(&dispatch.context).map_or(0, |context| context.priority);
        if !is_more_urgent(waiting.priority, own, self.settings.preemption.threshold) {
            return Some(format!("{bead} is not much more urgent any more"));
        }
        self.is_being_freed(&full).then(|| format!("there will be room for {bead} anyway"))
    }

    /// The context that goes before all others while it waits: a slot is, or was, being freed for it.
    pub(crate) fn preferred(&self) -> Option<&ContextId> {
        let promised = self.promised.as_ref();
        let preferred = promised.or_else(|| self.preemption.as_ref().map(|cycle| &cycle.context))?;
        self.is_ready(preferred).then_some(preferred)
    }
}
