//! The text of an id. Nearly all are short and lie in the value itself: a town compares and copies millions of them,
//! and going to where each lies in memory would cost more than everything else.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Longest text that lies in the value itself.
const SHORT: usize = 14;

/// A text that follows the grammar of ids: ASCII, and without NUL.
#[derive(Clone)]
pub(crate) enum IdText {
    /// Filled up with NUL, so that comparing all bytes compares the texts.
    Short { len: u8, bytes: [u8; SHORT] },
    /// Shared by all that name it; behind one pointer, because every short one would pay for a second.
    Long(Arc<String>),
}

impl IdText {
    /// The text, if all its bytes fit; it is gone through once.
    #[inline]
    pub(crate) fn checked(text: &str, fits: impl Fn(u8) -> bool) -> Option<Self> {
        let mut bytes = [0; SHORT];
        let Some(places) = bytes.get_mut(..text.len()) else {
            return text.bytes().all(fits).then(|| Self::Long(Arc::new(text.to_owned())));
        };
        let mut all_fit = true;
        for (place, byte) in places.iter_mut().zip(text.bytes()) {
            all_fit &= fits(byte);
            *place = byte;
        }
        all_fit.then_some(Self::Short { len: text.len() as u8, bytes })
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        match self {
            // The grammar allows ASCII only, so this never falls back.
            Self::Short { len, bytes } => {
                std::str::from_utf8(&bytes[..usize::from(*len)]).unwrap_or_default()
            }
            Self::Long(text) => text.as_str(),
        }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { len, bytes } => &bytes[..usize::from(*len)],
            Self::Long(text) => text.as_bytes(),
        }
    }
}

/// Where the numbers begin that all bytes make up; the last overlaps with the one before.
const WORDS: [usize; 2] = [0, SHORT - 8];

/// Eight bytes as a number in the same order.
#[inline]
fn word(bytes: &[u8; SHORT], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(word)
}

impl PartialEq for IdText {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Short { bytes, .. }, Self::Short { bytes: theirs, .. }) => bytes == theirs,
            (Self::Long(text), Self::Long(theirs)) => text == theirs,
            (Self::Short { .. }, Self::Long(_)) | (Self::Long(_), Self::Short { .. }) => false,
        }
    }
}

impl Eq for IdText {}

impl Ord for IdText {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Short { bytes, .. }, Self::Short { bytes: theirs, .. }) => {
                // The first number nearly always decides, so the others are not even read.
                let differ = WORDS.iter().find(|at| word(bytes, **at) != word(theirs, **at));
                differ.map_or(Ordering::Equal, |at| word(bytes, *at).cmp(&word(theirs, *at)))
            }
            (Self::Short { .. } | Self::Long(_), Self::Short { .. } | Self::Long(_)) => {
                self.as_bytes().cmp(other.as_bytes())
            }
        }
    }
}

impl PartialOrd for IdText {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for IdText {
    /// As texts do it, because ids are looked up by their text too.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.as_bytes());
        state.write_u8(0xff);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hash(value: &(impl Hash + ?Sized)) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }

    proptest! {
        #[test]
        fn an_id_is_what_its_text_is(a in "[a-c][a-c.-]{0,30}", b in "[a-c][a-c.-]{0,30}", cut in 0..31_usize) {
            for b in [b.as_str(), a.as_str(), &a[..cut.min(a.len())]] {
                let [one, other] = [a.as_str(), b].map(|text| IdText::checked(text, |_| true).expect("it fits"));
                prop_assert_eq!(one.as_str(), a.as_str());
                prop_assert_eq!(one.cmp(&other), a.as_str().cmp(b));
                prop_assert_eq!(one == other, a == b);
                prop_assert_eq!(hash(&one), hash(a.as_str()));
            }
        }
    }

    #[test]
    fn an_id_takes_little_room() {
        assert_eq!(size_of::<Option<IdText>>(), 16);
    }
}
