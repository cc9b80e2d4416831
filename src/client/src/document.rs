//! Documents as they came.

use std::ops::Range;

use serde_json::value::RawValue;

/// A JSON document that is passed on, or read by whoever wants to know what it says. Long ones are not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document(String);

impl Document {
    /// A part of a line.
    pub(crate) fn within(mut line: String, place: Range<usize>) -> Self {
        line.truncate(place.end);
        line.drain(..place.start);
        Self(line)
    }

    /// The document that says nothing.
    pub fn null() -> Self {
        Self(RawValue::NULL.get().to_owned())
    }

    /// Its text.
    pub fn get(&self) -> &str {
        &self.0
    }
}

impl From<Box<RawValue>> for Document {
    fn from(value: Box<RawValue>) -> Self {
        Self(Box::<str>::from(value).into_string())
    }
}
