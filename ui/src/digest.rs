//! What takes a walk over the whole town: problems, how far convoys and their waves are, and tracks. A small town is walked for
//! every change; a large one by the forecaster's thread, so that no frame waits for it.

use yard_client::views::{AlertView, TrackView, tracks};
use yard_engine::convoy::Convoy;
use yard_engine::{BeadId, ConvoyId, Standing, State, Timestamp};

use crate::problems::{Problem, problems};

/// Larger towns are not walked where somebody waits.
pub const LARGE_TOWN: usize = 5_000;

/// The outcome of such a walk.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    /// What needs a person.
    pub problems: Vec<Problem>,
    /// Scheduled work that a person holds back.
    pub held: usize,
    /// Every convoy, by id.
    pub convoys: Vec<Progress>,
    /// From each moment of the past on, so many workers were live.
    pub load: Vec<(i64, u32)>,
    /// Whose which track is, where whole tracks are given to agents.
    pub tracks: Vec<TrackView>,
}

/// How far a convoy is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Which.
    pub id: ConvoyId,
    /// How many of its beads stand how.
    pub counts: Counts,
    /// The same of each wave.
    pub waves: Vec<Counts>,
}

/// How many beads stand how.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// All.
    pub total: usize,
    /// Closed.
    pub closed: usize,
    /// Running.
    pub running: usize,
    /// Queued.
    pub queued: usize,
    /// Blocked.
    pub blocked: usize,
    /// Failed, cancelled or circuit-broken.
    pub failed: usize,
    /// Those that are not closed.
    pub open: Vec<BeadId>,
}

impl Counts {
    fn add(&mut self, id: &BeadId, standing: Option<Standing>) {
        self.total += 1;
        match standing {
            Some(Standing::Closed) => self.closed += 1,
            Some(Standing::Running) => self.running += 1,
            Some(Standing::Queued | Standing::Assigned) => self.queued += 1,
            Some(Standing::Blocked) => self.blocked += 1,
            Some(Standing::Failed | Standing::Cancelled | Standing::CircuitBroken) => self.failed += 1,
            Some(Standing::Open | Standing::Staged | Standing::Done) | None => {}
        }
        if standing != Some(Standing::Closed) {
            self.open.push(id.clone());
        }
    }
}

impl Digest {
    /// Walks the town.
    pub fn of(state: &State, transient: &[AlertView], now: Timestamp) -> Self {
        Self {
            problems: problems(state, transient, now),
            held: state.open_contexts().filter(|context| context.held).count(),
            convoys: state.convoys().map(|convoy| progress(state, convoy)).collect(),
            load: load(state),
            tracks: if state.settings().agents.tracks { joined(state) } else { Vec::new() },
        }
    }

    /// How far a convoy is.
    pub fn convoy(&self, id: &ConvoyId) -> Option<&Progress> {
        self.convoys.iter().find(|progress| progress.id == *id)
    }
}

/// The tracks of more than one bead; a single one belongs to nobody.
fn joined(state: &State) -> Vec<TrackView> {
    tracks(state).tracks.into_iter().filter(|track| track.items.len() > 1 || track.agent.is_some()).collect()
}

/// How many workers were live, step by step.
fn load(state: &State) -> Vec<(i64, u32)> {
    let mut steps: Vec<(i64, i32)> = Vec::new();
    for dispatch in state.dispatches() {
        steps.push((dispatch.started_at.as_millis(), 1));
        steps.extend(dispatch.ended.as_ref().map(|ended| (ended.at.as_millis(), -1)));
    }
    steps.sort_unstable();
    let mut live = 0_u32;
    steps
        .into_iter()
        .map(|(at, step)| {
            live = live.saturating_add_signed(step);
            (at, live)
        })
        .collect()
}

fn progress(state: &State, convoy: &Convoy) -> Progress {
    let mut counts = Counts::default();
    let mut waves: Vec<Counts> = Vec::new();
    let mut sizes = convoy.waves.iter().copied();
    let mut left = 0;
    for id in &convoy.tracked {
        let standing = state.standing(id);
        counts.add(id, standing);
        if left == 0
            && let Some(size) = sizes.next()
        {
            left = size;
            waves.push(Counts::default());
        }
        if left > 0
            && let Some(wave) = waves.last_mut()
        {
            wave.add(id, standing);
            left -= 1;
        }
    }
    Progress { id: convoy.id.clone(), counts, waves }
}
