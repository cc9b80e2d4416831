//! Many beads that nobody has heard of, taken over at once, as from the first reading of a workspace. The state is the
//! same as if they had come one by one; the indexes are brought up to date once, when all of them are there.

use std::sync::Arc;

use super::{Bead, BeadEntry, BeadStatus, Counts, Work, WorkFields};
use crate::state::State;
use crate::{BeadId, Seq, Timestamp};

impl State {
    /// Whether nothing here knows these ids but dependencies on them.
    pub(crate) fn are_unheard_of(&self, beads: &[Arc<Bead>]) -> bool {
        let names_none = self.beads.numbers() == 0 && self.gone.len() == 0;
        names_none || beads.iter().all(|bead| self.is_unheard_of(&bead.id))
    }

    fn is_unheard_of(&self, id: &BeadId) -> bool {
        let number = self.beads.number(id);
        let is_known = number.is_some_and(|number| {
            self.beads.at(number).is_some() || self.tracking.of(Some(number)).next().is_some()
        });
        !is_known && !self.gone.contains_key(id)
    }

    /// Folds in that beads appeared, one event each: all of them unheard of, and each once.
    pub(crate) fn apply_arrivals(&mut self, beads: &[Arc<Bead>], at: Timestamp) {
        if beads.is_empty() {
            return;
        }
        let first = self.seq.next();
        self.seq = Seq(self.seq.0 + beads.len() as u64);
        self.clock = self.clock.max(at);
        // Whoever was named before has a number below this.
        let named_before = self.beads.numbers() as u32;
        let (clock, alarms) = (self.clock, &mut self.alarms);
        let entries = beads.iter().enumerate().map(|(place, bead)| {
            if let Some(until) = bead.defer_until.filter(|until| *until > clock) {
                alarms.insert((until, bead.id.clone()));
            }
            entry(bead, Seq(first.0 + place as u64), at)
        });
        let numbers = self.beads.insert_all(beads.iter().map(|bead| &bead.id), entries);
        self.dirty_beads.extend(numbers.iter().copied());
        for number in &numbers {
            self.index_edges(*number);
            let count = self.count_open_blockers_at(*number);
            self.beads.set_counts(*number, Counts { open_blockers: count, blocked: count > 0 });
        }
        let has_parent = |number: &&u32| self.beads.ends(**number).iter().any(|end| end.is_parent());
        for number in numbers.iter().filter(has_parent).copied().collect::<Vec<_>>() {
            let blocked = self.derive_blocked_at(number);
            if let Some(counts) = self.beads.counts(number) {
                self.beads.set_counts(number, Counts { blocked, ..counts });
            }
        }
        self.watch_arrivals_for_cycles(&numbers);
        for (number, bead) in numbers.into_iter().zip(beads).filter(|(number, _)| *number < named_before) {
            self.tell_those_before(number, bead, named_before);
        }
        let offers_all = self.offers_all_that_is_ready();
        for bead in beads {
            if matches!(bead.status, BeadStatus::InProgress | BeadStatus::Hooked) {
                self.note_hands(&bead.id);
            }
            if offers_all {
                self.refresh_hunger(&bead.id);
            }
        }
        self.ring_due_timers();
    }

    /// Looking at each costs more than one look at all when they are a good part of the town.
    fn watch_arrivals_for_cycles(&mut self, numbers: &[u32]) {
        if numbers.len() < self.beads.numbers() / 8 {
            for number in numbers {
                let id = self.beads.name(*number).clone();
                self.watch_for_cycles(&id);
            }
        } else {
            self.cycles.doubt();
        }
    }

    /// Beads that were there before and had named this one find somebody behind the name.
    fn tell_those_before(&mut self, number: u32, bead: &Bead, named_before: u32) {
        let was_before = |holder: &u32| *holder < named_before;
        let children = self.children.of(Some(number)).any(|child| was_before(&child));
        let waiting: Vec<BeadId> = if bead.is_closed() {
            let waiting = self.dependents.of(Some(number)).filter(was_before);
            waiting.map(|holder| self.beads.name(holder).clone()).collect()
        } else {
            Vec::new()
        };
        for id in &waiting {
            self.recount_blockers(id);
        }
        if children {
            self.spread_blocked(&bead.id);
        }
    }
}

/// The bead's place in the state; what follows from it for others is left to the caller.
fn entry(bead: &Arc<Bead>, seq: Seq, at: Timestamp) -> BeadEntry {
    let is_claimed = matches!(bead.status, BeadStatus::InProgress | BeadStatus::Hooked);
    BeadEntry {
        bead: Arc::clone(bead),
        work: Work::new([seq].into_iter().collect(), WorkFields::default()),
        claimed_since: is_claimed.then_some(at),
        claimed_by_worker: false,
        claimed_for: None,
        gone: false,
        open_blockers: 0,
        blocked: false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::{BeadEvent, DepKind, Dependency};
    use super::*;
    use crate::event::Recorded;

    const IDS: usize = 12;

    /// A bead as (status, dependencies, whether it is put off).
    type Sketch = (usize, Vec<(usize, usize)>, bool);

    fn sketches() -> impl Strategy<Value = Vec<Sketch>> {
        vec((0..4_usize, vec((0..IDS + 2, 0..4_usize), 0..4), any::<bool>()), IDS)
    }

    fn id(number: usize) -> BeadId {
        BeadId::parse(&format!("y-{number:02}")).expect("valid")
    }

    fn bead(number: usize, (status, edges, put_off): &Sketch) -> Arc<Bead> {
        let kinds = ["blocks", "parent-child", "related", "waits-for"];
        let statuses = ["open", "closed", "in_progress", "tombstone"];
        let edges = edges.iter().map(|(on, kind)| Dependency::new(id(*on), DepKind::from(kinds[*kind])));
        let bead = serde_json::json!({
            "id": id(number), "title": "a bead", "created_at": "2026-11-16T09:30:00Z",
            "status": statuses[*status],
            "defer_until": put_off.then_some("2026-11-17T09:30:00Z"),
        });
        let mut bead: Bead = serde_json::from_value(bead).expect("a bead");
        bead.dependencies = super::super::one_per_pair(edges.collect());
        Arc::new(bead)
    }

    fn observe(state: &mut State, bead: &Arc<Bead>, at: Timestamp) {
        let event = BeadEvent::Observed { bead: Arc::clone(bead) }.into();
        state.apply(&Recorded { seq: state.seq().next(), at, event });
    }

    proptest! {
        #[test]
        fn beads_that_come_at_once_are_as_if_they_had_come_one_by_one(
            sketches in sketches(), before in 0..=IDS, order in Just((0..IDS).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let beads: Vec<Arc<Bead>> = order.iter().map(|number| bead(*number, &sketches[*number])).collect();
            let [earlier, later] = [1_000, 2_000].map(Timestamp::from_millis);
            let mut at_once = State::default();
            beads[..before].iter().for_each(|bead| observe(&mut at_once, bead, earlier));
            // Whoever knows that there are none looks at each that comes.
            at_once.may_cycle();
            let mut one_by_one = at_once.clone();
            at_once.apply_arrivals(&beads[before..], later);
            beads[before..].iter().for_each(|bead| observe(&mut one_by_one, bead, later));
            prop_assert_eq!(at_once.clone().take_changed_records(), one_by_one.clone().take_changed_records());
            prop_assert_eq!(at_once.may_cycle(), one_by_one.may_cycle());
            prop_assert_eq!(at_once.check_same_as(&one_by_one).map_err(|e| e.to_string()), Ok(()));
            prop_assert_eq!(at_once.check_indexes().map_err(|e| e.to_string()), Ok(()));
        }
    }
}
