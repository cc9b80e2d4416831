//! Beads and rigs as documents.

use serde::{Deserialize, Serialize};
use yard_engine::readiness::{Reason, ReasonCode};
use yard_engine::{BeadId, RigName, Standing, State, Timestamp};

use crate::protocol::BeadFilter;

/// A bead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeadView {
    /// Its id.
    pub id: BeadId,
    /// One line.
    pub title: String,
    /// More.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its status in the tracker.
    pub status: String,
    /// 0 to 4.
    pub priority: u8,
    /// The rig that owns it.
    pub rig: Option<RigName>,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Labels.
    pub labels: Vec<String>,
    /// What it depends on.
    pub dependencies: Vec<DependencyView>,
    /// The command it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// When it came to be.
    pub created_at: Timestamp,
    /// When it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// Why it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_reason: Option<String>,
    /// Where it stands.
    pub state: Standing,
    /// Why it does not run.
    pub reasons: Vec<Reason>,
}

/// One dependency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependencyView {
    /// The other bead.
    pub id: BeadId,
    /// The kind of edge.
    #[serde(rename = "type")]
    pub kind: String,
}

/// Beads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeadList {
    /// By id.
    pub beads: Vec<BeadView>,
}

/// A rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RigView {
    /// Its name.
    pub name: RigName,
    /// Its bead prefix.
    pub prefix: String,
    /// Its directory.
    pub path: String,
    /// Parked.
    pub parked: bool,
    /// Docked.
    pub docked: bool,
    /// Its cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_polecats: Option<u64>,
    /// Live workers in it.
    pub active: u64,
}

/// Rigs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RigList {
    /// By name.
    pub rigs: Vec<RigView>,
}

/// Renders one bead.
pub fn bead(state: &State, id: &BeadId) -> Option<BeadView> {
    let bead = &state.bead(id)?.bead;
    let standing = state.standing(id)?;
    let dependencies = bead.dependencies.iter();
    Some(BeadView {
        id: bead.id.clone(),
        title: bead.title.clone(),
        description: bead.description.clone(),
        kind: bead.kind.clone(),
        status: bead.status.as_str().to_owned(),
        priority: bead.priority,
        rig: state.rig_of(id).map(|r| r.name.clone()),
        assignee: bead.assignee.clone(),
        labels: bead.labels.clone(),
        dependencies: dependencies
            .map(|d| DependencyView { id: d.on.clone(), kind: d.kind.as_str().to_owned() })
            .collect(),
        argv: bead.argv.clone(),
        created_at: bead.created_at,
        closed_at: bead.closed_at,
        close_reason: bead.close_reason.clone(),
        state: standing,
        reasons: state.reasons(id),
    })
}

/// Renders the beads a filter lets through.
pub fn beads(state: &State, filter: &BeadFilter) -> BeadList {
    let wanted = |id: &BeadId| {
        filter.rig.as_ref().is_none_or(|rig| state.rig_of(id).is_some_and(|r| r.name.as_str() == rig))
    };
    let room_only = |reason: &Reason| {
        matches!(reason.code, ReasonCode::Paused | ReasonCode::Capacity | ReasonCode::HostLoad)
    };
    let beads = state
        .beads()
        .filter(|e| filter.all || !e.bead.is_closed())
        .map(|e| &e.bead.id)
        .filter(|id| wanted(id))
        .filter_map(|id| bead(state, id))
        .filter(|b| !filter.ready || b.reasons.iter().all(room_only))
        .filter(|b| !filter.blocked || b.reasons.iter().any(|r| r.code.is_blocking()))
        .collect();
    BeadList { beads }
}

/// Renders the rigs.
pub fn rigs(state: &State) -> RigList {
    let view = |rig: &yard_engine::rig::Rig| {
        let room = state.room(&yard_engine::capacity::Limit::Rig(rig.name.clone()));
        RigView {
            name: rig.name.clone(),
            prefix: rig.prefix.clone(),
            path: rig.path.clone(),
            parked: rig.parked,
            docked: rig.docked,
            max_polecats: room.max,
            active: room.active,
        }
    };
    RigList { rigs: state.rigs().map(view).collect() }
}
