//! Everything a plan has to look at: the beads asked for, and whatever they wait for, directly, through their parents
//! or through others. Each bead gets a small number, its slot, so that the rest works on arrays.

use std::sync::Arc;

use super::finder::{Finder, Known};
use super::{StageInput, TreeRow};
use crate::BeadId;
use crate::bead::{Bead, BeadEntry, End};
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
    is_slingable: bool,
    is_closed: bool,
    number: u32,
    open_blockers: u32,
    bead: &'a Arc<Bead>,
}

impl<'a> Asked<'a> {
    fn new(depth: u32, number: u32, entry: &'a BeadEntry) -> Self {
        let BeadEntry { bead, open_blockers, .. } = entry;
        let (is_slingable, is_closed) = (bead.is_slingable(), bead.is_closed());
        Self { depth, is_slingable, is_closed, number, open_blockers: *open_blockers, bead }
    }
}

/// The beads of a plan by slot: first the open members by id, then the closed ones by id, then the other beads asked
/// for, then what they led to.
pub(super) struct Reach<'a> {
    known: Known<'a>,
    open_members: u32,
    /// Every slingable bead asked for, by id.
    members: Vec<u32>,
    asked: Vec<Asked<'a>>,
    /// Of the beads asked for: whether a blocking edge joins it to another of them.
    joined: Vec<bool>,
    offsets: Vec<u32>,
    waits: Vec<Wait>,
    /// Of the beads asked for, by slot: where it stands among them.
    rows: Vec<u32>,
    /// Ids asked for that nobody has.
    pub(super) unknown: Vec<&'a BeadId>,
}

impl<'a> Reach<'a> {
    pub(super) fn of(state: &'a State, input: &'a StageInput) -> Self {
        let (asked, unknown) = match input {
            StageInput::Epic(root) => {
                let found = descent(state, root);
                let unknown = if found.is_empty() { vec![root] } else { Vec::new() };
                (found, unknown)
            }
            StageInput::Tasks(ids) | StageInput::Beads(ids) => listed(state, ids),
        };
        let (mut slingable, others): (Vec<Asked<'a>>, Vec<Asked<'a>>) =
            asked.iter().copied().partition(|a| a.is_slingable);
        slingable.sort_by_key(|asked| &asked.bead.id);
        let mut finder = Finder::new(state);
        finder.reserve(asked.len());
        let is_open = |asked: &&Asked<'_>| !asked.is_closed;
        slingable.iter().filter(is_open).for_each(|a| finder.put(a.number, a.bead, Role::Member));
        let open_members = finder.known.roles.len() as u32;
        slingable.iter().filter(|a| a.is_closed).for_each(|a| finder.put(a.number, a.bead, Role::Closed));
        for Asked { number, bead, is_closed, .. } in others {
            finder.put(number, bead, if is_closed { Role::Closed } else { Role::Outside });
        }
        let (mut open, mut closed) = (0..open_members, open_members..);
        let members = slingable.iter().filter_map(|a| if a.is_closed { closed.next() } else { open.next() });
        let mut reach = Self {
            known: Known::default(),
            open_members,
            members: members.collect(),
            joined: vec![false; asked.len()],
            asked,
            offsets: Vec::new(),
            waits: Vec::new(),
            rows: Vec::new(),
            unknown,
        };
        reach.rows = vec![0; reach.asked.len()];
        for (row, asked) in (0..).zip(&reach.asked) {
            if let Some(slot) = finder.find(asked.number) {
                reach.rows[slot as usize] = row;
            }
        }
        reach.follow_all(state, &mut finder);
        reach.known = finder.known;
        reach
    }

    /// Follows what each bead waits for until nothing new turns up.
    fn follow_all(&mut self, state: &'a State, finder: &mut Finder<'a>) {
        let mut slot = 0;
        while let Some(role) = finder.known.roles.get(slot) {
            self.offsets.push(self.waits.len() as u32);
            let ends = state.beads.ends(finder.known.numbers[slot]);
            match role {
                Role::Member | Role::Outside => self.follow(finder, slot, ends),
                // What is done waits no more, but may still join two beads of an epic.
                Role::Closed if slot < self.asked.len() => {
                    let blocking = ends.iter().filter(|end| end.blocks());
                    for target in blocking.filter_map(|end| finder.find(end.number())) {
                        self.join(slot, target as usize);
                    }
                }
                Role::Closed | Role::Missing => {}
            }
            slot += 1;
        }
        self.offsets.push(self.waits.len() as u32);
    }

    fn follow(&mut self, finder: &mut Finder<'a>, slot: usize, ends: &[End]) {
        for end in ends.iter().filter(|end| end.makes_wait()) {
            let target = finder.slot_of(end.number());
            let role = finder.known.roles[target as usize];
            if end.is_parent() {
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
    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }

    /// The slingable beads asked for that are done, by id.
    pub(super) fn closed_members(&self) -> Vec<u32> {
        (self.open_members..self.members.len() as u32).collect()
    }

    /// Whether a blocking edge of its own joins this bead, one of those asked for, to another of them.
    pub(super) fn is_joined(&self, slot: u32) -> bool {
        self.joined.get(slot as usize).is_some_and(|joined| *joined)
    }

    /// The beads asked for, parents before their children.
    pub(super) fn asked(&self) -> impl Iterator<Item = &'a Bead> {
        self.asked.iter().map(|asked| &**asked.bead)
    }

    /// Where members stand in the tree.
    pub(super) fn rows(&self, members: &[u32]) -> Vec<u32> {
        members.iter().map(|slot| self.rows[*slot as usize]).collect()
    }

    pub(super) fn tree(&self) -> Vec<TreeRow> {
        let row = |&Asked { depth, open_blockers, bead, .. }: &Asked<'_>| {
            let bead = Arc::clone(bead);
            TreeRow { depth, open_blockers, bead }
        };
        self.asked.iter().map(row).collect()
    }
}

/// A bead and everything below it, parents first; nothing if nobody has it. A bead with two parents comes once, below
/// the first. The bead itself is no work of its own.
fn descent<'a>(state: &'a State, root: &'a BeadId) -> Vec<Asked<'a>> {
    let mut found = Vec::new();
    let mut seen = vec![false; state.beads.numbers()];
    let mut pending: Vec<(u32, u32)> = state.beads.number(root).map(|root| (0, root)).into_iter().collect();
    while let Some((depth, number)) = pending.pop() {
        let Some(entry) = state.beads.at(number) else { continue };
        if std::mem::replace(&mut seen[number as usize], true) {
            continue;
        }
        let asked = Asked::new(depth, number, entry);
        let below = pending.len();
        let children = state.children.of(Some(number));
        pending.extend(children.map(|child| (depth + 1, child)));
        pending[below..].reverse();
        found.push(Asked { is_slingable: asked.is_slingable && depth > 0, ..asked });
    }
    found
}

/// The slingable ones of these beads, by id, and the ids that nobody has.
fn listed<'a>(state: &'a State, ids: &'a [BeadId]) -> (Vec<Asked<'a>>, Vec<&'a BeadId>) {
    let mut ids: Vec<&BeadId> = ids.iter().collect();
    ids.sort_unstable();
    ids.dedup();
    let (mut found, mut unknown) = (Vec::with_capacity(ids.len()), Vec::new());
    for (id, number) in ids.iter().zip(state.beads.numbers_of(&ids)) {
        match number.and_then(|number| Some((number, state.beads.at(number)?))) {
            Some((number, entry)) => found.push(Asked::new(0, number, entry)),
            None => unknown.push(*id),
        }
    }
    found.retain(|asked| asked.is_slingable);
    (found, unknown)
}
