//! Documents as they came.

use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON document that is passed on, or read by whoever wants to know what it says. Long ones are not copied.
#[derive(Debug, Clone)]
pub struct Document {
    text: String,
    /// Where in the text it begins.
    start: usize,
}

impl Document {
    /// A part of a line.
    pub(crate) fn within(mut line: String, place: Range<usize>) -> Self {
        line.truncate(place.end);
        Self { text: line, start: place.start }
    }

    /// What serde makes of a value.
    pub fn of<T: Serialize>(value: &T) -> serde_json::Result<Self> {
        serde_json::to_string(value).map(Self::written)
    }

    /// A text that was written as JSON.
    pub(crate) fn written(text: String) -> Self {
        Self { text, start: 0 }
    }

    /// The document that says nothing.
    pub fn null() -> Self {
        Self::written(RawValue::NULL.get().to_owned())
    }

    /// Its text.
    pub fn get(&self) -> &str {
        &self.text[self.start..]
    }
}

impl From<Box<RawValue>> for Document {
    fn from(value: Box<RawValue>) -> Self {
        Self::written(Box::<str>::from(value).into_string())
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_str(self.get()).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}
