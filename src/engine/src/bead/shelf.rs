//! All beads of a town: found by id in one look, gone through in the order of their ids, and followed along their
//! dependencies without any look.
//!
//! Every id that was ever named here has a number, which it keeps: whoever walks the graph works on numbers, because
//! finding a bead by its id is what takes the time in large towns. Numbers follow from the order in which ids came, so
//! they decide nothing and are never shown.

use std::borrow::Borrow;
use std::collections::{BTreeSet, btree_set};
use std::hash::Hash;
use std::ops::{Index, RangeBounds};
use std::sync::Arc;

use smallvec::SmallVec;

use super::rest::{Packed, Rest};
use super::{Bead, BeadEntry, Dependency, End};
use crate::BeadId;
use crate::lookup::Numbers;

/// So many beads are looked at together when many come.
const AT_ONCE: usize = 16;

/// Beads by id. What belongs to a number stands in lists of their own, so that a walk goes only through what it needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beads {
    names: Names,
    entries: Vec<Place>,
    /// Those that are at rest, and what their records are packed with.
    pub(super) rest: Rest,
    /// The other ends of its dependencies, in the same order.
    ends: Vec<SmallVec<[End; 4]>>,
    closed: Vec<bool>,
    /// How many dependencies lead to a number: while one does, it belongs to its id.
    named: Vec<u32>,
    /// The ids of those that are there.
    ids: BTreeSet<BeadId>,
}

/// What is known of a number.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// Nobody has the bead.
    Empty,
    Awake(BeadEntry),
    /// Nobody is expected to look at it again.
    AtRest(Packed),
}

/// Every id that was named, by number.
#[derive(Debug, Clone, Default)]
struct Names {
    numbers: Numbers,
    ids: Vec<BeadId>,
    /// The ids with numbers below this came in their own order, as trackers write them.
    in_order: u32,
    /// Numbers whose ids were forgotten, for new ones.
    free: Vec<u32>,
}

impl Names {
    /// The number of an id, which is a new one if nobody named it before.
    #[inline]
    fn give_number(&mut self, id: &BeadId) -> u32 {
        let next = self.free.last().copied().unwrap_or(self.ids.len() as u32);
        let number = self.numbers.find_or_give(id, next, |number| &self.ids[number as usize]);
        if number != next {
            return number;
        }
        if self.free.pop().is_some() {
            self.ids[next as usize] = id.clone();
        } else {
            if self.in_order == next && self.ids.last().is_none_or(|last| last < id) {
                self.in_order += 1;
            }
            self.ids.push(id.clone());
        }
        number
    }

    /// Forgets an id; its number goes to the next new one.
    fn forget(&mut self, id: &BeadId, number: u32) {
        self.numbers.forget(id, |number| &self.ids[number as usize]);
        self.in_order = self.in_order.min(number);
        self.free.push(number);
    }

    /// The numbers of many ids, which are new ones if nobody named them before.
    fn give_numbers(&mut self, ids: &[&BeadId], numbers: &mut Vec<u32>) {
        self.numbers.guess_all(ids, numbers);
        for (id, number) in ids.iter().zip(numbers) {
            if self.ids.get(*number as usize) != Some(*id) {
                *number = self.give_number(id);
            }
        }
    }

    /// The numbers of ids that were named. Whoever asks for many mostly does so in their order, in which numbers follow
    /// each other too, and then nothing has to be looked up.
    fn find_all(&self, ids: &[&BeadId]) -> Vec<Option<u32>> {
        let mut next = 0;
        let find = |id: &&BeadId| {
            let is_next = next < self.in_order && self.ids[next as usize] == **id;
            let number = if is_next { Some(next) } else { self.find(*id) };
            next = number.map_or(next, |number| number + 1);
            number
        };
        ids.iter().map(find).collect()
    }

    #[inline]
    fn find<Id>(&self, id: &Id) -> Option<u32>
    where
        BeadId: Borrow<Id>,
        Id: Hash + Eq + ?Sized,
    {
        self.numbers.find(id, |number| &self.ids[number as usize])
    }

    fn reserve(&mut self, more: usize) {
        self.numbers.reserve(more, |number| &self.ids[number as usize]);
        self.ids.reserve(more);
    }
}

impl Beads {
    #[inline]
    pub(crate) fn get(&self, id: &BeadId) -> Option<&BeadEntry> {
        self.number(id).and_then(|number| self.at(number))
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: &BeadId) -> Option<&mut BeadEntry> {
        let number = self.number(id)?;
        self.at_mut(number)
    }

    /// The work bead, to be changed; events that share it keep it as it was. If the status or the dependencies change,
    /// `note_change` has to follow.
    pub(crate) fn record_mut(&mut self, id: &BeadId) -> Option<&mut Bead> {
        self.get_mut(id).map(|entry| Arc::make_mut(&mut entry.bead))
    }

    pub(crate) fn contains_key<Id>(&self, id: &Id) -> bool
    where
        BeadId: Borrow<Id>,
        Id: Hash + Eq + ?Sized,
    {
        self.names.find(id).is_some_and(|number| self.at(number).is_some())
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Gives back the room that lists keep for more to come.
    pub(crate) fn tidy(&mut self) {
        self.ids = std::mem::take(&mut self.ids).into_iter().collect();
        self.names.ids.shrink_to_fit();
        self.entries.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Puts a bead in, in place of the one with its id if there is one; says its number.
    pub(crate) fn insert(&mut self, entry: BeadEntry) -> u32 {
        let number = self.give_number(&entry.bead.id);
        if matches!(self.entries[number as usize], Place::Empty) {
            self.ids.insert(entry.bead.id.clone());
        }
        self.entries[number as usize] = Place::Awake(entry);
        self.note_change_at(number);
        number
    }

    /// Puts many beads with these ids in, each as `insert` does. They get their numbers before the ends of their
    /// dependencies do: beads that lie next to each other in memory then have numbers next to each other.
    pub(crate) fn insert_all<'a>(
        &mut self,
        ids: impl ExactSizeIterator<Item = &'a BeadId>,
        entries: impl Iterator<Item = BeadEntry>,
    ) -> Vec<u32> {
        let numbers = self.number_all(ids);
        let more = self.names.ids.len() - self.entries.len();
        self.entries.reserve(more);
        self.ends.reserve(more);
        self.closed.reserve(more);
        for (number, entry) in numbers.iter().zip(entries) {
            let is_closed = entry.bead.is_closed();
            // New numbers come in their order.
            if let Some(place) = self.entries.get_mut(*number as usize) {
                *place = Place::Awake(entry);
                self.closed[*number as usize] = is_closed;
            } else {
                self.entries.push(Place::Awake(entry));
                self.ends.push(SmallVec::new());
                self.closed.push(is_closed);
            }
        }
        self.ids.append(&mut numbers.iter().map(|number| self.name(*number).clone()).collect());
        self.note_all_ends(&numbers);
        numbers
    }

    fn number_all<'a>(&mut self, ids: impl ExactSizeIterator<Item = &'a BeadId>) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(ids.len());
        self.names.reserve(ids.len());
        let mut ids = ids.peekable();
        let mut some_numbers = Vec::new();
        while ids.peek().is_some() {
            let some: SmallVec<[&BeadId; 4 * AT_ONCE]> = ids.by_ref().take(4 * AT_ONCE).collect();
            self.names.give_numbers(&some, &mut some_numbers);
            numbers.extend_from_slice(&some_numbers);
        }
        numbers
    }

    pub(crate) fn remove(&mut self, id: &BeadId) -> Option<BeadEntry> {
        let number = self.number(id)?;
        self.wake_at(number);
        let Place::Awake(entry) = std::mem::replace(self.place_mut(number), Place::Empty) else {
            return None;
        };
        self.set_ends(number, SmallVec::new());
        self.closed[number as usize] = false;
        self.ids.remove(id);
        Some(entry)
    }

    /// Takes over what was changed in a bead's record.
    pub(crate) fn note_change(&mut self, id: &BeadId) {
        if let Some(number) = self.number(id) {
            self.note_change_at(number);
        }
    }

    fn note_change_at(&mut self, number: u32) {
        self.closed[number as usize] = self.at(number).is_some_and(|entry| entry.bead.is_closed());
        self.note_ends_at(number);
    }

    /// Notes where the dependencies of a bead lead.
    fn note_ends_at(&mut self, number: u32) {
        let Place::Awake(entry) = &self.entries[number as usize] else { return };
        let edges = entry.bead.dependencies.iter();
        let ends = edges.map(|edge| End::new(self.names.give_number(&edge.on), &edge.kind));
        let ends = ends.collect();
        self.set_ends(number, ends);
    }

    fn set_ends(&mut self, number: u32, ends: SmallVec<[End; 4]>) {
        self.make_room();
        for end in &ends {
            self.named[end.number() as usize] += 1;
        }
        for end in std::mem::replace(&mut self.ends[number as usize], ends) {
            self.named[end.number() as usize] -= 1;
        }
    }

    /// Notes that a bead at rest is closed, and where its dependencies lead.
    pub(super) fn note_sleeper(&mut self, number: u32, dependencies: &[Dependency]) {
        self.closed[number as usize] = true;
        let ends = dependencies.iter().map(|edge| End::new(self.names.give_number(&edge.on), &edge.kind));
        let ends = ends.collect();
        self.set_ends(number, ends);
    }

    /// Lists beads at rest among those that are there.
    pub(crate) fn note_sleepers(&mut self, numbers: &[u32]) {
        self.ids.append(&mut numbers.iter().map(|number| self.name(*number).clone()).collect());
    }

    /// The same for many beads.
    fn note_all_ends(&mut self, numbers: &[u32]) {
        let mut targets = Vec::new();
        for some in numbers.chunks(AT_ONCE) {
            for (number, ends) in some.iter().zip(self.find_ends(some, &mut targets)) {
                self.set_ends(*number, ends);
            }
        }
    }

    /// Where the dependencies of these beads lead.
    fn find_ends(
        &mut self,
        numbers: &[u32],
        targets: &mut Vec<u32>,
    ) -> SmallVec<[SmallVec<[End; 4]>; AT_ONCE]> {
        let beads = numbers.iter().filter_map(|number| awake(&self.entries[*number as usize]));
        let edges = || beads.clone().flat_map(|entry| &entry.bead.dependencies);
        let ids: SmallVec<[&BeadId; 8 * AT_ONCE]> = edges().map(|edge| &edge.on).collect();
        self.names.give_numbers(&ids, targets);
        let mut ends = edges().zip(targets).map(|(edge, target)| End::new(*target, &edge.kind));
        beads.clone().map(|entry| ends.by_ref().take(entry.bead.dependencies.len()).collect()).collect()
    }

    /// Gives every number its place in all lists.
    #[inline]
    fn make_room(&mut self) {
        let numbers = self.names.ids.len();
        if self.entries.len() < numbers {
            self.entries.resize_with(numbers, || Place::Empty);
            self.ends.resize_with(numbers, SmallVec::new);
            self.closed.resize(numbers, false);
        }
        if self.named.len() < numbers {
            self.named.resize(numbers, 0);
        }
    }

    /// The number of an id, which is a new one if nobody named it before.
    pub(crate) fn give_number(&mut self, id: &BeadId) -> u32 {
        let number = self.names.give_number(id);
        self.make_room();
        number
    }

    /// Forgets an id that nobody has and nobody names, so that its number can be given to another.
    pub(crate) fn forget_name(&mut self, id: &BeadId) {
        let Some(number) = self.number(id) else { return };
        if self.at(number).is_none() && self.named[number as usize] == 0 {
            self.names.forget(id, number);
        }
    }

    /// The number of an id that was named.
    #[inline]
    pub(crate) fn number(&self, id: &BeadId) -> Option<u32> {
        self.names.find(id)
    }

    /// The numbers of many ids, in the same order.
    pub(crate) fn numbers_of(&self, ids: &[&BeadId]) -> Vec<Option<u32>> {
        self.names.find_all(ids)
    }

    /// Every number is below this.
    pub(crate) fn numbers(&self) -> usize {
        self.names.ids.len()
    }

    /// The id with a number, whether or not somebody has the bead.
    #[inline]
    pub(crate) fn name(&self, number: u32) -> &BeadId {
        &self.names.ids[number as usize]
    }

    /// Whether the id with one number comes before that with the other; mostly without looking at them.
    #[inline]
    pub(crate) fn is_before(&self, number: u32, other: u32) -> bool {
        if number.max(other) < self.names.in_order {
            return number < other;
        }
        self.name(number) < self.name(other)
    }

    /// The bead with a number, if somebody has it.
    #[inline]
    pub(crate) fn at(&self, number: u32) -> Option<&BeadEntry> {
        match &self.entries[number as usize] {
            Place::Awake(entry) => Some(entry),
            Place::Empty => None,
            Place::AtRest(packed) => Some(packed.entry(self.name(number), &self.rest)),
        }
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn at_mut(&mut self, number: u32) -> Option<&mut BeadEntry> {
        self.wake_at(number);
        match &mut self.entries[number as usize] {
            Place::Awake(entry) => Some(entry),
            Place::Empty | Place::AtRest(_) => None,
        }
    }

    /// What is kept of a number.
    pub(super) fn place(&self, number: u32) -> Option<&Place> {
        self.entries.get(number as usize)
    }

    /// The same, to be changed.
    pub(super) fn place_mut(&mut self, number: u32) -> &mut Place {
        &mut self.entries[number as usize]
    }

    /// The same of all numbers, to be changed.
    pub(super) fn places_mut(&mut self) -> impl Iterator<Item = &mut Place> {
        self.entries.iter_mut()
    }

    /// The other ends of a bead's dependencies, in the same order; none of one that nobody has.
    #[inline]
    pub(crate) fn ends(&self, number: u32) -> &[End] {
        &self.ends[number as usize]
    }

    /// Whether a bead is there and closed.
    #[inline]
    pub(crate) fn is_closed_at(&self, number: u32) -> bool {
        self.closed[number as usize]
    }

    /// The ids in their order.
    pub(crate) fn keys(&self) -> btree_set::Iter<'_, BeadId> {
        self.ids.iter()
    }

    /// The ids of a range, in their order.
    pub(crate) fn ids_in(&self, range: impl RangeBounds<BeadId>) -> btree_set::Range<'_, BeadId> {
        self.ids.range(range)
    }

    /// Those that are not at rest, in the order of their ids.
    pub(crate) fn awake(&self) -> impl Iterator<Item = &BeadEntry> {
        self.ids.iter().filter_map(|id| awake(&self.entries[self.number(id)? as usize]))
    }

    /// The beads in the order of their ids.
    pub(crate) fn values(&self) -> impl Iterator<Item = &BeadEntry> {
        self.ids.iter().filter_map(|id| self.get(id))
    }
}

fn awake(place: &Place) -> Option<&BeadEntry> {
    match place {
        Place::Awake(entry) => Some(entry),
        Place::Empty | Place::AtRest(_) => None,
    }
}

impl PartialEq for Beads {
    fn eq(&self, other: &Self) -> bool {
        self.ids == other.ids && self.values().eq(other.values())
    }
}

impl Index<&BeadId> for Beads {
    type Output = BeadEntry;

    fn index(&self, id: &BeadId) -> &BeadEntry {
        self.get(id).expect("whoever indexes knows that the bead is there")
    }
}
