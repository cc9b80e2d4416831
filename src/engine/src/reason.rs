//! The named reasons why something waits; a contract with scripts.

use serde::{Deserialize, Serialize};

use crate::{BeadId, Timestamp};

/// A named reason why a bead does not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Which reason.
    pub code: ReasonCode,
    /// In words.
    pub message: String,
    /// The beads concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<BeadId>,
    /// The limit that is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Reason {
    pub(crate) fn new(code: ReasonCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), ids: Vec::new(), limit: None, until: None }
    }

    pub(crate) fn about(mut self, ids: Vec<BeadId>) -> Self {
        self.ids = ids;
        self
    }

    pub(crate) fn until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }
}

/// The names of reasons; a contract with scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonCode {
    /// Waits for open beads.
    BlockedBy,
    /// Waits for a bead nobody has.
    MissingDependency,
    /// Waits for a person's word.
    Gated,
    /// Its convoy is not launched yet.
    Staged,
    /// Its rig is parked.
    RigParked,
    /// Its rig is docked.
    RigDocked,
    /// Dispatch is paused.
    Paused,
    /// A limit is full.
    Capacity,
    /// Its time has not come.
    NotBefore,
    /// Put off by a person.
    Deferred,
    /// The host is too busy.
    HostLoad,
    /// Failed to start too often.
    CircuitBroken,
    /// A budget is used up.
    CostLimit,
    /// Its account rests, because the service was unavailable.
    AccountCooldown,
    /// It waits for an agent to be free, or to claim it.
    AwaitingAgent,
    /// Its worker finished; the close is awaited.
    AwaitingClose,
    /// Its worker finished; its branch is not merged yet.
    AwaitingMerge,
    /// Its branch cannot be merged as it is.
    MergeConflict,
    /// Held back by a person.
    Held,
    /// Somebody else is on it.
    ClaimedElsewhere,
    /// Tried as often as allowed.
    RetriesExhausted,
    /// It runs.
    Running,
    /// Not something a worker can be sent to.
    NotDispatchable,
    /// No rig owns its prefix.
    NoRig,
    /// Waits for itself.
    Cycle,
    /// It is done.
    Closed,
}

impl ReasonCode {
    /// Whether the bead would start as soon as there is room: these never take a context out of the queue.
    pub(crate) fn is_about_room(self) -> bool {
        matches!(self, Self::Paused | Self::Capacity | Self::HostLoad | Self::AwaitingAgent)
    }

    /// Whether it waits for other beads or for a person, rather than for room or time.
    pub fn is_blocking(self) -> bool {
        match self {
            Self::BlockedBy
            | Self::MissingDependency
            | Self::Gated
            | Self::Cycle
            | Self::Deferred
            | Self::ClaimedElsewhere
            | Self::MergeConflict
            | Self::CostLimit
            | Self::NoRig
            | Self::NotDispatchable => true,
            Self::Staged
            | Self::RigParked
            | Self::RigDocked
            | Self::Paused
            | Self::Capacity
            | Self::NotBefore
            | Self::HostLoad
            | Self::CircuitBroken
            | Self::AccountCooldown
            | Self::AwaitingAgent
            | Self::AwaitingClose
            | Self::AwaitingMerge
            | Self::Held
            | Self::RetriesExhausted
            | Self::Running
            | Self::Closed => false,
        }
    }
}
