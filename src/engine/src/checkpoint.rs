//! Checkpoints: the records changed since the last one, as rows. Loading them and folding the events after gives
//! the same state as folding the whole log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bead::BeadEntry;
use crate::dispatch::Dispatch;
use crate::preempt::Cycle;
use crate::settings::Settings;
use crate::spending::Spending;
use crate::state::State;
use crate::stored::is_default;
use crate::task::TaskCounts;
use crate::town::{Pause, Undoable};
use crate::{
    AccountName, AgentName, AlertId, BeadId, ContextId, ConvoyId, DispatchId, RigName, Seq, Timestamp,
};

/// One record that a checkpoint holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entity {
    Town,
    Rig(RigName),
    Bead(BeadId),
    Context(ContextId),
    Dispatch(DispatchId),
    Convoy(ConvoyId),
    Alert(AlertId),
    Task(BeadId),
    Agent(AgentName),
    Merge(BeadId),
}

/// A record as a row: `body` is none when it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    /// The concept: `bead`, `context`, …
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// Its JSON.
    pub body: Option<String>,
}

/// A checkpoint row that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("checkpoint row {kind} {id:?} cannot be read: {error}")]
pub struct UnreadableRow {
    kind: String,
    id: String,
    error: String,
}

#[derive(Serialize, Deserialize)]
struct TownRow {
    clock: Timestamp,
    settings: Settings,
    #[serde(default)]
    pause: Option<Pause>,
    #[serde(default)]
    host_gate: Option<String>,
    #[serde(default)]
    undo: Vec<Undoable>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redo: Vec<Undoable>,
    #[serde(default)]
    last_dispatch_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sources: BTreeMap<RigName, String>,
    #[serde(default)]
    spending: Spending,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    cooling: BTreeMap<AccountName, Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preemption: Option<Cycle>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    lined: BTreeMap<DispatchId, Dispatch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promised: Option<ContextId>,
    #[serde(default, skip_serializing_if = "is_default")]
    tasks: TaskCounts,
}

fn json<T: Serialize>(record: &T) -> String {
    serde_json::to_string(record).expect("records hold only strings, numbers and lists")
}

impl State {
    /// How many records the next checkpoint would write.
    pub fn changed_records(&self) -> usize {
        self.dirty.len() + self.dirty_beads.len()
    }

    /// The records changed since the last call; the town's row is always among them, for its clock.
    pub fn take_changed_records(&mut self) -> Vec<CheckpointRow> {
        self.touch_town();
        self.take_dirty().iter().map(|entity| self.row(entity)).collect()
    }

    /// The beads changed since the last call, for those who only look: nothing is left for a checkpoint to write.
    pub fn take_changed_beads(&mut self) -> Vec<BeadId> {
        let changed = self.take_dirty().into_iter();
        let beads = changed.filter_map(|entity| match entity {
            Entity::Bead(id) | Entity::Task(id) | Entity::Merge(id) => Some(id),
            Entity::Context(id) => self.contexts.get(&id).map(|context| context.bead().clone()),
            Entity::Dispatch(id) => Some(id.bead().clone()),
            Entity::Town | Entity::Rig(_) | Entity::Convoy(_) | Entity::Alert(_) | Entity::Agent(_) => None,
        });
        beads.collect()
    }

    /// What has changed, in order.
    fn take_dirty(&mut self) -> Vec<Entity> {
        let beads = std::mem::take(&mut self.dirty_beads).into_iter();
        let beads = beads.map(|number| Entity::Bead(self.beads.name(number).clone()));
        let mut dirty: Vec<Entity> = std::mem::take(&mut self.dirty).into_iter().chain(beads).collect();
        dirty.sort_unstable();
        dirty
    }

    fn row(&self, entity: &Entity) -> CheckpointRow {
        let (kind, id, body) = match entity {
            Entity::Town => {
                let row = TownRow {
                    clock: self.clock,
                    settings: self.settings.clone(),
                    pause: self.pause.clone(),
                    host_gate: self.host_gate.clone(),
                    undo: self.undo.clone(),
                    redo: self.redo.clone(),
                    last_dispatch_at: self.last_dispatch_at,
                    sources: self.sources.clone(),
                    spending: self.spending.clone(),
                    cooling: self.cooling.clone(),
                    preemption: self.preemption.clone(),
                    lined: self.lined.clone(),
                    promised: self.promised.clone(),
                    tasks: self.task_counts.clone(),
                };
                ("town", "town".to_owned(), Some(json(&row)))
            }
            Entity::Rig(name) => ("rig", name.to_string(), self.rigs.get(name).map(json)),
            Entity::Bead(id) => ("bead", id.to_string(), self.beads.get(id).or(self.gone.get(id)).map(json)),
            Entity::Context(id) => ("context", id.to_string(), self.contexts.get(id).map(json)),
            Entity::Dispatch(id) => ("dispatch", id.to_string(), self.dispatches.get(id).map(json)),
            Entity::Convoy(id) => ("convoy", id.to_string(), self.convoys.get(id).map(json)),
            Entity::Alert(id) => ("alert", id.to_string(), self.alerts.get(id).map(json)),
            Entity::Task(id) => ("task", id.to_string(), self.tasks.get(id).map(json)),
            Entity::Merge(bead) => ("merge", bead.to_string(), self.merges.get(bead).map(json)),
            Entity::Agent(name) => ("agent", name.to_string(), self.agents.get(name).map(json)),
        };
        CheckpointRow { kind, id, body }
    }

    /// The state of a checkpoint taken at `seq`.
    pub fn restore<'a>(
        seq: Seq,
        rows: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Result<Self, UnreadableRow> {
        let mut state = Self { seq, ..Self::default() };
        let mut beads = Vec::new();
        for (kind, id, body) in rows {
            state.restore_row(kind, body, &mut beads).map_err(|error| UnreadableRow {
                kind: kind.to_owned(),
                id: id.to_owned(),
                error,
            })?;
        }
        let (gone, there): (Vec<_>, Vec<_>) = beads.into_iter().partition(|entry: &BeadEntry| entry.gone);
        for (beads, entries) in [(&mut state.gone, gone), (&mut state.beads, there)] {
            let ids: Vec<BeadId> = entries.iter().map(|entry| entry.bead.id.clone()).collect();
            beads.insert_all(ids.iter(), entries.into_iter());
        }
        state.rebuild_indexes();
        Ok(state)
    }

    fn restore_row(&mut self, kind: &str, body: &str, beads: &mut Vec<BeadEntry>) -> Result<(), String> {
        fn read<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T, String> {
            serde_json::from_str(body).map_err(|e| e.to_string())
        }
        match kind {
            "town" => {
                let row: TownRow = read(body)?;
                self.clock = row.clock;
                self.settings = row.settings;
                self.pause = row.pause;
                self.host_gate = row.host_gate;
                self.undo = row.undo;
                self.redo = row.redo;
                self.last_dispatch_at = row.last_dispatch_at;
                self.sources = row.sources;
                self.spending = row.spending;
                self.cooling = row.cooling;
                self.preemption = row.preemption;
                self.lined = row.lined;
                self.promised = row.promised;
                self.task_counts = row.tasks;
            }
            "rig" => {
                let rig: crate::rig::Rig = read(body)?;
                self.rigs.insert(rig.name.clone(), rig);
            }
            "bead" => beads.push(read(body)?),
            "context" => {
                let context: crate::context::Context = read(body)?;
                self.contexts.insert(context.id.clone(), context);
            }
            "dispatch" => {
                let dispatch: crate::dispatch::Dispatch = read(body)?;
                self.dispatches.insert(dispatch.id.clone(), dispatch);
            }
            "convoy" => {
                let convoy: crate::convoy::Convoy = read(body)?;
                self.convoys.insert(convoy.id.clone(), convoy);
            }
            "task" => {
                let task: crate::task::Task = read(body)?;
                self.tasks.insert(task.id.clone(), task);
            }
            "agent" => {
                let agent: crate::agent::Agent = read(body)?;
                self.agents.insert(agent.name().clone(), agent);
            }
            "merge" => {
                let merge: crate::merge::MergeRequest = read(body)?;
                self.merges.insert(merge.bead.clone(), merge);
            }
            "alert" => {
                let alert: crate::alert::Alert = read(body)?;
                self.alerts.insert(alert.id.clone(), alert);
            }
            _ => return Err("the kind is not known to this version of ym".to_owned()),
        }
        Ok(())
    }
}
