//! Beads: pieces of work and the dependencies between them. The scheduler never changes one by itself: native
//! beads are changed by commands and by their worker's success, workspace beads only by what their source shows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::graph::Edges;
use crate::state::State;
use crate::{BeadId, ContextId, DispatchId, RigName, Seq, Timestamp};

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bead {
    /// Its id.
    pub id: BeadId,
    /// One line saying what is to be done.
    pub title: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `task`, `bug`, `feature`, `chore`, `epic`, …; empty means task.
    #[serde(default, rename = "issue_type")]
    pub kind: String,
    /// Where it stands in its tracker.
    #[serde(default)]
    pub status: BeadStatus,
    /// 0 (most urgent) to 4.
    #[serde(default = "default_bead_priority")]
    pub priority: u8,
    /// Who has taken it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// What it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// The command it runs instead of a formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// When it came to be.
    pub created_at: Timestamp,
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// Why it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_reason: Option<String>,
    /// The rig whose beads workspace shows it; none for native beads. What a workspace shows is never ours to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RigName>,
    /// Put off until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defer_until: Option<Timestamp>,
    /// Kept in view for ever, hence never work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// A passing record of the tracker's own, hence never work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ephemeral: bool,
    /// A pattern for other beads, hence never work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_template: bool,
}

/// The middle of P0 to P4.
pub fn default_bead_priority() -> u8 {
    2
}

/// Labels by which Gas Town marks records that are not work.
const NOT_WORK: [&str; 11] = [
    "gt:sling-context",
    "gt:wisp",
    "gt:message",
    "gt:handoff",
    "gt:merge-request",
    "gt:agent",
    "gt:queue",
    "gt:convoy",
    "gt:epic",
    "gt:role",
    "gt:rig",
];

impl Bead {
    /// Whether a worker can be sent to it. Everything else is a container, a gate or a message.
    pub fn is_slingable(&self) -> bool {
        self.not_work_because().is_none()
    }

    /// Why no worker can be sent to it, if so.
    pub fn not_work_because(&self) -> Option<String> {
        if !matches!(self.kind.as_str(), "" | "task" | "bug" | "feature" | "chore") {
            return Some(format!("a bead of type {} is not work for a worker", self.kind));
        }
        let marks = [
            (self.pinned, "pinned beads are kept in view, not worked on"),
            (
                self.ephemeral || self.id.as_str().contains("-wisp-"),
                "ephemeral beads are not work for a worker",
            ),
            (self.is_template, "a template is not work for a worker"),
        ];
        if let Some((_, why)) = marks.iter().find(|(marked, _)| *marked) {
            return Some((*why).to_owned());
        }
        let label = self.labels.iter().find(|label| NOT_WORK.contains(&label.as_str()))?;
        Some(format!("a bead labelled {label} is not work for a worker"))
    }

    /// Whether the id may name a set of beads rather than work.
    pub fn is_epic(&self) -> bool {
        self.kind == "epic" || self.labels.iter().any(|l| l == "gt:epic")
    }

    /// Whether it still is to be done.
    pub fn is_closed(&self) -> bool {
        self.status.is_closed()
    }
}

/// Where a bead stands in its tracker. Unknown words are kept as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum BeadStatus {
    /// To be done.
    #[default]
    Open,
    /// Somebody works on it.
    InProgress,
    /// Assigned to an agent.
    Hooked,
    /// Put off by a person.
    Deferred,
    /// Marked blocked by a person, whatever the graph says.
    Blocked,
    /// Kept in view for ever.
    Pinned,
    /// Done.
    Closed,
    /// Deleted.
    Tombstone,
    /// Any other word.
    Other(String),
}

impl BeadStatus {
    /// Whether the bead satisfies those that wait for it.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed | Self::Tombstone)
    }

    /// The tracker's word for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Open => "open",
            Self::InProgress => "in_progress",
            Self::Hooked => "hooked",
            Self::Deferred => "deferred",
            Self::Blocked => "blocked",
            Self::Pinned => "pinned",
            Self::Closed => "closed",
            Self::Tombstone => "tombstone",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for BeadStatus {
    fn from(word: String) -> Self {
        match word.as_str() {
            "open" | "" => Self::Open,
            "in_progress" => Self::InProgress,
            "hooked" => Self::Hooked,
            "deferred" => Self::Deferred,
            "blocked" => Self::Blocked,
            "pinned" => Self::Pinned,
            "closed" => Self::Closed,
            "tombstone" => Self::Tombstone,
            _ => Self::Other(word),
        }
    }
}

impl From<BeadStatus> for String {
    fn from(status: BeadStatus) -> Self {
        status.as_str().to_owned()
    }
}

/// One edge: the holder depends on `on`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dependency {
    /// The other end.
    #[serde(rename = "depends_on_id")]
    pub on: BeadId,
    /// What kind of edge.
    #[serde(rename = "type")]
    pub kind: DepKind,
    /// How its tracker wrote the other end, when that is not a plain id: `external:PROJECT:ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// Of `waits-for`: bd opens such a gate with the first closed child. Only `--like bd` asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_children: bool,
}

/// How trackers write dependencies on other projects.
const EXTERNAL: &str = "external:";

impl Dependency {
    /// An edge to a bead.
    pub fn new(on: BeadId, kind: DepKind) -> Self {
        Self { on, kind, written: None, any_children: false }
    }

    /// An edge as a tracker writes it. `external:PROJECT:ID` stands for the bead ID, wherever in the town it lives; a
    /// name outside our grammar is changed until it fits, so that the edge still blocks and is named as missing.
    pub fn from_tracker(target: &str, kind: DepKind) -> Result<Self, crate::BadId> {
        let bare = target.strip_prefix(EXTERNAL).and_then(|rest| rest.rsplit(':').next()).unwrap_or(target);
        if let Ok(on) = BeadId::parse(bare) {
            let written = (bare != target).then(|| target.to_owned());
            return Ok(Self { written, ..Self::new(on, kind) });
        }
        let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
        let plain: String = target.chars().map(fits).take(crate::ids::MAX_ID_LEN).collect();
        let on = BeadId::parse(plain.trim_start_matches(['-', '.', '_']))?;
        Ok(Self { written: Some(target.to_owned()), ..Self::new(on, kind) })
    }

    /// Whether the tracker points at another project.
    pub fn is_external(&self) -> bool {
        self.written.as_ref().is_some_and(|text| text.starts_with(EXTERNAL))
    }

    /// The other end as a person knows it.
    pub fn target(&self) -> &str {
        self.written.as_deref().unwrap_or(self.on.as_str())
    }
}

/// There is one edge per pair of beads; of several, one that blocks wins. By target, so that equal sets are equal.
pub fn one_per_pair(dependencies: Vec<Dependency>) -> Vec<Dependency> {
    let mut edges: BTreeMap<BeadId, Dependency> = BTreeMap::new();
    for edge in dependencies {
        match edges.get(&edge.on) {
            Some(known) if known.kind.blocks() || !edge.kind.blocks() => {}
            _ => {
                edges.insert(edge.on.clone(), edge);
            }
        }
    }
    edges.into_values().collect()
}

/// The kind of a dependency. Four kinds block, parent-child gives hierarchy, the rest only relates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DepKind {
    /// The other bead must close first.
    #[default]
    Blocks,
    /// Treated as `blocks`.
    ConditionalBlocks,
    /// Treated as `blocks`.
    WaitsFor,
    /// The other bead must be merged first.
    MergeBlocks,
    /// The holder is a child of the other.
    ParentChild,
    /// Anything else: says something, blocks nothing.
    Other(String),
}

impl DepKind {
    /// Whether an open target keeps the holder from starting.
    pub fn blocks(&self) -> bool {
        match self {
            Self::Blocks | Self::ConditionalBlocks | Self::WaitsFor | Self::MergeBlocks => true,
            Self::ParentChild | Self::Other(_) => false,
        }
    }

    /// Whether the holder may wait because of it: by blocking, or by inheriting what blocks a parent.
    pub fn makes_wait(&self) -> bool {
        self.blocks() || *self == Self::ParentChild
    }

    /// The word used in files and on the command line.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Blocks => "blocks",
            Self::ConditionalBlocks => "conditional-blocks",
            Self::WaitsFor => "waits-for",
            Self::MergeBlocks => "merge-blocks",
            Self::ParentChild => "parent-child",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for DepKind {
    fn from(word: String) -> Self {
        match word.as_str() {
            "blocks" | "" => Self::Blocks,
            "conditional-blocks" => Self::ConditionalBlocks,
            "waits-for" => Self::WaitsFor,
            "merge-blocks" => Self::MergeBlocks,
            "parent-child" => Self::ParentChild,
            _ => Self::Other(word),
        }
    }
}

impl From<DepKind> for String {
    fn from(kind: DepKind) -> Self {
        kind.as_str().to_owned()
    }
}

/// The scheduler's side of a bead: kept apart, because the work bead itself is not ours to change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Work {
    /// How many dispatches this bead ever had; the next id follows from it.
    #[serde(default)]
    pub attempts: u32,
    /// The open context, if it is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextId>,
    /// The context before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_context: Option<ContextId>,
    /// The dispatch that runs it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<DispatchId>,
    /// What became of the last request, until a new one is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Until when its tracker is to close it, once its worker has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close_by: Option<Timestamp>,
    /// Every event that named this bead.
    #[serde(default)]
    pub history: Vec<Seq>,
}

/// How the last request for a bead ended when the bead did not close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Finished; the close is awaited.
    Done,
    /// Gave up after crashes, a cap or a deadline.
    Failed,
    /// A service stayed unavailable; a person must look.
    Unavailable,
    /// Called off.
    Cancelled,
    /// Could not be started often enough.
    CircuitBroken,
}

/// A bead with the scheduler's side and the derived counters of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeadEntry {
    /// The work bead.
    pub bead: Bead,
    /// The scheduler's side.
    #[serde(default)]
    pub work: Work,
    /// Since when somebody is said to be on it (in progress or hooked).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_since: Option<Timestamp>,
    /// That was said while our own worker was on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed_by_worker: bool,
    /// It vanished from its workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) gone: bool,
    /// Derived: blocking edges whose target is not closed.
    #[serde(skip)]
    pub(crate) open_blockers: u32,
    /// Derived: blocked by itself or through a blocked ancestor.
    #[serde(skip)]
    pub(crate) blocked: bool,
}

/// A change to a native bead's fields; absent means unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BeadChange {
    /// New title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// New description; empty clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// New type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// New status, other than closing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<BeadStatus>,
    /// New priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// New assignee; empty clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// New labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
}

/// What can happen to a bead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum BeadEvent {
    /// It came to be, or was imported.
    #[serde(rename = "bead.added")]
    Added {
        /// The record.
        bead: Box<Bead>,
        /// Who did it.
        actor: String,
    },
    /// Fields changed.
    #[serde(rename = "bead.updated")]
    Updated {
        /// Which bead.
        id: BeadId,
        /// What changed.
        change: BeadChange,
        /// Who did it.
        actor: String,
    },
    /// It is done.
    #[serde(rename = "bead.closed")]
    Closed {
        /// Which bead.
        id: BeadId,
        /// Why.
        reason: String,
        /// Who did it: a person, the dispatch whose worker succeeded, or the workspace that shows it.
        actor: String,
        /// When its tracker closed it; otherwise now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        closed_at: Option<Timestamp>,
    },
    /// Its workspace shows it anew or changed.
    #[serde(rename = "bead.observed")]
    Observed {
        /// The record.
        bead: Box<Bead>,
    },
    /// Its workspace shows it no longer.
    #[serde(rename = "bead.vanished")]
    Vanished {
        /// Which bead.
        id: BeadId,
    },
    /// It is to be done again.
    #[serde(rename = "bead.reopened")]
    Reopened {
        /// Which bead.
        id: BeadId,
        /// Who did it.
        actor: String,
    },
    /// It came to depend on another.
    #[serde(rename = "bead.dependency_added")]
    DependencyAdded {
        /// The holder.
        id: BeadId,
        /// The edge.
        dependency: Dependency,
        /// Who did it.
        actor: String,
    },
    /// It depends on another no longer.
    #[serde(rename = "bead.dependency_removed")]
    DependencyRemoved {
        /// The holder.
        id: BeadId,
        /// The other end.
        on: BeadId,
        /// Who did it.
        actor: String,
    },
}

impl BeadEvent {
    /// The bead this is about.
    pub fn bead(&self) -> &BeadId {
        match self {
            Self::Added { bead, .. } | Self::Observed { bead } => &bead.id,
            Self::Vanished { id }
            | Self::Updated { id, .. }
            | Self::Closed { id, .. }
            | Self::Reopened { id, .. }
            | Self::DependencyAdded { id, .. }
            | Self::DependencyRemoved { id, .. } => id,
        }
    }
}

impl State {
    pub(crate) fn apply_bead(&mut self, event: &BeadEvent, at: Timestamp) {
        let id = event.bead().clone();
        match event {
            BeadEvent::Added { bead, .. } | BeadEvent::Observed { bead } => self.put_bead(Bead::clone(bead)),
            BeadEvent::Vanished { .. } => self.vanish(&id),
            BeadEvent::Updated { change, .. } => {
                let was_closed = self.is_closed(&id);
                self.change_bead(&id, change);
                self.closing_changed(&id, was_closed);
            }
            BeadEvent::Closed { reason, closed_at, .. } => {
                let was_closed = self.is_closed(&id);
                if let Some(entry) = self.beads.get_mut(&id) {
                    entry.bead.status = BeadStatus::Closed;
                    entry.bead.closed_at = Some(closed_at.unwrap_or(at));
                    entry.bead.close_reason = Some(reason.clone()).filter(|text| !text.is_empty());
                }
                self.set_verdict(&id, None);
                self.closing_changed(&id, was_closed);
            }
            BeadEvent::Reopened { .. } => {
                let was_closed = self.is_closed(&id);
                if let Some(entry) = self.beads.get_mut(&id) {
                    entry.bead.status = BeadStatus::Open;
                    entry.bead.closed_at = None;
                    entry.bead.close_reason = None;
                }
                self.set_verdict(&id, None);
                self.closing_changed(&id, was_closed);
            }
            BeadEvent::DependencyAdded { dependency, .. } => {
                if let Some(entry) = self.beads.get_mut(&id) {
                    entry.bead.dependencies.retain(|d| d.on != dependency.on);
                    entry.bead.dependencies.push(dependency.clone());
                }
                self.edges_removed(&id, &dependency.on);
                self.edges_added(&id, std::slice::from_ref(dependency));
                self.watch_for_cycles(&id);
                self.recount_blockers(&id);
            }
            BeadEvent::DependencyRemoved { on, .. } => {
                if let Some(entry) = self.beads.get_mut(&id) {
                    entry.bead.dependencies.retain(|d| d.on != *on);
                }
                self.edges_removed(&id, on);
                self.recount_blockers(&id);
            }
        }
        self.note_claim(&id, at);
        self.remember(&id);
    }

    /// Takes a bead's record over, new or in place of the old one, whose history it keeps.
    fn put_bead(&mut self, bead: Bead) {
        let id = bead.id.clone();
        let was_closed = self.is_closed(&id);
        let (mut work, mut claim) = (Work::default(), (None, false));
        let mut edges_changed = true;
        if let Some(old) = self.beads.remove(&id) {
            edges_changed = old.bead.dependencies != bead.dependencies;
            for edge in &old.bead.dependencies {
                self.edges_removed(&id, &edge.on);
            }
            self.unset_alarm(&old.bead);
            (work, claim) = (old.work, (old.claimed_since, old.claimed_by_worker));
        } else if let Some(old) = self.gone.remove(&id) {
            work = old.work;
        }
        self.edges_added(&id, &bead.dependencies);
        if let Some(until) = bead.defer_until.filter(|until| *until > self.clock) {
            self.alarms.insert((until, id.clone()));
        }
        let arrives_closed = bead.is_closed();
        let verdict = work.verdict.filter(|_| !arrives_closed);
        if let (Some(due), false) = (work.close_by, arrives_closed) {
            self.awaited_closes.insert((due, id.clone()));
        }
        let (claimed_since, claimed_by_worker) = claim;
        let entry = BeadEntry {
            bead,
            work,
            claimed_since,
            claimed_by_worker,
            gone: false,
            open_blockers: 0,
            blocked: false,
        };
        self.beads.insert(id.clone(), entry);
        match verdict {
            Some(verdict) => {
                self.settled.insert(id.clone(), verdict);
            }
            None => self.set_verdict(&id, None),
        }
        if edges_changed {
            self.watch_for_cycles(&id);
        }
        self.set_open_blockers(&id);
        self.closing_changed(&id, was_closed);
    }

    /// A bead is nobody's any more: whoever depends on it waits for a bead that nobody has.
    pub(crate) fn vanish(&mut self, id: &BeadId) {
        let was_closed = self.is_closed(id);
        let Some(mut entry) = self.beads.remove(id) else { return };
        for edge in &entry.bead.dependencies {
            self.edges_removed(id, &edge.on);
        }
        self.unset_alarm(&entry.bead);
        self.settled.remove(id);
        if let Some(due) = entry.work.close_by {
            self.awaited_closes.remove(&(due, id.clone()));
        }
        entry.gone = true;
        (entry.open_blockers, entry.blocked) = (0, false);
        (entry.claimed_since, entry.claimed_by_worker) = (None, false);
        self.gone.insert(id.clone(), entry);
        self.closing_changed(id, was_closed);
    }

    fn unset_alarm(&mut self, bead: &Bead) {
        if let Some(until) = bead.defer_until {
            self.alarms.remove(&(until, bead.id.clone()));
        }
    }

    fn note_claim(&mut self, id: &BeadId, at: Timestamp) {
        let Some(entry) = self.beads.get_mut(id) else { return };
        let claimed = matches!(entry.bead.status, BeadStatus::InProgress | BeadStatus::Hooked);
        if !claimed || entry.claimed_since.is_none() {
            entry.claimed_by_worker = claimed && entry.work.live.is_some();
        }
        entry.claimed_since = claimed.then(|| entry.claimed_since.unwrap_or(at));
    }

    fn change_bead(&mut self, id: &BeadId, change: &BeadChange) {
        let Some(entry) = self.beads.get_mut(id) else { return };
        let bead = &mut entry.bead;
        let or_none = |text: &String| Some(text.clone()).filter(|t| !t.is_empty());
        if let Some(title) = &change.title {
            bead.title.clone_from(title);
        }
        if let Some(description) = &change.description {
            bead.description = or_none(description);
        }
        if let Some(kind) = &change.kind {
            bead.kind.clone_from(kind);
        }
        if let Some(status) = &change.status {
            bead.status = status.clone();
        }
        if let Some(priority) = change.priority {
            bead.priority = priority;
        }
        if let Some(assignee) = &change.assignee {
            bead.assignee = or_none(assignee);
        }
        if let Some(labels) = &change.labels {
            bead.labels.clone_from(labels);
        }
    }

    /// A bead with its scheduling side.
    pub fn bead(&self, id: &BeadId) -> Option<&BeadEntry> {
        self.beads.get(id)
    }

    /// All beads, by id.
    pub fn beads(&self) -> impl Iterator<Item = &BeadEntry> {
        self.beads.values()
    }

    /// A bead that vanished from its workspace, as it was.
    pub fn vanished_bead(&self, id: &BeadId) -> Option<&Bead> {
        self.gone.get(id).map(|entry| &entry.bead)
    }

    /// How many beads there are.
    pub fn bead_count(&self) -> usize {
        self.beads.len()
    }

    pub(crate) fn is_closed(&self, id: &BeadId) -> bool {
        self.beads.get(id).is_some_and(|e| e.bead.is_closed())
    }

    /// The beads that list this one as their parent.
    pub fn children_of(&self, id: &BeadId) -> impl Iterator<Item = &BeadId> {
        Edges::of(&self.children, id)
    }

    /// The beads that wait for this one.
    pub fn dependents_of(&self, id: &BeadId) -> impl Iterator<Item = &BeadId> {
        Edges::of(&self.dependents, id)
    }
}
