//! What a bead waits for, its own blockers and those it inherits. Many beads share their ancestors, so what an ancestor
//! hands down is looked up once.

use std::collections::{BTreeMap, BTreeSet};

use yard_engine::bead::{Bead, DepKind};
use yard_engine::{BeadId, State};

/// Of what a bead inherits, only the nearest are named: a chain of a thousand parents would name a thousand each time.
const INHERITED: usize = 10;

/// Looks blockers up, and remembers what parents hand down.
pub(super) struct Blockers<'a> {
    state: &'a State,
    handed_down: BTreeMap<&'a BeadId, Vec<&'a BeadId>>,
}

impl<'a> Blockers<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        Self { state, handed_down: BTreeMap::new() }
    }

    /// The beads this one waits for: all of its own, of which `open` are not closed, and the nearest of its open
    /// ancestors'; each once. They are put in place of what was found before.
    pub(super) fn find(&mut self, bead: &'a Bead, open: usize, found: &mut Vec<&'a BeadId>) {
        found.clear();
        found.extend(self.own(bead, open));
        let own = found.len();
        for parent in bead.dependencies.iter().filter(|edge| edge.kind == DepKind::ParentChild) {
            found.extend(self.handed_down_by(&parent.on));
        }
        // There is one edge per pair.
        if found.len() > own {
            let mut seen = BTreeSet::new();
            found.retain(|on| seen.insert(*on));
        }
    }

    /// Blocking edges to beads that are not closed, or that nobody has.
    fn own(&self, bead: &'a Bead, open: usize) -> impl Iterator<Item = &'a BeadId> + use<'a> {
        let state = self.state;
        let edges = bead.dependencies.iter().filter(|edge| edge.kind.blocks());
        // Mostly all are open, and nobody has to look.
        let all = edges.clone().count() == open;
        let blocking = edges.map(|edge| &edge.on);
        blocking.filter(move |on| all || state.bead(on).is_none_or(|entry| !entry.bead.is_closed()))
    }

    /// What an ancestor hands down, nearest first. Its own ancestors come first, without recursion.
    fn handed_down_by(&mut self, parent: &'a BeadId) -> &[&'a BeadId] {
        let is_known = self.handed_down.contains_key(parent);
        let mut steps = if is_known { Vec::new() } else { vec![Step::Enter(parent)] };
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter(ancestor) => {
                    if self.handed_down.contains_key(ancestor) {
                        continue;
                    }
                    // Ancestors that contain each other meet themselves here, with nothing yet.
                    self.handed_down.insert(ancestor, Vec::new());
                    // A closed one hands nothing down.
                    if self.state.bead(ancestor).is_some_and(|entry| !entry.bead.is_closed()) {
                        steps.push(Step::Leave(ancestor));
                        steps.extend(self.state.parents_of(ancestor).map(Step::Enter));
                    }
                }
                Step::Leave(ancestor) => {
                    let above = self.state.parents_of(ancestor);
                    let above = above.filter_map(|parent| self.handed_down.get(parent)).flatten().copied();
                    let own = self.state.bead(ancestor).into_iter();
                    let own = own.flat_map(|entry| self.own(&entry.bead, entry.open_blockers()));
                    let found = own.chain(above).take(INHERITED).collect();
                    self.handed_down.insert(ancestor, found);
                }
            }
        }
        self.handed_down.get(parent).map(Vec::as_slice).unwrap_or_default()
    }
}

/// A way through the ancestors of a bead.
enum Step<'a> {
    Enter(&'a BeadId),
    Leave(&'a BeadId),
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Town, bead_id};
    use super::*;

    fn of(town: &Town, id: &str) -> Vec<String> {
        let entry = town.0.bead(&bead_id(id)).expect("a bead");
        let mut found = Vec::new();
        Blockers::new(&town.0).find(&entry.bead, entry.open_blockers(), &mut found);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn blockers_are_its_own_and_those_of_open_ancestors() {
        let mut town = Town::new();
        for id in ["shop-x", "shop-y", "shop-done"] {
            town.bead(id, "task", &[]);
        }
        town.close("shop-done");
        town.bead(
            "shop-e1",
            "epic",
            &[("shop-y", "blocks"), ("nobody-z", "waits-for"), ("shop-done", "blocks")],
        );
        town.bead("shop-e2", "epic", &[("shop-e1", "parent-child"), ("shop-x", "blocks")]);
        town.bead(
            "shop-a",
            "task",
            &[("shop-e2", "parent-child"), ("shop-x", "blocks"), ("shop-y", "related")],
        );
        assert_eq!(of(&town, "shop-a"), ["shop-x", "shop-y", "nobody-z"]);
        town.close("shop-e2");
        assert_eq!(of(&town, "shop-a"), ["shop-x"]);
    }

    #[test]
    fn parents_that_contain_each_other_and_deep_chains_come_to_an_end() {
        let mut town = Town::new();
        town.bead("shop-p", "epic", &[("shop-q", "parent-child"), ("shop-x", "blocks")]);
        town.bead("shop-q", "epic", &[("shop-p", "parent-child"), ("shop-y", "blocks")]);
        town.bead("shop-a", "task", &[("shop-p", "parent-child")]);
        assert_eq!(of(&town, "shop-a"), ["shop-x", "shop-y"]);
        town.bead("shop-0", "epic", &[("shop-p", "parent-child")]);
        for n in 1..5000 {
            let (id, parent, blocker) =
                (format!("shop-{n}"), format!("shop-{}", n - 1), format!("nobody-{n}"));
            town.bead(&id, "epic", &[(&parent, "parent-child"), (&blocker, "blocks")]);
        }
        let found = of(&town, "shop-4999");
        assert_eq!((found.len(), found[0].as_str(), found[1].as_str()), (11, "nobody-4999", "nobody-4998"));
    }
}
