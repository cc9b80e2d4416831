//! What staging and launching a convoy answer.

use serde::{Deserialize, Serialize};
use yard_engine::command::SlingResult;
use yard_engine::convoy::Convoy;
use yard_engine::stage::{Finding, Gated, StagePlan, TreeRow};
use yard_engine::{BeadId, ConvoyId, RigName, State};

use super::blockers::Blockers;

/// So deep is the tree nested and no deeper, because common JSON readers give up beyond 64 levels of children.
const DEEPEST: u32 = 50;

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

/// Renders a plan, and what its launch did if there was one.
pub fn stage(
    state: &State,
    convoy_id: Option<ConvoyId>,
    restaged: bool,
    plan: &StagePlan,
    wave1: Option<Vec<SlingResult>>,
) -> StageView {
    let status = match (plan.errors.as_slice(), plan.warnings.as_slice()) {
        ([], []) => "staged:ready",
        ([], _) => "staged:warnings",
        _ => "error",
    };
    let mut blockers = Blockers::new(state);
    let mut task = |id: &BeadId| {
        let about = About::of(state, id);
        TaskView {
            id: id.clone(),
            title: about.title,
            kind: about.kind,
            rig: about.rig,
            status: about.status,
            blocked_by: blockers.of(id),
        }
    };
    let wave =
        |(number, ids): (u32, &Vec<BeadId>)| WaveView { number, tasks: ids.iter().map(&mut task).collect() };
    StageView {
        status: status.to_owned(),
        convoy_id,
        restaged,
        errors: plan.errors.clone(),
        warnings: plan.warnings.clone(),
        waves: (1..).zip(&plan.waves).map(wave).collect(),
        gated: plan.gated.iter().map(|gated| gated_view(state, gated)).collect(),
        tree: nested(state, &plan.tree),
        critical_path: plan.critical_path.clone(),
        launched: wave1.is_some(),
        wave1,
    }
}

/// Renders a launch.
pub fn launched(state: &State, convoy_id: ConvoyId, wave1: Vec<SlingResult>) -> LaunchView {
    let status = state.convoy(&convoy_id).map(Convoy::status).unwrap_or_default();
    LaunchView { convoy_id, status: status.to_owned(), wave1 }
}

/// What every row says of its bead.
#[derive(Default)]
struct About {
    title: String,
    kind: String,
    status: String,
    rig: Option<RigName>,
}

impl About {
    fn of(state: &State, id: &BeadId) -> Self {
        let Some(entry) = state.bead(id) else { return Self::default() };
        Self {
            title: entry.bead.title.clone(),
            kind: entry.bead.kind.clone(),
            status: entry.bead.status.as_str().to_owned(),
            rig: state.rig_of(id).map(|rig| rig.name.clone()),
        }
    }
}

fn gated_view(state: &State, gated: &Gated) -> GatedView {
    let about = About::of(state, &gated.id);
    GatedView { id: gated.id.clone(), title: about.title, kind: about.kind, gated_by: gated.gated_by.clone() }
}

/// Nests rows that come in reading order.
fn nested(state: &State, rows: &[TreeRow]) -> Vec<TreeNode> {
    let mut roots = Vec::new();
    // The last row and its ancestors, each of which may still get children.
    let mut open: Vec<TreeNode> = Vec::new();
    for row in rows {
        let level = row.depth.min(DEEPEST) as usize;
        while open.len() > level {
            close_last(&mut open, &mut roots);
        }
        let About { title, kind, status, rig } = About::of(state, &row.id);
        let depth = Some(row.depth).filter(|depth| *depth > DEEPEST);
        open.push(TreeNode { id: row.id.clone(), title, kind, status, rig, depth, children: Vec::new() });
    }
    while !open.is_empty() {
        close_last(&mut open, &mut roots);
    }
    roots
}

/// Whatever is closed has its place below the one before it.
fn close_last(open: &mut Vec<TreeNode>, roots: &mut Vec<TreeNode>) {
    let Some(done) = open.pop() else { return };
    open.last_mut().map_or(roots, |parent| &mut parent.children).push(done);
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
