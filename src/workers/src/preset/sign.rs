//! What a line of output means: signs are looked for at the places a preset names, and nowhere else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::place::text_at;

/// What a line must say, each by its place.
pub(crate) type Conditions = BTreeMap<String, String>;

/// Whether a line says all of it.
pub(crate) fn holds(conditions: &Conditions, line: &Value) -> bool {
    conditions.iter().all(|(pointer, word)| text_at(line, pointer).as_deref() == Some(word))
}

/// Something that a line may tell. Of each list that is given one entry must fit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sign {
    /// What the line must say besides.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub when: Conditions,
    /// Where to look; the line itself if it is plain text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// The text there is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub is: Vec<String>,
    /// It starts with one of these, in capitals or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<String>,
    /// It holds one of these, in capitals or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub has: Vec<String>,
    /// Where the reason for a person stands, if not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Sign {
    /// The words of a line that has this sign.
    pub(crate) fn found(&self, line: &Value) -> Option<String> {
        if !holds(&self.when, line) {
            return None;
        }
        if self.is.is_empty() && self.starts.is_empty() && self.has.is_empty() {
            return Some(String::new());
        }
        let text = text_at(line, &self.at)?;
        let lower = text.to_lowercase();
        let is = self.is.is_empty() || self.is.contains(&text);
        let starts =
            self.starts.is_empty() || self.starts.iter().any(|word| lower.starts_with(&word.to_lowercase()));
        let has = self.has.is_empty() || self.has.iter().any(|word| lower.contains(&word.to_lowercase()));
        if !(is && starts && has) {
            return None;
        }
        let why =
            self.why.as_ref().and_then(|pointer| text_at(line, pointer)).filter(|why| !why.trim().is_empty());
        Some(why.unwrap_or(text))
    }

    pub(super) fn pointers(&self) -> impl Iterator<Item = &String> {
        self.when.keys().chain([&self.at]).chain(&self.why)
    }
}

/// What a person reads of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Saying {
    /// What the line must say.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub when: Conditions,
    /// Where the words stand; without the first there is nothing to say, the others may be missing.
    pub words: Vec<String>,
}

impl Saying {
    /// The words, if the line has them.
    pub(crate) fn heard(&self, line: &Value) -> Option<String> {
        if !holds(&self.when, line) {
            return None;
        }
        let mut words = self.words.iter().map(|pointer| text_at(line, pointer));
        let first = words.next().flatten()?;
        Some(std::iter::once(first).chain(words.flatten()).collect::<Vec<_>>().join(" "))
    }

    pub(super) fn pointers(&self) -> impl Iterator<Item = &String> {
        self.when.keys().chain(&self.words)
    }
}
