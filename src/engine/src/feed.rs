//! Feeding: what an open, fed convoy tracks gets on the schedule as soon as it is ready. Every planning pass feeds
//! first, so whatever a close unblocked starts in the turn that saw the close, all of it, up to capacity. There is one
//! feeder, and a bead has one context: nothing can be dispatched twice.

use crate::bead::BeadEntry;
use crate::command::{SlingRequest, SlingResult};
use crate::context::CloseReason;
use crate::convoy::Convoy;
use crate::decide::{Asker, Kitchen};
use crate::state::State;
use crate::tx::Tx;
use crate::{BeadId, ConvoyId};

/// Who asks for a bead that a convoy feeds.
const FEEDER: &str = "convoy";

impl State {
    /// The convoy that puts a bead on the schedule once it is ready, if there is one.
    pub(crate) fn feeder(&self, entry: &BeadEntry) -> Option<&Convoy> {
        let convoy = self.convoys_tracking(&entry.bead.id).find(|convoy| convoy.is_fed())?;
        let wanted = entry.work.context.is_none() && entry.work.verdict.is_none();
        (wanted && !self.taken_off(entry)).then_some(convoy)
    }

    /// Whether a person cleared a bead from the schedule although its convoy wants it run: it comes back by a person's
    /// word only.
    pub(crate) fn taken_off(&self, entry: &BeadEntry) -> bool {
        let fed = self.convoys_tracking(&entry.bead.id).filter_map(|convoy| convoy.fed_since).max();
        let last = entry.work.last_context.as_ref().and_then(|id| self.contexts.get(id)?.closed.as_ref());
        let (Some(since), Some(last)) = (fed, last) else { return false };
        last.reason == CloseReason::Cleared && last.at >= since
    }

    /// Whether a convoy puts a bead on the schedule once it is ready.
    pub(crate) fn will_be_fed(&self, entry: &BeadEntry) -> bool {
        self.feeder(entry).is_some()
    }

    /// The convoy that wants a bead started now: nothing speaks against it but room.
    fn fed_by(&self, entry: &BeadEntry) -> Option<&Convoy> {
        self.feeder(entry).filter(|_| !self.has_reason_besides_room(entry, None))
    }

    /// Keeps the set of beads to be fed up to date after something about this one changed.
    pub(crate) fn refresh_hunger(&mut self, id: &BeadId) {
        if self.derive_hunger(id) {
            self.hungry.insert(id.clone());
        } else {
            self.hungry.remove(id);
        }
    }

    /// Whether the next pass is to feed this bead.
    pub(crate) fn derive_hunger(&self, id: &BeadId) -> bool {
        self.beads.get(id).is_some_and(|entry| self.fed_by(entry).is_some())
    }

    /// The beads that the next pass puts on the schedule.
    pub fn hungry(&self) -> impl Iterator<Item = &BeadId> {
        self.hungry.iter()
    }
}

impl Tx<'_> {
    /// Puts every bead that a convoy wants started on the schedule.
    pub(crate) fn feed(&mut self) {
        while let Some(bead) = self.state().hungry.first().cloned() {
            let convoy = self.state().bead(&bead).and_then(|entry| self.state().fed_by(entry));
            let convoy = convoy.map(|convoy| convoy.id.clone());
            let fed = convoy.map(|convoy| self.feed_one(&bead, &convoy, FEEDER));
            if fed.is_none_or(|result| result.context_id.is_none()) {
                debug_assert!(false, "{bead} is hungry but was refused");
                self.state_mut().hungry.remove(&bead);
            }
        }
    }

    /// Asks for one bead as its convoy would have it run.
    pub(crate) fn feed_one(&mut self, bead: &BeadId, convoy: &ConvoyId, actor: &str) -> SlingResult {
        let request = match self.state().convoy(convoy) {
            Some(convoy) => SlingRequest {
                merge: convoy.merge,
                base_branch: convoy.base_branch.clone(),
                owned: convoy.owned,
                ..SlingRequest::default()
            },
            None => SlingRequest::default(),
        };
        let asker = Asker { actor, kitchen: &Kitchen::default() };
        self.sling_into(&asker, bead, convoy, &request)
    }
}
