//! Refusals: why a command changed nothing, in a form a script can test and a person can act on.

use serde::{Deserialize, Serialize};

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// A stable word for scripts, such as `cross-rig`.
    pub code: String,
    /// What is wrong, in lower case.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal without a hint.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<crate::BadId> for Refusal {
    fn from(error: crate::BadId) -> Self {
        Self::new("bad-id", error.to_string())
    }
}
