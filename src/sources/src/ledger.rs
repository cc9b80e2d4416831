//! What is known of a source's records, so that each is parsed once and each change told once.
//!
//! A record is known by the hash of its bytes. Of several records of one bead the latest `updated_at` wins, and of
//! equals the later record. A bead that a reading does not show stays known until its disappearance is certain, which
//! is for the source to say.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;
use yard_engine::bead::Bead;
use yard_engine::{BeadId, RigName, Timestamp};

use crate::details::Descriptions;
use crate::record::Record;

/// Unused hashes that may pile up before they are swept out.
const SLACK: usize = 1024;

/// The records of one source. A reading is `begin`, `take` for each record, `finish`.
pub(crate) struct Ledger {
    rig: RigName,
    known: HashMap<u128, Known, BuildHasherDefault<AlreadyHashed>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    descriptions: Descriptions,
    /// The number of the reading.
    reading: u64,
    /// Records taken in this reading.
    taken: usize,
    /// Beads parsed in this reading, with the hash of their record.
    fresh: Vec<(u32, u128, Arc<Bead>)>,
    #[cfg(test)]
    pub(crate) parses: usize,
}

/// A record whose bytes have been parsed before.
struct Known {
    /// The bead it is about; none if it is no issue.
    slot: Option<u32>,
    updated: Option<Timestamp>,
    seen: u64,
}

/// A bead.
struct Slot {
    id: BeadId,
    /// The record that was told last; none before the first, and after its disappearance was told.
    told: Option<u128>,
    /// The last reading that showed it, and the record that won there.
    seen: u64,
    hash: u128,
    updated: Option<Timestamp>,
    place: Range<usize>,
}

impl Ledger {
    pub(crate) fn new(rig: RigName, descriptions: Descriptions) -> Self {
        Self {
            rig,
            known: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            descriptions,
            reading: 0,
            taken: 0,
            fresh: Vec::new(),
            #[cfg(test)]
            parses: 0,
        }
    }

    pub(crate) fn descriptions(&self) -> &Descriptions {
        &self.descriptions
    }

    /// Starts a reading.
    pub(crate) fn begin(&mut self) {
        self.reading += 1;
        self.taken = 0;
        self.fresh.clear();
    }

    /// Takes the record that starts at `offset` of the text; an error says why it is none.
    pub(crate) fn take(&mut self, json: &[u8], offset: usize) -> Result<(), String> {
        let hash = xxh3_128(json);
        let place = offset..offset + json.len();
        self.taken += 1;
        if let Some(known) = self.known.get_mut(&hash) {
            known.seen = self.reading;
            if let Some(slot) = known.slot {
                let updated = known.updated;
                self.slots[slot as usize].offer(self.reading, hash, updated, place);
            }
            return Ok(());
        }
        #[cfg(test)]
        {
            self.parses += 1;
        }
        let Some(record) = Record::parse(json)? else {
            self.known.insert(hash, Known { slot: None, updated: None, seen: self.reading });
            return Ok(());
        };
        let updated = record.updated_at();
        let slot = self.slot_of(record.id());
        self.slots[slot as usize].offer(self.reading, hash, updated, place);
        self.known.insert(hash, Known { slot: Some(slot), updated, seen: self.reading });
        self.fresh.push((slot, hash, Arc::new(record.into_bead(self.rig.clone()))));
        Ok(())
    }

    /// Ends a reading of `text`: the beads that changed since they were told, or `all` that it shows.
    pub(crate) fn finish(&mut self, text: &[u8], all: bool) -> Vec<Arc<Bead>> {
        let mut beads = Vec::with_capacity(self.fresh.len());
        if all {
            self.slots.iter_mut().for_each(|slot| slot.told = None);
        }
        for (slot, hash, bead) in std::mem::take(&mut self.fresh) {
            let slot = &mut self.slots[slot as usize];
            if slot.hash == hash && slot.told != Some(hash) {
                slot.told = Some(hash);
                beads.push(bead);
            }
        }
        for slot in &mut self.slots {
            // A record that was known but not told, such as the older of two when the newer has gone.
            if slot.seen == self.reading && slot.told != Some(slot.hash) {
                slot.told = Some(slot.hash);
                let record = text.get(slot.place.clone()).and_then(|json| Record::parse(json).ok()?);
                beads.extend(record.map(|record| Arc::new(record.into_bead(self.rig.clone()))));
            }
        }
        if self.known.len() > 2 * self.taken + SLACK {
            self.known.retain(|_, known| known.seen == self.reading);
        }
        beads
    }

    /// Lets the descriptions be found where the last reading found them: in the file, or in what was printed.
    pub(crate) fn publish(&self, printed: Option<Arc<Vec<u8>>>) {
        let place = |slot: &Slot| (slot.seen == self.reading).then(|| slot.place.clone());
        self.descriptions.shelf().replace(self.slots.iter().map(place), printed);
    }

    /// Whether beads that were told are not in the last reading.
    pub(crate) fn lacks_some(&self) -> bool {
        self.slots.iter().any(|slot| slot.is_missing(self.reading))
    }

    /// Whether any bead is believed to be there.
    pub(crate) fn has_beads(&self) -> bool {
        self.slots.iter().any(|slot| slot.told.is_some())
    }

    /// Believes that what the last reading lacks has disappeared.
    pub(crate) fn forget_missing(&mut self) -> Vec<BeadId> {
        let mut gone = Vec::new();
        let mut shelf = self.descriptions.shelf();
        for (number, slot) in (0..).zip(&mut self.slots) {
            if slot.is_missing(self.reading) {
                slot.told = None;
                shelf.forget(&slot.id);
                self.free.push(number);
                gone.push(slot.id.clone());
            }
        }
        drop(shelf);
        if !gone.is_empty() {
            // A slot that may be given to another bead must not be reached by its old records.
            self.known.retain(|_, known| known.seen == self.reading);
        }
        gone
    }

    fn slot_of(&mut self, id: &BeadId) -> u32 {
        let next = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let free = self.free.last().copied().unwrap_or(next);
        let number = self.descriptions.shelf().slot_of(id, free);
        if number == free {
            let slot = Slot { id: id.clone(), told: None, seen: 0, hash: 0, updated: None, place: 0..0 };
            match self.free.pop() {
                Some(number) => self.slots[number as usize] = slot,
                None => self.slots.push(slot),
            }
        }
        number
    }
}

impl Slot {
    fn offer(&mut self, reading: u64, hash: u128, updated: Option<Timestamp>, place: Range<usize>) {
        if self.seen != reading || updated >= self.updated {
            (self.seen, self.hash, self.updated, self.place) = (reading, hash, updated, place);
        }
    }

    fn is_missing(&self, reading: u64) -> bool {
        self.told.is_some() && self.seen != reading
    }
}

/// The keys are hashes already.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

#[cfg(test)]
mod tests;
