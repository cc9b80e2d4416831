//! Why we end a dispatch, and where each reason leaves its bead: the one routing table. A reason is given by
//! [`crate::Tx::terminate`] and nowhere else, and the first one counts.

use serde::{Deserialize, Serialize};

use crate::dispatch::Category;

/// Why a running dispatch is ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It gave way to more urgent work, of its own accord.
    CooperativePreemption,
    /// It was asked twice to give way, and did not.
    PreemptionTimeout,
    /// The daemon drains.
    GracefulShutdown,
    /// Its request has used up its active time, over all attempts.
    HardCapExceeded,
    /// It ran past the deadline of its request.
    DeadlineExceeded,
    /// A budget is used up.
    CostLimitReached,
    /// A person called it off.
    UserCancelled,
    /// The start took too long.
    SpawnTimeout,
    /// The agent that had it was not heard of for too long.
    LeaseExpired,
    /// The agent that had it gave it back.
    Released,
}

/// Where a terminated dispatch leaves its bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Back in the queue, at its old place, with nothing counted; it goes on after its last finished step.
    Queued,
    /// Back on the schedule, kept there by the budget until that is raised, renewed, or a person retries.
    Blocked,
    /// Given up, and a person is told.
    Failed,
    /// Called off.
    Cancelled,
    /// By the retry policy, as a failure of this class.
    Retried(Category),
}

/// Every reason there is, for tables and tests.
pub const STOP_REASONS: [StopReason; 10] = [
    StopReason::CooperativePreemption,
    StopReason::PreemptionTimeout,
    StopReason::GracefulShutdown,
    StopReason::HardCapExceeded,
    StopReason::DeadlineExceeded,
    StopReason::CostLimitReached,
    StopReason::UserCancelled,
    StopReason::SpawnTimeout,
    StopReason::LeaseExpired,
    StopReason::Released,
];

impl StopReason {
    /// The routing table.
    pub fn recovery(self) -> Recovery {
        match self {
            Self::CooperativePreemption
            | Self::PreemptionTimeout
            | Self::GracefulShutdown
            | Self::LeaseExpired
            | Self::Released => Recovery::Queued,
            Self::HardCapExceeded | Self::DeadlineExceeded => Recovery::Failed,
            Self::CostLimitReached => Recovery::Blocked,
            Self::UserCancelled => Recovery::Cancelled,
            // It ran after all, but too late: tried again like any other failure, so that it cannot go on for ever.
            Self::SpawnTimeout => Recovery::Retried(Category::Crash),
        }
    }

    /// Whether it made room for more urgent work.
    pub fn is_preemption(self) -> bool {
        matches!(self, Self::CooperativePreemption | Self::PreemptionTimeout)
    }

    /// Whether this reason counts although there is one already: only a person's word does.
    pub(crate) fn replaces(self, earlier: Self) -> bool {
        self == Self::UserCancelled && earlier != Self::UserCancelled
    }

    /// The word in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CooperativePreemption => "cooperative_preemption",
            Self::PreemptionTimeout => "preemption_timeout",
            Self::GracefulShutdown => "graceful_shutdown",
            Self::HardCapExceeded => "hard_cap_exceeded",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::CostLimitReached => "cost_limit_reached",
            Self::UserCancelled => "user_cancelled",
            Self::SpawnTimeout => "spawn_timeout",
            Self::LeaseExpired => "lease_expired",
            Self::Released => "released",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::CooperativePreemption => "gave way to more urgent work",
            Self::PreemptionTimeout => "was ended for more urgent work",
            Self::GracefulShutdown => "was ended by the daemon's shutdown",
            Self::HardCapExceeded => "has used up its active time (limits.hard_cap)",
            Self::DeadlineExceeded => "ran past its deadline",
            Self::CostLimitReached => "reached a cost limit",
            Self::UserCancelled => "was called off",
            Self::SpawnTimeout => "took too long to start",
            Self::LeaseExpired => "was lost, because nothing was heard of its agent for too long",
            Self::Released => "was given back",
        }
    }
}
