//! Which convoys track which beads, by the numbers that the beads have in the state. Nearly always it is one, for which
//! nothing is allocated.

use std::collections::BTreeSet;

use crate::ConvoyId;

/// Who tracks whom.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracking(Vec<Option<Trackers>>);

impl Tracking {
    pub(crate) fn add(&mut self, number: u32, convoy: &ConvoyId) {
        let number = number as usize;
        if number >= self.0.len() {
            self.0.resize(number + 1, None);
        }
        match &mut self.0[number] {
            Some(trackers) => trackers.add(convoy),
            none => *none = Some(Trackers::One(convoy.clone())),
        }
    }

    pub(crate) fn remove(&mut self, number: u32, convoy: &ConvoyId) {
        if let Some(trackers) = self.0.get_mut(number as usize)
            && trackers.as_mut().is_some_and(|trackers| trackers.is_last_or_remove(convoy))
        {
            *trackers = None;
        }
    }

    /// The convoys that track a bead, by id; none of one without a number.
    pub(crate) fn of(&self, number: Option<u32>) -> impl Iterator<Item = &ConvoyId> {
        let trackers = number.and_then(|number| self.0.get(number as usize)?.as_ref());
        trackers.into_iter().flat_map(Trackers::iter)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many pairs there are.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().flatten().map(|trackers| trackers.iter().count()).sum()
    }
}

/// Convoys that track a bead, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trackers {
    One(ConvoyId),
    /// At least two.
    Several(BTreeSet<ConvoyId>),
}

impl Trackers {
    fn add(&mut self, convoy: &ConvoyId) {
        match self {
            Self::One(known) if known == convoy => {}
            Self::One(known) => *self = Self::Several(BTreeSet::from([known.clone(), convoy.clone()])),
            Self::Several(known) => drop(known.insert(convoy.clone())),
        }
    }

    /// Takes a convoy out, unless it is the last: then it says so, and whoever asks has to forget them all.
    fn is_last_or_remove(&mut self, convoy: &ConvoyId) -> bool {
        match self {
            Self::One(known) => known == convoy,
            Self::Several(known) => {
                known.remove(convoy);
                if let (1, Some(last)) = (known.len(), known.first()) {
                    *self = Self::One(last.clone());
                }
                false
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &ConvoyId> {
        let (one, several) = match self {
            Self::One(convoy) => (Some(convoy), None),
            Self::Several(convoys) => (None, Some(convoys)),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }
}
