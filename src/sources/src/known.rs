//! Records whose bytes have been parsed before, found by their hash. The table holds only numbers, because it is what
//! every line of a large file is looked up in: the smaller it is, the nearer to the processor it stays.

use hashbrown::HashTable;

use crate::ledger::Updated;

/// A record whose bytes have been parsed before.
pub(crate) struct Known {
    hash: u128,
    pub(crate) updated: Updated,
    /// The bead it is about, or `NO_BEAD` if it is no issue.
    pub(crate) slot: u32,
    /// The last reading that showed it.
    pub(crate) seen: u32,
}

/// All of them.
#[derive(Default)]
pub(crate) struct KnownRecords {
    table: HashTable<u32>,
    records: Vec<Known>,
}

/// The hash is one already.
fn short(hash: u128) -> u64 {
    hash as u64
}

impl KnownRecords {
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn reserve(&mut self, more: usize) {
        self.records.reserve_exact(more);
        self.table.reserve(more, |number| short(self.records[*number as usize].hash));
    }

    pub(crate) fn get_mut(&mut self, hash: u128) -> Option<&mut Known> {
        let is_it = |number: &u32| self.records[*number as usize].hash == hash;
        let number = *self.table.find(short(hash), is_it)?;
        self.records.get_mut(number as usize)
    }

    /// Adds a record that is not there yet.
    pub(crate) fn insert(&mut self, hash: u128, updated: Updated, slot: u32, seen: u32) {
        let number = self.records.len() as u32;
        self.records.push(Known { hash, updated, slot, seen });
        self.table.insert_unique(short(hash), number, |number| short(self.records[*number as usize].hash));
    }

    /// Forgets all records that this reading did not show.
    pub(crate) fn retain_seen(&mut self, reading: u32) {
        self.records.retain(|known| known.seen == reading);
        self.table.clear();
        for (number, known) in (0..).zip(&self.records) {
            let hash = |number: &u32| short(self.records[*number as usize].hash);
            self.table.insert_unique(short(known.hash), number, hash);
        }
    }
}
