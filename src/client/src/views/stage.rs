//! What staging and launching a convoy answer.

use std::cell::RefCell;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use yard_engine::bead::BeadEntry;
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

/// A plan as a [`StageView`], written from the state as it goes: a plan of a million beads is never held twice.
#[derive(Debug, Clone, Copy)]
pub struct StageDocument<'a> {
    /// The town.
    pub state: &'a State,
    /// The convoy that was made or changed.
    pub convoy_id: Option<&'a ConvoyId>,
    /// Whether it was staged before.
    pub restaged: bool,
    /// What it would do.
    pub plan: &'a StagePlan,
    /// What its launch did, if there was one.
    pub wave1: Option<&'a [SlingResult]>,
}

impl Serialize for StageDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { state, convoy_id, restaged, plan, wave1 } = *self;
        let status = match (plan.errors.as_slice(), plan.warnings.as_slice()) {
            ([], []) => "staged:ready",
            ([], _) => "staged:warnings",
            _ => "error",
        };
        let blockers = RefCell::new(Blockers::new(state));
        let abouts = About::of_all(state, plan.tree.iter().map(|row| &row.id));
        let mut document = serializer.serialize_struct("StageView", 11)?;
        document.serialize_field("status", status)?;
        document.serialize_field("convoy_id", &convoy_id)?;
        document.serialize_field("restaged", &restaged)?;
        document.serialize_field("errors", &plan.errors)?;
        document.serialize_field("warnings", &plan.warnings)?;
        let waves = || {
            let waves = (1..).zip(plan.waves.iter().zip(&plan.wave_rows));
            waves.map(|(number, (ids, rows))| WaveRow::of(&blockers, number, ids.iter().zip(rows), &abouts))
        };
        document.serialize_field("waves", &Each(waves))?;
        document
            .serialize_field("gated", &Each(|| plan.gated.iter().map(|gated| GatedRow::of(state, gated))))?;
        document.serialize_field("tree", &Siblings { rows: &plan.tree, abouts: &abouts, level: 0 })?;
        document.serialize_field("critical_path", &plan.critical_path)?;
        document.serialize_field("launched", &wave1.is_some())?;
        if let Some(wave1) = wave1 {
            document.serialize_field("wave1", wave1)?;
        }
        document.end()
    }
}

/// Renders a launch.
pub fn launched(state: &State, convoy_id: ConvoyId, wave1: Vec<SlingResult>) -> LaunchView {
    let status = state.convoy(&convoy_id).map(Convoy::status).unwrap_or_default();
    LaunchView { convoy_id, status: status.to_owned(), wave1 }
}

/// A [`TaskView`] on its way out.
#[derive(Serialize)]
struct TaskRow<'a> {
    id: &'a BeadId,
    title: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    rig: Option<&'a RigName>,
    status: &'a str,
    blocked_by: Vec<&'a BeadId>,
}

/// A [`WaveView`] on its way out.
#[derive(Serialize)]
struct WaveRow<'a> {
    number: u32,
    tasks: Vec<TaskRow<'a>>,
}

impl<'a> WaveRow<'a> {
    fn of(
        blockers: &RefCell<Blockers<'a>>,
        number: u32,
        beads: impl Iterator<Item = (&'a BeadId, &'a u32)>,
        abouts: &[About<'a>],
    ) -> Self {
        let mut blockers = blockers.borrow_mut();
        let task = |(id, row): (&'a BeadId, &'a u32)| {
            let About { entry, title, kind, status, rig } = abouts[*row as usize];
            let blocked_by = entry.map(|entry| blockers.of(entry)).unwrap_or_default();
            TaskRow { id, title, kind, rig, status, blocked_by }
        };
        Self { number, tasks: beads.map(task).collect() }
    }
}

/// A [`GatedView`] on its way out.
#[derive(Serialize)]
struct GatedRow<'a> {
    id: &'a BeadId,
    title: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    gated_by: &'a [BeadId],
}

impl<'a> GatedRow<'a> {
    fn of(state: &'a State, Gated { id, gated_by }: &'a Gated) -> Self {
        let (title, kind) =
            state.bead(id).map(|entry| (&*entry.bead.title, &*entry.bead.kind)).unwrap_or_default();
        Self { id, title, kind, gated_by }
    }
}

/// A [`TreeNode`] on its way out.
#[derive(Serialize)]
struct NodeRow<'a> {
    id: &'a BeadId,
    title: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rig: Option<&'a RigName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    children: Siblings<'a>,
}

/// A list that is made while it is written.
struct Each<F>(F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// What every row says of its bead.
#[derive(Clone, Copy, Default)]
struct About<'a> {
    entry: Option<&'a BeadEntry>,
    title: &'a str,
    kind: &'a str,
    status: &'a str,
    rig: Option<&'a RigName>,
}

impl<'a> About<'a> {
    /// All beads are found before any is looked at: most of the time goes by waiting for memory, and so many wait at
    /// once.
    fn of_all(state: &'a State, ids: impl Iterator<Item = &'a BeadId>) -> Vec<Self> {
        let entries: Vec<Option<&BeadEntry>> = ids.map(|id| state.bead(id)).collect();
        let mut rigs = state.rigs_of_beads();
        let mut about = |entry: &'a BeadEntry| {
            let bead = &entry.bead;
            let rig = rigs.of(&bead.id).map(|rig| &rig.name);
            Self {
                entry: Some(entry),
                title: &bead.title,
                kind: &bead.kind,
                status: bead.status.as_str(),
                rig,
            }
        };
        entries.into_iter().map(|entry| entry.map(&mut about).unwrap_or_default()).collect()
    }
}

/// Rows in reading order that begin at a level of nesting, each followed by those below it.
#[derive(Clone)]
struct Siblings<'a> {
    rows: &'a [TreeRow],
    /// What is to be said of each row.
    abouts: &'a [About<'a>],
    level: u32,
}

impl Serialize for Siblings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.clone())
    }
}

impl<'a> Iterator for Siblings<'a> {
    type Item = NodeRow<'a>;

    fn next(&mut self) -> Option<NodeRow<'a>> {
        let ((row, rows), (about, abouts)) = (self.rows.split_first()?, self.abouts.split_first()?);
        let About { title, kind, status, rig, .. } = *about;
        let is_below = |row: &&TreeRow| row.depth.min(DEEPEST) > self.level;
        let below = rows.iter().take_while(is_below).count();
        let children = Self { rows: &rows[..below], abouts: &abouts[..below], level: self.level + 1 };
        (self.rows, self.abouts) = (&rows[below..], &abouts[below..]);
        let depth = Some(row.depth).filter(|depth| *depth > DEEPEST);
        Some(NodeRow { id: &row.id, title, kind, status, rig, depth, children })
    }
}

/// A plan as whoever reads the document gets it.
#[cfg(test)]
fn stage(
    state: &State,
    convoy_id: Option<ConvoyId>,
    restaged: bool,
    plan: &StagePlan,
    wave1: Option<Vec<SlingResult>>,
) -> StageView {
    let (convoy_id, wave1) = (convoy_id.as_ref(), wave1.as_deref());
    let document = StageDocument { state, convoy_id, restaged, plan, wave1 };
    let text = serde_json::to_string(&document).expect("it can be written");
    serde_json::from_str(&text).expect("it can be read")
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
