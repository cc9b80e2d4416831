//! What `scheduler recover` answers.

use serde::{Deserialize, Serialize};
use yard_engine::command::Recovery;

/// What the safety scan found, and did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoverView {
    /// Nothing was changed.
    pub dry_run: bool,
    /// Each finding, with what was done about it.
    pub findings: Vec<Recovery>,
}
