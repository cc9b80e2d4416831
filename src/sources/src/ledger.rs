//! What is known of a source's records, so that each is parsed once and each change told once.
//!
//! A record is known by the hash of its bytes. Of several records of one bead the latest `updated_at` wins, and of
//! equals the later record. A bead that a reading does not show stays known until its disappearance is certain, which
//! is for the source to say.

use std::num::NonZeroU64;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;
use yard_engine::bead::Bead;
use yard_engine::{BeadId, RigName, Timestamp};

use crate::details::{Descriptions, Place};
use crate::known::KnownRecords;
use crate::record::Record;

/// Unused hashes that may pile up before they are swept out.
const SLACK: usize = 1024;
/// Most beads that room is made for before they come.
const MOST_EXPECTED: usize = 2 << 20;

/// The records of one source. A reading is `begin`, `take` for each record, `finish`.
pub(crate) struct Ledger {
    rig: RigName,
    known: KnownRecords,
    slots: Vec<Slot>,
    free: Vec<u32>,
    descriptions: Descriptions,
    /// The number of the reading.
    reading: u32,
    /// Records taken in this reading.
    taken: usize,
    /// Beads parsed in this reading.
    fresh: Vec<Fresh>,
    #[cfg(test)]
    pub(crate) parses: usize,
}

/// A record as it was parsed, which any thread may do.
pub(crate) struct Parsed {
    hash: u128,
    updated: Updated,
    /// None of what is no issue.
    bead: Option<Arc<Bead>>,
}

impl Parsed {
    /// Parses a record with this hash; an error says why it is none.
    #[inline]
    fn new(json: &[u8], hash: u128, rig: &RigName) -> Result<Self, String> {
        let Some(record) = Record::parse(json)? else {
            return Ok(Self { hash, updated: Updated::default(), bead: None });
        };
        let updated = record.updated_at().into();
        Ok(Self { hash, updated, bead: Some(Arc::new(record.into_bead(rig.clone()))) })
    }

    /// Parses a record.
    pub(crate) fn parse(json: &[u8], rig: &RigName) -> Result<Self, String> {
        Self::new(json, xxh3_128(json), rig)
    }
}

/// A bead with the record it was parsed from.
struct Fresh {
    bead: Arc<Bead>,
    mark: Mark,
    slot: u32,
}

/// Where a bead would stand that a record is not about.
const NO_BEAD: u32 = u32::MAX;

/// A bead. There are as many as the workspace has, so it is kept small.
#[derive(Default)]
struct Slot {
    /// The record that was told last; none before the first, and after its disappearance was told.
    told: Option<Mark>,
    /// The record that won in the last reading that showed the bead.
    mark: Option<Mark>,
    updated: Updated,
    place: Place,
    /// The last reading that showed it.
    seen: u32,
}

/// Half of a record's hash: enough to tell the records of one bead from each other.
type Mark = NonZeroU64;

fn mark_of(hash: u128) -> Mark {
    NonZeroU64::new((hash >> 64) as u64).unwrap_or(NonZeroU64::MIN)
}

/// When a record was last changed, in milliseconds. Not known is older than all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Updated(i64);

impl Default for Updated {
    fn default() -> Self {
        Self(i64::MIN)
    }
}

impl From<Option<Timestamp>> for Updated {
    fn from(time: Option<Timestamp>) -> Self {
        time.map_or(Self::default(), |time| Self(time.as_millis()))
    }
}

impl Ledger {
    pub(crate) fn new(rig: RigName, descriptions: Descriptions) -> Self {
        Self {
            rig,
            known: KnownRecords::default(),
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

    /// Whether nothing is known: every record will be parsed, and no text is needed after that.
    pub(crate) fn is_new(&self) -> bool {
        self.known.len() == 0 && self.slots.is_empty()
    }

    /// Knows nothing any more.
    pub(crate) fn clear(&mut self) {
        self.descriptions.shelf().clear();
        (self.known, self.slots, self.free) = (KnownRecords::default(), Vec::new(), Vec::new());
    }

    /// Makes room for more beads like those of this reading, this many times as many.
    pub(crate) fn expect(&mut self, times: usize) {
        // Room that is never used costs nothing, unless somebody wrote a file to make it absurd.
        let more = self.fresh.len().saturating_mul(times).min(MOST_EXPECTED);
        self.known.reserve(more);
        self.slots.reserve_exact(more);
        self.fresh.reserve_exact(more);
        self.descriptions.shelf().reserve(more);
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
        if self.take_known(hash, offset, json.len()) {
            return Ok(());
        }
        let parsed = Parsed::new(json, hash, &self.rig)?;
        self.take_new(parsed, offset, json.len());
        Ok(())
    }

    /// Takes a record of such a length at `offset` that somebody has parsed already.
    pub(crate) fn take_parsed(&mut self, parsed: Parsed, offset: usize, len: usize) {
        if !self.take_known(parsed.hash, offset, len) {
            self.take_new(parsed, offset, len);
        }
    }

    /// Takes a record if it has been there before; says whether it has.
    #[inline]
    fn take_known(&mut self, hash: u128, offset: usize, len: usize) -> bool {
        self.taken += 1;
        let Some(known) = self.known.get_mut(hash) else { return false };
        known.seen = self.reading;
        if let Some(slot) = self.slots.get_mut(known.slot as usize) {
            slot.offer(self.reading, mark_of(hash), known.updated, Place::new(offset, len));
        }
        true
    }

    #[inline]
    fn take_new(&mut self, parsed: Parsed, offset: usize, len: usize) {
        #[cfg(test)]
        {
            self.parses += 1;
        }
        let Parsed { hash, updated, bead } = parsed;
        let Some(bead) = bead else {
            self.known.insert(hash, Updated::default(), NO_BEAD, self.reading);
            return;
        };
        let (mark, place) = (mark_of(hash), Place::new(offset, len));
        let slot = slot_of(&bead.id, &self.descriptions, &mut self.slots, &mut self.free);
        self.slots[slot as usize].offer(self.reading, mark, updated, place);
        self.known.insert(hash, updated, slot, self.reading);
        self.fresh.push(Fresh { bead, mark, slot });
    }

    /// The rig whose beads these are.
    pub(crate) fn rig(&self) -> &RigName {
        &self.rig
    }

    /// Ends a reading of `text`: the beads that changed since they were told, or `all` that it shows.
    pub(crate) fn finish(&mut self, text: &[u8], all: bool) -> Vec<Arc<Bead>> {
        let mut beads = Vec::with_capacity(self.fresh.len());
        if all {
            self.slots.iter_mut().for_each(|slot| slot.told = None);
        }
        for Fresh { bead, mark, slot } in std::mem::take(&mut self.fresh) {
            let slot = &mut self.slots[slot as usize];
            if slot.mark == Some(mark) && slot.told != Some(mark) {
                slot.told = Some(mark);
                beads.push(bead);
            }
        }
        for slot in &mut self.slots {
            // A record that was known but not told, such as the older of two when the newer has gone.
            if slot.seen == self.reading && slot.told != slot.mark {
                slot.told = slot.mark;
                let json = slot.place.range().and_then(|place| text.get(place));
                let record = json.and_then(|json| Record::parse(json).ok()?);
                beads.extend(record.map(|record| Arc::new(record.into_bead(self.rig.clone()))));
            }
        }
        if self.known.len() > 2 * self.taken + SLACK {
            self.known.retain_seen(self.reading);
        }
        beads
    }

    /// Lets the descriptions be found where the last reading found them: in the file, or in what was printed.
    pub(crate) fn publish(&self, printed: Option<Arc<Vec<u8>>>) {
        let place = |slot: &Slot| if slot.seen == self.reading { slot.place } else { Place::default() };
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
                self.free.push(number);
                gone.push(shelf.forget(number));
            }
        }
        drop(shelf);
        if !gone.is_empty() {
            // A slot that may be given to another bead must not be reached by its old records.
            self.known.retain_seen(self.reading);
        }
        gone
    }
}

/// The slot of a bead, which is a free one if it has none yet.
fn slot_of(id: &BeadId, descriptions: &Descriptions, slots: &mut Vec<Slot>, free: &mut Vec<u32>) -> u32 {
    let next = free.last().copied().unwrap_or(slots.len() as u32);
    let number = descriptions.shelf().slot_of(id, next);
    if number == next {
        match free.pop() {
            Some(number) => slots[number as usize] = Slot::default(),
            None => slots.push(Slot::default()),
        }
    }
    number
}

impl Slot {
    fn offer(&mut self, reading: u32, mark: Mark, updated: Updated, place: Place) {
        if self.seen != reading || updated >= self.updated {
            (self.seen, self.mark, self.updated, self.place) = (reading, Some(mark), updated, place);
        }
    }

    fn is_missing(&self, reading: u32) -> bool {
        self.told.is_some() && self.seen != reading
    }
}

#[cfg(test)]
mod tests;
