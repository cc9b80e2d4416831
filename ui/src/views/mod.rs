//! The six views.

pub(crate) mod agents;
pub(crate) mod beads;
pub(crate) mod convoys;
pub(crate) mod events;
pub(crate) mod problems;
pub(crate) mod timeline;
