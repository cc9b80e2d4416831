//! Tasks as the HTTP API shows them: the field names are those its clients know. A time that is not known is left out.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use yard_engine::task::{Task, TaskState};
use yard_engine::{BeadId, FormulaName, Refusal, State, Timestamp};

/// One task, as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// Its id.
    pub task_id: BeadId,
    /// Whose it is.
    pub agent_id: String,
    /// What is to be done.
    pub action: String,
    /// The tab it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tab_id: Option<String>,
    /// The element it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The same, in the old way.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// Lower is sooner.
    pub priority: i64,
    /// The formula it runs by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<FormulaName>,
    /// What must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<BeadId>,
    /// How often it may be tried.
    pub max_attempts: u32,
    /// Where it stands.
    pub state: TaskState,
    /// When it must be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When its last attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// How long it took from then to then; 0 if it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// What its executor answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whom to tell of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// Its place among the tasks that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// How often it was tried.
    pub attempts: u32,
    /// How telling its client went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookView>,
}

/// How telling a client of the end of its task went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookView {
    /// How often it was tried.
    pub attempts: u32,
    /// Whether it arrived.
    pub delivered: bool,
    /// When it is tried next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A page ends with the task that makes it longer than this, in bytes.
const LARGEST_PAGE: usize = 2 * 1024 * 1024;

/// Which tasks to list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFilter {
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only in one of these states; words that name none match nothing.
    pub states: Option<Vec<String>>,
    /// Only those submitted after this one.
    pub after: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// A page of tasks, the first submitted first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TasksView {
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// How many those are.
    pub count: usize,
    /// The last of them, if there are more after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<BeadId>,
}

/// A task as it stands.
pub fn task(state: &State, task: &Task) -> TaskView {
    let attempt = state.last_attempt(task);
    let started_at = attempt.map(|attempt| attempt.started_at);
    let ended = task.ended.as_ref();
    let took = |end: Timestamp| started_at.map_or(Duration::ZERO, |start| end.since(start));
    TaskView {
        task_id: task.id.clone(),
        agent_id: task.agent.clone(),
        action: task.action.clone(),
        tab_id: task.tab.clone(),
        selector: task.selector.clone(),
        reference: task.reference.clone(),
        params: task.params.clone(),
        priority: task.priority,
        formula: task.formula.clone(),
        after: task.after.clone(),
        max_attempts: task.max_attempts,
        state: state.task_state(task),
        deadline: task.deadline,
        created_at: task.created_at,
        started_at,
        completed_at: ended.map(|end| end.at),
        latency_ms: ended.map(|end| u64::try_from(took(end.at).as_millis()).unwrap_or(u64::MAX)),
        result: task.result.clone(),
        error: ended.and_then(|end| end.error.clone()),
        callback_url: task.webhook.as_ref().map(|webhook| webhook.url.clone()),
        position: state.task_position(&task.id),
        attempts: attempt.map_or(0, |attempt| attempt.id.attempt()),
        webhook: task.webhook.as_ref().filter(|_| ended.is_some()).map(|webhook| WebhookView {
            attempts: webhook.attempts,
            delivered: webhook.delivered,
            next_at: webhook.next_at,
            error: webhook.error.clone(),
        }),
    }
}

/// A task by id, of one agent or of any.
pub fn task_by_id(state: &State, id: &str, agent: Option<&str>) -> Result<TaskView, Refusal> {
    let found = BeadId::parse(id).ok().and_then(|id| state.task(&id));
    let found = found.filter(|task| agent.is_none_or(|agent| task.agent == agent));
    found.map(|found| task(state, found)).ok_or_else(|| Refusal::new("not_found", "task not found"))
}

/// Tasks, a page at a time.
pub fn tasks(state: &State, filter: &TaskFilter) -> TasksView {
    let fits = |task: &&Task| {
        filter.agent.as_ref().is_none_or(|agent| task.agent == *agent)
            && filter.after.as_ref().is_none_or(|after| task.id.as_str() > after.as_str())
            && filter.states.as_ref().is_none_or(|states| {
                let state = state.task_state(task).as_str();
                states.iter().any(|wanted| wanted == state)
            })
    };
    let limit = filter.limit.unwrap_or(usize::MAX);
    let mut found = state.tasks().filter(fits).peekable();
    let (mut page, mut size) = (Vec::new(), 0);
    while let Some(next) = found.next_if(|_| page.len() < limit && size < LARGEST_PAGE) {
        let view = task(state, next);
        size += serde_json::to_string(&view).map_or(0, |text| text.len());
        page.push(view);
    }
    let more = found.peek().is_some();
    let next_cursor = page.last().filter(|_| more).map(|last| last.task_id.clone());
    TasksView { count: page.len(), tasks: page, next_cursor }
}

/// The figures of the queue, what became of all tasks so far, and the limits in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskStatsView {
    /// As it stands.
    pub queue: TaskQueueView,
    /// Since the town began.
    pub metrics: TaskMetricsView,
    /// In force.
    pub config: TaskConfigView,
}

/// Who waits and who runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskQueueView {
    /// All that wait.
    pub total_queued: u64,
    /// All that run.
    pub total_inflight: u64,
    /// By agent.
    pub agents: BTreeMap<String, AgentQueueView>,
}

/// Who waits and who runs of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentQueueView {
    /// That wait.
    pub queued: u64,
    /// That run.
    pub inflight: u64,
}

/// What became of all tasks so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskMetricsView {
    /// Taken in.
    pub tasks_submitted: u64,
    /// Done.
    pub tasks_completed: u64,
    /// Failed.
    pub tasks_failed: u64,
    /// Called off.
    pub tasks_cancelled: u64,
    /// Turned away.
    pub tasks_rejected: u64,
    /// Not started before their deadline.
    pub tasks_expired: u64,
    /// Attempts begun.
    pub dispatch_count: u64,
    /// How long those had waited on the average.
    pub avg_dispatch_latency_ms: f64,
    /// Webhooks that arrived.
    pub webhooks_delivered: u64,
    /// Webhooks that were given up.
    pub webhooks_abandoned: u64,
    /// By agent.
    pub agents: BTreeMap<String, AgentMetricsView>,
}

/// What became of the tasks of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMetricsView {
    /// Taken in.
    pub submitted: u64,
    /// Done.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Called off.
    pub cancelled: u64,
    /// Turned away.
    pub rejected: u64,
}

/// The limits in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskConfigView {
    /// How agents take turns.
    pub strategy: String,
    /// Tasks that may wait.
    pub max_queue_size: u64,
    /// Tasks that may wait of one agent.
    pub max_per_agent: u64,
    /// Tasks that may run.
    pub max_inflight: u64,
    /// Tasks that may run of one agent.
    pub max_per_agent_flight: u64,
    /// As many as may run: there is no number of workers besides.
    pub worker_count: u64,
    /// How long results are kept.
    #[serde(rename = "resultTTL")]
    pub result_ttl: String,
}

/// The figures; by name only of one agent, if only that one may know.
pub fn task_stats(state: &State, only: Option<&str>) -> TaskStatsView {
    let agents = state.busy_task_agents();
    let total_inflight = agents.values().map(|(_, inflight)| inflight).sum();
    let shown = |agent: &str| only.is_none_or(|only| only == agent);
    let (counts, http) = (state.task_counts(), &state.settings().http);
    let of_agent = |counts: &yard_engine::task::AgentCounts| AgentMetricsView {
        submitted: counts.submitted,
        completed: counts.completed,
        failed: counts.failed,
        cancelled: counts.cancelled,
        rejected: counts.rejected,
    };
    TaskStatsView {
        queue: TaskQueueView {
            total_queued: state.waiting_tasks(),
            total_inflight,
            agents: agents
                .into_iter()
                .filter(|(agent, _)| shown(agent))
                .map(|(agent, (queued, inflight))| (agent.to_owned(), AgentQueueView { queued, inflight }))
                .collect(),
        },
        metrics: TaskMetricsView {
            tasks_submitted: counts.submitted,
            tasks_completed: counts.completed,
            tasks_failed: counts.failed,
            tasks_cancelled: counts.cancelled,
            tasks_rejected: counts.rejected,
            tasks_expired: counts.expired,
            dispatch_count: counts.dispatched,
            avg_dispatch_latency_ms: match counts.first_attempts {
                0 => 0.0,
                attempts => counts.waited_ms as f64 / attempts as f64,
            },
            webhooks_delivered: counts.webhooks_delivered,
            webhooks_abandoned: counts.webhooks_abandoned,
            agents: counts
                .agents
                .iter()
                .filter(|(agent, _)| shown(agent))
                .map(|(agent, counts)| (agent.clone(), of_agent(counts)))
                .collect(),
        },
        config: TaskConfigView {
            strategy: "fair-fifo".to_owned(),
            max_queue_size: http.max_queue,
            max_per_agent: http.max_per_agent,
            max_inflight: http.max_inflight,
            max_per_agent_flight: http.max_per_agent_inflight,
            worker_count: http.max_inflight,
            result_ttl: as_go_writes_it(state.settings().results_ttl.duration()),
        },
    }
}

/// A span as the clients of this API are used to read it: `5m0s`, `168h0m0s`, `1.5s`.
fn as_go_writes_it(span: Duration) -> String {
    let (whole, millis) = (span.as_secs(), span.subsec_millis());
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    let fraction = format!(".{millis:03}");
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{fraction}s"),
        (0, _) => format!("{minutes}m{seconds}{fraction}s"),
        _ => format!("{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_in_go() {
        let cases =
            [(300_000, "5m0s"), (1500, "1.5s"), (604_800_000, "168h0m0s"), (0, "0s"), (60_250, "1m0.25s")];
        for (millis, written) in cases {
            assert_eq!(as_go_writes_it(Duration::from_millis(millis)), written);
        }
    }
}
