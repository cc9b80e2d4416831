//! Beads that wait for themselves. Only what the sort left over is looked at, and every knot of beads that wait for
//! each other is reported: with a path for each bead in it, as long as the paths stay proportional to the knot.

use std::collections::VecDeque;

use petgraph::Direction::{self, Incoming, Outgoing};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::graph::Graph;
use super::reach::Reach;
use super::waves::Order;

/// All paths of a knot together may name this many beads, or each of its beads this often.
const NAMED_ALWAYS: usize = 10_000;
const NAMED_PER_BEAD: usize = 8;

/// Beads that wait for each other, in a circle or in several.
#[derive(Debug, Default)]
pub(super) struct Knot {
    /// Circles of slots: each waits for the next, the last for the first, which has the smallest id.
    pub(super) paths: Vec<Vec<u32>>,
    /// Beads of the knot on none of these paths, because naming more would take too long.
    pub(super) others: Vec<u32>,
}

/// The knots of a plan.
pub(super) struct Cycles {
    pub(super) knots: Vec<Knot>,
    tied: Vec<bool>,
}

impl Cycles {
    pub(super) fn of(reach: &Reach<'_>, graph: &Graph, order: &Order) -> Self {
        let mut cycles = Self { knots: Vec::new(), tied: vec![false; reach.len() as usize] };
        let waits = left_over(reach, graph, order);
        let components = kosaraju_scc(&waits);
        let mut untangler = Untangler::new(reach, &waits, &components);
        for mut component in components {
            component.sort_unstable();
            if component.len() > 1 || waits.contains_edge(component[0], component[0]) {
                cycles.knots.push(untangler.untangle(&component, &mut cycles.tied));
            }
        }
        cycles
    }

    /// Whether a bead waits for itself.
    pub(super) fn has(&self, slot: u32) -> bool {
        self.tied[slot as usize]
    }
}

/// What the sort left over: each node waits for its neighbours, and stands for the bead in its slot. By id.
fn left_over(reach: &Reach<'_>, graph: &Graph, order: &Order) -> DiGraph<u32, ()> {
    let mut nodes: Vec<u32> = (0..graph.len()).filter(|node| order.is_left_over(*node)).collect();
    nodes.sort_unstable_by_key(|node| (reach.id(graph.bead_of(*node)), *node));
    let mut waits = DiGraph::with_capacity(nodes.len(), nodes.len());
    if nodes.is_empty() {
        return waits;
    }
    let mut index = vec![NodeIndex::end(); graph.len() as usize];
    for node in &nodes {
        index[*node as usize] = waits.add_node(graph.bead_of(*node));
    }
    for node in &nodes {
        graph.each_wait(reach, *node, |on| {
            if order.is_left_over(on) {
                waits.add_edge(index[*node as usize], index[on as usize], ());
            }
        });
    }
    waits
}

/// Finds circles. Two trees of shortest paths, away from the first bead of a component and back to it, give one through
/// any other bead in time proportional to the length of that circle.
struct Untangler<'a> {
    reach: &'a Reach<'a>,
    waits: &'a DiGraph<u32, ()>,
    component_of: Vec<u32>,
    /// For each node, who waits for it on the shortest way from the first of its component.
    back: Vec<NodeIndex>,
    /// For each node, what it waits for on the shortest way to the first of its component.
    home: Vec<NodeIndex>,
    /// The walk that last came by on its way home, and on its way back.
    seen_home: Vec<u32>,
    seen_back: Vec<u32>,
    walks: u32,
}

impl<'a> Untangler<'a> {
    fn new(reach: &'a Reach<'a>, waits: &'a DiGraph<u32, ()>, components: &[Vec<NodeIndex>]) -> Self {
        let nodes = waits.node_count();
        let mut component_of = vec![0; nodes];
        for (number, component) in components.iter().enumerate() {
            for node in component {
                component_of[node.index()] = number as u32;
            }
        }
        let nowhere = vec![NodeIndex::end(); nodes];
        Self {
            reach,
            waits,
            component_of,
            back: nowhere.clone(),
            home: nowhere,
            seen_home: vec![0; nodes],
            seen_back: vec![0; nodes],
            walks: 0,
        }
    }

    /// Paths through all beads of a component, which are marked as tied.
    fn untangle(&mut self, component: &[NodeIndex], tied: &mut [bool]) -> Knot {
        let first = component[0];
        let mut knot = Knot::default();
        let mut named = 0;
        let most = NAMED_ALWAYS.max(component.len() * NAMED_PER_BEAD);
        let shortest = self.spread(first, Outgoing);
        self.spread(first, Incoming);
        for node in component {
            let slot = self.waits[*node];
            if tied[slot as usize] {
                continue;
            }
            if named > most {
                tied[slot as usize] = true;
                knot.others.push(slot);
                continue;
            }
            let nodes = if *node == first { shortest.clone() } else { self.circle_through(*node, first) };
            let path = self.path_of_beads(&nodes);
            for slot in &path {
                tied[*slot as usize] = true;
            }
            named += path.len();
            knot.paths.push(path);
        }
        knot
    }

    /// Breadth first through the component of `first`. Along the waits it answers with a shortest circle through it.
    fn spread(&mut self, first: NodeIndex, direction: Direction) -> Vec<NodeIndex> {
        let steps = if direction == Outgoing { &mut self.back } else { &mut self.home };
        let mut closing = None;
        let mut pending = VecDeque::from([first]);
        steps[first.index()] = first;
        while let Some(node) = pending.pop_front() {
            let mut next: Vec<NodeIndex> = self.waits.neighbors_directed(node, direction).collect();
            next.sort_unstable();
            for near in next {
                if near == first {
                    closing.get_or_insert(node);
                }
                let within = self.component_of[near.index()] == self.component_of[first.index()];
                if within && steps[near.index()] == NodeIndex::end() {
                    steps[near.index()] = node;
                    pending.push_back(near);
                }
            }
        }
        let mut circle: Vec<NodeIndex> = closing.into_iter().collect();
        while let Some(node) = circle.last().filter(|node| **node != first) {
            circle.push(steps[node.index()]);
        }
        circle.reverse();
        circle
    }

    /// A circle through a node other than the first: home towards the first and back from it, one step each in turn,
    /// until the two ways meet.
    fn circle_through(&mut self, node: NodeIndex, first: NodeIndex) -> Vec<NodeIndex> {
        self.walks += 1;
        let (mut home, mut back) = (vec![node], vec![node]);
        loop {
            if let Some(meeting) =
                step(&mut home, first, &self.home, &mut self.seen_home, &self.seen_back, self.walks)
            {
                back.truncate(back.iter().position(|n| *n == meeting).unwrap_or(back.len()));
                break;
            }
            if let Some(meeting) =
                step(&mut back, first, &self.back, &mut self.seen_back, &self.seen_home, self.walks)
            {
                back.pop();
                home.truncate(home.iter().position(|n| *n == meeting).map_or(home.len(), |at| at + 1));
                break;
            }
        }
        home.extend(back.into_iter().skip(1).rev());
        home
    }

    /// The beads of a circle, from the smallest id; a bead and its own door are named once.
    fn path_of_beads(&self, nodes: &[NodeIndex]) -> Vec<u32> {
        let mut path: Vec<u32> = nodes.iter().map(|node| self.waits[*node]).collect();
        path.dedup();
        if path.len() > 1 && path.first() == path.last() {
            path.pop();
        }
        if let [alone] = path.as_slice() {
            // It waits for itself through a parent that contains it and is contained in it: both are named.
            let parents = self.reach.waits(*alone).iter().filter(|wait| wait.is_inherited());
            path.extend(parents.map(|wait| wait.slot()).find(|parent| parent != alone));
        }
        let smallest = (0..path.len()).min_by_key(|at| self.reach.id(path[*at])).unwrap_or(0);
        path.rotate_left(smallest);
        path
    }
}

/// Takes a way one step further, unless it has arrived; answers with the node where it meets the other way.
fn step(
    way: &mut Vec<NodeIndex>,
    first: NodeIndex,
    steps: &[NodeIndex],
    seen: &mut [u32],
    seen_by_other: &[u32],
    walk: u32,
) -> Option<NodeIndex> {
    let last = *way.last()?;
    if last == first {
        return None;
    }
    let next = steps[last.index()];
    way.push(next);
    seen[next.index()] = walk;
    (seen_by_other[next.index()] == walk).then_some(next)
}
