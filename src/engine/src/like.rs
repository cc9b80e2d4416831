//! Readiness as the two beads trackers see it. They disagree with each other and with us, so their rules are a table
//! with two presets: what we dispatch always follows [`crate::readiness`], and this only answers what `br` or `bd`
//! would say.
//!
//! The rules of `br` were observed by running it; those of `bd` come from reading its source and were never checked
//! against the tool. Each tracker sees only its own workspace, so every rig's beads are judged by themselves.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::bead::{Bead, BeadStatus, DepKind, Dependency};
use crate::state::State;
use crate::{BeadId, RigName, Timestamp};

/// How a tracker decides what is ready.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Whether ephemeral beads and wisps exist at all; they are never offered.
    pub keeps_ephemeral: bool,
    /// The statuses offered as ready.
    pub offers: &'static [BeadStatus],
    /// The statuses that satisfy whoever waits.
    pub satisfied_by: &'static [BeadStatus],
    /// Whether a satisfied bead can be blocked itself, and hand that down to its children.
    pub done_can_be_blocked: bool,
    /// Whether a dependency on a bead that its workspace lacks blocks.
    pub dangling_blocks: bool,
    /// Whether a dependency on another project blocks.
    pub external_blocks: bool,
    /// What `waits-for` waits for.
    pub waits_for: WaitsFor,
    /// How many levels below a blocked parent its children are blocked; what an external dependency blocks has no such
    /// bound.
    pub inherited_levels: usize,
    /// Whether templates are kept back.
    pub hides_templates: bool,
    /// Whether the children of a bead that is put off are kept back too.
    pub hides_children_of_deferred: bool,
    /// Types never offered.
    pub hides_types: &'static [&'static str],
    /// The statuses listed as blocked; none means all that can be blocked.
    pub lists_blocked: Option<&'static [BeadStatus]>,
    /// In which order ready beads come.
    pub order: Order,
}

/// What a `waits-for` dependency waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor {
    /// The bead it names.
    Target,
    /// The children of the bead it names: all of them, or the first to close.
    Children,
}

/// In which order a tracker shows its beads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// P0 and P1 first, then by age. Blocked ones by priority, most blockers first.
    Hybrid,
    /// By priority, the newest first. Blocked ones by id.
    NewestFirst,
}

/// `br` 0.1.12.
pub const BR: Rules = Rules {
    keeps_ephemeral: false,
    offers: &[BeadStatus::Open, BeadStatus::InProgress],
    satisfied_by: &[BeadStatus::Closed, BeadStatus::Tombstone],
    done_can_be_blocked: true,
    dangling_blocks: true,
    external_blocks: true,
    waits_for: WaitsFor::Target,
    inherited_levels: 50,
    hides_templates: true,
    hides_children_of_deferred: false,
    hides_types: &[],
    lists_blocked: Some(&[BeadStatus::Open, BeadStatus::InProgress]),
    order: Order::Hybrid,
};

/// `bd` 1.0.5.
pub const BD: Rules = Rules {
    keeps_ephemeral: true,
    offers: &[BeadStatus::Open],
    satisfied_by: &[BeadStatus::Closed, BeadStatus::Pinned],
    done_can_be_blocked: false,
    dangling_blocks: false,
    external_blocks: false,
    waits_for: WaitsFor::Children,
    inherited_levels: usize::MAX,
    hides_templates: false,
    hides_children_of_deferred: true,
    hides_types: &["merge-request", "gate", "molecule", "message", "agent", "role", "rig"],
    lists_blocked: None,
    order: Order::NewestFirst,
};

/// A bead its tracker calls blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Which bead.
    pub id: BeadId,
    /// What it waits for, as the tracker writes it: ids, `external:…`, or the parent it inherits from. Sorted.
    pub by: Vec<String>,
}

/// What the tracker of this rig, or of each rig, would offer.
pub fn ready(state: &State, rules: &Rules, now: Timestamp, rig: Option<&RigName>) -> Vec<BeadId> {
    let workspaces = workspaces(state, rules, rig);
    let mut offered: Vec<&Bead> = workspaces.iter().flat_map(|workspace| workspace.ready(now)).collect();
    match rules.order {
        Order::Hybrid => offered.sort_by_key(|b| (b.priority > 1, b.created_at, &b.id)),
        Order::NewestFirst => offered.sort_by_key(|b| (b.priority, Reverse(b.created_at), &b.id)),
    }
    offered.into_iter().map(|bead| bead.id.clone()).collect()
}

/// What the tracker of this rig, or of each rig, would list as blocked.
pub fn blocked(state: &State, rules: &Rules, rig: Option<&RigName>) -> Vec<Blocked> {
    let workspaces = workspaces(state, rules, rig);
    let mut listed: Vec<(&Bead, Blockers<'_>)> = workspaces.iter().flat_map(Workspace::blocked).collect();
    match rules.order {
        Order::Hybrid => listed.sort_by_key(|(bead, by)| {
            (bead.priority, Reverse(by.count()), by.local.is_empty(), bead.created_at, &bead.id)
        }),
        Order::NewestFirst => listed.sort_by_key(|(bead, _)| &bead.id),
    }
    listed.into_iter().map(|(bead, by)| Blocked { id: bead.id.clone(), by: by.texts() }).collect()
}

/// The beads of each workspace: of the one that shows them, else of the rig that owns their prefix. What no rig owns
/// is a workspace of its own.
fn workspaces<'a>(state: &'a State, rules: &'a Rules, only: Option<&RigName>) -> Vec<Workspace<'a>> {
    let mut of_rig: BTreeMap<Option<&RigName>, Vec<&Bead>> = BTreeMap::new();
    for entry in state.beads() {
        let bead = &entry.bead;
        let rig = bead.source.as_ref().or_else(|| state.rig_of(&bead.id).map(|rig| &rig.name));
        let is_wisp = bead.ephemeral || bead.id.as_str().contains("-wisp-");
        if (only.is_none() || rig == only) && (rules.keeps_ephemeral || !is_wisp) {
            of_rig.entry(rig).or_default().push(bead);
        }
    }
    of_rig.into_values().map(|beads| Workspace::new(rules, beads)).collect()
}

/// What blocks a bead: other beads of its workspace, and other projects.
#[derive(Debug, Clone, Default)]
struct Blockers<'a> {
    local: BTreeSet<&'a str>,
    external: BTreeSet<&'a str>,
}

impl Blockers<'_> {
    fn count(&self) -> usize {
        self.local.len() + self.external.len()
    }

    fn texts(&self) -> Vec<String> {
        self.local.union(&self.external).map(ToString::to_string).collect()
    }
}

/// The beads one tracker sees, and what blocks each.
struct Workspace<'a> {
    rules: &'a Rules,
    beads: Vec<&'a Bead>,
    by_id: HashMap<&'a str, usize>,
    children: HashMap<&'a str, Vec<usize>>,
    /// By bead, in the order of `beads`.
    blockers: Vec<Blockers<'a>>,
}

impl<'a> Workspace<'a> {
    fn new(rules: &'a Rules, beads: Vec<&'a Bead>) -> Self {
        let by_id = beads.iter().enumerate().map(|(n, bead)| (bead.id.as_str(), n)).collect();
        let mut children: HashMap<&str, Vec<usize>> = HashMap::new();
        for (n, bead) in beads.iter().enumerate() {
            for parent in bead.dependencies.iter().filter(|d| d.kind == DepKind::ParentChild) {
                children.entry(parent.target()).or_default().push(n);
            }
        }
        let blockers = vec![Blockers::default(); beads.len()];
        let mut workspace = Self { rules, beads, by_id, children, blockers };
        workspace.block();
        workspace
    }

    /// Finds what blocks each bead: its own dependencies, then what its parents hand down.
    fn block(&mut self) {
        let (mut locally, mut externally) = (Vec::new(), Vec::new());
        for n in 0..self.beads.len() {
            let bead = self.beads[n];
            if !self.can_be_blocked(bead) {
                continue;
            }
            let mut own = Blockers::default();
            for edge in bead.dependencies.iter().filter(|edge| self.blocks(edge)) {
                let side = if edge.is_external() { &mut own.external } else { &mut own.local };
                side.insert(edge.target());
            }
            if !own.local.is_empty() {
                locally.push(n);
            }
            if !own.external.is_empty() {
                externally.push(n);
            }
            self.blockers[n] = own;
        }
        self.hand_down(locally, self.rules.inherited_levels, |blockers| &mut blockers.local);
        self.hand_down(externally, usize::MAX, |blockers| &mut blockers.external);
    }

    /// Blocked parents block their children, level by level; a child with blockers of its own keeps those.
    fn hand_down(
        &mut self,
        mut parents: Vec<usize>,
        levels: usize,
        side: impl for<'b> Fn(&'b mut Blockers<'a>) -> &'b mut BTreeSet<&'a str>,
    ) {
        let mut reached = 0;
        while !parents.is_empty() && reached < levels {
            let mut next = Vec::new();
            let mut inherited: Vec<(usize, &'a str)> = Vec::new();
            for parent in parents {
                let name = self.beads[parent].id.as_str();
                for child in self.children.get(name).into_iter().flatten().copied() {
                    if self.can_be_blocked(self.beads[child]) && side(&mut self.blockers[child]).is_empty() {
                        inherited.push((child, name));
                    }
                }
            }
            for (child, parent) in inherited {
                let blockers = side(&mut self.blockers[child]);
                if blockers.is_empty() {
                    next.push(child);
                }
                blockers.insert(parent);
            }
            (parents, reached) = (next, reached + 1);
        }
    }

    fn is_satisfied(&self, bead: &Bead) -> bool {
        self.rules.satisfied_by.contains(&bead.status)
    }

    fn can_be_blocked(&self, bead: &Bead) -> bool {
        self.rules.done_can_be_blocked || !self.is_satisfied(bead)
    }

    /// Whether a dependency keeps its holder from being ready.
    fn blocks(&self, edge: &Dependency) -> bool {
        match &edge.kind {
            DepKind::WaitsFor if self.rules.waits_for == WaitsFor::Children => self.children_block(edge),
            DepKind::Blocks | DepKind::ConditionalBlocks | DepKind::WaitsFor => match self.target(edge) {
                Some(bead) => !self.is_satisfied(bead),
                None if edge.is_external() => self.rules.external_blocks,
                None => self.rules.dangling_blocks,
            },
            DepKind::MergeBlocks | DepKind::ParentChild | DepKind::Other(_) => false,
        }
    }

    /// A gate over the children of a bead: open ones keep it closed, unless the first closed one is enough.
    fn children_block(&self, edge: &Dependency) -> bool {
        let children = || self.children.get(edge.target()).into_iter().flatten().map(|n| self.beads[*n]);
        let opened_by_one = edge.any_children && children().any(|child| child.status == BeadStatus::Closed);
        !opened_by_one && children().any(|child| !self.is_satisfied(child))
    }

    /// The bead a dependency names, if this workspace has it.
    fn target(&self, edge: &Dependency) -> Option<&'a Bead> {
        self.by_id.get(edge.target()).map(|n| self.beads[*n])
    }

    fn ready(&self, now: Timestamp) -> impl Iterator<Item = &'a Bead> {
        let put_off = move |bead: &Bead| bead.defer_until.is_some_and(|until| until > now);
        let below_deferred = move |bead: &Bead| {
            let parents = bead.dependencies.iter().filter(|d| d.kind == DepKind::ParentChild);
            parents.filter_map(|parent| self.target(parent)).any(put_off)
        };
        let rules = self.rules;
        let kept_back = move |bead: &Bead| {
            put_off(bead)
                || bead.pinned
                || bead.ephemeral
                || (rules.hides_templates && bead.is_template)
                || rules.hides_types.contains(&&*bead.kind)
                || (rules.hides_children_of_deferred && below_deferred(bead))
        };
        let offered = self.beads.iter().zip(&self.blockers).filter(move |(bead, by)| {
            rules.offers.contains(&bead.status) && by.count() == 0 && !kept_back(bead)
        });
        offered.map(|(bead, _)| *bead)
    }

    fn blocked(&self) -> impl Iterator<Item = (&'a Bead, Blockers<'a>)> {
        let listed = |bead: &Bead| self.rules.lists_blocked.is_none_or(|words| words.contains(&bead.status));
        let blocked =
            self.beads.iter().zip(&self.blockers).filter(move |(bead, by)| by.count() > 0 && listed(bead));
        blocked.map(|(bead, by)| (*bead, by.clone()))
    }
}
