//! What is kept about tasks so that nobody has to look through them: who waits, whose end is to be recorded, whose time
//! is up, and who is to be told. All of it follows from the records.

use std::collections::{BTreeMap, BTreeSet};

use super::TaskState;
use crate::queue::Lane;
use crate::state::State;
use crate::{BeadId, Timestamp};

/// Derived from the tasks, their beads and contexts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TaskIndex {
    /// Tasks that wait, by agent.
    waiting: BTreeMap<String, BTreeSet<BeadId>>,
    waiting_total: u64,
    /// Tasks under way, by agent.
    running: BTreeMap<String, BTreeSet<BeadId>>,
    /// Tasks that have come to an end which is not recorded yet.
    pub(crate) to_end: BTreeSet<BeadId>,
    /// Tasks that are over, by when they came to their end.
    pub(crate) finished: BTreeSet<(Timestamp, BeadId)>,
    /// Tasks that were rejected, told or not.
    pub(crate) rejected: BTreeSet<(Timestamp, BeadId)>,
    /// Webhooks, by when they are to be sent.
    pub(crate) webhooks: BTreeSet<(Timestamp, BeadId)>,
    /// Tasks by their clients' names for them.
    pub(crate) keys: BTreeMap<String, BeadId>,
}

impl TaskIndex {
    /// How many tasks wait.
    pub(crate) fn waiting_total(&self) -> u64 {
        self.waiting_total
    }

    /// How many of an agent wait.
    pub(crate) fn waiting_of(&self, agent: &str) -> u64 {
        self.waiting.get(agent).map_or(0, |tasks| tasks.len() as u64)
    }

    /// How many of an agent are under way.
    pub(crate) fn running_of(&self, agent: &str) -> u64 {
        self.running.get(agent).map_or(0, |tasks| tasks.len() as u64)
    }

    fn note(places: &mut BTreeMap<String, BTreeSet<BeadId>>, agent: &str, id: &BeadId, there: bool) -> bool {
        if there {
            return places.entry(agent.to_owned()).or_default().insert(id.clone());
        }
        let Some(tasks) = places.get_mut(agent) else { return false };
        let changed = tasks.remove(id);
        if tasks.is_empty() {
            places.remove(agent);
        }
        changed
    }
}

impl State {
    /// Agents with tasks that wait or run, and how many of each.
    pub fn busy_task_agents(&self) -> BTreeMap<&str, (u64, u64)> {
        let index = &self.task_index;
        let agents = index.waiting.keys().chain(index.running.keys());
        agents.map(|agent| (agent.as_str(), (index.waiting_of(agent), index.running_of(agent)))).collect()
    }

    /// How many tasks wait.
    pub fn waiting_tasks(&self) -> u64 {
        self.task_index.waiting_total()
    }

    /// Brings the index up to date after something about a task, its bead or its request changed.
    pub(crate) fn refresh_task(&mut self, id: &BeadId) {
        let Some(task) = self.tasks.get(id) else { return };
        let state = self.task_state(task);
        let unrecorded = task.ended.is_none() && self.task_outcome(id).is_some();
        let finished = task.finished_at();
        let index = &mut self.task_index;
        let waits = state == TaskState::Queued && !unrecorded;
        let runs = matches!(state, TaskState::Assigned | TaskState::Running);
        if TaskIndex::note(&mut index.waiting, &task.agent, id, waits) {
            index.waiting_total = if waits { index.waiting_total + 1 } else { index.waiting_total - 1 };
        }
        TaskIndex::note(&mut index.running, &task.agent, id, runs);
        if unrecorded {
            index.to_end.insert(id.clone());
        } else {
            index.to_end.remove(id);
        }
        if let Some(at) = finished {
            index.finished.insert((at, id.clone()));
        }
        if let Some(end) = task.ended.as_ref().filter(|end| end.state == TaskState::Rejected) {
            index.rejected.insert((end.at, id.clone()));
        }
        if let Some(at) = task.webhook.as_ref().and_then(|webhook| webhook.next_at) {
            index.webhooks.insert((at, id.clone()));
        }
        if let Some(key) = &task.key {
            index.keys.insert(key.key.clone(), id.clone());
        }
    }

    /// Takes a task out of everything that is ordered by its times, before those change.
    pub(crate) fn unlist_task(&mut self, id: &BeadId) {
        let Some(task) = self.tasks.get(id) else { return };
        let index = &mut self.task_index;
        if let Some(at) = task.finished_at() {
            index.finished.remove(&(at, id.clone()));
        }
        if let Some(end) = &task.ended {
            index.rejected.remove(&(end.at, id.clone()));
        }
        if let Some(at) = task.webhook.as_ref().and_then(|webhook| webhook.next_at) {
            index.webhooks.remove(&(at, id.clone()));
        }
    }

    /// Forgets all about a task that is over.
    pub(crate) fn forget_task(&mut self, id: &BeadId) {
        self.unlist_task(id);
        let Some(task) = self.tasks.remove(id) else { return };
        if let Some(key) = task.key
            && self.task_index.keys.get(&key.key) == Some(id)
        {
            self.task_index.keys.remove(&key.key);
        }
        self.task_index.to_end.remove(id);
        self.forget_bead(id);
        if self.task_counts.forgotten(&task.agent) {
            self.queue.forget_lane(&Lane::of_agent(&task.agent));
        }
        self.touch_task(id);
        self.touch_town();
    }

    /// The index, from scratch.
    pub(crate) fn rebuild_tasks(&mut self) {
        self.task_index = TaskIndex::default();
        for id in self.tasks.keys().cloned().collect::<Vec<_>>() {
            self.refresh_task(&id);
        }
    }
}
