//! The chained checksum. Each event's sum covers its place, time, kind and body and is seeded with the sum before
//! it, so a changed, lost, swapped or inserted row breaks the chain exactly there.

use xxhash_rust::xxh3::xxh3_64_with_seed;
use yard_engine::Seq;

/// The sum before the first event ever.
pub(crate) const GENESIS: u64 = 0;

/// Sets entity seals apart from event sums.
const ENTITY_SEED: u64 = 0x7961_7264;

/// Sets the seal of the journal's own notes apart from both.
const NOTES_SEED: u64 = 0x6e6f_7465;

/// What the entities of a checkpoint come to, in whatever order they lie: one that is missing or too many shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Content {
    pub(crate) entities: u64,
    /// The sum of their seals.
    pub(crate) digest: u64,
}

impl Content {
    /// With an entity of this seal.
    pub(crate) fn add(&mut self, seal: u64) {
        self.entities = self.entities.wrapping_add(1);
        self.digest = self.digest.wrapping_add(seal);
    }

    /// Without an entity of this seal.
    pub(crate) fn remove(&mut self, seal: u64) {
        self.entities = self.entities.wrapping_sub(1);
        self.digest = self.digest.wrapping_sub(seal);
    }
}

/// Computes sums; keeps its buffer, so that a row costs no allocation.
#[derive(Default)]
pub(crate) struct Sealer {
    buffer: Vec<u8>,
}

impl Sealer {
    /// The sum of an event that follows the one with the sum `previous`.
    pub(crate) fn event(&mut self, previous: u64, seq: Seq, at: i64, kind: &[u8], body: &[u8]) -> u64 {
        self.buffer.clear();
        self.buffer.extend_from_slice(&seq.0.to_le_bytes());
        self.buffer.extend_from_slice(&at.to_le_bytes());
        self.field(kind);
        self.buffer.extend_from_slice(body);
        xxh3_64_with_seed(&self.buffer, previous)
    }

    /// The seal of one entity of a checkpoint. Not chained: entities are rewritten one by one.
    pub(crate) fn entity(&mut self, kind: &[u8], id: &[u8], body: &[u8]) -> u64 {
        self.buffer.clear();
        self.field(kind);
        self.field(id);
        self.buffer.extend_from_slice(body);
        xxh3_64_with_seed(&self.buffer, ENTITY_SEED)
    }

    /// The seal of the journal's own notes.
    pub(crate) fn notes(&mut self, notes: [u64; 5]) -> u64 {
        self.buffer.clear();
        for note in notes {
            self.buffer.extend_from_slice(&note.to_le_bytes());
        }
        xxh3_64_with_seed(&self.buffer, NOTES_SEED)
    }

    /// A length before each inner field, so that text cannot move from one field to the next unnoticed.
    fn field(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.buffer.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_event_and_its_past_changes_the_sum() {
        let mut sealer = Sealer::default();
        let sum = sealer.event(GENESIS, Seq(1), 5, b"bead.closed", b"{}");
        for other in [
            sealer.event(1, Seq(1), 5, b"bead.closed", b"{}"),
            sealer.event(GENESIS, Seq(2), 5, b"bead.closed", b"{}"),
            sealer.event(GENESIS, Seq(1), 6, b"bead.closed", b"{}"),
            sealer.event(GENESIS, Seq(1), 5, b"bead.close", b"d{}"),
            sealer.event(GENESIS, Seq(1), 5, b"bead.closed", b"[]"),
        ] {
            assert_ne!(sum, other);
        }
    }

    /// The sums are on users' disks: they may never change.
    #[test]
    fn the_sum_of_a_known_event_is_pinned() {
        let mut sealer = Sealer::default();
        let first = sealer.event(GENESIS, Seq(1), 1_700_000_000_123, b"bead.closed", br#"{"id":"gt-abc"}"#);
        let second = sealer.event(first, Seq(2), 1_700_000_000_124, b"bead.closed", br#"{"id":"gt-abd"}"#);
        assert_eq!((first, second), (8_937_526_962_886_941_124, 792_808_726_009_589_389));
        assert_eq!(sealer.entity(b"bead", b"gt-abc", b"{}"), 17_415_052_830_670_219_638);
        assert_eq!(sealer.notes([1, 2, 3, 4, 5]), 9_828_478_866_351_835_460);
    }
}
