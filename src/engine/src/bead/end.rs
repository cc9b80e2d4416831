//! The other end of a dependency as the graph needs it: four bytes, so that whoever walks the graph of a large town goes
//! through little memory and never to the beads themselves.

use super::DepKind;

/// The number of the bead at the other end, and what the edge does: blocks, makes a child, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End(u32);

const BLOCKS: u32 = 1 << 31;
const PARENT: u32 = 1 << 30;
const MERGE: u32 = 1 << 29;
/// Numbers are below this; a town with more ids would not fit into any memory.
const NUMBERS: u32 = MERGE;

impl End {
    #[inline]
    pub(super) fn new(number: u32, kind: &DepKind) -> Self {
        let does = match kind {
            DepKind::MergeBlocks => BLOCKS | MERGE,
            kind if kind.blocks() => BLOCKS,
            DepKind::ParentChild => PARENT,
            _ => 0,
        };
        Self((number % NUMBERS) | does)
    }

    /// The bead at the other end.
    #[inline]
    pub(crate) fn number(self) -> u32 {
        self.0 % NUMBERS
    }

    /// As [`DepKind::blocks`].
    #[inline]
    pub(crate) fn blocks(self) -> bool {
        self.0 & BLOCKS != 0
    }

    /// Whether the other bead has to be merged, too.
    #[inline]
    pub(crate) fn awaits_merge(self) -> bool {
        self.0 & MERGE != 0
    }

    /// Whether it is the holder's parent.
    #[inline]
    pub(crate) fn is_parent(self) -> bool {
        self.0 & PARENT != 0
    }

    /// As [`DepKind::makes_wait`].
    #[inline]
    pub(crate) fn makes_wait(self) -> bool {
        self.0 & (BLOCKS | PARENT) != 0
    }
}
