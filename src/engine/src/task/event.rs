//! What can happen to a task.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Task, TaskEnd, TaskState};
use crate::dispatch::Dispatch;
use crate::queue::Lane;
use crate::state::State;
use crate::{BeadId, DispatchId, Millis, Timestamp};

/// However short results are kept, a task that others wait for is looked at only so often.
const KEPT_AT_LEAST: Millis = Millis::minutes(1);

/// What can happen to a task, besides what happens to its bead, its request and its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum TaskEvent {
    /// It was taken in.
    #[serde(rename = "task.submitted")]
    Submitted {
        /// The record.
        task: Box<Task>,
    },
    /// There was no room for it. The record says so, and is kept like any other result.
    #[serde(rename = "task.rejected")]
    Rejected {
        /// The record.
        task: Box<Task>,
    },
    /// Its executor answered.
    #[serde(rename = "task.answered")]
    Answered {
        /// Which task.
        id: BeadId,
        /// Which attempt.
        dispatch: DispatchId,
        /// What.
        result: Value,
    },
    /// It came to its one end.
    #[serde(rename = "task.ended")]
    Ended {
        /// Which task.
        id: BeadId,
        /// How.
        state: TaskState,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// It could not be started before its deadline.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        expired: bool,
    },
    /// Its time is up, but other beads need it.
    #[serde(rename = "task.kept")]
    Kept {
        /// Which task.
        id: BeadId,
    },
    /// The time of these is up: all about them is forgotten.
    #[serde(rename = "task.retired")]
    Retired {
        /// Which.
        ids: Vec<BeadId>,
        /// Their attempts that ran in a worker, which may have written something.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        workers: Vec<DispatchId>,
    },
    /// Its client was told of its end.
    #[serde(rename = "webhook.delivered")]
    WebhookDelivered {
        /// Which task.
        id: BeadId,
    },
    /// Its client could not be told of its end.
    #[serde(rename = "webhook.failed")]
    WebhookFailed {
        /// Which task.
        id: BeadId,
        /// What went wrong.
        error: String,
        /// When it is tried again; none if it is given up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_at: Option<Timestamp>,
    },
}

impl State {
    pub(crate) fn apply_task(&mut self, event: &TaskEvent, at: Timestamp) {
        match event {
            TaskEvent::Submitted { task } => {
                self.task_counts.submitted(&task.agent);
                self.put_task(task);
            }
            TaskEvent::Rejected { task } => {
                self.task_counts.ended(&task.agent, TaskState::Rejected);
                self.put_task(task);
            }
            TaskEvent::Answered { id, result, .. } => {
                self.change_task(id, |task| task.result = Some(result.clone()));
            }
            TaskEvent::Ended { id, state, error, expired } => {
                let Some(agent) = self.tasks.get(id).map(|task| task.agent.clone()) else { return };
                self.task_counts.ended(&agent, *state);
                self.task_counts.expired += u64::from(*expired);
                self.change_task(id, |task| {
                    task.ended = Some(TaskEnd { at, state: *state, error: error.clone() });
                    if let Some(webhook) = &mut task.webhook {
                        webhook.next_at = Some(at);
                    }
                });
                // Whoever waited for it may wait in vain now.
                for waiting in self.dependents_of(id).cloned().collect::<Vec<_>>() {
                    self.refresh_task(&waiting);
                }
            }
            TaskEvent::Kept { id } => {
                let from = at.after(KEPT_AT_LEAST.duration());
                self.change_task(id, |task| task.kept_at = Some(from));
            }
            TaskEvent::Retired { ids, .. } => {
                for id in ids {
                    self.forget_task(id);
                }
            }
            TaskEvent::WebhookDelivered { id } => {
                self.task_counts.webhooks_delivered += 1;
                self.change_webhook(id, |webhook| {
                    (webhook.next_at, webhook.delivered, webhook.error) = (None, true, None);
                });
            }
            TaskEvent::WebhookFailed { id, error, next_at } => {
                self.task_counts.webhooks_abandoned += u64::from(next_at.is_none());
                self.change_webhook(id, |webhook| {
                    (webhook.next_at, webhook.error) = (*next_at, Some(error.clone()));
                });
            }
        }
        self.touch_town();
    }

    fn put_task(&mut self, task: &Task) {
        self.tasks.insert(task.id.clone(), task.clone());
        self.touch_task(&task.id);
        self.refresh_task(&task.id);
    }

    fn change_task(&mut self, id: &BeadId, change: impl FnOnce(&mut Task)) {
        self.unlist_task(id);
        let Some(task) = self.tasks.get_mut(id) else { return };
        change(task);
        self.touch_task(id);
        self.refresh_task(id);
    }

    fn change_webhook(&mut self, id: &BeadId, change: impl FnOnce(&mut super::Webhook)) {
        self.change_task(id, |task| {
            if let Some(webhook) = &mut task.webhook {
                webhook.attempts += 1;
                change(webhook);
            }
        });
    }

    /// Notes that an attempt of a task begins.
    pub(crate) fn note_attempt(&mut self, dispatch: &Dispatch, at: Timestamp) {
        if let Some(task) = self.tasks.get(dispatch.id.bead()) {
            // Later attempts waited for the earlier ones.
            let waited = (dispatch.id.attempt() == 1).then(|| at.since(task.created_at));
            // A sling of its bead stands in a lane like any other sling.
            let served = (dispatch.lane == Lane::of_agent(&task.agent)).then_some(dispatch.order);
            self.task_counts.served(&task.agent, served, waited);
        }
    }
}
