//! Made-up workspaces in layers: as wide as there are layers, each bead blocked by three of the layer before. Ids look
//! like hashes, so that file order says nothing about the graph.

use yard_engine::ids::{base36, scatter};

/// How many ids of six digits there are.
const IDS: u64 = 36_u64.pow(6);
/// Prime, hence without a factor in common with `IDS`: multiplying by it gives each number an id of its own.
const STRIDE: u64 = 1_500_450_271;
/// How far below a bead lies the one that a planted cycle makes wait for it.
const CYCLE: usize = 4;

/// A graph of beads, numbered with the blocked after their blockers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layered {
    prefix: &'static str,
    beads: usize,
    width: usize,
    /// The beads below this number are closed.
    closed: usize,
    cyclic: bool,
    /// Whether an epic contains all of them.
    below_an_epic: bool,
}

impl Layered {
    /// Open beads, with exactly three blocking edges a bead on average: layers 1 to 3 have a fourth, for layer 0.
    pub(crate) fn open(prefix: &'static str, beads: usize) -> Self {
        Self { prefix, beads, width: beads.isqrt().max(4), closed: 0, cyclic: false, below_an_epic: false }
    }

    /// The same with the first three of ten closed, as in a workspace that has been worked on.
    pub(crate) fn worked_on(prefix: &'static str, beads: usize) -> Self {
        Self { closed: beads * 3 / 10, ..Self::open(prefix, beads) }
    }

    /// The same with one bead made to wait for one that waits for it.
    pub(crate) fn with_a_cycle(self) -> Self {
        Self { cyclic: true, ..self }
    }

    /// The same within an epic.
    pub(crate) fn below_an_epic(self) -> Self {
        Self { below_an_epic: true, ..self }
    }

    /// The id of the epic.
    pub(crate) fn epic(prefix: &str) -> String {
        format!("{prefix}-0epic")
    }

    /// The line of the epic, if there is one. Its id comes before those of the others.
    pub(crate) fn epic_line(&self) -> Option<String> {
        let id = Self::epic(self.prefix);
        let what = r#""title":"all of it","status":"open","priority":2,"issue_type":"epic""#;
        let line = format!(r#"{{"id":"{id}",{what},"created_at":"2026-11-14T17:00:00Z"}}"#);
        self.below_an_epic.then_some(line)
    }

    /// How many beads there are, besides the epic.
    pub(crate) fn beads(&self) -> usize {
        self.beads
    }

    pub(crate) fn id(&self, bead: usize) -> String {
        let digits = base36(bead as u64 * STRIDE % IDS, 6);
        format!("{}-{digits}", self.prefix)
    }

    /// What a bead waits for.
    pub(crate) fn blockers(&self, bead: usize) -> Vec<usize> {
        let mut blockers = self.in_the_layer_before(bead);
        let (low, high) = self.back_edge();
        if self.cyclic && bead == low {
            blockers.push(high);
        }
        blockers
    }

    /// What a bead depends on, by id, and how.
    pub(crate) fn edges(&self, bead: usize) -> Vec<(String, &'static str)> {
        let blockers = self.blockers(bead).into_iter().map(|on| (self.id(on), "blocks"));
        let parent = self.below_an_epic.then(|| (Self::epic(self.prefix), "parent-child"));
        blockers.chain(parent).collect()
    }

    fn in_the_layer_before(&self, bead: usize) -> Vec<usize> {
        let layer = bead / self.width;
        let count = match layer {
            0 => return Vec::new(),
            1..=3 => 4,
            _ => 3,
        };
        let first = scatter(bead as u64) as usize % self.width;
        // Four steps of at most a quarter of the width meet no bead twice.
        let step = 1 + scatter(first as u64) as usize % (self.width / 4).max(1);
        let before = (layer - 1) * self.width;
        (0..count).map(|n| before + (first + n * step) % self.width).collect()
    }

    /// The edge that closes the cycle, from a bead in the middle to one that waits for it.
    fn back_edge(&self) -> (usize, usize) {
        let high = self.beads * 3 / 4;
        let mut low = high;
        for _ in 0..CYCLE {
            low = self.in_the_layer_before(low).first().copied().unwrap_or(low);
        }
        (low, high)
    }

    /// Every bead, sorted by id as trackers do.
    pub(crate) fn by_id(&self) -> Vec<(String, usize)> {
        let mut all: Vec<_> = (0..self.beads).map(|bead| (self.id(bead), bead)).collect();
        all.sort_unstable();
        all
    }

    /// The line of a bead as `br` writes it.
    pub(crate) fn line(&self, bead: usize, detail: Detail) -> String {
        let (id, beads) = (self.id(bead), self.beads);
        let time = format!("2026-11-14T17:{:02}:00.265560Z", bead % 60);
        let (status, closing) = if bead < self.closed {
            ("closed", format!(r#","closed_at":"{time}","close_reason":"done""#))
        } else {
            ("open", String::new())
        };
        let about = detail.unless_short(|| {
            format!(r#","description":"Synthetic layered workload, node {bead} of {beads}, seed 1.""#)
        });
        let origin = detail.unless_short(|| {
            let place = r#""source_repo":".","compaction_level":0,"original_size":0"#;
            format!(r#","created_by":"gen","updated_at":"{time}",{place}"#)
        });
        let edge_origin = detail.unless_short(|| {
            format!(r#","created_at":"{time}","created_by":"gen","metadata":"{{}}","thread_id":"""#)
        });
        let edge = |(on, kind): (String, &str)| {
            format!(r#"{{"issue_id":"{id}","depends_on_id":"{on}","type":"{kind}"{edge_origin}}}"#)
        };
        let edges: Vec<String> = self.edges(bead).into_iter().map(edge).collect();
        let edges = if edges.is_empty() {
            String::new()
        } else {
            format!(r#","dependencies":[{}]"#, edges.join(","))
        };
        let what = format!(r#""status":"{status}","priority":{},"issue_type":"task""#, bead % 5);
        let what = format!(r#""title":"layered node {bead}"{about},{what}"#);
        format!(r#"{{"id":"{id}",{what},"created_at":"{time}"{origin}{closing}{edges}}}"#)
    }
}

/// How much a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything `br` writes, as in shared/data: some 700 bytes.
    Full,
    /// What matters, for files that would else be too large.
    Short,
}

impl Detail {
    fn unless_short(self, text: impl FnOnce() -> String) -> String {
        match self {
            Self::Full => text(),
            Self::Short => String::new(),
        }
    }
}
