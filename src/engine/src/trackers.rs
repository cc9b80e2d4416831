//! The convoys that track one bead: nearly always one, for which nothing is allocated.

use std::collections::BTreeSet;

use crate::ConvoyId;

/// Convoys that track a bead, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trackers {
    One(ConvoyId),
    /// At least two.
    Several(BTreeSet<ConvoyId>),
}

impl Trackers {
    pub(crate) fn add(&mut self, convoy: &ConvoyId) {
        match self {
            Self::One(known) if known == convoy => {}
            Self::One(known) => *self = Self::Several(BTreeSet::from([known.clone(), convoy.clone()])),
            Self::Several(known) => drop(known.insert(convoy.clone())),
        }
    }

    /// Takes a convoy out, unless it is the last: then it says so, and whoever asks has to forget them all.
    pub(crate) fn is_last_or_remove(&mut self, convoy: &ConvoyId) -> bool {
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ConvoyId> {
        let (one, several) = match self {
            Self::One(convoy) => (Some(convoy), None),
            Self::Several(convoys) => (None, Some(convoys)),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }
}
