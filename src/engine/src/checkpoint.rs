//! Checkpoints: the records changed since the last one, as rows. Loading them and folding the events after gives
//! the same state as folding the whole log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bead::{BeadEntry, Sleeper};
use crate::dispatch::Dispatch;
use crate::forecast::History;
use crate::preempt::Cycle;
use crate::queue::Lane;
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster_room: Option<u64>,
    #[serde(default)]
    undo: Vec<Undoable>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redo: Vec<Undoable>,
    #[serde(default)]
    last_dispatch_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sources: BTreeMap<RigName, Option<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    contested: BTreeMap<RigName, BTreeSet<BeadId>>,
    #[serde(default)]
    spending: Spending,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    cooling: BTreeMap<AccountName, Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    served_before: BTreeMap<Lane, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preemption: Option<Cycle>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    lined: BTreeMap<DispatchId, Dispatch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promised: Option<ContextId>,
    #[serde(default, skip_serializing_if = "is_default")]
    tasks: TaskCounts,
    #[serde(default)]
    history: Option<History>,
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
        let changed = self.take_dirty();
        let beads = changed.iter().filter_map(|entity| match entity {
            Entity::Bead(id) => self.beads.number(id),
            _ => None,
        });
        self.put_to_rest(beads.collect::<Vec<_>>());
        let mut rows: Vec<CheckpointRow> =
            changed.iter().filter(|entity| !self.is_at_rest(entity)).map(|entity| self.row(entity)).collect();
        // One that is forgotten may have been at rest.
        let gone = rows.iter().filter(|row| row.kind == "bead" && row.body.is_none());
        let gone: Vec<String> = gone.map(|row| row.id.clone()).collect();
        rows.extend(gone.into_iter().map(|id| CheckpointRow { kind: "rest", id, body: None }));
        rows.extend(self.take_rows_of_rest());
        rows
    }

    /// Whether a record is stored with a bead at rest.
    fn is_at_rest(&self, entity: &Entity) -> bool {
        match entity {
            Entity::Bead(id) => self.beads.is_at_rest(id),
            Entity::Context(id) => self.rests_with_its_bead(id),
            Entity::Dispatch(id) => self.beads.is_at_rest(id.bead()),
            Entity::Town
            | Entity::Rig(_)
            | Entity::Convoy(_)
            | Entity::Alert(_)
            | Entity::Task(_)
            | Entity::Agent(_)
            | Entity::Merge(_) => false,
        }
    }

    /// The beads changed since the last call, for those who only look: nothing is left for a checkpoint to write.
    pub fn take_changed_beads(&mut self) -> Vec<BeadId> {
        self.forget_rows_of_rest();
        let changed = self.take_dirty().into_iter();
        let beads = changed.filter_map(|entity| match entity {
            Entity::Bead(id) | Entity::Task(id) | Entity::Merge(id) => Some(id),
            Entity::Context(id) => self.context(&id).map(|context| context.bead().clone()),
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
                    cluster_room: self.cluster_room,
                    undo: self.undo.clone(),
                    redo: self.redo.clone(),
                    last_dispatch_at: self.last_dispatch_at,
                    sources: self.sources.clone(),
                    contested: self.contested.clone(),
                    spending: self.spending.clone(),
                    cooling: self.cooling.clone(),
                    served_before: self.served_before.clone(),
                    preemption: self.preemption.clone(),
                    lined: self.lined.clone(),
                    promised: self.promised.clone(),
                    tasks: self.task_counts.clone(),
                    history: Some(self.history.clone()),
                };
                ("town", "town".to_owned(), Some(json(&row)))
            }
            Entity::Rig(name) => ("rig", name.to_string(), self.rigs.get(name).map(json)),
            Entity::Bead(id) => ("bead", id.to_string(), self.beads.get(id).or(self.gone.get(id)).map(json)),
            Entity::Context(id) => ("context", id.to_string(), self.context(id).map(json)),
            Entity::Dispatch(id) => ("dispatch", id.to_string(), self.dispatch(id).map(json)),
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
        let mut restoring = Restoring::new();
        for (kind, id, body) in rows {
            restoring.take(kind, id, body)?;
        }
        Ok(restoring.finish(seq))
    }
}

/// A state as it is put together from the rows of a checkpoint, which may come in any order.
#[derive(Debug, Default)]
pub struct Restoring {
    state: State,
    beads: Vec<BeadEntry>,
    sleepers: Vec<u32>,
    has_history: bool,
}

impl Restoring {
    /// Nothing was read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one row.
    pub fn take(&mut self, kind: &str, id: &str, body: &str) -> Result<(), UnreadableRow> {
        self.take_row(kind, body).map_err(|error| UnreadableRow {
            kind: kind.to_owned(),
            id: id.to_owned(),
            error,
        })
    }

    /// The state, once all rows were taken.
    pub fn finish(self, seq: Seq) -> State {
        let Self { mut state, beads, sleepers, has_history } = self;
        state.seq = seq;
        state.beads.note_sleepers(&sleepers);
        let (gone, there): (Vec<_>, Vec<_>) = beads.into_iter().partition(|entry: &BeadEntry| entry.gone);
        for (beads, entries) in [(&mut state.gone, gone), (&mut state.beads, there)] {
            let ids: Vec<BeadId> = entries.iter().map(|entry| entry.bead.id.clone()).collect();
            beads.insert_all(ids.iter(), entries.into_iter());
        }
        state.rebuild_indexes();
        if !has_history {
            state.history = state.derive_history();
        }
        // Those that an older version stored as if they were awake.
        state.put_to_rest(0..state.beads.numbers() as u32);
        state
    }

    fn take_row(&mut self, kind: &str, body: &str) -> Result<(), String> {
        fn read<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T, String> {
            serde_json::from_str(body).map_err(|e| e.to_string())
        }
        let state = &mut self.state;
        match kind {
            "town" => {
                let row: TownRow = read(body)?;
                state.clock = row.clock;
                state.settings = row.settings;
                state.pause = row.pause;
                state.host_gate = row.host_gate;
                state.cluster_room = row.cluster_room;
                state.undo = row.undo;
                state.redo = row.redo;
                state.last_dispatch_at = row.last_dispatch_at;
                state.sources = row.sources;
                state.contested = row.contested;
                state.spending = row.spending;
                state.cooling = row.cooling;
                state.served_before = row.served_before;
                state.preemption = row.preemption;
                state.lined = row.lined;
                state.promised = row.promised;
                state.task_counts = row.tasks;
                self.has_history = row.history.is_some();
                state.history = row.history.unwrap_or_default();
            }
            "rig" => {
                let rig: crate::rig::Rig = read(body)?;
                state.rigs.insert(rig.name.clone(), rig);
            }
            "bead" => self.beads.push(read(body)?),
            "rest" => {
                let sleeper = Sleeper::read(body)?;
                self.sleepers.push(state.beads.insert_sleeper(&sleeper));
            }
            "context" => {
                let context: Arc<crate::context::Context> = read(body)?;
                state.contexts.insert(context.id.clone(), context);
            }
            "dispatch" => {
                let dispatch: crate::dispatch::Dispatch = read(body)?;
                state.dispatches.insert(dispatch.id.clone(), dispatch);
            }
            "convoy" => {
                let convoy: crate::convoy::Convoy = read(body)?;
                state.convoys.insert(convoy.id.clone(), convoy);
            }
            "task" => {
                let task: crate::task::Task = read(body)?;
                state.tasks.insert(task.id.clone(), task);
            }
            "agent" => {
                let agent: crate::agent::Agent = read(body)?;
                state.agents.insert(agent.name().clone(), agent);
            }
            "merge" => {
                let merge: crate::merge::MergeRequest = read(body)?;
                state.merges.insert(merge.bead.clone(), merge);
            }
            "alert" => {
                let alert: crate::alert::Alert = read(body)?;
                state.alerts.insert(alert.id.clone(), alert);
            }
            _ => return Err("the kind is not known to this version of ym".to_owned()),
        }
        Ok(())
    }
}
