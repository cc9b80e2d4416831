//! Staging: what a convoy of these beads would do. Waves, gates, cycles and findings are read off the live graph and
//! nothing is kept; what may start is decided by readiness alone, and the waves are what readiness would do if each
//! closed as a whole.
//!
//! Promises: the same beads give the same plan, whatever order they came in; time and memory are proportional to the
//! beads and dependencies that the plan can reach; nothing recurses, so no depth of nesting or length of chain hurts.

mod cycles;
mod finder;
mod findings;
mod graph;
mod held;
mod reach;
mod waves;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::BeadId;
use crate::bead::Bead;
use crate::state::State;
use cycles::Cycles;
use findings::Findings;
use graph::Graph;
use reach::Reach;
use waves::Order;

/// What is to be staged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageInput {
    /// Everything below this bead, by parent-child.
    Epic(BeadId),
    /// Exactly these.
    Tasks(Vec<BeadId>),
    /// What an existing convoy tracks.
    Beads(Vec<BeadId>),
}

/// What a convoy would do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StagePlan {
    /// What makes it impossible.
    pub errors: Vec<Finding>,
    /// What somebody should know before.
    pub warnings: Vec<Finding>,
    /// The slingable beads, by id: those with a wave, the gated and the closed, and those that wait for themselves.
    pub members: Vec<BeadId>,
    /// Open beads whose blockers all lie in earlier waves; each wave by id.
    pub waves: Vec<Vec<BeadId>>,
    /// Open beads that no wave reaches, by id. Those that wait for themselves are among the errors instead.
    pub gated: Vec<Gated>,
    /// Beads that are done already, by id.
    pub closed: Vec<BeadId>,
    /// The beads in reading order: a parent before its children, siblings by id, each bead once.
    pub tree: Vec<TreeRow>,
    /// Where the beads of each wave stand in `tree`, so that nobody has to find them again.
    pub wave_rows: Vec<Vec<u32>>,
    /// A longest chain of open members in which each waits for the one before.
    pub critical_path: Vec<BeadId>,
}

/// Something about the beads of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which kind.
    pub category: Category,
    /// The beads concerned. Of a cycle: its path, each bead waiting for the next, with the first again at the end.
    pub bead_ids: Vec<BeadId>,
    /// In words.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_fix: Option<String>,
}

/// The kinds of findings; a contract with scripts. Errors come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Beads wait for themselves.
    Cycle,
    /// No rig owns the prefix.
    NoRig,
    /// A bead that nobody has.
    MissingBead,
    /// Nothing of the epic waits for it, nor it for anything.
    Orphan,
    /// The rig is parked or docked.
    BlockedRig,
    /// Not on the rig of most.
    CrossRig,
    /// A wave has more beads than workers may run.
    Capacity,
    /// An epic within the epic has no branch of its own.
    MissingBranch,
    /// Waits for a bead no worker can be sent to.
    Gated,
    /// Waits for work outside the convoy.
    OutsideBlocker,
}

impl Category {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cycle => "cycle",
            Self::NoRig => "no-rig",
            Self::MissingBead => "missing-bead",
            Self::Orphan => "orphan",
            Self::BlockedRig => "blocked-rig",
            Self::CrossRig => "cross-rig",
            Self::Capacity => "capacity",
            Self::MissingBranch => "missing-branch",
            Self::Gated => "gated",
            Self::OutsideBlocker => "outside-blocker",
        }
    }

    /// Whether it makes the convoy impossible.
    pub fn is_error(self) -> bool {
        match self {
            Self::Cycle | Self::NoRig | Self::MissingBead => true,
            Self::Orphan
            | Self::BlockedRig
            | Self::CrossRig
            | Self::Capacity
            | Self::MissingBranch
            | Self::Gated
            | Self::OutsideBlocker => false,
        }
    }
}

/// An open bead without a wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gated {
    /// Which bead.
    pub id: BeadId,
    /// The beads outside the convoy it waits for, or else those of the convoy that get no wave either; by id, never
    /// empty. Of what it inherits from its parents only the nearest ten are named.
    pub gated_by: Vec<BeadId>,
}

/// One line of the tree. Flat, so that no nesting is too deep for whoever drops or writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeRow {
    /// How far below the root; 0 for roots.
    pub depth: u32,
    /// How many of its own blocking edges lead to beads that are not closed, or that nobody has.
    pub open_blockers: u32,
    /// The bead, shared with the state, so that whoever shows the plan has to look nothing up.
    pub bead: Arc<Bead>,
}

impl StagePlan {
    /// What the convoy would track: by wave, then the gated, then the closed.
    pub fn tracked(&self) -> impl Iterator<Item = &BeadId> {
        self.waves.iter().flatten().chain(self.gated.iter().map(|gated| &gated.id)).chain(&self.closed)
    }

    /// How many beads each wave has.
    pub fn wave_sizes(&self) -> impl Iterator<Item = usize> {
        self.waves.iter().map(Vec::len)
    }
}

impl State {
    /// What a convoy of these beads would do, were it launched now.
    pub fn stage_plan(&self, input: &StageInput) -> StagePlan {
        let reach = Reach::of(self, input);
        let graph = Graph::of(&reach);
        let order = Order::of(&reach, &graph);
        let cycles = Cycles::of(&reach, &graph, &order);
        let ids = |slots: &[u32]| slots.iter().map(|slot| reach.id(*slot).clone()).collect::<Vec<_>>();
        let mut plan = StagePlan {
            members: ids(reach.members()),
            waves: order.waves.iter().map(|wave| ids(wave)).collect(),
            wave_rows: order.waves.iter().map(|wave| reach.rows(wave)).collect(),
            gated: held::gated(&reach, &graph, &order, &cycles),
            closed: ids(&reach.closed_members()),
            critical_path: ids(&order.critical_path),
            ..StagePlan::default()
        };
        Findings { state: self, input, reach: &reach, graph: &graph, cycles: &cycles }.add_to(&mut plan);
        plan.tree = reach.tree();
        plan
    }
}
