//! The order of a plan: Kahn's sort, wave by wave, and the longest chain through it.
//!
//! First everything the convoy can do by itself is sorted; that gives the waves. Then it goes on as if what lies
//! outside closed too, so that what is left over waits for itself or for something that does.

use super::graph::Graph;
use super::reach::Reach;

const NOBODY: u32 = u32::MAX;

/// The longest chain of members that ends at, or before, a node.
#[derive(Debug, Clone, Copy)]
struct Chain {
    beads: u32,
    last: u32,
}

/// Members in the order they can be done.
pub(super) struct Order {
    /// Each wave by id.
    pub(super) waves: Vec<Vec<u32>>,
    /// For each open member, whether it has a wave.
    has_wave: Vec<bool>,
    /// For each node, how much it still waits for when nothing more can be sorted.
    left: Vec<u32>,
    /// A longest chain of members, the first to be done first.
    pub(super) critical_path: Vec<u32>,
}

impl Order {
    pub(super) fn of(reach: &Reach<'_>, graph: &Graph) -> Self {
        let mut sort = Sort {
            reach,
            graph,
            left: graph.wait_counts().to_vec(),
            before: vec![Chain { beads: 0, last: NOBODY }; graph.len() as usize],
            wave: Vec::new(),
            doors: Vec::new(),
            outside: Vec::new(),
        };
        for node in 0..graph.len() {
            if sort.left[node as usize] == 0 {
                sort.release(node);
            }
        }
        let mut waves = Vec::new();
        let mut has_wave = vec![false; reach.open_members().len()];
        while let Some(wave) = sort.next_wave() {
            for member in &wave {
                has_wave[*member as usize] = true;
                sort.finish(*member);
            }
            waves.push(wave);
        }
        sort.finish_outside();
        let critical_path = sort.longest_chain();
        Self { waves, has_wave, left: sort.left, critical_path }
    }

    /// Whether an open member has a wave.
    pub(super) fn has_wave(&self, member: u32) -> bool {
        self.has_wave[member as usize]
    }

    /// Whether a node waits for itself, or for one that does.
    pub(super) fn is_left_over(&self, node: u32) -> bool {
        self.left[node as usize] > 0
    }
}

struct Sort<'a> {
    reach: &'a Reach<'a>,
    graph: &'a Graph,
    left: Vec<u32>,
    /// The longest chain before each node.
    before: Vec<Chain>,
    /// Members that wait for nothing any more.
    wave: Vec<u32>,
    /// Doors nothing keeps closed any more.
    doors: Vec<u32>,
    /// Beads outside that wait for nothing in the convoy any more.
    outside: Vec<u32>,
}

impl Sort<'_> {
    fn release(&mut self, node: u32) {
        if self.graph.is_door(node) {
            self.doors.push(node);
        } else if self.graph.is_member(self.reach, node) {
            self.wave.push(node);
        } else {
            self.outside.push(node);
        }
    }

    /// Everything that can be done next. Doors take no time.
    fn next_wave(&mut self) -> Option<Vec<u32>> {
        while let Some(door) = self.doors.pop() {
            self.finish(door);
        }
        self.wave.sort_unstable();
        Some(std::mem::take(&mut self.wave)).filter(|wave| !wave.is_empty())
    }

    /// Sorts what comes after beads outside the convoy, in any order.
    fn finish_outside(&mut self) {
        while let Some(node) = self.outside.pop().or_else(|| self.doors.pop()).or_else(|| self.wave.pop()) {
            self.finish(node);
        }
    }

    fn finish(&mut self, node: u32) {
        let chain = self.chain_to(node);
        let graph = self.graph;
        for next in graph.waiting_for(node) {
            let before = &mut self.before[*next as usize];
            if chain.beads > before.beads || (chain.beads == before.beads && chain.last < before.last) {
                *before = chain;
            }
            let left = &mut self.left[*next as usize];
            *left -= 1;
            if *left == 0 {
                self.release(*next);
            }
        }
    }

    fn chain_to(&self, node: u32) -> Chain {
        let before = self.before[node as usize];
        if self.graph.is_member(self.reach, node) {
            Chain { beads: before.beads + 1, last: node }
        } else {
            before
        }
    }

    fn longest_chain(&self) -> Vec<u32> {
        let sorted = self.reach.open_members().filter(|member| self.left[*member as usize] == 0);
        let longest = sorted.map(|member| self.before[member as usize].beads).max();
        let mut ends = self.reach.open_members();
        let ends_it =
            |m: &u32| self.left[*m as usize] == 0 && Some(self.before[*m as usize].beads) == longest;
        let Some(mut at) = ends.find(ends_it) else { return Vec::new() };
        let mut chain = vec![at];
        while self.before[at as usize].last != NOBODY {
            at = self.before[at as usize].last;
            chain.push(at);
        }
        chain.reverse();
        chain
    }
}
