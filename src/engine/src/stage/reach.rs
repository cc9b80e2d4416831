//! Everything a plan has to look at: the beads asked for, and whatever they wait for, directly, through their parents
//! or through others. Each bead gets a small number, its slot, so that the rest works on arrays.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

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

struct Known<'a> {
    id: &'a BeadId,
    bead: Option<&'a Bead>,
    role: Role,
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

/// The beads of a plan by slot: first the open members by id, then the other beads asked for, then what they led to.
pub(super) struct Reach<'a> {
    beads: Vec<Known<'a>>,
    open_members: u32,
    /// Every slingable bead asked for, by id.
    members: Vec<u32>,
    asked: Vec<Asked<'a>>,
    /// Of the beads asked for: whether a blocking edge joins it to another of them.
    joined: Vec<bool>,
    offsets: Vec<u32>,
    waits: Vec<Wait>,
    /// Ids asked for that nobody has.
    pub(super) unknown: Vec<&'a BeadId>,
}

/// A bead asked for, at its place in the tree.
struct Asked<'a> {
    depth: u32,
    bead: &'a Bead,
}

impl<'a> Reach<'a> {
    pub(super) fn of(state: &'a State, input: &'a StageInput) -> Self {
        let (asked, unknown) = match input {
            StageInput::Epic(root) => descent(state, root),
            StageInput::Tasks(ids) | StageInput::Beads(ids) => listed(state, ids),
        };
        let root = match input {
            StageInput::Epic(root) => Some(root),
            StageInput::Tasks(_) | StageInput::Beads(_) => None,
        };
        let is_member = |bead: &Bead| bead.is_slingable() && Some(&bead.id) != root;
        let mut slingable: Vec<&'a Bead> = asked.iter().map(|a| a.bead).filter(|b| is_member(b)).collect();
        slingable.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let mut finder = Finder { state, beads: Vec::with_capacity(asked.len()), slots: HashMap::new() };
        finder.slots.reserve(asked.len());
        for bead in slingable.iter().filter(|bead| !bead.is_closed()) {
            finder.put(bead, Role::Member);
        }
        let open_members = finder.beads.len() as u32;
        let (mut next_open, mut members) = (0, Vec::with_capacity(slingable.len()));
        for bead in &slingable {
            if bead.is_closed() {
                members.push(finder.put(bead, Role::Closed));
            } else {
                members.push(next_open);
                next_open += 1;
            }
        }
        for Asked { bead, .. } in asked.iter().filter(|a| !is_member(a.bead)) {
            finder.put(bead, if bead.is_closed() { Role::Closed } else { Role::Outside });
        }
        let mut reach = Self {
            beads: Vec::new(),
            open_members,
            members,
            joined: vec![false; asked.len()],
            asked,
            offsets: Vec::new(),
            waits: Vec::new(),
            unknown,
        };
        reach.follow_all(&mut finder);
        reach.beads = finder.beads;
        reach
    }

    /// Follows what each bead waits for until nothing new turns up.
    fn follow_all(&mut self, finder: &mut Finder<'a>) {
        let mut slot = 0;
        while let Some(Known { bead, role, .. }) = finder.beads.get(slot) {
            self.offsets.push(self.waits.len() as u32);
            match (role, *bead) {
                (Role::Member | Role::Outside, Some(bead)) => self.follow(finder, slot, bead),
                // What is done waits no more, but may still join two beads of an epic.
                (Role::Closed, Some(bead)) if slot < self.joined.len() => {
                    for edge in bead.dependencies.iter().filter(|d| d.kind.blocks()) {
                        if let Some(target) = finder.slots.get(edge.on.as_str()) {
                            self.join(slot, *target as usize);
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
            let role = finder.beads[target as usize].role;
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
        self.beads.len() as u32
    }

    pub(super) fn id(&self, slot: u32) -> &'a BeadId {
        self.beads[slot as usize].id
    }

    pub(super) fn bead(&self, slot: u32) -> Option<&'a Bead> {
        self.beads[slot as usize].bead
    }

    pub(super) fn role(&self, slot: u32) -> Role {
        self.beads[slot as usize].role
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
    pub(super) fn members(&self) -> impl Iterator<Item = u32> {
        self.members.iter().copied()
    }

    /// The slingable beads asked for that are done, by id.
    pub(super) fn closed_members(&self) -> impl Iterator<Item = u32> {
        self.members().filter(|slot| *slot >= self.open_members)
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

/// Gives beads their slots.
struct Finder<'a> {
    state: &'a State,
    beads: Vec<Known<'a>>,
    slots: HashMap<&'a str, u32>,
}

impl<'a> Finder<'a> {
    fn put(&mut self, bead: &'a Bead, role: Role) -> u32 {
        let slot = self.beads.len() as u32;
        self.slots.insert(bead.id.as_str(), slot);
        self.beads.push(Known { id: &bead.id, bead: Some(bead), role });
        slot
    }

    /// The slot of a bead that another names.
    fn slot_of(&mut self, id: &'a BeadId) -> u32 {
        let vacant = match self.slots.entry(id.as_str()) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(vacant) => vacant,
        };
        let slot = self.beads.len() as u32;
        vacant.insert(slot);
        let bead = self.state.bead(id).map(|entry| &entry.bead);
        let role = match bead {
            None => Role::Missing,
            Some(bead) if bead.is_closed() => Role::Closed,
            Some(_) => Role::Outside,
        };
        self.beads.push(Known { id, bead, role });
        slot
    }
}

/// A bead and everything below it, parents first. A bead with two parents comes once, below the first.
fn descent<'a>(state: &'a State, root: &'a BeadId) -> (Vec<Asked<'a>>, Vec<&'a BeadId>) {
    let Some(entry) = state.bead(root) else { return (Vec::new(), vec![root]) };
    let mut found = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut pending = vec![Asked { depth: 0, bead: &entry.bead }];
    while let Some(asked) = pending.pop() {
        if !seen.insert(asked.bead.id.as_str()) {
            continue;
        }
        let below = pending.len();
        let children = state.children_of(&asked.bead.id).filter_map(|child| state.bead(child));
        pending.extend(children.map(|child| Asked { depth: asked.depth + 1, bead: &child.bead }));
        pending[below..].reverse();
        found.push(asked);
    }
    (found, Vec::new())
}

/// The slingable ones of these beads, by id.
fn listed<'a>(state: &'a State, ids: &'a [BeadId]) -> (Vec<Asked<'a>>, Vec<&'a BeadId>) {
    let mut ids: Vec<&BeadId> = ids.iter().collect();
    ids.sort_unstable();
    ids.dedup();
    let (mut found, mut unknown) = (Vec::with_capacity(ids.len()), Vec::new());
    for id in ids {
        match state.bead(id) {
            Some(entry) if entry.bead.is_slingable() => found.push(Asked { depth: 0, bead: &entry.bead }),
            Some(_) => {}
            None => unknown.push(id),
        }
    }
    (found, unknown)
}
