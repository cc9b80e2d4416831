//! What became of all tasks so far, altogether and by agent. Kept in the state, so that a restart forgets nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::TaskState;

/// Counts of all tasks since the town began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCounts {
    /// Accepted.
    pub submitted: u64,
    /// Done.
    pub completed: u64,
    /// Failed, those that expired included.
    pub failed: u64,
    /// Called off.
    pub cancelled: u64,
    /// Without room.
    pub rejected: u64,
    /// Not started before their deadline.
    pub expired: u64,
    /// Attempts begun.
    pub dispatched: u64,
    /// How long the first attempts of tasks had waited, in milliseconds.
    pub waited_ms: u64,
    /// How many those were.
    pub first_attempts: u64,
    /// Webhooks that arrived.
    pub webhooks_delivered: u64,
    /// Webhooks that were given up.
    pub webhooks_abandoned: u64,
    /// By agent, of those of whom a task is remembered.
    pub agents: BTreeMap<String, AgentCounts>,
}

/// Counts of one agent's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentCounts {
    /// Accepted.
    pub submitted: u64,
    /// Done.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Called off.
    pub cancelled: u64,
    /// Without room.
    pub rejected: u64,
    /// Tasks of it that are remembered.
    pub kept: u64,
    /// When its lane was last served.
    pub served: u64,
}

impl TaskCounts {
    pub(super) fn submitted(&mut self, agent: &str) {
        self.submitted += 1;
        let counts = self.agents.entry(agent.to_owned()).or_default();
        counts.submitted += 1;
        counts.kept += 1;
    }

    pub(super) fn ended(&mut self, agent: &str, state: TaskState) {
        let counts = self.agents.entry(agent.to_owned()).or_default();
        let (all, own) = match state {
            TaskState::Done => (&mut self.completed, &mut counts.completed),
            TaskState::Failed => (&mut self.failed, &mut counts.failed),
            TaskState::Cancelled => (&mut self.cancelled, &mut counts.cancelled),
            TaskState::Rejected => {
                counts.kept += 1;
                (&mut self.rejected, &mut counts.rejected)
            }
            TaskState::Queued | TaskState::Assigned | TaskState::Running => return,
        };
        *all += 1;
        *own += 1;
    }

    pub(super) fn served(&mut self, agent: &str, order: Option<u64>, waited: Option<Duration>) {
        self.dispatched += 1;
        if let Some(waited) = waited {
            let millis = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            self.waited_ms = self.waited_ms.saturating_add(millis);
            self.first_attempts += 1;
        }
        let counts = self.agents.entry(agent.to_owned()).or_default();
        counts.served = counts.served.max(order.unwrap_or_default());
    }

    /// A task is forgotten; whether it was its agent's last.
    pub(super) fn forgotten(&mut self, agent: &str) -> bool {
        let Some(counts) = self.agents.get_mut(agent) else { return true };
        counts.kept = counts.kept.saturating_sub(1);
        let last = counts.kept == 0;
        if last {
            self.agents.remove(agent);
        }
        last
    }
}
