//! Passes that a spawn delay stretches, in a process that does not dispatch by itself: a passing command stays until
//! everything its pass is to start has had its turn. What is put off stays in the queue meanwhile, where a pause
//! reaches it.

use std::collections::BTreeSet;

use yard_engine::ContextId;
use yard_engine::plan::{Pass, Scope};

use super::{Core, Owed};
use crate::input::ReplyTo;
use crate::starts::Promise;

/// A pass that goes on.
pub(super) struct SlowPass {
    reply_to: ReplyTo,
    promise: Promise,
    /// Only these, for a sling.
    only: Option<BTreeSet<ContextId>>,
    /// How many are still to be started.
    left: u64,
}

impl Core {
    /// Keeps a promise back while a spawn delay puts off some of its starts; hands back one that need not wait.
    pub(super) fn stretch(&mut self, reply_to: ReplyTo, promise: Promise) -> Option<(ReplyTo, Promise)> {
        let delayed = self.store.state().settings().spawn_delay.0 > 0;
        if !delayed || self.role.dispatches_by_itself() {
            return Some((reply_to, promise));
        }
        let only = promise.put_off(self.store.state());
        let left = only.as_ref().map_or_else(|| promise.unstarted(), |only| only.len() as u64);
        if left == 0 || self.inside_worker {
            return Some((reply_to, promise));
        }
        self.slow.push(SlowPass { reply_to, promise, only, left });
        None
    }

    /// Starts the next of a stretched pass when its time has come; what is complete is owed an answer.
    pub(super) fn go_on_slowly(&mut self, owed: &mut Vec<Owed>) {
        if self.slow.is_empty() || self.store.state().next_spawn_at().is_some_and(|t| t > self.now) {
            return;
        }
        let mut slow = self.slow.remove(0);
        let Pass { starts, .. } = self.store.decide(self.now, |tx| {
            tx.pass(slow.only.as_ref().map_or(Scope::Everything, Scope::Only), Some(1))
        });
        let given_up = if starts.is_empty() { slow.left } else { 0 };
        slow.left -= given_up + starts.len() as u64;
        slow.promise.went_on(starts, given_up);
        if slow.left == 0 {
            owed.push(Owed::Promise(slow.reply_to, slow.promise));
        } else {
            self.slow.insert(0, slow);
        }
    }
}
