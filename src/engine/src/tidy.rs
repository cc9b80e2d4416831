//! Lists that take no more room than what is in them. Ordered lists that grow at their end, as those of a queue do, stay
//! little more than half full; made anew they are full.

use std::collections::{BTreeMap, BTreeSet};

use crate::state::State;

impl State {
    /// Gives back the room that lists keep for more to come. It takes as long as going through them does, so it is for
    /// times when nothing else is to be done.
    pub fn tidy(&mut self) {
        close_up(&mut self.contexts);
        self.open_contexts = std::mem::take(&mut self.open_contexts).into_iter().collect::<BTreeSet<_>>();
        self.queue.tidy();
        self.beads.tidy();
    }

    /// How many things `tidy` goes through.
    pub fn things_to_tidy(&self) -> usize {
        self.contexts.len() + self.beads.len()
    }
}

/// Makes a list anew.
pub(crate) fn close_up<K: Ord, V>(list: &mut BTreeMap<K, V>) {
    *list = std::mem::take(list).into_iter().collect();
}
