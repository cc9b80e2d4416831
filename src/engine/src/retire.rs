//! What a town forgets. A bead of its own that is closed goes when `results.ttl` is over, with its requests, attempts and
//! logs, and so does a closed convoy. Nothing goes that others count on: a bead waits for those that depend
//! on it, for its children, for an open parent and for every convoy that tracks it. What a workspace shows is the
//! workspace's to forget.

use std::collections::BTreeSet;

use crate::queue::Lane;
use crate::state::State;
use crate::town::TownEvent;
use crate::tx::Tx;
use crate::{BeadId, ConvoyId, DispatchId, Millis, Timestamp};

/// So many are forgotten by one decision: about a millisecond's worth.
const AT_ONCE: usize = 500;

impl State {
    /// How long results are kept.
    pub(crate) fn ttl(&self) -> Millis {
        self.settings.results_ttl.max(Millis::seconds(1))
    }

    /// Whether a bead is closed, with nothing going on about it, and its time is up.
    fn is_over(&self, number: u32, now: Timestamp) -> bool {
        self.forgotten_from(number).is_some_and(|closed| closed.after(self.ttl().duration()) <= now)
    }

    /// Whether others count on a bead, those in `going` aside.
    fn is_counted_on(&self, number: u32, going: &BTreeSet<u32>) -> bool {
        let number = Some(number);
        let mut holders = self.dependents.of(number).chain(self.children.of(number));
        holders.any(|holder| !going.contains(&holder))
            || self.tracking.of(number).next().is_some()
            || self.open_parents_of(number).next().is_some()
    }

    fn open_parents_of(&self, number: Option<u32>) -> impl Iterator<Item = u32> {
        let ends = number.into_iter().flat_map(|number| self.beads.ends(number));
        let parents = ends.filter(|end| end.is_parent()).map(|end| end.number());
        parents.filter(|parent| self.beads.counts(*parent).is_some() && !self.beads.is_closed_at(*parent))
    }

    /// Forgets what was retired.
    pub(crate) fn apply_retired(&mut self, beads: &[BeadId], convoys: &[ConvoyId]) {
        for id in convoys {
            self.forget_convoy(id);
        }
        for id in beads {
            let served: Vec<(Lane, u64)> =
                self.dispatches_of(id).map(|attempt| (attempt.lane.clone(), attempt.order)).collect();
            for (lane, order) in served {
                let before = self.served_before.entry(lane).or_default();
                *before = order.max(*before);
            }
            self.forget_bead(id);
        }
    }
}

impl Tx<'_> {
    /// Forgets those of these beads whose time is up, and what only they kept.
    pub(crate) fn retire_beads(&mut self, looked_at: &[BeadId]) {
        let (state, now) = (self.state(), self.now());
        let numbers = looked_at.iter().filter_map(|id| state.beads.number(id));
        let mut pending: Vec<u32> = numbers.filter(|number| state.is_over(*number, now)).collect();
        let (mut going, mut beads) = (BTreeSet::new(), Vec::new());
        while let Some(number) = pending.pop() {
            if going.len() == AT_ONCE {
                break;
            }
            if state.is_over(number, now) && !state.is_counted_on(number, &going) && going.insert(number) {
                beads.push(state.beads.name(number).clone());
                pending.extend(state.beads.ends(number).iter().map(|end| end.number()));
            }
        }
        if beads.is_empty() {
            return;
        }
        let attempts = beads.iter().flat_map(|id| state.dispatches_of(id));
        let workers: Vec<DispatchId> =
            attempts.filter(|it| !it.is_action()).map(|it| it.id.clone()).collect();
        self.emit(TownEvent::Retired { beads, convoys: Vec::new(), workers });
    }

    /// Forgets convoys that have been closed for long.
    pub(crate) fn retire_convoys(&mut self) {
        let (state, now) = (self.state(), self.now());
        let ttl = state.ttl().duration();
        let over = state
            .convoys
            .values()
            .filter(|convoy| convoy.closed.as_ref().is_some_and(|closed| closed.at.after(ttl) <= now));
        let convoys: Vec<ConvoyId> = over.take(AT_ONCE).map(|convoy| convoy.id.clone()).collect();
        if !convoys.is_empty() {
            self.emit(TownEvent::Retired { beads: Vec::new(), convoys, workers: Vec::new() });
        }
    }
}
