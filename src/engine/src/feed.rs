//! Feeding: what an open, fed convoy tracks gets on the schedule as soon as it is ready, and so does everything of a rig
//! whose work is offered to agents without being asked for. Every planning pass feeds
//! first, so whatever a close unblocked starts in the turn that saw the close, all of it, up to capacity. There is one
//! feeder, and a bead has one context: nothing can be dispatched twice.

use crate::bead::BeadEntry;
use crate::command::{SlingRequest, SlingResult};
use crate::context::CloseReason;
use crate::convoy::Convoy;
use crate::decide::{Asker, Kitchen};
use crate::settings::RigAssign;
use crate::state::State;
use crate::tx::Tx;
use crate::{BeadId, ConvoyId, RigName, Timestamp};

/// Who asks for a bead that a convoy feeds.
const FEEDER: &str = "convoy";
/// Who asks for a bead that is offered to agents because it is ready.
const OFFERER: &str = "rig";

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
        let fed = fed.or_else(|| self.offered_when_ready(entry).then_some(Timestamp::default()));
        let last = entry.work.last_context.as_ref().and_then(|id| self.context(id)?.closed.as_ref());
        let (Some(since), Some(last)) = (fed, last) else { return false };
        last.reason == CloseReason::Cleared && last.at >= since
    }

    /// Whether some rig offers everything that is ready to agents.
    pub(crate) fn offers_all_that_is_ready(&self) -> bool {
        self.settings.rigs.values().any(|rig| rig.assign == RigAssign::Ready)
    }

    /// Whether a bead is offered to agents once it is ready, without anybody asking for it.
    fn offered_when_ready(&self, entry: &BeadEntry) -> bool {
        self.offers_all_that_is_ready()
            && entry.bead.is_slingable()
            && self.rig_of(&entry.bead.id).is_some_and(|rig| self.assign_of(&rig.name) == RigAssign::Ready)
    }

    /// Whether the work of a rig is given to agents.
    pub(crate) fn assign_of(&self, rig: &RigName) -> RigAssign {
        self.settings.rigs.get(rig).map(|rig| rig.assign).unwrap_or_default()
    }

    /// Whether a bead gets on the schedule by itself once it is ready.
    pub(crate) fn will_be_fed(&self, entry: &BeadEntry) -> bool {
        let unasked = || {
            let wanted = entry.work.context.is_none() && entry.work.verdict.is_none();
            wanted && self.offered_when_ready(entry) && !self.taken_off(entry)
        };
        self.feeder(entry).is_some() || unasked()
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
        if self.beads.is_at_rest(id) {
            return false;
        }
        let wanted = self.beads.get(id).filter(|entry| self.will_be_fed(entry));
        wanted.is_some_and(|entry| !self.has_reason_besides_room(entry, None))
    }

    /// The beads that the next pass puts on the schedule.
    pub fn hungry(&self) -> impl Iterator<Item = &BeadId> {
        self.hungry.iter()
    }
}

impl Tx<'_> {
    /// Puts every bead on the schedule that a convoy wants started, or that is offered when it is ready.
    pub(crate) fn feed(&mut self) {
        while let Some(bead) = self.state().hungry.first().cloned() {
            let convoy = self.state().bead(&bead).and_then(|entry| self.state().feeder(entry));
            let convoy = convoy.map(|convoy| convoy.id.clone());
            let feeder = if convoy.is_some() { FEEDER } else { OFFERER };
            let fed = self.feed_one(&bead, convoy.as_ref(), feeder);
            if fed.context_id.is_none() {
                debug_assert!(false, "{bead} is hungry but was refused");
                self.state_mut().hungry.remove(&bead);
            }
        }
    }

    /// Asks for one bead as its convoy would have it run, if it has one.
    pub(crate) fn feed_one(&mut self, bead: &BeadId, convoy: Option<&ConvoyId>, actor: &str) -> SlingResult {
        let request = match convoy.and_then(|convoy| self.state().convoy(convoy)) {
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
