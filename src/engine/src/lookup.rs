//! Tables for looking things up by id, faster than ordered maps. Their order means nothing: whoever needs one keeps ids
//! in order beside them. The hash is the same in every process, so that nothing depends on chance.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table to look things up in, never to go through where the order shows.
pub type Lookup<K, V> = HashMap<K, V, BuildHasherDefault<FoldHasher>>;

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
