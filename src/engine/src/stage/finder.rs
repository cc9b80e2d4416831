//! From ids to slots. A plan looks up every end of every dependency, so this is where staging spends its time: the
//! table keeps short ids in itself, because going to where each id lies in memory costs more than all the rest.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::reach::Role;
use crate::BeadId;
use crate::bead::Bead;
use crate::state::State;

const HEAD: usize = 16;

/// An id that can be compared, and ordered like the id, without following a pointer unless it is long. Ids contain
/// no NUL, so what fills up a short head is never part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name<'a> {
    head: u128,
    long: Option<&'a BeadId>,
}

impl<'a> Name<'a> {
    pub(super) fn of(id: &'a BeadId) -> Self {
        let bytes = id.as_str().as_bytes();
        let mut head = [0; HEAD];
        for (to, from) in head.iter_mut().zip(bytes) {
            *to = *from;
        }
        Self { head: u128::from_be_bytes(head), long: (bytes.len() > HEAD).then_some(id) }
    }
}

/// What is known of each bead by its slot.
#[derive(Default)]
pub(super) struct Known<'a> {
    pub(super) ids: Vec<&'a BeadId>,
    pub(super) beads: Vec<Option<&'a Bead>>,
    pub(super) roles: Vec<Role>,
}

impl<'a> Known<'a> {
    fn push(&mut self, id: &'a BeadId, bead: Option<&'a Bead>, role: Role) -> u32 {
        self.ids.push(id);
        self.beads.push(bead);
        self.roles.push(role);
        self.roles.len() as u32 - 1
    }
}

/// Gives beads their slots.
pub(super) struct Finder<'a> {
    state: &'a State,
    pub(super) known: Known<'a>,
    slots: HashMap<Name<'a>, u32>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        Self { state, known: Known::default(), slots: HashMap::new() }
    }

    /// Gives the next slot to a bead that has none.
    pub(super) fn put(&mut self, name: Name<'a>, bead: &'a Bead, role: Role) {
        let slot = self.known.push(&bead.id, Some(bead), role);
        self.slots.insert(name, slot);
    }

    /// Makes room for so many beads.
    pub(super) fn reserve(&mut self, beads: usize) {
        self.slots.reserve(beads);
        self.known.ids.reserve(beads);
        self.known.beads.reserve(beads);
        self.known.roles.reserve(beads);
    }

    /// The slot of a bead, if it has one.
    pub(super) fn find(&self, id: &'a BeadId) -> Option<u32> {
        self.slots.get(&Name::of(id)).copied()
    }

    /// The slot of a bead that another names; a new one is no member.
    pub(super) fn slot_of(&mut self, id: &'a BeadId) -> u32 {
        let vacant = match self.slots.entry(Name::of(id)) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(vacant) => vacant,
        };
        let bead = self.state.bead(id).map(|entry| &entry.bead);
        let role = match bead {
            None => Role::Missing,
            Some(bead) if bead.is_closed() => Role::Closed,
            Some(_) => Role::Outside,
        };
        *vacant.insert(self.known.push(id, bead, role))
    }
}
