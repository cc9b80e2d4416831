//! Who waits for whom, kept up to date edge by edge: closing a bead costs work proportional to its dependents.
//!
//! Invariants: `open_blockers` is the number of blocking edges whose target is unknown, not closed or, if the edge asks
//! for that, not merged; `blocked`
//! holds for a bead with such an edge and for every descendant (by parent-child) of an open bead that has one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use crate::BeadId;
use crate::bead::{Counts, DepKind, Dependency, End};
use crate::state::State;

/// Whether some beads may wait for themselves. While none do, which is the rule, nobody looks for cycles. Where a short
/// look at new edges could not tell, it is found out when somebody asks, once for however many edges came; until then it
/// is not known, as in the beginning.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cycles(OnceLock<bool>);

impl Cycles {
    /// Whether it is known that there are none.
    pub(crate) fn are_ruled_out(&self) -> bool {
        self.0.get() == Some(&false)
    }

    /// Many edges were added at once; cycles that were there stay.
    pub(crate) fn doubt(&mut self) {
        if self.are_ruled_out() {
            *self = Self::default();
        }
    }
}

impl From<bool> for Cycles {
    fn from(possible: bool) -> Self {
        Self(possible.into())
    }
}

/// Beads that are looked at for one edge before the question is put off.
const SHORT_LOOK: usize = 256;

impl State {
    /// Puts a bead's edges into the indexes; those that are there already stay.
    pub(crate) fn index_edges(&mut self, holder: u32) {
        for end in self.beads.ends(holder) {
            if end.blocks() {
                self.dependents.add(&self.beads, end.number(), holder);
            } else if end.is_parent() {
                self.children.add(&self.beads, end.number(), holder);
            }
        }
    }

    /// Takes an edge out of the indexes.
    pub(crate) fn edge_removed(&mut self, holder: &BeadId, target: &BeadId) {
        if let (Some(holder), Some(target)) = (self.beads.number(holder), self.beads.number(target)) {
            self.dependents.remove(&self.beads, target, holder);
            self.children.remove(&self.beads, target, holder);
        }
    }

    /// The number of blocking edges of a bead that hold it back.
    pub(crate) fn count_open_blockers(&self, id: &BeadId) -> u32 {
        self.beads.number(id).map_or(0, |number| self.count_open_blockers_at(number))
    }

    pub(crate) fn count_open_blockers_at(&self, number: u32) -> u32 {
        self.open_blockers_at(number).count() as u32
    }

    /// What a bead itself waits for, by number: the other ends of its blocking edges that are not done.
    pub(crate) fn open_blockers_at(&self, number: u32) -> impl Iterator<Item = u32> {
        let blocking = self.beads.ends(number).iter().filter(|end| end.blocks());
        let is_open = |end: &&End| {
            let on = end.number();
            !self.beads.is_closed_at(on) || (end.awaits_merge() && self.is_unmerged(self.beads.name(on)))
        };
        blocking.filter(is_open).map(|end| end.number())
    }

    /// Recounts one bead's blockers after its edges changed.
    pub(crate) fn recount_blockers(&mut self, id: &BeadId) {
        self.set_open_blockers(id);
        self.spread_blocked(id);
    }

    /// Recounts one bead's blockers; what follows from it for the queue is left to the caller.
    pub(crate) fn set_open_blockers(&mut self, id: &BeadId) {
        let Some(number) = self.beads.number(id) else { return };
        let open_blockers = self.count_open_blockers_at(number);
        if let Some(counts) = self.beads.counts(number) {
            self.beads.set_counts(number, Counts { open_blockers, ..counts });
        }
    }

    /// A bead may have been closed or reopened: adjusts those that wait for it. There is one edge per pair.
    pub(crate) fn closing_changed(&mut self, id: &BeadId, was_closed: bool) {
        let is_closed = self.is_closed(id);
        if was_closed != is_closed {
            self.recount_convoys(id, is_closed);
            // Those that wait for its merge go on waiting, or do so already.
            let unmerged = self.is_unmerged(id);
            let dependents: Vec<BeadId> = self.dependents_of(id).cloned().collect();
            for dependent in dependents {
                if !(unmerged && self.awaits_merge_of(&dependent, id)) {
                    self.adjust_open_blockers(&dependent, is_closed);
                }
            }
        }
        // A closed ancestor no longer hands its blockers down.
        self.spread_blocked(id);
    }

    /// The branch of a bead may have come to be, or into its base: adjusts those that wait for that.
    pub(crate) fn merging_changed(&mut self, id: &BeadId, was_unmerged: bool) {
        let is_unmerged = self.is_unmerged(id);
        // While it is open, everybody waits for it anyway.
        if was_unmerged == is_unmerged || !self.is_closed(id) {
            return;
        }
        let dependents: Vec<BeadId> = self.dependents_of(id).cloned().collect();
        for dependent in dependents {
            if self.awaits_merge_of(&dependent, id) {
                self.adjust_open_blockers(&dependent, was_unmerged);
            }
        }
    }

    /// Whether one bead waits for another to be merged, not only closed.
    pub(crate) fn awaits_merge_of(&self, holder: &BeadId, on: &BeadId) -> bool {
        let edges = self.beads.get(holder).into_iter().flat_map(|entry| &entry.bead.dependencies);
        edges.into_iter().any(|edge| edge.on == *on && edge.kind == DepKind::MergeBlocks)
    }

    /// One more of its blockers is done, or no longer is.
    fn adjust_open_blockers(&mut self, holder: &BeadId, is_done: bool) {
        let Some(number) = self.beads.number(holder) else { return };
        let Some(counts) = self.beads.counts(number) else { return };
        let count = counts.open_blockers;
        let count = if is_done { count.saturating_sub(1) } else { count + 1 };
        self.beads.set_counts(number, Counts { open_blockers: count, ..counts });
        if count == 0 || (count == 1 && !is_done) {
            self.spread_blocked(holder);
        }
    }

    /// Recomputes `blocked` for a bead and its descendants, and tells the queue about each.
    pub(crate) fn spread_blocked(&mut self, id: &BeadId) {
        if self.children_of(id).next().is_none() {
            return self.set_blocked(id);
        }
        let mut pending = vec![id.clone()];
        let mut seen = BTreeSet::new();
        while let Some(next) = pending.pop() {
            if !seen.insert(next.clone()) {
                continue;
            }
            pending.extend(self.children_of(&next).cloned());
            self.set_blocked(&next);
        }
    }

    fn set_blocked(&mut self, id: &BeadId) {
        let blocked = self.derive_blocked(id);
        if let Some(number) = self.beads.number(id)
            && let Some(counts) = self.beads.counts(number)
        {
            self.beads.set_counts(number, Counts { blocked, ..counts });
        }
        // Nothing about a bead at rest depends on it.
        if !self.beads.is_at_rest(id) {
            self.refresh_bead(id);
        }
    }

    /// Whether a bead, or an open ancestor of it, has an open blocker. Parent cycles are walked once.
    pub(crate) fn derive_blocked(&self, id: &BeadId) -> bool {
        self.beads.number(id).is_some_and(|number| self.derive_blocked_at(number))
    }

    pub(crate) fn derive_blocked_at(&self, number: u32) -> bool {
        let Some(counts) = self.beads.counts(number) else { return false };
        if counts.open_blockers > 0 {
            return true;
        }
        let parents =
            |number| self.beads.ends(number).iter().filter(|end| end.is_parent()).map(|end| end.number());
        let mut pending: Vec<u32> = parents(number).collect();
        if pending.is_empty() {
            return false;
        }
        let mut seen = BTreeSet::from([number]);
        while let Some(next) = pending.pop() {
            let Some(ancestor) = self.beads.counts(next) else { continue };
            if self.beads.is_closed_at(next) || !seen.insert(next) {
                continue;
            }
            if ancestor.open_blockers > 0 {
                return true;
            }
            pending.extend(parents(next));
        }
        false
    }

    /// The parents a bead names.
    pub fn parents_of(&self, id: &BeadId) -> impl Iterator<Item = &BeadId> {
        let edges = self.beads.get(id).into_iter().flat_map(|e| e.bead.dependencies.iter());
        edges.filter(|d| d.kind == DepKind::ParentChild).map(|d| &d.on)
    }

    /// What a bead waits for: each blocking edge to a bead that is not closed, of its own or of an open ancestor.
    /// Nearest first; the holder of the edge comes along.
    pub(crate) fn waits_for(&self, id: &BeadId) -> Vec<(BeadId, BeadId)> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::from([id.clone()]);
        let mut generation = vec![id.clone()];
        while !generation.is_empty() {
            let mut parents = Vec::new();
            for holder in generation {
                let Some(entry) = self.beads.get(&holder) else { continue };
                if holder != *id && entry.bead.is_closed() {
                    continue;
                }
                let blocking = entry.bead.dependencies.iter().filter(|d| d.kind.blocks());
                let open = blocking.filter(|d| {
                    let awaits_merge = d.kind == DepKind::MergeBlocks && self.is_unmerged(&d.on);
                    awaits_merge || !self.is_closed(&d.on)
                });
                found.extend(open.map(|d| (holder.clone(), d.on.clone())));
                parents.extend(self.parents_of(&holder).filter(|p| seen.insert((*p).clone())).cloned());
            }
            generation = parents;
        }
        found
    }

    /// How the holder's tracker names the other end of an edge.
    pub(crate) fn name_of_edge<'a>(&'a self, holder: &BeadId, on: &'a BeadId) -> &'a str {
        let edges = self.beads.get(holder).into_iter().flat_map(|entry| &entry.bead.dependencies);
        edges.into_iter().find(|edge| edge.on == *on).map_or(on.as_str(), Dependency::target)
    }

    /// A path from `from` to `to` along the edges that make one open bead wait for another, if there is one; a new
    /// edge `to → from` would close it to a cycle. Parents count, because blockers are inherited from them.
    pub(crate) fn waiting_path(&self, from: &BeadId, to: &BeadId) -> Option<Vec<BeadId>> {
        if from != to && !self.is_awaited(to) {
            return None;
        }
        let mut came_from: BTreeMap<BeadId, Option<BeadId>> = BTreeMap::from([(from.clone(), None)]);
        let mut pending = vec![from.clone()];
        while let Some(next) = pending.pop() {
            if next == *to {
                let mut path = vec![next.clone()];
                let mut at = next;
                while let Some(Some(previous)) = came_from.get(&at) {
                    path.push(previous.clone());
                    at = previous.clone();
                }
                path.reverse();
                return Some(path);
            }
            let Some(entry) = self.beads.get(&next).filter(|e| !e.bead.is_closed()) else { continue };
            for edge in entry.bead.dependencies.iter().filter(|d| d.kind.makes_wait()) {
                if !came_from.contains_key(&edge.on) {
                    came_from.insert(edge.on.clone(), Some(next.clone()));
                    pending.push(edge.on.clone());
                }
            }
        }
        None
    }

    /// Notices whether this bead's edges close a cycle, be it through closed beads, which may be reopened. A look that
    /// would take long is left for whoever asks.
    pub(crate) fn watch_for_cycles(&mut self, id: &BeadId) {
        if !self.cycles.are_ruled_out() || !self.is_awaited(id) {
            return;
        }
        let Some(entry) = self.beads.get(id) else { return };
        let edges = entry.bead.dependencies.iter().filter(|d| d.kind.makes_wait());
        self.cycles = self.look_for(id, edges.map(|d| &d.on));
    }

    /// Whether one of these beads waits for `wanted`, as far as a short look can tell.
    fn look_for<'a>(&'a self, wanted: &BeadId, from: impl Iterator<Item = &'a BeadId>) -> Cycles {
        let mut pending: Vec<&BeadId> = from.collect();
        let mut seen: BTreeSet<&BeadId> = pending.iter().copied().collect();
        while let Some(next) = pending.pop() {
            if next == wanted {
                return Cycles::from(true);
            }
            let edges = self.beads.get(next).into_iter().flat_map(|entry| &entry.bead.dependencies);
            for edge in edges.filter(|d| d.kind.makes_wait()) {
                if seen.insert(&edge.on) {
                    pending.push(&edge.on);
                }
            }
            if seen.len() > SHORT_LOOK {
                return Cycles::default();
            }
        }
        Cycles::from(false)
    }

    /// Whether some beads may wait for themselves.
    pub(crate) fn may_cycle(&self) -> bool {
        *self.cycles.0.get_or_init(|| self.derive_may_cycle())
    }

    /// Whether taking away, again and again, beads that wait for no other leaves some over.
    pub(crate) fn derive_may_cycle(&self) -> bool {
        let numbers = 0..self.beads.numbers() as u32;
        // A bead that nobody has waits for nothing, and is taken away like any other.
        let waits_for = |number: u32| {
            let ends = self.beads.ends(number).iter().filter(|end| end.makes_wait());
            ends.map(|end| end.number() as usize)
        };
        // From each bead to those that wait for it: of bead n, `waiting[starts[n]..starts[n + 1]]`.
        let mut starts = vec![0_u32; numbers.len() + 1];
        let mut left = vec![0_u32; numbers.len()];
        for number in numbers.clone() {
            for on in waits_for(number) {
                starts[on] += 1;
                left[number as usize] += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut waiting = vec![0_u32; sum as usize];
        for number in numbers.clone() {
            for on in waits_for(number) {
                starts[on] -= 1;
                waiting[starts[on] as usize] = number;
            }
        }
        let mut free: Vec<u32> = numbers.filter(|number| left[*number as usize] == 0).collect();
        let mut freed = 0;
        while let Some(number) = free.pop() {
            freed += 1;
            let number = number as usize;
            for next in &waiting[starts[number] as usize..starts[number + 1] as usize] {
                let left = &mut left[*next as usize];
                *left -= 1;
                if *left == 0 {
                    free.push(*next);
                }
            }
        }
        freed < self.beads.numbers()
    }

    /// Whether some bead names this one as a blocker or a parent already.
    pub(crate) fn is_awaited(&self, id: &BeadId) -> bool {
        self.dependents_of(id).chain(self.children_of(id)).next().is_some()
    }
}
