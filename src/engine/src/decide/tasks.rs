//! Tasks: taking them in or turning them away, calling them off, recording their one end, and forgetting them when their
//! time is up.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::bounds::{check_params, check_title};
use super::sling::Accepted;
use super::{Asker, WorkerExit};
use crate::bead::{Bead, BeadEvent, BeadStatus, DepKind, Dependency, Rare, bead_kind, default_bead_priority};
use crate::command::{Answer, FullQueue, NewTask, SlingRequest, TaskReceipt};
use crate::context::CloseReason;
use crate::dispatch::StopReason;
use crate::ids::base36;
use crate::refusal::Refusal;
use crate::state::State;
use crate::task::{HTTP_EXECUTOR, TASK_PREFIX, Task, TaskEnd, TaskEvent, TaskPlace, TaskState, Webhook};
use crate::tx::Tx;
use crate::{BeadId, DispatchId, FormulaName, Millis, RigName, Timestamp};

/// How long an action over HTTP may take, waiting included, when nothing is said.
const DEFAULT_DEADLINE: Millis = Millis::seconds(60);
/// Rejected tasks that are remembered; a client that never stops trying does not fill the memory.
const MOST_REJECTED: usize = 10_000;
/// Tasks forgotten in one go.
const RETIRED_AT_ONCE: usize = 500;
/// The waits before a webhook is tried again; after the last one it is given up.
const WEBHOOK_BACKOFF: [Millis; 8] = [
    Millis::seconds(5),
    Millis::seconds(30),
    Millis::minutes(2),
    Millis::minutes(10),
    Millis::minutes(30),
    Millis::minutes(2 * 60),
    Millis::minutes(5 * 60),
    Millis::minutes(10 * 60),
];

/// A task that may be taken in, if there is room.
struct Fit {
    rig: RigName,
    formula: Option<FormulaName>,
    dependencies: Vec<Dependency>,
}

impl Tx<'_> {
    /// Takes tasks in, each by itself: one that does not fit does not keep the others out.
    pub(super) fn task_submit(&mut self, asker: &Asker<'_>, tasks: &[NewTask]) -> Answer {
        // Whoever has ended takes no more room.
        self.settle_tasks();
        let numbered = tasks.iter().enumerate();
        let receipts = numbered.map(|(nth, task)| self.submit(asker, task, nth)).collect();
        Answer::Tasks { receipts }
    }

    fn submit(&mut self, asker: &Asker<'_>, new: &NewTask, nth: usize) -> TaskReceipt {
        if let Some(known) = self.known_by_key(new) {
            return known;
        }
        let fit = match self.judge_task(new, asker.kitchen.spoiled_tasks.get(&nth)) {
            Ok(fit) => fit,
            Err(refusal) => return TaskReceipt::refused(refusal),
        };
        let id = self.state().next_task_id();
        let mut task = self.task_record(id, new);
        if let Some(why) = self.state().no_room_for(&new.agent) {
            return self.reject(task, why);
        }
        task.key.clone_from(&new.key);
        let receipt_id = task.id.clone();
        let (deadline, created_at) = (task.deadline, task.created_at);
        let takes_worker = fit.formula.is_some();
        let request = SlingRequest {
            vars: new.vars(),
            args: takes_worker.then(|| new.action.clone()),
            executor: (!takes_worker).then(|| HTTP_EXECUTOR.to_owned()),
            deadline,
            no_boot: true,
            ..SlingRequest::default()
        };
        let place = TaskPlace {
            agent: new.agent.clone(),
            priority: new.priority,
            max_attempts: new.max_attempts.max(1),
            takes_worker,
        };
        let bead = new.bead(&task.id, created_at, fit.dependencies);
        let accepted = Accepted {
            bead: task.id.clone(),
            rig: fit.rig,
            formula: fit.formula,
            priority: 50,
            task: Some(place),
            assign: None,
        };
        self.emit(BeadEvent::Added { bead: Arc::new(bead), actor: asker.actor.to_owned() });
        self.emit(TaskEvent::Submitted { task: Box::new(task) });
        self.open_context(asker, &request, &accepted, None);
        self.state().receipt(&receipt_id, false)
    }

    /// What became of the same request when it was made before.
    fn known_by_key(&self, new: &NewTask) -> Option<TaskReceipt> {
        let key = new.key.as_ref()?;
        let task = self.state().tasks.get(self.state().task_index.keys.get(&key.key)?)?;
        if task.key.as_ref() == Some(key) {
            return Some(self.state().receipt(&task.id, true));
        }
        let message = "this Idempotency-Key was used for another request";
        Some(TaskReceipt::refused(Refusal::new("idempotency_conflict", message)))
    }

    fn judge_task(&self, new: &NewTask, spoiled: Option<&String>) -> Result<Fit, Refusal> {
        let state = self.state();
        if new.deadline.is_some_and(|deadline| deadline <= self.now()) {
            return Err(Refusal::new("past-deadline", "deadline is in the past"));
        }
        check_title(&new.action)?;
        check_params(new.params.as_ref())?;
        let rig = state.rig_for_task(new)?;
        let mut dependencies = Vec::with_capacity(new.after.len());
        for text in &new.after {
            let on = BeadId::parse(text)?;
            if !state.beads.contains_key(&on) {
                return Err(Refusal::new(
                    "unknown-bead",
                    format!("there is no task or bead {on} to wait for"),
                ));
            }
            if !dependencies.iter().any(|known: &Dependency| known.on == on) {
                dependencies.push(Dependency::new(on, DepKind::Blocks));
            }
        }
        if let Some((name, _)) = new.vars().iter().find(|(_, value)| value.contains(['\n', '\0'])) {
            let message = format!("params.{name} holds a line break, which a variable of a formula cannot");
            return Err(Refusal::new("bad-params", message));
        }
        if let Some(error) = spoiled {
            return Err(Refusal::new("formula", error.clone()));
        }
        Ok(Fit { rig, formula: new.formula.clone(), dependencies })
    }

    fn task_record(&self, id: BeadId, new: &NewTask) -> Task {
        let now = self.now();
        let usual = new.formula.is_none().then(|| now.after(DEFAULT_DEADLINE.duration()));
        Task {
            id,
            agent: new.agent.clone(),
            action: new.action.clone(),
            tab: new.tab.clone(),
            selector: new.selector.clone(),
            reference: new.reference.clone(),
            params: new.params.clone(),
            priority: new.priority,
            formula: new.formula.clone(),
            after: new.after.iter().filter_map(|text| BeadId::parse(text).ok()).collect(),
            max_attempts: new.max_attempts.max(1),
            deadline: new.deadline.or(usual),
            created_at: now,
            key: None,
            result: None,
            ended: None,
            webhook: new.callback.clone().map(Webhook::to),
            kept_at: None,
        }
    }

    /// Turns a task away, and keeps that as its result. Its key stays free: the client may try again.
    fn reject(&mut self, mut task: Task, why: String) -> TaskReceipt {
        let now = self.now();
        let oldest = &self.state().task_index.rejected;
        if oldest.len() >= MOST_REJECTED {
            let ids = oldest.first().map(|(_, id)| id.clone()).into_iter().collect();
            self.emit(TaskEvent::Retired { ids, workers: Vec::new() });
            task.id = self.state().next_task_id();
        }
        task.ended = Some(TaskEnd { at: now, state: TaskState::Rejected, error: Some(why) });
        // What it was about in detail is its client's to know: whoever floods us must not fill the memory.
        task.params = None;
        if let Some(webhook) = &mut task.webhook {
            webhook.next_at = Some(now);
        }
        let id = task.id.clone();
        self.emit(TaskEvent::Rejected { task: Box::new(task) });
        self.state().receipt(&id, false)
    }

    /// Calls a task off, whether it waits or runs.
    pub(super) fn task_cancel(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        agent: Option<&str>,
    ) -> Result<Answer, Refusal> {
        let not_found = || Refusal::new("not_found", "task not found");
        let id = BeadId::parse(text).map_err(|_| not_found())?;
        let task = self.state().tasks.get(&id).ok_or_else(not_found)?;
        if agent.is_some_and(|agent| agent != task.agent) {
            return Err(Refusal::new("agent_forbidden", "the task belongs to another agent"));
        }
        let over = task.ended.as_ref().map(|end| end.state);
        if let Some(state) = over.or_else(|| Some(self.state().task_outcome(&id)?.0)) {
            return Err(Refusal::new("conflict", format!("task is already {}", state.as_str())));
        }
        let work = self.state().work(&id).cloned().unwrap_or_default();
        match (work.live.clone(), work.context.clone()) {
            (Some(live), _) => {
                self.terminate(&live, StopReason::UserCancelled, false, asker.actor);
            }
            (None, Some(context)) => self.close(asker, &context, &id, CloseReason::Cancelled, None),
            (None, None) => {}
        }
        self.settle_tasks();
        let ids = vec![id.to_string()];
        Ok(Answer::Done { changed: true, message: format!("{id} is called off"), ids })
    }

    /// Records the end of every task that has come to one, whatever brought it about.
    pub fn settle_tasks(&mut self) {
        while let Some(id) = self.state().task_index.to_end.first().cloned() {
            let Some((state, error)) = self.state().task_outcome(&id) else { break };
            if let Some(context) = self.state().work(&id).and_then(|work| work.context.clone()) {
                // It waits in vain.
                let asker = Asker { actor: "scheduler", kitchen: &super::Kitchen::default() };
                self.close(&asker, &context, &id, CloseReason::Cancelled, error.clone());
            }
            let expired = state == TaskState::Failed && self.state().expired_while_queued(&id);
            self.emit(TaskEvent::Ended { id, state, error, expired });
        }
    }

    /// An action over HTTP came to its end: its server answered, or something went wrong.
    pub fn action_answered(&mut self, dispatch: &DispatchId, outcome: Result<Value, String>) {
        let exit = match outcome {
            Ok(answer) => {
                self.task_answered(dispatch, answer);
                WorkerExit::succeeded()
            }
            Err(message) => WorkerExit { code: None, message, ..WorkerExit::succeeded() },
        };
        self.worker_ended(dispatch, &exit);
    }

    /// What a task has to show for itself.
    pub fn task_answered(&mut self, dispatch: &DispatchId, result: Value) {
        let state = self.state();
        let live = state.dispatch(dispatch).is_some_and(|it| it.is_live() && it.stop.is_none());
        if live && state.tasks.contains_key(dispatch.bead()) {
            let id = dispatch.bead().clone();
            self.emit(TaskEvent::Answered { id, dispatch: dispatch.clone(), result });
        }
    }

    /// A webhook arrived, or did not.
    pub fn webhook_tried(&mut self, id: &BeadId, failure: Option<WebhookFailure>) {
        let Some(webhook) = self.state().tasks.get(id).and_then(|task| task.webhook.as_ref()) else { return };
        if webhook.next_at.is_none() {
            return;
        }
        let Some(WebhookFailure { error, hopeless }) = failure else {
            return self.emit(TaskEvent::WebhookDelivered { id: id.clone() });
        };
        let wait = WEBHOOK_BACKOFF.get(webhook.attempts as usize).filter(|_| !hopeless);
        let next_at = wait.map(|wait| self.now().after(wait.duration()));
        self.emit(TaskEvent::WebhookFailed { id: id.clone(), error, next_at });
    }

    /// Forgets tasks whose time is up, some at a time.
    pub(super) fn retire_tasks(&mut self) {
        let now = self.now();
        if self.state().next_retirement().is_none_or(|due| due > now) {
            return;
        }
        let ttl = self.state().ttl();
        let over = self.state().task_index.finished.iter().take(RETIRED_AT_ONCE);
        let over = over.take_while(|(at, _)| at.after(ttl.duration()) <= now).map(|(_, id)| id.clone());
        let (needed, ids): (Vec<BeadId>, Vec<BeadId>) =
            over.collect::<Vec<_>>().into_iter().partition(|id| self.state().is_needed(id));
        for id in needed {
            self.emit(TaskEvent::Kept { id });
        }
        if !ids.is_empty() {
            let attempts = ids.iter().flat_map(|id| self.state().dispatches_of(id));
            let workers = attempts.filter(|it| !it.is_action()).map(|it| it.id.clone()).collect();
            self.emit(TaskEvent::Retired { ids, workers });
        }
    }
}

/// Why a webhook did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFailure {
    /// In words.
    pub error: String,
    /// Trying again would not help.
    pub hopeless: bool,
}

impl State {
    /// The rig and the bead that a task would get, for whoever cooks its formula before it is decided.
    pub fn foretell_task(&self, new: &NewTask) -> Option<(RigName, Bead)> {
        let rig = self.rig_for_task(new).ok()?;
        Some((rig, new.bead(&self.next_task_id(), self.clock(), Vec::new())))
    }

    /// The id of the next task, after the position of its first event.
    fn next_task_id(&self) -> BeadId {
        let text = format!("{TASK_PREFIX}{}", base36(self.seq().next().0, 10));
        BeadId::parse(&text).expect("base 36 follows the grammar")
    }

    /// The rig of a task that names none is the first that takes work: which one matters only to formulas.
    fn rig_for_task(&self, new: &NewTask) -> Result<RigName, Refusal> {
        let open = || self.rigs.values().find(|rig| !rig.parked && !rig.docked);
        match (&new.rig, open()) {
            (None, Some(rig)) => Ok(rig.name.clone()),
            (named, _) => self.rig_for_new(named.as_ref()).map(|rig| rig.name.clone()),
        }
    }

    /// What keeps another task of this agent out.
    fn no_room_for(&self, agent: &str) -> Option<String> {
        let limits = &self.settings.http;
        let queued = self.task_index.waiting_total();
        if queued >= limits.max_queue {
            return Some(format!("rejected: global queue full ({queued}/{})", limits.max_queue));
        }
        let own = self.task_index.waiting_of(agent);
        let full = own >= limits.max_per_agent;
        full.then(|| format!("rejected: agent queue full for {agent:?} ({own}/{})", limits.max_per_agent))
    }

    /// What a client is told of its task right after submitting it.
    fn receipt(&self, id: &BeadId, replayed: bool) -> TaskReceipt {
        let Some(task) = self.tasks.get(id) else {
            return TaskReceipt::refused(Refusal::new("not_found", "task not found"));
        };
        let rejected = task.ended.as_ref().filter(|end| end.state == TaskState::Rejected);
        TaskReceipt {
            id: Some(id.clone()),
            state: self.task_state(task),
            position: self.task_position(id),
            created_at: Some(task.created_at),
            refusal: rejected.map(|end| Refusal::new("queue_full", end.error.clone().unwrap_or_default())),
            full: rejected.map(|_| FullQueue {
                queued: self.task_index.waiting_total(),
                max_queue: self.settings.http.max_queue,
                max_per_agent: self.settings.http.max_per_agent,
            }),
            replayed,
        }
    }

    /// When the next task is forgotten.
    pub(crate) fn next_retirement(&self) -> Option<Timestamp> {
        let (at, _) = self.task_index.finished.first()?;
        Some(at.after(self.ttl().duration()))
    }

    /// Whether other work still counts on a task.
    fn is_needed(&self, id: &BeadId) -> bool {
        self.dependents_of(id).any(|other| !self.is_closed(other))
            || self.children_of(id).any(|other| !self.is_closed(other))
            || self.all_convoys_tracking(id).next().is_some()
    }

    /// Webhooks that are to be sent by now, the one that waits longest first.
    pub fn due_webhooks(&self, now: Timestamp) -> impl Iterator<Item = &Task> {
        let due = self.task_index.webhooks.iter().take_while(move |(at, _)| *at <= now);
        due.filter_map(|(_, id)| self.tasks.get(id))
    }

    /// When webhooks are to be sent, and for which tasks.
    pub fn webhook_times(&self) -> impl Iterator<Item = (Timestamp, &BeadId)> {
        self.task_index.webhooks.iter().map(|(at, id)| (*at, id))
    }

    /// The counts of all tasks so far.
    pub fn task_counts(&self) -> &crate::task::TaskCounts {
        &self.task_counts
    }
}

impl NewTask {
    /// The variables of its formula: what was given as parameters.
    pub fn vars(&self) -> BTreeMap<String, String> {
        let given = self.params.iter().flatten().filter(|_| self.formula.is_some());
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        given.map(|(name, value)| (name.clone(), text(value))).collect()
    }

    /// The bead that stands for it.
    pub fn bead(&self, id: &BeadId, created_at: Timestamp, dependencies: Vec<Dependency>) -> Bead {
        let of_tab = self.tab.as_ref().map(|tab| format!(" {tab}")).unwrap_or_default();
        Bead {
            id: id.clone(),
            title: format!("{}{of_tab} ({})", self.action, self.agent),
            kind: bead_kind("task"),
            status: BeadStatus::Open,
            priority: default_bead_priority(),
            dependencies,
            created_at,
            source: None,
            pinned: false,
            ephemeral: false,
            is_template: false,
            argv: None,
            rare: Rare::default(),
        }
    }
}
