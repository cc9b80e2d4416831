//! Tables for looking things up by id, faster than ordered maps. Their order means nothing: whoever needs one keeps ids
//! in order beside them. The hash is the same in every process, so that nothing depends on chance.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use hashbrown::HashTable;

/// A table to look things up in, never to go through where the order shows.
pub type Lookup<K, V> = HashMap<K, V, BuildHasherDefault<FoldHasher>>;

/// Finds the numbers of things that lie elsewhere, in a list by number: a table of numbers is small, and the things are
/// in memory once. Whoever asks says how the thing with a number is found.
#[derive(Debug, Clone, Default)]
pub struct Numbers(HashTable<u32>);

impl Numbers {
    /// The number of what is equal to `wanted`.
    #[inline]
    pub fn find<'a, K, Q>(&self, wanted: &Q, thing: impl Fn(u32) -> &'a K) -> Option<u32>
    where
        K: Borrow<Q> + 'a,
        Q: Hash + Eq + ?Sized,
    {
        self.0.find(hash_of(wanted), |number| thing(*number).borrow() == wanted).copied()
    }

    /// The number of a thing, which is `free` if it has none yet.
    #[inline]
    pub fn find_or_give<'a, K: Hash + Eq + 'a>(
        &mut self,
        wanted: &K,
        free: u32,
        thing: impl Fn(u32) -> &'a K,
    ) -> u32 {
        let is_wanted = |number: &u32| thing(*number) == wanted;
        let entry = self.0.entry(hash_of(wanted), is_wanted, |number| hash_of(thing(*number)));
        *entry.or_insert(free).get()
    }

    /// The number that a thing most likely has, if it has one: what it is about is not looked at.
    #[inline]
    pub fn guess<K: Hash>(&self, wanted: &K) -> Option<u32> {
        self.0.find(hash_of(wanted), |_| true).copied()
    }

    /// Forgets the number of a thing.
    pub fn forget<'a, K: Hash + Eq + 'a>(&mut self, thing: &K, thing_at: impl Fn(u32) -> &'a K) {
        if let Ok(found) = self.0.find_entry(hash_of(thing), |number| thing_at(*number) == thing) {
            found.remove();
        }
    }

    /// Makes room for so many more.
    pub fn reserve<'a, K: Hash + 'a>(&mut self, more: usize, thing: impl Fn(u32) -> &'a K) {
        self.0.reserve(more, |number| hash_of(thing(*number)));
    }
}

#[inline]
pub(crate) fn hash_of<K: Hash + ?Sized>(key: &K) -> u64 {
    let mut hasher = FoldHasher::default();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Odd, and with bits all over.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Folds eight bytes at a time by multiplying.
#[derive(Debug, Clone, Copy, Default)]
pub struct FoldHasher(u64);

impl FoldHasher {
    #[inline]
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ SPREAD) * u128::from(SPREAD);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for FoldHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.fold(u64::from_le_bytes(last));
        }
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.fold(u64::from(byte));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.fold(word);
    }
}
