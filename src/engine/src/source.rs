//! What a source of beads shows: the engine compares it with what the log last recorded, and records the differences.
//! A source is only ever read; what it shows is believed as it is, but a disappearance only when the source says so.

use std::sync::Arc;

use crate::bead::Bead;
use crate::{BeadId, RigName};

/// What one reading of a rig's workspace showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceReading {
    /// Whose workspace.
    pub rig: RigName,
    /// What tells this version of the workspace from another, for whoever reads next.
    pub stamp: String,
    /// Whether `beads` is all there is, rather than what changed since the last reading.
    pub whole: bool,
    /// The beads, each once, with `source` set and without description.
    pub beads: Vec<Arc<Bead>>,
    /// Ids that are there no longer. Only certain disappearances; of a whole reading, see `vanished`.
    pub gone: Vec<BeadId>,
    /// Whether beads that a whole reading does not show have disappeared for certain.
    pub vanished: bool,
    /// What could not be read, in words.
    pub trouble: Option<String>,
}
