//! What live dispatches occupy: slots under every limit, their lanes, and their places among those that may have to give
//! way.

use std::cmp::Reverse;

use super::Dispatch;
use crate::preempt::VictimKey;
use crate::state::State;

impl State {
    pub(super) fn hold_slot(&mut self, dispatch: &Dispatch) {
        self.live.insert(dispatch.id.clone());
        self.victims.insert(self.victim_key(dispatch));
        for limit in dispatch.limits() {
            *self.active.entry(limit).or_default() += 1;
        }
        self.queue.lane_started(&dispatch.lane, dispatch.order);
    }

    pub(super) fn free_slot(&mut self, dispatch: &Dispatch) {
        self.live.remove(&dispatch.id);
        self.victims.remove(&self.victim_key(dispatch));
        for limit in dispatch.limits() {
            if let Some(active) = self.active.get_mut(&limit) {
                *active = active.saturating_sub(1);
                if *active == 0 {
                    self.active.remove(&limit);
                }
            }
            self.queue.limit_freed(&limit);
        }
        self.queue.lane_ended(&dispatch.lane);
    }

    /// Where a live dispatch stands among those that may have to give way: least urgent first, then the last started.
    fn victim_key(&self, dispatch: &Dispatch) -> VictimKey {
        let priority = self.context(&dispatch.context).map_or(0, |context| context.priority);
        (priority, Reverse(dispatch.order), dispatch.id.clone())
    }

    /// Rebuilds what live dispatches occupy, for `rebuild_indexes`.
    pub(crate) fn reoccupy_slots(&mut self) {
        self.live.clear();
        self.active.clear();
        self.victims.clear();
        self.looks.clear();
        let dispatches = std::mem::take(&mut self.dispatches);
        for dispatch in dispatches.values() {
            self.hold_slot(dispatch);
            if !dispatch.is_live() {
                self.free_slot(dispatch);
            }
        }
        self.dispatches = dispatches;
        let forgotten = self.served_before.iter().map(|(lane, served)| (lane, *served));
        let untold =
            self.lanes_served_at_rest().chain(forgotten).map(|(lane, served)| (lane.clone(), served));
        for (lane, served) in untold.collect::<Vec<_>>() {
            self.queue.lane_served(&lane, served);
        }
        for id in self.live.clone() {
            self.watch(&id);
        }
    }
}
