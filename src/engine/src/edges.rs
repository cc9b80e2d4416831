//! Edges backwards: from a bead to those that name it, by the numbers that the beads have in the state.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::BeadId;
use crate::bead::Beads;

/// So many holders are kept in a list; more in a map, because an epic may have a million children.
const FEW: usize = 32;

/// Reverse edges: target → holders. Targets need not exist.
#[derive(Debug, Clone, Default)]
pub(crate) struct Edges(Vec<Holders>);

/// The holders of edges to one target, in the order of their ids.
#[derive(Debug, Clone)]
enum Holders {
    Few(SmallVec<[u32; 4]>),
    /// With their ids, because nobody could sort so many each time.
    Many(BTreeMap<BeadId, u32>),
}

impl Default for Holders {
    fn default() -> Self {
        Self::Few(SmallVec::new())
    }
}

impl Edges {
    pub(crate) fn add(&mut self, beads: &Beads, target: u32, holder: u32) {
        let target = target as usize;
        if target >= self.0.len() {
            self.0.resize_with(beads.numbers(), Holders::default);
        }
        self.0[target].insert(beads, holder);
    }

    pub(crate) fn remove(&mut self, beads: &Beads, target: u32, holder: u32) {
        if let Some(holders) = self.0.get_mut(target as usize) {
            holders.remove(beads, holder);
        }
    }

    /// The holders of edges to a target, in the order of their ids; none of one without a number.
    pub(crate) fn of(&self, target: Option<u32>) -> impl Iterator<Item = u32> {
        let holders = target.and_then(|target| self.0.get(target as usize));
        holders.into_iter().flat_map(Holders::iter)
    }

    pub(crate) fn has(&self, beads: &Beads, target: u32, holder: u32) -> bool {
        self.0.get(target as usize).is_some_and(|holders| holders.has(beads, holder))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|holders| holders.iter().count()).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// All edges by id, to be compared with those of another state.
    pub(crate) fn by_id<'a>(&self, beads: &'a Beads) -> BTreeMap<&'a BeadId, Vec<&'a BeadId>> {
        let named = |holders: &Holders| holders.iter().map(|holder| beads.name(holder)).collect::<Vec<_>>();
        let all = (0..).zip(&self.0).map(|(target, holders)| (beads.name(target), named(holders)));
        all.filter(|(_, holders)| !holders.is_empty()).collect()
    }
}

impl Holders {
    fn insert(&mut self, beads: &Beads, holder: u32) {
        match self {
            Self::Few(few) => {
                // Trackers write beads by id, so that most come after those that are there.
                let is_last = few.last().is_none_or(|last| beads.is_before(*last, holder));
                let place = if is_last {
                    few.len()
                } else {
                    few.partition_point(|known| beads.is_before(*known, holder))
                };
                if few.get(place) != Some(&holder) {
                    few.insert(place, holder);
                }
                if few.len() > FEW {
                    *self =
                        Self::Many(few.iter().map(|known| (beads.name(*known).clone(), *known)).collect());
                }
            }
            Self::Many(many) => {
                many.insert(beads.name(holder).clone(), holder);
            }
        }
    }

    fn remove(&mut self, beads: &Beads, holder: u32) {
        match self {
            Self::Few(few) => few.retain(|known| *known != holder),
            Self::Many(many) => {
                many.remove(beads.name(holder));
            }
        }
    }

    fn has(&self, beads: &Beads, holder: u32) -> bool {
        match self {
            Self::Few(few) => few.contains(&holder),
            Self::Many(many) => many.contains_key(beads.name(holder)),
        }
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        let (few, many) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Many(many) => (None, Some(many)),
        };
        few.into_iter().flatten().chain(many.into_iter().flat_map(BTreeMap::values)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> BeadId {
        BeadId::parse(&format!("y-{number:03}")).expect("valid")
    }

    #[test]
    fn holders_come_by_id_however_many_there_are() {
        let mut beads = Beads::default();
        let target = beads.give_number(&id(500));
        let mut edges = Edges::default();
        for number in (0..100).rev() {
            let holder = beads.give_number(&id(number));
            edges.add(&beads, target, holder);
            assert_eq!(edges.count(), 100 - number);
            assert!(edges.of(Some(target)).map(|holder| beads.name(holder)).is_sorted());
        }
        for number in 3..100 {
            let holder = beads.give_number(&id(number));
            edges.remove(&beads, target, holder);
        }
        let mut few = Edges::default();
        for number in [2, 0, 1, 1] {
            let holder = beads.give_number(&id(number));
            few.add(&beads, target, holder);
        }
        assert_eq!(edges.by_id(&beads), few.by_id(&beads));
        let [two, three] = [2, 3].map(|number| beads.give_number(&id(number)));
        assert!(edges.has(&beads, target, two) && !edges.has(&beads, target, three));
    }
}
