//! Watching what runs: when a live dispatch has used up its time, passed its deadline, or been silent for too long. Each
//! has one place in the index of looks, which says when something about it becomes due.

use std::collections::{BTreeMap, BTreeSet};

use crate::dispatch::Dispatch;
use crate::state::State;
use crate::{DispatchId, Millis, Timestamp};

/// What may become due of a running dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// The deadline of its request.
    Deadline,
    /// The end of the active time its request may take, over all attempts.
    HardCap,
    /// So long without a sign of life that a person should know.
    Silence,
}

impl State {
    /// What becomes due of a dispatch, the first of it first. Nothing more of one that is ending already.
    pub(crate) fn dues(&self, dispatch: &Dispatch) -> Vec<(Timestamp, Due)> {
        let Some(running_at) = dispatch.running_at else { return Vec::new() };
        if dispatch.ended.is_some() || dispatch.stop.is_some() {
            return Vec::new();
        }
        let context = self.context(&dispatch.context);
        let deadline = context.and_then(|context| context.deadline).map(|at| (at, Due::Deadline));
        if dispatch.is_action() {
            // It uses no worker, writes nothing, and ends by its deadline.
            return deadline.into_iter().collect();
        }
        let left = self.active_time_left(dispatch);
        let cap = left.map(|left| (running_at.after(left.duration()), Due::HardCap));
        let patience = Some(self.settings.stuck_after).filter(|span| span.0 > 0 && !dispatch.stuck);
        // The silence of a claim is its agent's, which loses its lease by it.
        let patience = patience.filter(|_| dispatch.claim.is_none());
        let heard = dispatch.heard_at.map_or(running_at, |heard| heard.max(running_at));
        let silence = patience.map(|span| (heard.after(span.duration()), Due::Silence));
        let mut dues: Vec<_> = [deadline, cap, silence].into_iter().flatten().collect();
        dues.sort_by_key(|(at, _)| *at);
        dues
    }

    /// What earlier attempts of its request left of the active time; none if there is no cap.
    pub fn active_time_left(&self, dispatch: &Dispatch) -> Option<Millis> {
        let cap = Some(self.settings.hard_cap).filter(|cap| cap.0 > 0)?;
        let used = self.context(&dispatch.context).map_or(0, |context| context.active.0);
        Some(Millis(cap.0.saturating_sub(used)))
    }

    /// Whether so much active time leaves none for another attempt.
    pub(crate) fn used_up(&self, active: Millis) -> bool {
        let cap = self.settings.hard_cap;
        cap.0 > 0 && active >= cap
    }

    /// When this dispatch must be looked at next.
    pub(crate) fn derive_look(&self, id: &DispatchId) -> Option<Timestamp> {
        let dispatch = self.dispatch(id)?;
        self.dues(dispatch).first().map(|(at, _)| *at)
    }

    /// Keeps the index of looks up to date after something about a dispatch changed.
    pub(crate) fn watch(&mut self, id: &DispatchId) {
        self.looks.set(id, self.derive_look(id));
    }

    /// Live dispatches that were or would be reported as silent at this time, and since when they are. Whoever can look
    /// at what they wrote may know better.
    pub fn silent_dispatches(&self, now: Timestamp) -> Vec<(DispatchId, Timestamp)> {
        let due = self.looks.due(now).filter_map(|id| self.dispatch(id));
        let silent = due.filter(|dispatch| {
            self.dues(dispatch).iter().any(|(at, due)| *at <= now && *due == Due::Silence)
        });
        let stuck = self.live_dispatches().filter(|dispatch| dispatch.stuck);
        silent
            .chain(stuck)
            .map(|d| (d.id.clone(), d.heard_at.or(d.running_at).unwrap_or(d.started_at)))
            .collect()
    }
}

/// Who is to be looked at when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Looks<K> {
    by_time: BTreeSet<(Timestamp, K)>,
    by_id: BTreeMap<K, Timestamp>,
}

impl<K> Default for Looks<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_id: BTreeMap::new() }
    }
}

impl<K: Clone + Ord> Looks<K> {
    pub(crate) fn set(&mut self, id: &K, at: Option<Timestamp>) {
        let old = match at {
            Some(at) => self.by_id.insert(id.clone(), at),
            None => self.by_id.remove(id),
        };
        if old == at {
            return;
        }
        if let Some(old) = old {
            self.by_time.remove(&(old, id.clone()));
        }
        if let Some(at) = at {
            self.by_time.insert((at, id.clone()));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.by_time.clear();
        self.by_id.clear();
    }

    /// When the next look is due.
    pub(crate) fn first(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Those whose look is due.
    pub(crate) fn due(&self, now: Timestamp) -> impl Iterator<Item = &K> {
        self.by_time.iter().take_while(move |(at, _)| *at <= now).map(|(_, id)| id)
    }

    pub(crate) fn of(&self, id: &K) -> Option<Timestamp> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }
}
