//! From beads to slots. A plan follows every end of every dependency, so this is where staging spends its time.

use super::reach::Role;
use crate::BeadId;
use crate::bead::Bead;
use crate::state::State;

/// What is known of each bead by its slot.
#[derive(Default)]
pub(super) struct Known<'a> {
    pub(super) ids: Vec<&'a BeadId>,
    pub(super) beads: Vec<Option<&'a Bead>>,
    pub(super) roles: Vec<Role>,
    /// Its number in the town.
    pub(super) numbers: Vec<u32>,
}

impl<'a> Known<'a> {
    /// Gives the next slot away.
    fn push(&mut self, number: u32, id: &'a BeadId, bead: Option<&'a Bead>, role: Role) -> u32 {
        self.ids.push(id);
        self.beads.push(bead);
        self.roles.push(role);
        self.numbers.push(number);
        self.roles.len() as u32 - 1
    }
}

/// Gives beads their slots.
pub(super) struct Finder<'a> {
    state: &'a State,
    pub(super) known: Known<'a>,
    /// By number: one more than the slot, or 0. Memory that is never touched costs nothing.
    slots: Vec<u32>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        Self { state, known: Known::default(), slots: vec![0; state.beads.numbers()] }
    }

    /// Gives the next slot to a bead that has none.
    pub(super) fn put(&mut self, number: u32, bead: &'a Bead, role: Role) {
        let slot = self.known.push(number, &bead.id, Some(bead), role);
        self.slots[number as usize] = slot + 1;
    }

    /// Makes room for so many beads.
    pub(super) fn reserve(&mut self, beads: usize) {
        self.known.ids.reserve(beads);
        self.known.beads.reserve(beads);
        self.known.roles.reserve(beads);
        self.known.numbers.reserve(beads);
    }

    /// The slot of a bead, if it has one.
    pub(super) fn find(&self, number: u32) -> Option<u32> {
        self.slots[number as usize].checked_sub(1)
    }

    /// The slot of a bead that another names; a new one is no member.
    pub(super) fn slot_of(&mut self, number: u32) -> u32 {
        if let Some(slot) = self.find(number) {
            return slot;
        }
        let bead = self.state.beads.at(number).map(|entry| &*entry.bead);
        let role = match bead {
            None => Role::Missing,
            Some(bead) if bead.is_closed() => Role::Closed,
            Some(_) => Role::Outside,
        };
        let slot = self.known.push(number, self.state.beads.name(number), bead, role);
        self.slots[number as usize] = slot + 1;
        slot
    }
}
