//! What few beads have. A large workspace is mostly beads that nobody has taken, put off or closed; what they do not have
//! takes no memory. It reads as if it stood in the bead itself, and is stored that way too.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize, Serializer};

use super::{Bead, BeadStatus, Dependency, default_bead_priority, read_kind};
use crate::seldom::{Seldom, Unfilled};
use crate::{BeadId, RigName, Timestamp};

/// What few beads have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RareFields {
    /// More about it.
    pub description: Option<String>,
    /// Who has taken it.
    pub assignee: Option<String>,
    /// Free labels.
    pub labels: Vec<String>,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
    /// Why it was closed.
    pub close_reason: Option<String>,
    /// Put off until then.
    pub defer_until: Option<Timestamp>,
}

/// Those of one bead.
pub type Rare = Seldom<RareFields>;

static NOTHING: RareFields = RareFields {
    description: None,
    assignee: None,
    labels: Vec::new(),
    closed_at: None,
    close_reason: None,
    defer_until: None,
};

impl Unfilled for RareFields {
    fn unfilled() -> &'static Self {
        &NOTHING
    }
}

impl Deref for Bead {
    type Target = RareFields;

    #[inline]
    fn deref(&self) -> &RareFields {
        &self.rare
    }
}

impl DerefMut for Bead {
    fn deref_mut(&mut self) -> &mut RareFields {
        &mut self.rare
    }
}

/// A bead as it is read from the log.
#[derive(Deserialize)]
pub(super) struct StoredBead {
    id: BeadId,
    title: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, rename = "issue_type", deserialize_with = "read_kind")]
    kind: Cow<'static, str>,
    #[serde(default)]
    status: BeadStatus,
    #[serde(default = "default_bead_priority")]
    priority: u8,
    #[serde(default)]
    assignee: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    dependencies: Vec<Dependency>,
    #[serde(default)]
    argv: Option<Box<[String]>>,
    created_at: Timestamp,
    #[serde(default)]
    closed_at: Option<Timestamp>,
    #[serde(default)]
    close_reason: Option<String>,
    #[serde(default)]
    source: Option<RigName>,
    #[serde(default)]
    defer_until: Option<Timestamp>,
    #[serde(default)]
    pinned: bool,
    #[serde(default)]
    ephemeral: bool,
    #[serde(default)]
    is_template: bool,
}

impl From<StoredBead> for Bead {
    fn from(stored: StoredBead) -> Self {
        let StoredBead { description, assignee, labels, closed_at, close_reason, defer_until, .. } = stored;
        let rare = RareFields { description, assignee, labels, closed_at, close_reason, defer_until }.into();
        Self {
            id: stored.id,
            title: stored.title,
            kind: stored.kind,
            status: stored.status,
            priority: stored.priority,
            dependencies: stored.dependencies,
            created_at: stored.created_at,
            source: stored.source,
            pinned: stored.pinned,
            ephemeral: stored.ephemeral,
            is_template: stored.is_template,
            argv: stored.argv,
            rare,
        }
    }
}

/// A bead as it is written to the log.
#[derive(Serialize)]
struct ToStore<'a> {
    id: &'a BeadId,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(rename = "issue_type")]
    kind: &'a str,
    status: &'a BeadStatus,
    priority: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    assignee: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dependencies: Option<&'a [Dependency]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argv: Option<&'a [String]>,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    close_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a RigName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    defer_until: Option<Timestamp>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pinned: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ephemeral: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_template: bool,
}

impl Serialize for Bead {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = ToStore {
            id: &self.id,
            title: &self.title,
            description: self.description.as_deref(),
            kind: &self.kind,
            status: &self.status,
            priority: self.priority,
            assignee: self.assignee.as_deref(),
            labels: Some(&*self.labels).filter(|labels| !labels.is_empty()),
            dependencies: Some(&*self.dependencies).filter(|edges| !edges.is_empty()),
            argv: self.argv.as_deref(),
            created_at: self.created_at,
            closed_at: self.closed_at,
            close_reason: self.close_reason.as_deref(),
            source: self.source.as_ref(),
            defer_until: self.defer_until,
            pinned: self.pinned,
            ephemeral: self.ephemeral,
            is_template: self.is_template,
        };
        stored.serialize(serializer)
    }
}
