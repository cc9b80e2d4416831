//! Dependencies between beads, as commands make them and as trackers write them.

use serde::{Deserialize, Serialize};

use super::ThinText;
use crate::BeadId;

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
    pub written: Option<ThinText>,
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
            let written = (bare != target).then(|| target.into());
            return Ok(Self { written, ..Self::new(on, kind) });
        }
        let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
        let plain: String = target.chars().map(fits).take(crate::ids::MAX_ID_LEN).collect();
        let on = BeadId::parse(plain.trim_start_matches(['-', '.', '_']))?;
        Ok(Self { written: Some(target.into()), ..Self::new(on, kind) })
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
pub fn one_per_pair(mut dependencies: Vec<Dependency>) -> Vec<Dependency> {
    dependencies.sort_by(|a, b| a.on.cmp(&b.on).then(b.kind.blocks().cmp(&a.kind.blocks())));
    dependencies.dedup_by(|edge, before| edge.on == before.on);
    dependencies
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
    Other(ThinText),
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

impl From<&str> for DepKind {
    fn from(word: &str) -> Self {
        match word {
            "blocks" | "" => Self::Blocks,
            "conditional-blocks" => Self::ConditionalBlocks,
            "waits-for" => Self::WaitsFor,
            "merge-blocks" => Self::MergeBlocks,
            "parent-child" => Self::ParentChild,
            _ => Self::Other(word.into()),
        }
    }
}

impl From<String> for DepKind {
    fn from(word: String) -> Self {
        Self::from(word.as_str())
    }
}

impl From<DepKind> for String {
    fn from(kind: DepKind) -> Self {
        kind.as_str().to_owned()
    }
}
