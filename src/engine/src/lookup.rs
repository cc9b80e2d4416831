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

    /// The numbers that things most likely have, `u32::MAX` where they certainly have none: what they are about is not
    /// looked at. Hashes come first and look-ups then, with little between them, so that the processor fetches many
    /// places from memory at once: nothing waits for the one before.
    pub fn guess_all<K: Hash>(&self, wanted: &[&K], guesses: &mut Vec<u32>) {
        const AT_ONCE: usize = 64;
        guesses.clear();
        guesses.reserve(wanted.len());
        let mut hashes = [0; AT_ONCE];
        for some in wanted.chunks(AT_ONCE) {
            for (hash, wanted) in hashes.iter_mut().zip(some) {
                *hash = hash_of(*wanted);
            }
            let likely = |hash: &u64| self.0.find(*hash, |_| true).copied().unwrap_or(u32::MAX);
            guesses.extend(hashes[..some.len()].iter().map(likely));
        }
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

/// Fewer than eight bytes as a number, as if zeros followed. Written so that it takes no loop and no call.
#[inline]
fn filled_up(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let last = u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() - 4));
        return u64::from(u32::from_le_bytes(*first)) | last;
    }
    let byte = |at: usize| bytes.get(at).map_or(0, |byte| u64::from(*byte) << (8 * at));
    byte(0) | byte(1) | byte(2)
}

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
            self.fold(filled_up(rest));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_bytes_are_filled_up_with_zeros() {
        let bytes = [0x81, 2, 3, 4, 5, 6, 0xf7];
        for len in 0..=bytes.len() {
            let mut filled = [0; 8];
            filled[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(filled_up(&bytes[..len]), u64::from_le_bytes(filled), "{len} bytes");
        }
    }

    #[test]
    fn what_has_a_number_is_guessed_right_or_at_least_to_be_there() {
        let things: Vec<String> = (0..1_000).map(|number| format!("y-{number:x}")).collect();
        let mut numbers = Numbers::default();
        for (number, thing) in (0..500).zip(&things) {
            numbers.find_or_give(thing, number, |number| &things[number as usize]);
        }
        let mut guesses = Vec::new();
        numbers.guess_all(&things.iter().collect::<Vec<_>>(), &mut guesses);
        let (known, unknown) = guesses.split_at(500);
        assert!(known.iter().all(|guess| *guess != u32::MAX));
        assert!(known.iter().zip(0..).filter(|(guess, number)| *guess == number).count() > 450);
        assert!(unknown.iter().filter(|guess| **guess == u32::MAX).count() > 250);
    }
}
