//! Who waits for whom, as arrays. A node is a bead, or a door: what a parent hands down to its children stands behind
//! one door, so that a parent with k blockers and n children costs k + n edges.
//!
//! Invariants: nodes below the number of slots are beads; doors follow, a parent's door before those of its children.
//! Parents that contain each other share a door, so no edges between doors alone make a cycle.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::reach::{Reach, Role};

const NO_DOOR: u32 = u32::MAX;

/// The edges of a plan, from each node to those that wait for it.
pub(super) struct Graph {
    beads: u32,
    /// The door of each bead that hands something down, else `NO_DOOR`.
    door_of: Vec<u32>,
    /// The beads behind each door, by id: one, unless parents contain each other.
    behind: Vec<Vec<u32>>,
    /// How many nodes each node waits for.
    waits: Vec<u32>,
    offsets: Vec<u32>,
    waiting: Vec<u32>,
}

impl Graph {
    pub(super) fn of(reach: &Reach<'_>) -> Self {
        let mut graph = Self {
            beads: reach.len(),
            door_of: vec![NO_DOOR; reach.len() as usize],
            behind: Vec::new(),
            waits: Vec::new(),
            offsets: Vec::new(),
            waiting: Vec::new(),
        };
        graph.hang_doors(reach);
        graph.connect(reach);
        graph
    }

    /// Gives every open parent a door. Components come with what they point at first, hence parents before children.
    fn hang_doors(&mut self, reach: &Reach<'_>) {
        let mut parents: DiGraph<u32, ()> = DiGraph::new();
        for slot in 0..self.beads {
            for parent in reach.waits(slot).iter().filter(|w| w.is_inherited()).map(|w| w.slot()) {
                let door = &mut self.door_of[parent as usize];
                if *door == NO_DOOR {
                    *door = parents.add_node(parent).index() as u32;
                }
            }
        }
        for node in parents.node_indices() {
            for wait in reach.waits(parents[node]).iter().filter(|w| w.is_inherited()) {
                parents.add_edge(node, NodeIndex::new(self.door_of[wait.slot() as usize] as usize), ());
            }
        }
        for together in kosaraju_scc(&parents) {
            let door = self.beads + self.behind.len() as u32;
            let mut slots: Vec<u32> = together.into_iter().map(|node| parents[node]).collect();
            slots.sort_unstable_by_key(|slot| reach.id(*slot));
            for slot in &slots {
                self.door_of[*slot as usize] = door;
            }
            self.behind.push(slots);
        }
    }

    fn connect(&mut self, reach: &Reach<'_>) {
        let nodes = self.len() as usize;
        self.waits = vec![0; nodes];
        let mut ends = vec![0_u32; nodes + 1];
        for node in 0..self.len() {
            let mut count = 0;
            self.each_wait(reach, node, |on| {
                count += 1;
                ends[on as usize] += 1;
            });
            self.waits[node as usize] = count;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let mut waiting = vec![0; sum as usize];
        // Filled from the back, each end moves to where its edges start.
        for node in (0..self.len()).rev() {
            self.each_wait(reach, node, |on| {
                let end = &mut ends[on as usize];
                *end -= 1;
                waiting[*end as usize] = node;
            });
        }
        (self.offsets, self.waiting) = (ends, waiting);
    }

    /// Tells which nodes a node waits for.
    pub(super) fn each_wait(&self, reach: &Reach<'_>, node: u32, mut tell: impl FnMut(u32)) {
        if self.is_door(node) {
            for slot in self.behind(node) {
                self.each_wait_of_bead(reach, *slot, |on| {
                    if on != node {
                        tell(on);
                    }
                });
            }
        } else {
            match self.door_of(node) {
                // What keeps its children from starting keeps it from starting.
                Some(door) => tell(door),
                None => self.each_wait_of_bead(reach, node, tell),
            }
        }
    }

    fn each_wait_of_bead(&self, reach: &Reach<'_>, slot: u32, mut tell: impl FnMut(u32)) {
        for wait in reach.waits(slot) {
            tell(if wait.is_inherited() { self.door_of[wait.slot() as usize] } else { wait.slot() });
        }
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> u32 {
        self.beads + self.behind.len() as u32
    }

    pub(super) fn is_door(&self, node: u32) -> bool {
        node >= self.beads
    }

    /// All doors, parents' before children's.
    pub(super) fn doors(&self) -> std::ops::Range<u32> {
        self.beads..self.len()
    }

    /// The door behind which a bead keeps what it hands down.
    pub(super) fn door_of(&self, slot: u32) -> Option<u32> {
        Some(self.door_of[slot as usize]).filter(|door| *door != NO_DOOR)
    }

    /// The beads that share a door, by id.
    pub(super) fn behind(&self, door: u32) -> &[u32] {
        &self.behind[(door - self.beads) as usize]
    }

    /// The bead a node stands for.
    pub(super) fn bead_of(&self, node: u32) -> u32 {
        if self.is_door(node) { self.behind(node)[0] } else { node }
    }

    /// Whether a node is a bead the convoy would run.
    pub(super) fn is_member(&self, reach: &Reach<'_>, node: u32) -> bool {
        !self.is_door(node) && reach.role(node) == Role::Member
    }

    /// How many nodes each node waits for.
    pub(super) fn wait_counts(&self) -> &[u32] {
        &self.waits
    }

    /// The nodes that wait for this one.
    pub(super) fn waiting_for(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.waiting[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }
}
