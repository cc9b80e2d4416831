//! Beads: pieces of work and the dependencies between them. The scheduler never changes one by itself: native
//! beads are changed by commands and by their worker's success, workspace beads only by what their source shows.

mod arrival;
mod dependency;
mod end;
mod event;
mod happenings;
mod marks;
mod rare;
mod rest;
mod shelf;
mod thin;
mod work;

use std::borrow::Cow;
use std::sync::Arc;

pub use dependency::{DepKind, Dependency, one_per_pair};
pub(crate) use end::End;
pub use event::{BeadChange, BeadEvent};
pub use happenings::Happenings;
pub(crate) use marks::Marks;
pub use rare::{Rare, RareFields};
pub(crate) use rest::{Counts, Sleeper};
use serde::{Deserialize, Deserializer, Serialize};
pub(crate) use shelf::Beads;
pub use thin::ThinText;
pub use work::{Work, WorkFields};

use crate::state::State;
use crate::{AgentName, BeadId, RigName, Timestamp};

/// Longer texts are looked at one by one before they are used.
const LONG_TEXT: usize = 64 * 1024;

/// A piece of work. It also has what stands in [`RareFields`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "rare::StoredBead")]
pub struct Bead {
    /// Its id.
    pub id: BeadId,
    /// One line saying what is to be done.
    pub title: String,
    /// `task`, `bug`, `feature`, `chore`, `epic`, …; empty means task.
    pub kind: Cow<'static, str>,
    /// Where it stands in its tracker.
    pub status: BeadStatus,
    /// 0 (most urgent) to 4.
    pub priority: u8,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
    /// When it came to be.
    pub created_at: Timestamp,
    /// The rig whose beads workspace shows it; none for native beads. What a workspace shows is never ours to change.
    pub source: Option<RigName>,
    /// Kept in view for ever, hence never work.
    pub pinned: bool,
    /// A passing record of the tracker's own, hence never work.
    pub ephemeral: bool,
    /// A pattern for other beads, hence never work.
    pub is_template: bool,
    /// The command it runs instead of a formula.
    pub argv: Option<Box<[String]>>,
    /// What few beads have.
    pub rare: Rare,
}

/// A type of beads. The usual ones take no memory of their own, however many beads have them.
pub fn bead_kind(word: &str) -> Cow<'static, str> {
    let usual = ["", "task", "bug", "feature", "chore", "epic"].into_iter().find(|usual| *usual == word);
    usual.map_or_else(|| Cow::Owned(word.to_owned()), Cow::Borrowed)
}

fn read_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'static, str>, D::Error> {
    Cow::<'de, str>::deserialize(deserializer).map(|word| bead_kind(&word))
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

/// Whether Gas Town made the id for a passing record. Most ids have one hyphen, which two looks tell.
fn is_wisp(id: &BeadId) -> bool {
    let text = id.as_str();
    text.find('-') != text.rfind('-') && text.contains("-wisp-")
}

impl Bead {
    /// Whether a worker can be sent to it. Everything else is a container, a gate or a message.
    pub fn is_slingable(&self) -> bool {
        self.not_work_because().is_none()
    }

    /// Why no worker can be sent to it, if so.
    pub fn not_work_because(&self) -> Option<String> {
        if !matches!(&*self.kind, "" | "task" | "bug" | "feature" | "chore") {
            return Some(format!("a bead of type {} is not work for a worker", self.kind));
        }
        let marks = [
            (self.pinned, "pinned beads are kept in view, not worked on"),
            (self.ephemeral || is_wisp(&self.id), "ephemeral beads are not work for a worker"),
            (self.is_template, "a template is not work for a worker"),
        ];
        if let Some((_, why)) = marks.iter().find(|(marked, _)| *marked) {
            return Some((*why).to_owned());
        }
        let label = self.labels.iter().find(|label| NOT_WORK.contains(&label.as_str()))?;
        Some(format!("a bead labelled {label} is not work for a worker"))
    }

    /// Whether its text may be too long for an argument, of which a program gets 128 KiB.
    pub fn has_long_text(&self) -> bool {
        self.title.len() + self.description.as_ref().map_or(0, String::len) > LONG_TEXT
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

impl From<&str> for BeadStatus {
    fn from(word: &str) -> Self {
        match word {
            "open" | "" => Self::Open,
            "in_progress" => Self::InProgress,
            "hooked" => Self::Hooked,
            "deferred" => Self::Deferred,
            "blocked" => Self::Blocked,
            "pinned" => Self::Pinned,
            "closed" => Self::Closed,
            "tombstone" => Self::Tombstone,
            _ => Self::Other(word.to_owned()),
        }
    }
}

impl From<String> for BeadStatus {
    fn from(word: String) -> Self {
        Self::from(word.as_str())
    }
}

impl From<BeadStatus> for String {
    fn from(status: BeadStatus) -> Self {
        status.as_str().to_owned()
    }
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
    /// The work bead. The events that brought it share it, so that a large workspace is in memory once.
    pub bead: Arc<Bead>,
    /// The scheduler's side.
    #[serde(default)]
    pub work: Work,
    /// Since when somebody is said to be on it (in progress or hooked).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_since: Option<Timestamp>,
    /// That was said while our own worker was on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed_by_worker: bool,
    /// The agent whose own claim that was part of: without that claim it counts for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_for: Option<Box<AgentName>>,
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

impl BeadEntry {
    /// Whether it is in progress only because an agent had claimed it, which has lost it since: it counts as open again.
    pub(crate) fn was_left_by(&self, name: &str) -> bool {
        let is = |agent: &Option<Box<AgentName>>| agent.as_ref().is_some_and(|agent| agent.as_str() == name);
        is(&self.claimed_for) && !is(&self.work.holder)
    }

    /// How many of its blocking edges lead to beads that are not closed, or that nobody has.
    pub fn open_blockers(&self) -> usize {
        self.open_blockers as usize
    }
}

impl State {
    /// A bead with its scheduling side.
    #[inline]
    pub fn bead(&self, id: &BeadId) -> Option<&BeadEntry> {
        self.beads.get(id)
    }

    /// All beads, by id.
    pub fn beads(&self) -> impl Iterator<Item = &BeadEntry> {
        self.beads.values()
    }

    /// A bead that vanished from its workspace, as it was.
    pub fn vanished_bead(&self, id: &BeadId) -> Option<&Bead> {
        self.gone.get(id).map(|entry| &*entry.bead)
    }

    /// How many beads there are.
    pub fn bead_count(&self) -> usize {
        self.beads.len()
    }

    pub(crate) fn is_closed(&self, id: &BeadId) -> bool {
        self.beads.number(id).is_some_and(|number| self.beads.is_closed_at(number))
    }

    /// The beads that list this one as their parent.
    pub fn children_of(&self, id: &BeadId) -> impl Iterator<Item = &BeadId> {
        self.children.of(self.beads.number(id)).map(|child| self.beads.name(child))
    }

    /// The beads that wait for this one.
    pub fn dependents_of(&self, id: &BeadId) -> impl Iterator<Item = &BeadId> {
        self.dependents.of(self.beads.number(id)).map(|holder| self.beads.name(holder))
    }
}
