//! Texts that are rare in what there are millions of.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A text that takes one word where it is held, even as an option. Going to it takes a step more.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThinText(Box<Box<str>>);

impl Deref for ThinText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ThinText {
    fn from(text: &str) -> Self {
        Self(Box::new(text.into()))
    }
}

impl fmt::Display for ThinText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for ThinText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
