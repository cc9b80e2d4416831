//! Everything a plan has to look at: the beads asked for, and whatever they wait for, directly, through their parents
//! or through others. Each bead gets a small number, its slot, so that the rest works on arrays.

use std::collections::HashSet;

use super::finder::{Finder, Known, Name};
use super::{StageInput, TreeRow};
use crate::BeadId;
use crate::bead::{Bead, DepKind};
use crate::state::State;

/// What a bead is to the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Open, slingable and asked for.
    Member,
    /// Done, hence in nobody's way.
    Closed,
    /// Open, and not for the convoy to run.
    Outside,
    /// Nobody has it.
    Missing,
}

/// What a bead waits for: another bead, or whatever a parent hands down.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait(u32);

impl Wait {
    fn for_bead(slot: u32) -> Self {
        Self(slot << 1)
    }

    fn like_parent(slot: u32) -> Self {
        Self(slot << 1 | 1)
    }

    /// The other end.
    pub(super) fn slot(self) -> u32 {
        self.0 >> 1
    }

    /// Whether the other end is a parent, whose blockers are inherited.
    pub(super) fn is_inherited(self) -> bool {
        self.0 & 1 == 1
    }
}

/// A bead asked for, and how deep it lies in the tree.
#[derive(Clone, Copy)]
struct Asked<'a> {
    depth: u32,
    name: Name<'a>,
    bead: &'a Bead,
}

/// The beads of a plan by slot: first the open members by id, then the closed ones by id, then the other beads asked
/// for, then what they led to.
pub(super) struct Reach<'a> {
    known: Known<'a>,
    open_members: u32,
    closed_members: u32,
    asked: Vec<Asked<'a>>,
    /// Of the beads asked for: whether a blocking edge joins it to another of them.
    joined: Vec<bool>,
    offsets: Vec<u32>,
    waits: Vec<Wait>,
    /// Ids asked for that nobody has.
    pub(super) unknown: Vec<&'a BeadId>,
}

impl<'a> Reach<'a> {
    pub(super) fn of(state: &'a State, input: &'a StageInput) -> Self {
        let (asked, unknown, root) = match input {
            StageInput::Epic(root) => {
                let found = descent(state, root);
                let unknown = if found.is_empty() { vec![root] } else { Vec::new() };
                (found, unknown, Some(root))
            }
            StageInput::Tasks(ids) | StageInput::Beads(ids) => {
                let (found, unknown) = listed(state, ids);
                (found, unknown, None)
            }
        };
        let (mut open, mut closed, mut others) = (Vec::with_capacity(asked.len()), Vec::new(), Vec::new());
        for found in &asked {
            let is_member = found.bead.is_slingable() && Some(&found.bead.id) != root;
            match (is_member, found.bead.is_closed()) {
                (true, false) => open.push((found.name, found.bead, Role::Member)),
                (true, true) => closed.push((found.name, found.bead, Role::Closed)),
                (false, true) => others.push((found.name, found.bead, Role::Closed)),
                (false, false) => others.push((found.name, found.bead, Role::Outside)),
            }
        }
        open.sort_by_key(|(name, ..)| *name);
        closed.sort_by_key(|(name, ..)| *name);
        let (open_members, closed_members) = (open.len() as u32, closed.len() as u32);
        let mut finder = Finder::new(state);
        finder.reserve(asked.len());
        for (name, bead, role) in open.into_iter().chain(closed).chain(others) {
            finder.put(name, bead, role);
        }
        let mut reach = Self {
            known: Known::default(),
            open_members,
            closed_members,
            joined: vec![false; asked.len()],
            asked,
            offsets: Vec::new(),
            waits: Vec::new(),
            unknown,
        };
        reach.follow_all(&mut finder);
        reach.known = finder.known;
        reach
    }

    /// Follows what each bead waits for until nothing new turns up.
    fn follow_all(&mut self, finder: &mut Finder<'a>) {
        let mut slot = 0;
        while let Some(role) = finder.known.roles.get(slot) {
            self.offsets.push(self.waits.len() as u32);
            match (role, finder.known.beads[slot]) {
                (Role::Member | Role::Outside, Some(bead)) => self.follow(finder, slot, bead),
                // What is done waits no more, but may still join two beads of an epic.
                (Role::Closed, Some(bead)) if slot < self.joined.len() => {
                    for edge in bead.dependencies.iter().filter(|d| d.kind.blocks()) {
                        if let Some(target) = finder.find(&edge.on) {
                            self.join(slot, target as usize);
                        }
                    }
                }
                (Role::Closed | Role::Missing, _) | (_, None) => {}
            }
            slot += 1;
        }
        self.offsets.push(self.waits.len() as u32);
    }

    fn follow(&mut self, finder: &mut Finder<'a>, slot: usize, bead: &'a Bead) {
        for edge in bead.dependencies.iter().filter(|d| d.kind.makes_wait()) {
            let target = finder.slot_of(&edge.on);
            let role = finder.known.roles[target as usize];
            if edge.kind == DepKind::ParentChild {
                if matches!(role, Role::Member | Role::Outside) {
                    self.waits.push(Wait::like_parent(target));
                }
            } else {
                self.join(slot, target as usize);
                if role != Role::Closed {
                    self.waits.push(Wait::for_bead(target));
                }
            }
        }
    }

    fn join(&mut self, holder: usize, target: usize) {
        let asked = self.joined.len();
        if holder < asked && target < asked && holder != target {
            self.joined[holder] = true;
            self.joined[target] = true;
        }
    }

    /// How many beads there are.
    pub(super) fn len(&self) -> u32 {
        self.known.roles.len() as u32
    }

    pub(super) fn id(&self, slot: u32) -> &'a BeadId {
        self.known.ids[slot as usize]
    }

    pub(super) fn bead(&self, slot: u32) -> Option<&'a Bead> {
        self.known.beads[slot as usize]
    }

    pub(super) fn role(&self, slot: u32) -> Role {
        self.known.roles[slot as usize]
    }

    /// What a bead waits for.
    pub(super) fn waits(&self, slot: u32) -> &[Wait] {
        let slot = slot as usize;
        &self.waits[self.offsets[slot] as usize..self.offsets[slot + 1] as usize]
    }

    /// The open members, by id.
    pub(super) fn open_members(&self) -> std::ops::Range<u32> {
        0..self.open_members
    }

    /// Every slingable bead asked for, by id.
    pub(super) fn members(&self) -> Vec<u32> {
        let mut members: Vec<u32> = self.open_members().chain(self.closed_members()).collect();
        // Two runs, which a stable sort merges.
        members.sort_by_key(|slot| self.id(*slot));
        members
    }

    /// The slingable beads asked for that are done, by id.
    pub(super) fn closed_members(&self) -> std::ops::Range<u32> {
        self.open_members..self.open_members + self.closed_members
    }

    /// Whether a blocking edge of its own joins this bead, one of those asked for, to another of them.
    pub(super) fn is_joined(&self, slot: u32) -> bool {
        self.joined.get(slot as usize).is_some_and(|joined| *joined)
    }

    /// The beads asked for, parents before their children.
    pub(super) fn asked(&self) -> impl Iterator<Item = &'a Bead> {
        self.asked.iter().map(|asked| asked.bead)
    }

    pub(super) fn tree(&self) -> Vec<TreeRow> {
        let row = |asked: &Asked<'_>| TreeRow { depth: asked.depth, id: asked.bead.id.clone() };
        self.asked.iter().map(row).collect()
    }
}

/// A bead and everything below it, parents first; nothing if nobody has it. A bead with two parents comes once, below
/// the first.
fn descent<'a>(state: &'a State, root: &'a BeadId) -> Vec<Asked<'a>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let asked = |bead: &'a Bead, depth| Asked { depth, name: Name::of(&bead.id), bead };
    let mut pending: Vec<Asked<'_>> =
        state.bead(root).map(|entry| asked(&entry.bead, 0)).into_iter().collect();
    while let Some(next) = pending.pop() {
        if !seen.insert(next.name) {
            continue;
        }
        let below = pending.len();
        let children = state.children_of(&next.bead.id).filter_map(|child| state.bead(child));
        pending.extend(children.map(|child| asked(&child.bead, next.depth + 1)));
        pending[below..].reverse();
        found.push(next);
    }
    found
}

/// The slingable ones of these beads, by id, and the ids that nobody has.
fn listed<'a>(state: &'a State, ids: &'a [BeadId]) -> (Vec<Asked<'a>>, Vec<&'a BeadId>) {
    let mut names: Vec<(Name<'a>, &BeadId)> = ids.iter().map(|id| (Name::of(id), id)).collect();
    names.sort_unstable_by_key(|(name, _)| *name);
    names.dedup_by_key(|(name, _)| *name);
    let (mut found, mut unknown) = (Vec::with_capacity(names.len()), Vec::new());
    for (name, id) in names {
        match state.bead(id).map(|entry| &entry.bead) {
            Some(bead) if bead.is_slingable() => found.push(Asked { depth: 0, name, bead }),
            Some(_) => {}
            None => unknown.push(id),
        }
    }
    (found, unknown)
}
