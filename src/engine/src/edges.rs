//! Edges backwards: from a bead to those that name it.

use std::collections::BTreeSet;

use crate::BeadId;
use crate::lookup::Lookup;

/// So many holders are kept in a list; more in a set, because an epic may have a million children.
const FEW: usize = 32;

/// Reverse edges: target → holders. Targets need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Edges(Lookup<BeadId, Holders>);

/// The holders of edges to one target, by id. One of the two is empty.
#[derive(Debug, Clone, Default)]
struct Holders {
    few: Vec<BeadId>,
    many: BTreeSet<BeadId>,
}

impl Edges {
    pub(crate) fn add(&mut self, target: &BeadId, holder: &BeadId) {
        self.0.entry(target.clone()).or_default().insert(holder);
    }

    /// Makes room for so many more targets.
    pub(crate) fn reserve(&mut self, targets: usize) {
        self.0.reserve(targets);
    }

    pub(crate) fn remove(&mut self, target: &BeadId, holder: &BeadId) {
        if let Some(holders) = self.0.get_mut(target) {
            holders.remove(holder);
            if holders.len() == 0 {
                self.0.remove(target);
            }
        }
    }

    pub(crate) fn of<'a>(edges: &'a Self, target: &BeadId) -> impl Iterator<Item = &'a BeadId> {
        edges.0.get(target).into_iter().flat_map(Holders::iter)
    }

    pub(crate) fn has(&self, target: &BeadId, holder: &BeadId) -> bool {
        self.0.get(target).is_some_and(|holders| holders.contains(holder))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.values().map(Holders::len).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Holders {
    fn insert(&mut self, holder: &BeadId) {
        if !self.many.is_empty() {
            self.many.insert(holder.clone());
        } else if let Err(place) = self.few.binary_search(holder) {
            self.few.insert(place, holder.clone());
            if self.few.len() > FEW {
                self.many.extend(std::mem::take(&mut self.few));
            }
        }
    }

    fn remove(&mut self, holder: &BeadId) {
        self.many.remove(holder);
        if let Ok(place) = self.few.binary_search(holder) {
            self.few.remove(place);
        }
    }

    fn contains(&self, holder: &BeadId) -> bool {
        self.few.binary_search(holder).is_ok() || self.many.contains(holder)
    }

    fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    fn iter(&self) -> impl Iterator<Item = &BeadId> {
        self.few.iter().chain(&self.many)
    }
}

impl PartialEq for Holders {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Holders {}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> BeadId {
        BeadId::parse(&format!("y-{number:03}")).expect("valid")
    }

    #[test]
    fn holders_come_by_id_however_many_there_are() {
        let mut edges = Edges::default();
        for number in (0..100).rev() {
            edges.add(&id(500), &id(number));
            assert_eq!(edges.count(), 100 - number);
            assert!(Edges::of(&edges, &id(500)).is_sorted());
        }
        for number in 3..100 {
            edges.remove(&id(500), &id(number));
        }
        let mut few = Edges::default();
        for number in [2, 0, 1, 1] {
            few.add(&id(500), &id(number));
        }
        assert_eq!(edges, few);
        assert!(edges.has(&id(500), &id(2)) && !edges.has(&id(500), &id(3)));
    }
}
