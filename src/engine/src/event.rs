//! Events: everything that ever changed the town, one concept per file, joined here.

use serde::Serialize;

use crate::agent::AgentEvent;
use crate::alert::AlertEvent;
use crate::bead::BeadEvent;
use crate::context::ContextEvent;
use crate::convoy::ConvoyEvent;
use crate::dispatch::DispatchEvent;
use crate::merge::MergeEvent;
use crate::preempt::PreemptionEvent;
use crate::rig::RigEvent;
use crate::task::TaskEvent;
use crate::town::TownEvent;
use crate::{Seq, Timestamp};

/// One change of the town.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// Of the town as a whole.
    Town(TownEvent),
    /// Of a rig.
    Rig(RigEvent),
    /// Of a bead.
    Bead(BeadEvent),
    /// Of a context.
    Context(ContextEvent),
    /// Of a dispatch.
    Dispatch(DispatchEvent),
    /// Of a convoy.
    Convoy(ConvoyEvent),
    /// Of an alert.
    Alert(AlertEvent),
    /// Of a preemption.
    Preemption(PreemptionEvent),
    /// Of a task.
    Task(TaskEvent),
    /// Of an agent or its orders.
    Agent(AgentEvent),
    /// Of a merge.
    Merge(MergeEvent),
}

/// An event with its place in the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recorded {
    /// Its position.
    pub seq: Seq,
    /// When it was decided.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// A stored event that this program cannot read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableEvent {
    /// An event type of a newer program.
    #[error("event type {0:?} is not known to this version of ym: it was probably written by a newer one")]
    UnknownType(String),
    /// A known type with a body that does not fit.
    #[error("event of type {kind:?} cannot be read: {error}")]
    BadBody {
        /// The type.
        kind: String,
        /// What is wrong.
        error: serde_json::Error,
    },
}

impl Event {
    /// The type, as in the log: `bead.closed`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Town(e) => match e {
                TownEvent::SettingsChanged { .. } => "town.settings_changed",
                TownEvent::Paused { .. } => "scheduler.paused",
                TownEvent::Resumed { .. } => "scheduler.resumed",
                TownEvent::HostGate { .. } => "scheduler.host_gate",
                TownEvent::ClusterRoom { .. } => "scheduler.cluster_room",
                TownEvent::ClockAdvanced {} => "town.clock_advanced",
                TownEvent::Retired { .. } => "town.retired",
                TownEvent::OperatorDid { .. } => "operator.did",
                TownEvent::OperatorUndid { .. } => "operator.undid",
                TownEvent::OperatorRedid { .. } => "operator.redid",
                TownEvent::Repaired { .. } => "town.repaired",
                TownEvent::SourceRead { .. } => "source.read",
                TownEvent::AccountCooling { .. } => "account.cooling",
            },
            Self::Rig(e) => match e {
                RigEvent::Added { .. } => "rig.added",
                RigEvent::Removed { .. } => "rig.removed",
                RigEvent::Switched { .. } => "rig.switched",
            },
            Self::Bead(e) => match e {
                BeadEvent::Added { .. } => "bead.added",
                BeadEvent::Updated { .. } => "bead.updated",
                BeadEvent::Closed { .. } => "bead.closed",
                BeadEvent::Reopened { .. } => "bead.reopened",
                BeadEvent::DependencyAdded { .. } => "bead.dependency_added",
                BeadEvent::DependencyRemoved { .. } => "bead.dependency_removed",
                BeadEvent::Observed { .. } => "bead.observed",
                BeadEvent::Vanished { .. } => "bead.vanished",
            },
            Self::Context(e) => match e {
                ContextEvent::Opened { .. } => "context.opened",
                ContextEvent::StartFailed { .. } => "context.start_failed",
                ContextEvent::Rested { .. } => "context.rested",
                ContextEvent::Rearmed { .. } => "context.rearmed",
                ContextEvent::Held { .. } => "context.held",
                ContextEvent::Prioritised { .. } => "context.prioritised",
                ContextEvent::BudgetsPutBack { .. } => "context.budgets_put_back",
                ContextEvent::Closed { .. } => "context.closed",
            },
            Self::Dispatch(e) => match e {
                DispatchEvent::Started { .. } => "dispatch.started",
                DispatchEvent::LinedUp { .. } => "dispatch.lined_up",
                DispatchEvent::CalledBack { .. } => "dispatch.called_back",
                DispatchEvent::Running { .. } => "dispatch.running",
                DispatchEvent::Isolated { .. } => "dispatch.isolated",
                DispatchEvent::StepDone { .. } => "dispatch.step_done",
                DispatchEvent::Checkpoint { .. } => "dispatch.checkpoint",
                DispatchEvent::Session { .. } => "dispatch.session",
                DispatchEvent::Progress { .. } => "dispatch.progress",
                DispatchEvent::LastLine { .. } => "dispatch.last_line",
                DispatchEvent::Steps { .. } => "dispatch.steps",
                DispatchEvent::Cost { .. } => "dispatch.cost",
                DispatchEvent::Said { .. } => "dispatch.said",
                DispatchEvent::Heard { .. } => "dispatch.heard",
                DispatchEvent::Stuck { .. } => "dispatch.stuck",
                DispatchEvent::TakenUp { .. } => "dispatch.taken_up",
                DispatchEvent::StopRequested { .. } => "dispatch.stop_requested",
                DispatchEvent::Ended { .. } => "dispatch.ended",
                DispatchEvent::CloseOverdue { .. } => "dispatch.close_overdue",
                DispatchEvent::LateReport { .. } => "dispatch.late_report",
            },
            Self::Convoy(e) => match e {
                ConvoyEvent::Created { .. } => "convoy.created",
                ConvoyEvent::Staged { .. } => "convoy.staged",
                ConvoyEvent::Launched { .. } => "convoy.launched",
                ConvoyEvent::Added { .. } => "convoy.added",
                ConvoyEvent::Reopened { .. } => "convoy.reopened",
                ConvoyEvent::Watched { .. } => "convoy.watched",
                ConvoyEvent::Closed { .. } => "convoy.closed",
            },
            Self::Alert(e) => match e {
                AlertEvent::Raised { .. } => "alert.raised",
                AlertEvent::Told { .. } => "alert.told",
                AlertEvent::Acked { .. } => "alert.acked",
                AlertEvent::Ended { .. } => "alert.ended",
            },
            Self::Preemption(e) => match e {
                PreemptionEvent::Requested { .. } => "preemption.requested",
                PreemptionEvent::Ended { .. } => "preemption.ended",
            },
            Self::Task(e) => match e {
                TaskEvent::Submitted { .. } => "task.submitted",
                TaskEvent::Rejected { .. } => "task.rejected",
                TaskEvent::Answered { .. } => "task.answered",
                TaskEvent::Ended { .. } => "task.ended",
                TaskEvent::Kept { .. } => "task.kept",
                TaskEvent::Retired { .. } => "task.retired",
                TaskEvent::WebhookDelivered { .. } => "webhook.delivered",
                TaskEvent::WebhookFailed { .. } => "webhook.failed",
            },
            Self::Agent(e) => match e {
                AgentEvent::Registered { .. } => "agent.registered",
                AgentEvent::Retired { .. } => "agent.retired",
                AgentEvent::Heard { .. } => "agent.heard",
                AgentEvent::Said { .. } => "agent.said",
                AgentEvent::WentOffline { .. } => "agent.offline",
                AgentEvent::Read { .. } => "agent.read",
                AgentEvent::Told { .. } => "agent.told",
                AgentEvent::TrackGiven { .. } => "agent.track_given",
                AgentEvent::Sent { .. } => "order.sent",
                AgentEvent::Withdrawn { .. } => "order.withdrawn",
            },
            Self::Merge(e) => match e {
                MergeEvent::Requested { .. } => "merge.requested",
                MergeEvent::Began { .. } => "merge.began",
                MergeEvent::Checking { .. } => "merge.checking",
                MergeEvent::Landing { .. } => "merge.landing",
                MergeEvent::Merged { .. } => "merge.merged",
                MergeEvent::Blocked { .. } => "merge.blocked",
                MergeEvent::Requeued { .. } => "merge.requeued",
                MergeEvent::Withdrawn { .. } => "merge.withdrawn",
            },
        }
    }

    /// The stored body: a JSON object with the type inside.
    pub fn body(&self) -> String {
        serde_json::to_string(self).expect("events hold only strings, numbers and lists")
    }

    /// Reads a stored event back.
    pub fn from_stored(kind: &str, body: &str) -> Result<Self, UnreadableEvent> {
        if !KINDS.contains(&kind) {
            return Err(UnreadableEvent::UnknownType(kind.to_owned()));
        }
        let (concept, _) = kind.split_once('.').unwrap_or((kind, ""));
        let read = match concept {
            "rig" => serde_json::from_str(body).map(Self::Rig),
            "bead" => serde_json::from_str(body).map(Self::Bead),
            "context" => serde_json::from_str(body).map(Self::Context),
            "dispatch" => serde_json::from_str(body).map(Self::Dispatch),
            "convoy" => serde_json::from_str(body).map(Self::Convoy),
            "alert" => serde_json::from_str(body).map(Self::Alert),
            "preemption" => serde_json::from_str(body).map(Self::Preemption),
            "agent" | "order" => serde_json::from_str(body).map(Self::Agent),
            "merge" => serde_json::from_str(body).map(Self::Merge),
            "task" | "webhook" => serde_json::from_str(body).map(Self::Task),
            _ => serde_json::from_str(body).map(Self::Town),
        };
        let bad = |error| UnreadableEvent::BadBody { kind: kind.to_owned(), error };
        let event = read.map_err(bad)?;
        if event.kind() != kind {
            let error = serde::de::Error::custom(format!("the body is of type {:?}", event.kind()));
            return Err(bad(error));
        }
        Ok(event)
    }
}

/// Every type of event there is.
pub const KINDS: [&str; 91] = [
    "town.settings_changed",
    "scheduler.paused",
    "scheduler.resumed",
    "scheduler.host_gate",
    "scheduler.cluster_room",
    "town.clock_advanced",
    "town.retired",
    "operator.did",
    "operator.undid",
    "town.repaired",
    "rig.added",
    "rig.removed",
    "rig.switched",
    "bead.added",
    "bead.updated",
    "bead.closed",
    "bead.reopened",
    "bead.dependency_added",
    "bead.dependency_removed",
    "context.opened",
    "context.start_failed",
    "context.rested",
    "context.rearmed",
    "context.held",
    "context.prioritised",
    "context.closed",
    "dispatch.started",
    "dispatch.lined_up",
    "dispatch.called_back",
    "dispatch.running",
    "dispatch.step_done",
    "dispatch.stop_requested",
    "dispatch.ended",
    "dispatch.late_report",
    "convoy.created",
    "convoy.closed",
    "source.read",
    "bead.observed",
    "bead.vanished",
    "dispatch.close_overdue",
    "convoy.staged",
    "convoy.launched",
    "convoy.added",
    "convoy.reopened",
    "convoy.watched",
    "alert.raised",
    "alert.told",
    "alert.acked",
    "alert.ended",
    "account.cooling",
    "dispatch.checkpoint",
    "dispatch.session",
    "dispatch.progress",
    "dispatch.last_line",
    "dispatch.steps",
    "dispatch.cost",
    "dispatch.said",
    "dispatch.heard",
    "dispatch.stuck",
    "preemption.requested",
    "preemption.ended",
    "operator.redid",
    "context.budgets_put_back",
    "task.submitted",
    "task.rejected",
    "task.answered",
    "task.ended",
    "task.kept",
    "task.retired",
    "webhook.delivered",
    "webhook.failed",
    "dispatch.taken_up",
    "agent.registered",
    "agent.retired",
    "agent.heard",
    "agent.said",
    "agent.offline",
    "agent.read",
    "agent.told",
    "agent.track_given",
    "order.sent",
    "order.withdrawn",
    "dispatch.isolated",
    "merge.requested",
    "merge.began",
    "merge.checking",
    "merge.landing",
    "merge.merged",
    "merge.blocked",
    "merge.requeued",
    "merge.withdrawn",
];

impl From<TownEvent> for Event {
    fn from(event: TownEvent) -> Self {
        Self::Town(event)
    }
}
impl From<RigEvent> for Event {
    fn from(event: RigEvent) -> Self {
        Self::Rig(event)
    }
}
impl From<BeadEvent> for Event {
    fn from(event: BeadEvent) -> Self {
        Self::Bead(event)
    }
}
impl From<ContextEvent> for Event {
    fn from(event: ContextEvent) -> Self {
        Self::Context(event)
    }
}
impl From<DispatchEvent> for Event {
    fn from(event: DispatchEvent) -> Self {
        Self::Dispatch(event)
    }
}
impl From<AlertEvent> for Event {
    fn from(event: AlertEvent) -> Self {
        Self::Alert(event)
    }
}
impl From<PreemptionEvent> for Event {
    fn from(event: PreemptionEvent) -> Self {
        Self::Preemption(event)
    }
}
impl From<TaskEvent> for Event {
    fn from(event: TaskEvent) -> Self {
        Self::Task(event)
    }
}
impl From<AgentEvent> for Event {
    fn from(event: AgentEvent) -> Self {
        Self::Agent(event)
    }
}
impl From<MergeEvent> for Event {
    fn from(event: MergeEvent) -> Self {
        Self::Merge(event)
    }
}
impl From<ConvoyEvent> for Event {
    fn from(event: ConvoyEvent) -> Self {
        Self::Convoy(event)
    }
}
