//! What staging and launching a convoy answer.

use serde::{Deserialize, Serialize};
use yard_engine::command::SlingResult;
use yard_engine::convoy::Convoy;
use yard_engine::stage::Finding;
use yard_engine::{BeadId, ConvoyId, RigName, State};

/// A plan of a convoy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageView {
    /// `staged:ready`, `staged:warnings` or `error`.
    pub status: String,
    /// The convoy; none when errors kept it from being made.
    pub convoy_id: Option<ConvoyId>,
    /// Whether it was staged before.
    pub restaged: bool,
    /// What makes it impossible.
    pub errors: Vec<Finding>,
    /// What somebody should know before.
    pub warnings: Vec<Finding>,
    /// Which beads could start together.
    pub waves: Vec<WaveView>,
    /// Open beads without a wave.
    pub gated: Vec<GatedView>,
    /// The beads as they contain each other.
    pub tree: Vec<TreeNode>,
    /// A longest chain of beads in which each waits for the one before.
    pub critical_path: Vec<BeadId>,
    /// It was let go at once.
    pub launched: bool,
    /// If so, what became of the beads of its first wave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave1: Option<Vec<SlingResult>>,
}

/// What a plan came to, for whoever passes the rest of the document on as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StageOutcome {
    /// The convoy; none when errors kept it from being made.
    pub convoy_id: Option<ConvoyId>,
    /// It was let go at once.
    #[serde(default)]
    pub launched: bool,
}

impl StageOutcome {
    /// Reads it from a document. If nothing was to be launched the beginning says all, and a long rest is not gone
    /// through.
    pub fn of(document: &str, launch: bool) -> serde_json::Result<Self> {
        let beginning = document.find(",\"restaged\":").filter(|_| !launch);
        let beginning =
            beginning.and_then(|end| serde_json::from_str(&format!("{}}}", &document[..end])).ok());
        beginning.map_or_else(|| serde_json::from_str(document), Ok)
    }
}

/// Beads that could start together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaveView {
    /// From 1.
    pub number: u32,
    /// By id.
    pub tasks: Vec<TaskView>,
}

/// A bead with a wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its id.
    pub id: BeadId,
    /// Its title.
    pub title: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its rig.
    pub rig: Option<RigName>,
    /// Its status in the tracker.
    pub status: String,
    /// The open beads it waits for: all of its own, and the nearest ten of those it inherits.
    pub blocked_by: Vec<BeadId>,
}

/// A bead without a wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatedView {
    /// Its id.
    pub id: BeadId,
    /// Its title.
    pub title: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What keeps it from getting a wave.
    pub gated_by: Vec<BeadId>,
}

/// A bead with those below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeNode {
    /// Its id.
    pub id: BeadId,
    /// Its title.
    pub title: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its status in the tracker.
    pub status: String,
    /// Its rig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rig: Option<RigName>,
    /// How far below its root it really is, when it stands higher because documents are not nested any deeper. Its
    /// ancestors are then those before it with smaller depths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// What it contains.
    pub children: Vec<TreeNode>,
}

/// A convoy that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchView {
    /// Which.
    pub convoy_id: ConvoyId,
    /// `open`.
    pub status: String,
    /// What became of the beads of its first wave.
    pub wave1: Vec<SlingResult>,
}

/// Renders a launch.
pub fn launched(state: &State, convoy_id: ConvoyId, wave1: Vec<SlingResult>) -> LaunchView {
    let status = state.convoy(&convoy_id).map(Convoy::status).unwrap_or_default();
    LaunchView { convoy_id, status: status.to_owned(), wave1 }
}

/// A plan as whoever reads the document gets it.
#[cfg(test)]
fn stage(
    state: &State,
    convoy_id: Option<ConvoyId>,
    restaged: bool,
    plan: &yard_engine::stage::StagePlan,
    wave1: Option<Vec<SlingResult>>,
) -> StageView {
    let (convoy_id, wave1) = (convoy_id.as_ref(), wave1.as_deref());
    let document = super::StageDocument { state, convoy_id, restaged, plan, wave1 };
    let text = document.write().expect("it can be written");
    serde_json::from_str(text.get()).expect("it can be read")
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
