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

use super::BeadEntry;
use crate::BeadId;
use crate::lookup::Lookup;

/// Beads by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beads {
    numbers: Lookup<BeadId, u32>,
    places: Vec<Place>,
    /// The ids of those that are there.
    ids: BTreeSet<BeadId>,
}

/// What belongs to a number.
#[derive(Debug, Clone, Default)]
struct Place {
    /// None while nobody has the bead.
    entry: Option<Box<BeadEntry>>,
    /// The other ends of its dependencies, in the same order.
    targets: Box<[u32]>,
    is_closed: bool,
}

impl Beads {
    #[inline]
    pub(crate) fn get(&self, id: &BeadId) -> Option<&BeadEntry> {
        self.numbers.get(id).and_then(|number| self.at(*number))
    }

    /// For whoever changes the status or the dependencies: `note_change` has to follow.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: &BeadId) -> Option<&mut BeadEntry> {
        let number = self.numbers.get(id)?;
        self.places[*number as usize].entry.as_deref_mut()
    }

    pub(crate) fn contains_key<Id>(&self, id: &Id) -> bool
    where
        BeadId: Borrow<Id>,
        Id: Hash + Eq + ?Sized,
    {
        self.numbers.get(id).is_some_and(|number| self.at(*number).is_some())
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, beads: usize) {
        self.numbers.reserve(beads);
        self.places.reserve(beads);
    }

    /// Puts a bead in, in place of the one with its id if there is one; says its number.
    pub(crate) fn insert(&mut self, entry: Box<BeadEntry>) -> u32 {
        let id = entry.bead.id.clone();
        let number = self.give_number(&id);
        if self.places[number as usize].entry.replace(entry).is_none() {
            self.ids.insert(id);
        }
        self.note_change_at(number);
        number
    }

    pub(crate) fn remove(&mut self, id: &BeadId) -> Option<Box<BeadEntry>> {
        let number = self.numbers.get(id)?;
        let entry = std::mem::take(&mut self.places[*number as usize]).entry?;
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
        let Some(entry) = self.places[number as usize].entry.take() else { return };
        let targets = entry.bead.dependencies.iter().map(|edge| self.give_number(&edge.on)).collect();
        let is_closed = entry.bead.is_closed();
        self.places[number as usize] = Place { entry: Some(entry), targets, is_closed };
    }

    /// The number of an id, which is a new one if nobody named it before.
    pub(crate) fn give_number(&mut self, id: &BeadId) -> u32 {
        if let Some(number) = self.numbers.get(id) {
            return *number;
        }
        let number = self.places.len() as u32;
        self.numbers.insert(id.clone(), number);
        self.places.push(Place::default());
        number
    }

    /// The number of an id that was named.
    #[inline]
    pub(crate) fn number(&self, id: &BeadId) -> Option<u32> {
        self.numbers.get(id).copied()
    }

    /// Every number is below this.
    pub(crate) fn numbers(&self) -> usize {
        self.places.len()
    }

    /// The bead with a number, if somebody has it.
    #[inline]
    pub(crate) fn at(&self, number: u32) -> Option<&BeadEntry> {
        self.places[number as usize].entry.as_deref()
    }

    /// The same, to be changed; see `get_mut`.
    pub(crate) fn at_mut(&mut self, number: u32) -> Option<&mut BeadEntry> {
        self.places[number as usize].entry.as_deref_mut()
    }

    /// The numbers at the other ends of a bead's dependencies, in the same order.
    #[inline]
    pub(crate) fn targets(&self, number: u32) -> &[u32] {
        &self.places[number as usize].targets
    }

    /// Whether a bead is there and closed.
    #[inline]
    pub(crate) fn is_closed_at(&self, number: u32) -> bool {
        self.places[number as usize].is_closed
    }

    /// The ids in their order.
    pub(crate) fn keys(&self) -> btree_set::Iter<'_, BeadId> {
        self.ids.iter()
    }

    /// The ids of a range, in their order.
    pub(crate) fn ids_in(&self, range: impl RangeBounds<BeadId>) -> btree_set::Range<'_, BeadId> {
        self.ids.range(range)
    }

    /// The beads in the order of their ids.
    pub(crate) fn values(&self) -> impl Iterator<Item = &BeadEntry> {
        self.ids.iter().filter_map(|id| self.get(id))
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
