//! Tasks of the HTTP API. A task is a native bead with a request of its own: it waits in its agent's lane, counts against
//! the limits of the API, and comes to exactly one end, which is what its client is told, and kept until its time is up.

mod counts;
mod event;
mod index;

pub use counts::{AgentCounts, TaskCounts};
pub use event::TaskEvent;
pub(crate) use index::TaskIndex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bead::{Bead, Verdict};
use crate::context::CloseReason;
use crate::dispatch::{Dispatch, StopReason};
use crate::rig::Rig;
use crate::state::State;
use crate::stored::is_default;
use crate::{BeadId, FormulaName, Timestamp};

/// What the ids of tasks begin with.
pub const TASK_PREFIX: &str = "tsk_";

/// The executor that forwards a task to a server instead of starting a worker.
pub const HTTP_EXECUTOR: &str = "http";

/// One task, as it was submitted and as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id, and that of its bead.
    pub id: BeadId,
    /// Whose it is.
    pub agent: String,
    /// What is to be done.
    pub action: String,
    /// The browser tab it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tab: Option<String>,
    /// The element it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The same, in the old way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// Lower is sooner, inside its agent's lane.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i64,
    /// The formula it runs by, instead of an action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<FormulaName>,
    /// What must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<BeadId>,
    /// Attempts altogether.
    #[serde(default = "one")]
    pub max_attempts: u32,
    /// Not done by then: failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// The key under which its client may submit it again without it being done again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
    /// What its executor answered, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Its one end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TaskEnd>,
    /// Whom to tell of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// Its time was up, but others waited for it: it was given as much again from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_at: Option<Timestamp>,
}

fn one() -> u32 {
    1
}

impl Task {
    /// From when on its time is counted; none while it may not go.
    fn finished_at(&self) -> Option<Timestamp> {
        let ended = self.ended.as_ref()?;
        let told = self.webhook.as_ref().is_none_or(|webhook| webhook.next_at.is_none());
        told.then(|| self.kept_at.unwrap_or(ended.at))
    }
}

/// A client's own name for a request, and what the request was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyKey {
    /// The name.
    pub key: String,
    /// What tells this request from another under the same name.
    pub fingerprint: String,
}

/// How a task came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// When.
    pub at: Timestamp,
    /// How.
    pub state: TaskState,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Telling a client that its task has come to an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// Where to.
    pub url: String,
    /// How often it was tried.
    #[serde(default)]
    pub attempts: u32,
    /// When it is tried next; none before the task has ended, and once nothing more is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// It arrived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivered: bool,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Webhook {
    /// One that is to be sent when its task has ended.
    pub fn to(url: String) -> Self {
        Self { url, attempts: 0, next_at: None, delivered: false, error: None }
    }
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// It waits.
    Queued,
    /// It is about to run.
    Assigned,
    /// It runs.
    Running,
    /// It was done.
    Done,
    /// It failed.
    Failed,
    /// It was called off.
    Cancelled,
    /// There was no room for it.
    Rejected,
}

impl TaskState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Assigned,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Rejected,
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Assigned => "assigned",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Rejected => "rejected",
        }
    }
}

/// Where the request of a task stands among others: its lane, its place in it, and what it counts against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPlace {
    /// Whose lane.
    pub agent: String,
    /// Lower is sooner.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i64,
    /// Attempts altogether.
    pub max_attempts: u32,
    /// It runs as a worker, not as an action over HTTP.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_worker: bool,
}

impl State {
    /// A task by id.
    pub fn task(&self, id: &BeadId) -> Option<&Task> {
        self.tasks.get(id)
    }

    /// All tasks that are remembered, the first submitted first.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = &Task> {
        self.tasks.values()
    }

    /// Where a task stands.
    pub fn task_state(&self, task: &Task) -> TaskState {
        if let Some(end) = &task.ended {
            return end.state;
        }
        let live = self.work(&task.id).and_then(|work| work.live.as_ref());
        match live.and_then(|id| self.dispatch(id)) {
            None => TaskState::Queued,
            Some(dispatch) if dispatch.running_at.is_none() => TaskState::Assigned,
            Some(_) => TaskState::Running,
        }
    }

    /// The rig that a task was given: its id says nothing about that.
    pub(crate) fn rig_of_task(&self, id: &BeadId) -> Option<&Rig> {
        let work = self.tasks.get(id).and_then(|task| self.work(&task.id))?;
        let context = self.context(work.context.as_ref().or(work.last_context.as_ref())?)?;
        self.rigs.get(&context.fields.target_rig)
    }

    /// Its attempt that began last.
    pub fn last_attempt(&self, task: &Task) -> Option<&Dispatch> {
        self.dispatches_of(&task.id).next_back()
    }

    /// How many tasks would start before this one, and it; none unless it waits for nothing but room.
    pub fn task_position(&self, id: &BeadId) -> Option<u64> {
        let context = self.work(id)?.context.as_ref()?;
        self.queue.position(context)
    }

    /// How a task has come out whose end is not recorded yet; none while it has not.
    pub(crate) fn task_outcome(&self, id: &BeadId) -> Option<(TaskState, Option<String>)> {
        let entry = self.beads.get(id)?;
        let work = &entry.work;
        if work.live.is_some() {
            return None;
        }
        if work.context.is_some() {
            return self.waits_in_vain(&entry.bead).map(|why| (TaskState::Failed, Some(why)));
        }
        if entry.bead.is_closed() {
            return Some((TaskState::Done, None));
        }
        match work.verdict {
            Some(Verdict::Done) => None,
            Some(Verdict::Failed) => Some((TaskState::Failed, self.why_it_failed(id))),
            Some(Verdict::Unavailable | Verdict::CircuitBroken) => {
                Some((TaskState::Failed, self.last_words_about(id)))
            }
            Some(Verdict::Cancelled) => Some((TaskState::Cancelled, None)),
            None => Some((TaskState::Cancelled, Some("it was taken off the schedule".to_owned()))),
        }
    }

    /// Why a task that waits for others will never run: one of them has come to another end than being done.
    fn waits_in_vain(&self, bead: &Bead) -> Option<String> {
        bead.dependencies.iter().find_map(|edge| {
            let other = self.tasks.get(&edge.on)?;
            let state = other.ended.as_ref()?.state;
            (state != TaskState::Done)
                .then(|| format!("{}, which it waits for, is {}", other.id, state.as_str()))
        })
    }

    fn why_it_failed(&self, id: &BeadId) -> Option<String> {
        if self.expired_while_queued(id) {
            return Some("deadline exceeded while queued".to_owned());
        }
        match self.last_stop_of(id) {
            Some(StopReason::DeadlineExceeded) => Some("deadline exceeded while running".to_owned()),
            Some(StopReason::GracefulShutdown) => {
                Some("outcome unknown: the daemon was stopped while the action was under way".to_owned())
            }
            Some(_) | None => self.last_words_about(id),
        }
    }

    /// Whether its deadline passed before it could start.
    pub(crate) fn expired_while_queued(&self, id: &BeadId) -> bool {
        let last = self.work(id).and_then(|work| self.context(work.last_context.as_ref()?));
        last.and_then(|context| context.closed.as_ref()).is_some_and(|it| it.reason == CloseReason::Expired)
    }
}
