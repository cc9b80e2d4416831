//! The safety scan: compares what the indexes say with what the records give, a slice of beads at a time, so that it
//! never holds up a dispatch. It should never find a difference; if it does, it repairs and records it.

use std::ops::Bound;

use crate::bead::BeadEntry;
use crate::state::State;
use crate::town::TownEvent;
use crate::tx::Tx;
use crate::{BeadId, Violation};

impl State {
    /// What the indexes of one bead get wrong, if anything.
    fn difference(&self, entry: &BeadEntry) -> Option<String> {
        let id = &entry.bead.id;
        let blockers = self.count_open_blockers(id);
        if entry.open_blockers != blockers {
            return Some(format!("{id}: {} open blockers, counted {blockers}", entry.open_blockers));
        }
        if entry.blocked != self.derive_blocked(id) {
            return Some(format!("{id}: blocked {} is wrong", entry.blocked));
        }
        if entry.work.verdict != self.settled.get(id).copied() {
            return Some(format!("{id}: its verdict is not indexed"));
        }
        if self.hungry.contains(id) != self.derive_hunger(id) {
            return Some(format!("{id}: whether its convoy wants it started is wrong"));
        }
        let context = entry.work.context.as_ref().and_then(|c| self.context(c))?;
        let queued = self.is_ready(&context.id);
        (queued != (self.could_start(context) && context.sent.is_none()))
            .then(|| format!("{id}: queued {queued} is wrong"))
    }
}

impl Tx<'_> {
    /// Looks at `count` beads after `from`, and says after which to go on; none when the last was seen. Contexts of
    /// beads that were closed or taken are closed on the way, beads that dead workers left behind released, and those
    /// forgotten whose time is up.
    pub fn scan(&mut self, from: Option<&BeadId>, count: usize) -> Option<BeadId> {
        let after = from.cloned().map_or(Bound::Unbounded, Bound::Excluded);
        let slice: Vec<BeadId> =
            self.state().beads.ids_in((after, Bound::Unbounded)).take(count).cloned().collect();
        // Nothing happens to those at rest.
        let awake: Vec<&BeadId> = slice.iter().filter(|id| !self.state().beads.is_at_rest(id)).collect();
        for id in &awake {
            self.close_if_stale(id);
            self.recover_hook(id, None);
        }
        if from.is_none() {
            self.retire_convoys();
        }
        self.retire_beads(&slice);
        let different = awake.iter().find_map(|id| self.state().difference(self.state().bead(id)?));
        let slots = self.state().check_slots().err().filter(|_| from.is_none());
        if let Some(difference) = different.or(slots.as_ref().map(Violation::to_string)) {
            self.emit(TownEvent::Repaired { difference });
        }
        slice.last().filter(|_| slice.len() == count).cloned()
    }
}
