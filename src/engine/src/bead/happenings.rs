//! The places in the log that name a bead. They only grow and mostly lie near each other, so the distances between them
//! are kept, in as few bytes as they take: those of a bead that was run once lie in the value itself.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

use crate::Seq;

/// Places in the log, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Happenings {
    /// The distances from each to the next, seven bits a byte; then the last place itself.
    bytes: SmallVec<[u8; 16]>,
}

/// The last place takes so many bytes: no log is longer.
const LAST: usize = 6;
/// Set in all bytes of a distance but its last.
const GOES_ON: u8 = 0x80;

impl Happenings {
    /// The last place.
    pub fn last(&self) -> Option<Seq> {
        let bytes = self.bytes.last_chunk::<LAST>()?;
        let mut word = [0; 8];
        word[..LAST].copy_from_slice(bytes);
        Some(Seq(u64::from_le_bytes(word)))
    }

    /// All places, in their order.
    pub fn all(&self) -> Vec<Seq> {
        let Some(last) = self.last() else { return Vec::new() };
        let mut places = vec![0];
        let (mut distance, mut shift) = (0, 0);
        for byte in &self.bytes[..self.bytes.len() - LAST] {
            distance |= u64::from(byte & !GOES_ON) << shift;
            shift += 7;
            if byte & GOES_ON == 0 {
                places.push(places.last().map_or(0, |place| place + distance));
                (distance, shift) = (0, 0);
            }
        }
        let first = last.0 - places.last().copied().unwrap_or(0);
        places.into_iter().map(|place| Seq(first + place)).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let ends = self.bytes.len().saturating_sub(LAST);
        let distances = self.bytes[..ends].iter().filter(|byte| **byte & GOES_ON == 0).count();
        distances + usize::from(!self.bytes.is_empty())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds a place, unless it is the last one already.
    pub(crate) fn add(&mut self, place: Seq) {
        if let Some(last) = self.last() {
            if last >= place {
                return;
            }
            let mut distance = place.0 - last.0;
            self.bytes.truncate(self.bytes.len() - LAST);
            while distance >= u64::from(GOES_ON) {
                self.bytes.push(distance as u8 | GOES_ON);
                distance >>= 7;
            }
            self.bytes.push(distance as u8);
        }
        self.bytes.extend_from_slice(&place.0.to_le_bytes()[..LAST]);
    }
}

impl FromIterator<Seq> for Happenings {
    fn from_iter<I: IntoIterator<Item = Seq>>(places: I) -> Self {
        let mut happenings = Self::default();
        places.into_iter().for_each(|place| happenings.add(place));
        happenings
    }
}

impl Serialize for Happenings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all())
    }
}

impl<'de> Deserialize<'de> for Happenings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let places = SmallVec::<[Seq; 16]>::deserialize(deserializer)?;
        Ok(places.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_place_is_remembered_in_order_and_once(distances in vec(0..5_000_000_u64, 0..40)) {
            let mut place = 1;
            let mut told = Vec::new();
            for distance in distances {
                place += distance;
                told.push(Seq(place));
            }
            let kept: Happenings = told.iter().copied().collect();
            told.dedup();
            prop_assert_eq!(kept.all(), told.clone());
            prop_assert_eq!((kept.len(), kept.last()), (told.len(), told.last().copied()));
            let stored = serde_json::to_string(&kept).expect("numbers");
            prop_assert_eq!(serde_json::from_str::<Happenings>(&stored).expect("what was written"), kept);
        }
    }

    #[test]
    fn those_of_a_bead_that_was_run_once_lie_in_the_value_itself() {
        let usual = [1_000_001, 1_000_002, 1_090_000, 1_090_700, 1_091_300, 1_091_301];
        let kept: Happenings = usual.into_iter().map(Seq).collect();
        assert!(!kept.bytes.spilled() && size_of::<Happenings>() == 24);
    }
}
