//! Convoys as documents.

use serde::{Deserialize, Serialize};
use yard_engine::convoy::Convoy;
use yard_engine::readiness::Reason;
use yard_engine::settings::Merge;
use yard_engine::{BeadId, ConvoyId, DispatchId, RigName, Standing, State, Timestamp};

/// A convoy in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvoySummary {
    /// Its id.
    pub id: ConvoyId,
    /// What it is about.
    pub title: String,
    /// `open` or `closed`.
    pub status: String,
    /// The caller looks after it.
    pub owned: bool,
    /// How many beads.
    pub total: usize,
    /// How many of them are closed.
    pub completed: usize,
    /// When it came to be.
    pub created_at: Timestamp,
}

/// Convoys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvoyList {
    /// By id.
    pub convoys: Vec<ConvoySummary>,
}

/// A convoy with its beads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvoyView {
    /// Its id.
    pub id: ConvoyId,
    /// What it is about.
    pub title: String,
    /// `open` or `closed`.
    pub status: String,
    /// The caller looks after it.
    pub owned: bool,
    /// Merge strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_strategy: Option<Merge>,
    /// How many beads.
    pub total: usize,
    /// Closed.
    pub completed: usize,
    /// Queued and free to start.
    pub ready: usize,
    /// Running.
    pub running: usize,
    /// Queued.
    pub queued: usize,
    /// Blocked.
    pub blocked: usize,
    /// Failed, cancelled or circuit-broken.
    pub failed: usize,
    /// Each bead.
    pub tracked: Vec<TrackedView>,
}

/// A bead of a convoy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedView {
    /// Its id.
    pub id: BeadId,
    /// Its title.
    pub title: String,
    /// Its status in the tracker.
    pub status: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its rig.
    pub rig: Option<RigName>,
    /// Where it stands.
    pub state: Option<Standing>,
    /// Why it does not run.
    pub reasons: Vec<Reason>,
    /// The dispatch that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_id: Option<DispatchId>,
}

/// Renders the list of convoys.
pub fn convoys(state: &State, all: bool) -> ConvoyList {
    let shown = state.convoys().filter(|c| all || c.is_open());
    ConvoyList { convoys: shown.map(|c| summary(state, c)).collect() }
}

fn summary(state: &State, convoy: &Convoy) -> ConvoySummary {
    ConvoySummary {
        id: convoy.id.clone(),
        title: convoy.title.clone(),
        status: status(convoy),
        owned: convoy.owned,
        total: convoy.tracked.len(),
        completed: completed(state, convoy),
        created_at: convoy.created_at,
    }
}

fn status(convoy: &Convoy) -> String {
    if convoy.is_open() { "open" } else { "closed" }.to_owned()
}

fn completed(state: &State, convoy: &Convoy) -> usize {
    convoy.tracked.iter().filter(|id| state.bead(id).is_some_and(|e| e.bead.is_closed())).count()
}

/// Renders one convoy.
pub fn convoy(state: &State, id: &ConvoyId) -> Option<ConvoyView> {
    let convoy = state.convoy(id)?;
    let tracked: Vec<TrackedView> = convoy.tracked.iter().map(|id| tracked(state, id)).collect();
    let count =
        |wanted: &[Standing]| tracked.iter().filter(|t| t.state.is_some_and(|s| wanted.contains(&s))).count();
    Some(ConvoyView {
        id: convoy.id.clone(),
        title: convoy.title.clone(),
        status: status(convoy),
        owned: convoy.owned,
        merge_strategy: convoy.merge,
        total: tracked.len(),
        completed: count(&[Standing::Closed]),
        ready: tracked.iter().filter(|t| t.state == Some(Standing::Queued) && t.reasons.is_empty()).count(),
        running: count(&[Standing::Running]),
        queued: count(&[Standing::Queued]),
        blocked: count(&[Standing::Blocked]),
        failed: count(&[Standing::Failed, Standing::Cancelled, Standing::CircuitBroken]),
        tracked,
    })
}

fn tracked(state: &State, id: &BeadId) -> TrackedView {
    let entry = state.bead(id);
    TrackedView {
        id: id.clone(),
        title: entry.map(|e| e.bead.title.clone()).unwrap_or_default(),
        status: entry.map(|e| e.bead.status.as_str().to_owned()).unwrap_or_default(),
        kind: entry.map(|e| e.bead.kind.clone()).unwrap_or_default(),
        rig: state.rig_of(id).map(|r| r.name.clone()),
        state: state.standing(id),
        reasons: state.reasons(id),
        dispatch_id: entry.and_then(|e| e.work.live.clone()),
    }
}
