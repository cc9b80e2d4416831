//! Fields that must never cost a bead: whatever stands there is read as far as it makes sense, and anything else is
//! remembered as wrong, for the strict.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use yard_engine::Timestamp;

/// A point in time, perhaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Nothing was said.
    #[default]
    Absent,
    /// RFC 3339, with any number of fractional digits.
    Known(Timestamp),
    /// Something that is no time.
    Wrong,
}

impl Moment {
    pub(crate) fn known(self) -> Option<Timestamp> {
        match self {
            Self::Known(time) => Some(time),
            Self::Absent | Self::Wrong => None,
        }
    }

    pub(crate) fn strict(self, field: &str) -> Result<Option<Timestamp>, String> {
        match self {
            Self::Wrong => Err(format!("{field} is not a time: write it like 2026-11-16T09:30:00Z")),
            Self::Known(_) | Self::Absent => Ok(self.known()),
        }
    }
}

/// A priority, perhaps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Urgency {
    /// Nothing was said.
    #[default]
    Absent,
    /// Some number.
    Number(f64),
    /// Something that is no number.
    Wrong,
}

impl Urgency {
    /// 0 to 4, which is all that trackers know.
    pub(crate) fn in_range(self) -> Option<u8> {
        match self {
            Self::Number(n) if (0.0..=4.0).contains(&n) && n.fract() == 0.0 => Some(n as u8),
            Self::Number(_) | Self::Absent | Self::Wrong => None,
        }
    }

    pub(crate) fn strict(self) -> Result<Option<u8>, String> {
        match (self, self.in_range()) {
            (Self::Absent, _) => Ok(None),
            (_, Some(priority)) => Ok(Some(priority)),
            (Self::Number(n), None) => Err(format!("priority {n} is not known: use 0 to 4")),
            (Self::Wrong, None) => Err("the priority is not a number: use 0 to 4".to_owned()),
        }
    }
}

/// Any JSON value, reduced to what these fields can be made of.
enum Plain {
    Nothing,
    Number(f64),
    Time(Timestamp),
    Other,
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(match d.deserialize_any(Anything)? {
            Plain::Nothing => Self::Absent,
            Plain::Time(time) => Self::Known(time),
            Plain::Number(_) | Plain::Other => Self::Wrong,
        })
    }
}

impl<'de> Deserialize<'de> for Urgency {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(match d.deserialize_any(Anything)? {
            Plain::Nothing => Self::Absent,
            Plain::Number(n) => Self::Number(n),
            Plain::Time(_) | Plain::Other => Self::Wrong,
        })
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Plain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<Plain, E> {
        Ok(Plain::Nothing)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Plain, E> {
        Ok(Plain::Other)
    }

    fn visit_i64<E>(self, n: i64) -> Result<Plain, E> {
        Ok(Plain::Number(n as f64))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Plain, E> {
        Ok(Plain::Number(n as f64))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Plain, E> {
        Ok(Plain::Number(n))
    }

    fn visit_str<E>(self, text: &str) -> Result<Plain, E> {
        Ok(match text {
            "" => Plain::Nothing,
            _ => Timestamp::parse_rfc3339(text).map_or(Plain::Other, Plain::Time),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Plain, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Plain::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Plain, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Plain::Other)
    }
}
