//! Answers: what a command made, did, or found out.

use serde::{Deserialize, Serialize};

use crate::agent::Message;
use crate::dispatch::StopReason;
use crate::plan::{PlanReason, Start};
use crate::refusal::Refusal;
use crate::stage::StagePlan;
use crate::task::TaskState;
use crate::{AgentName, BeadId, ContextId, ConvoyId, DispatchId, RigName, Timestamp};

/// What a command answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// Something was made.
    Created {
        /// Its ids.
        ids: Vec<String>,
    },
    /// Something was done to these; `changed` is false when nothing was to do.
    Done {
        /// Whether anything changed.
        changed: bool,
        /// In words.
        message: String,
        /// The ids concerned.
        ids: Vec<String>,
    },
    /// What became of a sling.
    Slung {
        /// In direct mode.
        direct: bool,
        /// One per bead.
        results: Vec<SlingResult>,
    },
    /// What an `add` made.
    Added {
        /// One per item.
        results: Vec<SlingResult>,
    },
    /// What a plan of a convoy came to.
    Staged {
        /// The convoy; none when errors kept it from being made.
        convoy_id: Option<ConvoyId>,
        /// Whether it was staged before.
        restaged: bool,
        /// The plan.
        plan: Box<StagePlan>,
        /// What its launch did, if one was asked for and nothing spoke against it.
        launched: Option<Vec<SlingResult>>,
    },
    /// A convoy goes.
    Launched {
        /// Which.
        convoy_id: ConvoyId,
        /// What became of the beads of its first wave.
        wave1: Vec<SlingResult>,
    },
    /// How an agent stands.
    Agent {
        /// Which one.
        name: AgentName,
    },
    /// An agent has a bead.
    Claimed {
        /// Which one.
        agent: AgentName,
        /// Its token.
        dispatch_id: DispatchId,
        /// It had it before.
        already: bool,
    },
    /// What an agent is told.
    Inbox {
        /// Which one.
        agent: AgentName,
        /// The oldest first.
        messages: Vec<Message>,
    },
    /// What became of submitted tasks.
    Tasks {
        /// One per task.
        receipts: Vec<TaskReceipt>,
    },
    /// What the safety scan found, and did.
    Recovered {
        /// Nothing was changed.
        dry_run: bool,
        /// Each finding.
        findings: Vec<Recovery>,
    },
    /// What a worker said was heard.
    Heard {
        /// The dispatch.
        dispatch_id: DispatchId,
        /// False if the dispatch is over: then nothing changed.
        accepted: bool,
        /// Whether the worker should come to an end.
        should_yield: bool,
        /// Why.
        reason: Option<StopReason>,
    },
    /// What a pass did.
    Passed {
        /// What starts.
        starts: Vec<Start>,
        /// How many ready ones wait.
        skipped: u64,
        /// What limited it.
        reason: PlanReason,
        /// Nothing was started.
        dry_run: bool,
    },
}

/// Something the safety scan found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// What kind of thing.
    pub kind: RecoveryKind,
    /// The bead, context or convoy.
    pub id: String,
    /// In words.
    pub message: String,
    /// What was done about it, or would be.
    pub action: String,
}

/// What the safety scan looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryKind {
    /// A worker died without a word.
    DeadWorker,
    /// A bead is in progress, and nobody we know is on it.
    StaleHook,
    /// A context whose bead was closed or taken.
    StaleContext,
    /// A convoy in which nothing can go on.
    StrandedConvoy,
    /// A bead that should have been on the schedule.
    MissedBead,
}

/// What became of one bead of a sling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlingResult {
    /// The bead.
    pub id: String,
    /// What was done.
    pub action: SlingAction,
    /// Its context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<ContextId>,
    /// Its dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_id: Option<DispatchId>,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rig: Option<RigName>,
    /// The convoy that tracks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convoy_id: Option<ConvoyId>,
    /// Why not, as a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why not, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl SlingResult {
    pub(crate) fn new(id: &str, action: SlingAction) -> Self {
        Self {
            id: id.to_owned(),
            action,
            context_id: None,
            dispatch_id: None,
            rig: None,
            convoy_id: None,
            code: None,
            message: None,
        }
    }

    pub(crate) fn because(mut self, code: &str, message: impl Into<String>) -> Self {
        self.code = Some(code.to_owned());
        self.message = Some(message.into());
        self
    }
}

/// What a sling did with a bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlingAction {
    /// Its worker starts.
    Dispatched,
    /// It stands in the queue.
    Scheduled,
    /// It stood there already.
    AlreadyScheduled,
    /// It runs already.
    AlreadyRunning,
    /// Not for dispatch; left out of a set.
    Skipped,
    /// Refused, with a code.
    Refused,
}

/// What became of one submitted task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReceipt {
    /// Its id; none if it was not even recorded.
    pub id: Option<BeadId>,
    /// Where it stands.
    pub state: TaskState,
    /// Its place among those that wait.
    pub position: Option<u64>,
    /// When it was taken in.
    pub created_at: Option<Timestamp>,
    /// Why it was not taken in.
    pub refusal: Option<Refusal>,
    /// How full the queues were that had no room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<FullQueue>,
    /// The same request was made before; this is what became of it.
    pub replayed: bool,
}

/// How full the queues were when a task was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullQueue {
    /// Tasks that waited.
    pub queued: u64,
    /// Tasks that may wait.
    pub max_queue: u64,
    /// Tasks that may wait of one agent.
    pub max_per_agent: u64,
}

impl TaskReceipt {
    /// Of a task that is not recorded.
    pub(crate) fn refused(refusal: Refusal) -> Self {
        let state = TaskState::Rejected;
        Self {
            id: None,
            state,
            position: None,
            created_at: None,
            refusal: Some(refusal),
            full: None,
            replayed: false,
        }
    }
}
