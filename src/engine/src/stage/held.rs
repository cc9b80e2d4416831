//! Members without a wave, and what keeps each from getting one.

use super::Gated;
use super::cycles::Cycles;
use super::graph::Graph;
use super::reach::{Reach, Role};
use super::waves::Order;

/// How many inherited blockers are named; otherwise k blockers of a parent with n children would be k times n names.
const INHERITED: usize = 10;

/// What holds something up: beads the convoy will not run, and members without a wave.
#[derive(Debug, Clone, Default)]
struct Held {
    outside: Vec<u32>,
    stuck: Vec<u32>,
}

impl Held {
    /// Notes the open beads that one waits for by itself.
    fn note_own(&mut self, reach: &Reach<'_>, order: &Order, slot: u32) {
        for on in reach.waits(slot).iter().filter(|w| !w.is_inherited()).map(|w| w.slot()) {
            match reach.role(on) {
                Role::Outside | Role::Missing => self.outside.push(on),
                Role::Member if !order.has_wave(on) => self.stuck.push(on),
                Role::Member | Role::Closed => {}
            }
        }
    }

    fn note_inherited(&mut self, inherited: &Self) {
        self.outside.extend(&inherited.outside);
        self.stuck.extend(&inherited.stuck);
    }

    fn shorten(&mut self) {
        for list in [&mut self.outside, &mut self.stuck] {
            let mut seen = Vec::with_capacity(INHERITED);
            for slot in list.iter() {
                if seen.len() < INHERITED && !seen.contains(slot) {
                    seen.push(*slot);
                }
            }
            *list = seen;
        }
    }
}

/// Every open member that no wave reaches and that does not wait for itself, by id.
pub(super) fn gated(reach: &Reach<'_>, graph: &Graph, order: &Order, cycles: &Cycles) -> Vec<Gated> {
    let stuck: Vec<u32> =
        reach.open_members().filter(|member| !order.has_wave(*member) && !cycles.has(*member)).collect();
    if stuck.is_empty() {
        return Vec::new();
    }
    let handed_down = handed_down(reach, graph, order);
    let first_door = graph.doors().start;
    let parents = |slot: u32| {
        let inherited = reach.waits(slot).iter().filter(|w| w.is_inherited());
        inherited
            .filter_map(|w| graph.door_of(w.slot()))
            .map(|door| &handed_down[(door - first_door) as usize])
    };
    let gated_by = |member: u32| {
        let (mut own, mut inherited) = (Held::default(), Held::default());
        own.note_own(reach, order, member);
        parents(member).for_each(|held| inherited.note_inherited(held));
        inherited.shorten();
        own.note_inherited(&inherited);
        let mut by = if own.outside.is_empty() { own.stuck } else { own.outside };
        by.sort_unstable_by_key(|slot| reach.id(*slot));
        by.dedup();
        by.into_iter().map(|slot| reach.id(slot).clone()).collect()
    };
    stuck
        .into_iter()
        .map(|member| Gated { id: reach.id(member).clone(), gated_by: gated_by(member) })
        .collect()
}

/// For each door, the nearest of what holds up whoever stands before it.
fn handed_down(reach: &Reach<'_>, graph: &Graph, order: &Order) -> Vec<Held> {
    let first_door = graph.doors().start;
    let mut handed_down: Vec<Held> = Vec::with_capacity(graph.doors().len());
    for door in graph.doors() {
        let mut held = Held::default();
        for slot in graph.behind(door) {
            held.note_own(reach, order, *slot);
        }
        held.shorten();
        graph.each_wait(reach, door, |on| {
            // Parents' doors come before those of their children.
            if graph.is_door(on) {
                held.note_inherited(&handed_down[(on - first_door) as usize]);
            }
        });
        held.shorten();
        handed_down.push(held);
    }
    handed_down
}
