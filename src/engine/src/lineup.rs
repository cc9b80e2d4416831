//! Next in line: a start that is decided before its slot is free, for the slot of a dispatch that runs. Work that takes
//! milliseconds would otherwise spend half its time waiting for the disk between the end of one and the start of the next.
//!
//! Promises: what is lined up runs only after the end of the dispatch it stands behind, in the same slot, so no limit is
//! ever exceeded; its id is its own from then on, whatever becomes of it; it can be called back as long as no worker has
//! taken it, and after whoever stands behind it; it stands behind nobody that is less urgent than anything that waits,
//! blocked or not; as soon as there is room for it elsewhere, or the run before it takes long, it is for the caller to call
//! it back. To everybody it is queued until the one before it has ended; that end makes it a dispatch like every
//! other. Two may stand behind one that runs, the second behind the first: while the disk takes longer than a run, one
//! would not be enough. There is a second only where all that is ready stands in one lane, because who comes after the first
//! would else depend on who runs then.

use std::collections::BTreeSet;

use crate::capacity::Limit;
use crate::context::Context;
use crate::dispatch::{Dispatch, DispatchEvent, LOCAL_EXECUTOR, StopReason};
use crate::state::State;
use crate::tx::Tx;
use crate::{ContextId, DispatchId, Timestamp};

impl State {
    /// What is next in line, with the dispatch that it stands behind.
    pub fn lined_up(&self) -> impl Iterator<Item = (&DispatchId, &Dispatch)> {
        self.lined.iter()
    }

    /// Who is next behind a dispatch, which runs or is in line itself.
    pub fn next_in_line(&self, after: &DispatchId) -> Option<&Dispatch> {
        self.lined.get(after)
    }

    /// A start that is lined up, and the dispatch it stands behind.
    fn place_in_line(&self, id: &DispatchId) -> Option<(&DispatchId, &Dispatch)> {
        self.lined.iter().find(|(_, dispatch)| dispatch.id == *id)
    }

    /// Behind whom somebody may be lined up: one that runs, or the first in line behind one, if all that waits is of its
    /// lane.
    fn may_be_followed(&self, id: &DispatchId) -> Option<&Dispatch> {
        let runs = |dispatch: &&Dispatch| {
            let is_ours = dispatch.has_worker() && dispatch.executor == LOCAL_EXECUTOR;
            dispatch.is_live() && is_ours && !dispatch.should_yield() && dispatch.task.is_none()
        };
        if let Some(running) = self.dispatch(id) {
            return Some(running).filter(runs);
        }
        let (before, first) = self.place_in_line(id)?;
        let stands_behind_a_run = self.dispatch(before).as_ref().is_some_and(runs);
        (stands_behind_a_run && self.queue.has_only(&first.lane)).then_some(first)
    }

    /// Whether one who is in line could start now, without waiting for anybody's end.
    pub fn finds_room(&self, next: &Dispatch) -> bool {
        next.limits().all(|limit| self.room(&limit).has_room())
    }

    /// Those who are first in line and had better not be, with the dispatches they stand behind: there is room for them, or
    /// for the second behind them, or the run before them began before that time and takes longer than was expected.
    pub fn stuck_in_line(&self, long_since: Timestamp) -> impl Iterator<Item = (&DispatchId, &Dispatch)> {
        self.lined_up().filter(move |(after, next)| {
            let Some(before) = self.dispatch(after) else { return false };
            let second = self.next_in_line(&next.id);
            before.started_at < long_since
                || self.finds_room(next)
                || second.is_some_and(|second| self.finds_room(second))
        })
    }

    /// How urgent the least urgent start is that is lined up.
    pub fn least_urgent_in_line(&self) -> Option<u8> {
        let contexts = self.lined.values().filter_map(|dispatch| self.contexts.get(&dispatch.context));
        contexts.map(|context| context.priority).min()
    }

    /// Whether nothing but the order of the queue decides who is next: no pause, delay or budget may come between.
    fn may_line_up(&self) -> bool {
        let settings = &self.settings;
        self.pause.is_none()
            && self.host_gate.is_none()
            && self.preemption.is_none()
            && self.promised.is_none()
            && settings.spawn_delay.0 == 0
            && settings.batch_size == 0
            && settings.aging.is_none()
            && settings.cost == crate::settings::CostSettings::default()
    }

    /// Who would start if this dispatch ran and ended now, as far as that is certain: the head of the queue, if the slot that
    /// becomes free is all it needs, and nothing that waits is more urgent.
    fn next_after(&self, before: &Dispatch) -> Option<ContextId> {
        let id = self.queue.head()?;
        let context = self.contexts.get(id)?;
        let freed: BTreeSet<Limit> = before.limits().collect();
        let fits = |limit: &Limit| {
            let room = self.room(limit);
            freed.contains(limit) && room.max.is_none_or(|max| room.active <= max)
        };
        let most_urgent = self.open_priorities.keys().next_back().copied().unwrap_or(0);
        let certain = self.limits_for(context).all(|limit| fits(&limit))
            && context.priority >= most_urgent
            && context.task.is_none()
            && context.deadline.is_none();
        certain.then(|| id.clone())
    }

    pub(crate) fn apply_lined_up(&mut self, dispatch: &Dispatch, after: &DispatchId) {
        let id = &dispatch.id;
        self.unqueue(&dispatch.context);
        if let Some(work) = self.work_mut(id.bead()) {
            work.attempts = work.attempts.max(id.attempt());
            work.lined = true;
        }
        self.touch_bead(id.bead());
        self.lined.insert(after.clone(), dispatch.clone());
        self.touch_town();
    }

    /// It is in line no longer, for one reason or the other.
    pub(crate) fn leave_line(&mut self, id: &DispatchId) {
        let after = self.place_in_line(id).map(|(after, _)| after.clone());
        let Some(dispatch) = after.and_then(|after| self.lined.remove(&after)) else { return };
        if let Some(work) = self.work_mut(id.bead()) {
            work.lined = false;
        }
        self.touch_bead(id.bead());
        self.refresh_bead(&dispatch.id.bead().clone());
        self.touch_town();
    }
}

impl Tx<'_> {
    /// Decides who follows in the slot of a dispatch that runs, or is next in line itself, if that is certain; whether
    /// somebody does.
    pub fn line_up(&mut self, after: &DispatchId) -> bool {
        let state = self.state();
        if !state.may_line_up() || state.lined.contains_key(after) {
            return false;
        }
        let Some(before) = state.may_be_followed(after) else { return false };
        let next = state.next_after(before).and_then(|context| state.start_of(&context, self.now()));
        let Some(dispatch) = next.filter(|dispatch| dispatch.executor == LOCAL_EXECUTOR) else {
            return false;
        };
        let dispatch = Box::new(Dispatch { lined_up: true, ..dispatch });
        self.emit(DispatchEvent::LinedUp { dispatch, after: after.clone() });
        true
    }

    /// Nobody has taken it, and nobody will: its context stands in the queue again. Whoever stood behind it was called
    /// back before.
    pub fn called_back(&mut self, id: &DispatchId) {
        if self.state().place_in_line(id).is_some() && self.state().next_in_line(id).is_none() {
            self.emit(DispatchEvent::CalledBack { id: id.clone() });
        }
    }

    /// The dispatch it stood behind has ended: the slot is its own. What was called off meanwhile is ended again, because
    /// its worker may be at it already.
    pub(crate) fn begin_next(&mut self, ended: &DispatchId) {
        let Some(dispatch) = self.state().lined.get(ended).cloned() else { return };
        let (id, context) = (dispatch.id.clone(), dispatch.context.clone());
        let order = self.state().seq().next().0;
        let dispatch = Box::new(Dispatch { started_at: self.now(), order, ..dispatch });
        self.emit(DispatchEvent::Started { dispatch });
        if !self.state().context(&context).is_some_and(Context::is_open) {
            self.worker_running(&id, None);
            self.terminate(&id, StopReason::UserCancelled, false, "scheduler");
        }
    }
}
