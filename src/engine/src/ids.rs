//! Names of things. Every id that enters the yard passes one grammar here, so that
//! an id is always safe as a file name, a log line and a shell word.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::idtext::IdText;

/// Longest id accepted from outside.
pub const MAX_ID_LEN: usize = 128;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} {text:?} is not valid: use 1 to {MAX_ID_LEN} letters, digits, '.', '_' or '-', starting with a letter or digit"
)]
pub struct BadId {
    what: &'static str,
    text: String,
}

/// The one grammar: `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`.
#[inline]
fn read(text: &str) -> Option<IdText> {
    let starts_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    if !starts_well || text.len() > MAX_ID_LEN {
        return None;
    }
    IdText::checked(text, |byte| FITS[usize::from(byte)])
}

/// Which bytes may stand in an id. A table, because a large workspace names millions of ids.
const FITS: [bool; 256] = {
    let mut fits = [false; 256];
    let mut byte = 0;
    while byte < fits.len() {
        fits[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'.' | b'_' | b'-');
        byte += 1;
    }
    fits
};

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(IdText);

        impl $name {
            /// Checks the text against the id grammar.
            #[inline]
            pub fn parse(text: &str) -> Result<Self, BadId> {
                read(text).map(Self).ok_or_else(|| BadId { what: $what, text: text.chars().take(80).collect() })
            }

            /// The id as text.
            #[inline]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }

            /// The bytes of its text: ASCII, and nothing that JSON would have to escape.
            #[inline]
            pub fn as_bytes(&self) -> &[u8] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

id_type!(
    /// A piece of work, for example `gt-abc`.
    BeadId,
    "bead id"
);
id_type!(
    /// One request to run one bead, for example `ctx-1z`.
    ContextId,
    "context id"
);
id_type!(
    /// A tracked set of beads: `hq-cv-` and five characters.
    ConvoyId,
    "convoy id"
);
id_type!(
    /// Something a person should know, for example `al-2f`.
    AlertId,
    "alert id"
);
id_type!(
    /// The name of a registered agent.
    AgentName,
    "agent name"
);
id_type!(
    /// The name of a project in the town.
    RigName,
    "rig name"
);
id_type!(
    /// The name of a formula.
    FormulaName,
    "formula name"
);
id_type!(
    /// The handle of an account whose use may be capped.
    AccountName,
    "account name"
);

/// One attempt to run a bead, written `<bead>@<attempt>`. Never reused, so it serves as a fencing token.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DispatchId {
    bead: BeadId,
    attempt: u32,
}

impl DispatchId {
    /// The id of a bead's n-th attempt.
    pub fn new(bead: BeadId, attempt: u32) -> Self {
        Self { bead, attempt }
    }

    /// The bead this dispatch runs.
    pub fn bead(&self) -> &BeadId {
        &self.bead
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Reads `<bead>@<attempt>`.
    pub fn parse(text: &str) -> Result<Self, BadId> {
        let bad = || BadId { what: "dispatch id", text: text.chars().take(80).collect() };
        let (bead, attempt) = text.rsplit_once('@').ok_or_else(bad)?;
        // A fencing token has one spelling: numbers would also be read from `+3` and `03`.
        let is_plain =
            attempt.bytes().all(|b| b.is_ascii_digit()) && (attempt == "0" || !attempt.starts_with('0'));
        let attempt = if is_plain { attempt.parse().ok() } else { None };
        Ok(Self { bead: BeadId::parse(bead)?, attempt: attempt.ok_or_else(bad)? })
    }
}

impl fmt::Display for DispatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.bead, self.attempt)
    }
}

impl fmt::Debug for DispatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for DispatchId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DispatchId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The position of an event in the log, from 1. 0 means "before the first event".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number in base 36, lower case; short ids are made of these.
pub fn base36(mut n: u64, width: usize) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut out = Vec::new();
    while n > 0 || out.len() < width.max(1) {
        out.push(DIGITS[(n % 36) as usize]);
        n /= 36;
    }
    out.iter().rev().map(|&b| b as char).collect()
}

/// Spreads a counter over the whole range (splitmix64), so that short ids made in a row look unlike each other
/// without the engine needing randomness.
pub fn scatter(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_file_names() {
        for good in ["gt-abc", "x-1.2.3.4", "hq-cv-ab12z", "A_b"] {
            assert!(BeadId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", ".x", "a/b", "a b", "a\nb", "ä", "../x", "a\0", &"x".repeat(129)] {
            assert!(BeadId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_dispatch_id_names_its_bead_and_attempt() {
        let id = DispatchId::parse("gt-abc@3").expect("valid");
        assert_eq!((id.bead().as_str(), id.attempt()), ("gt-abc", 3));
        assert_eq!(id.to_string(), "gt-abc@3");
        assert!(DispatchId::parse("gt-abc").is_err());
        for bad in
            ["gt-abc@x", "gt-abc@", "gt-abc@+3", "gt-abc@03", "gt-abc@-3", "gt-abc@4294967296", "@3", "a@@3"]
        {
            assert!(DispatchId::parse(bad).is_err(), "{bad}");
        }
    }
}
