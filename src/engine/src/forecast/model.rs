//! What is left to be done, as arrays: built once from the state with the engine's own functions, then run through as
//! often as it takes. Times are milliseconds from now.
//!
//! Nodes below the number of units are beads that run, will run or never will; doors follow. What a parent hands down
//! to its children stands behind one door, so that k blockers over n children cost k + n edges.

use super::build::Builder;
use super::history::Estimate;
use crate::capacity::Limit;
use crate::queue::OrderKey;
use crate::state::State;
use crate::{BeadId, ConvoyId, Millis, Timestamp};

/// No node, no limit, nobody.
pub(super) const NONE: u32 = u32::MAX;
/// A time that never comes.
pub(super) const NEVER: i64 = i64::MAX;
/// Where the town's own limit stands.
pub(super) const TOWN: usize = 0;

/// A convoy that is taken for launched, and its beads.
pub(super) type Launched<'a> = Option<(&'a ConvoyId, &'a [BeadId])>;

/// How a unit stands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A worker is on it.
    Running,
    /// Its worker has finished; its tracker is about to close it.
    Finished,
    /// It is scheduled.
    Scheduled,
    /// Its convoy puts it on the schedule once it is ready, with this priority.
    Fed(u8),
    /// It does not start as things stand.
    Never,
}

/// A bead that runs, will run or never will.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    pub(super) id: &'a BeadId,
    pub(super) place: Place,
    /// Where it stands in its lane, once it is asked for.
    pub(super) key: Option<OrderKey>,
    pub(super) class: u32,
    pub(super) estimate: u32,
    /// How much of its work is done.
    pub(super) done: u64,
    /// How long its worker runs already.
    pub(super) ran: u64,
    /// Not before then.
    pub(super) release: i64,
    /// Not after then.
    pub(super) deadline: i64,
    /// At the head of its lane from then on.
    pub(super) ahead: i64,
    /// Attempts of this request that failed already.
    pub(super) failures: u32,
    /// What chance knows it by.
    pub(super) number: u64,
}

/// Units in the same lane that count against the same limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    pub(super) lane: u32,
    /// Town, rig and account.
    pub(super) limits: [u32; 5],
}

/// What is left to be done, and by which rules.
pub(super) struct Model<'a> {
    pub(super) state: &'a State,
    pub(super) now: Timestamp,
    pub(super) units: Vec<Unit<'a>>,
    pub(super) classes: Vec<Class>,
    pub(super) estimates: Vec<Estimate>,
    pub(super) limits: Vec<Limit>,
    pub(super) caps: Vec<u64>,
    /// What counts against each limit now.
    pub(super) active: Vec<u64>,
    /// How many of each lane run, and when it was last served.
    pub(super) lanes: Vec<(u64, u64)>,
    /// How many nodes each node waits for.
    pub(super) waits: Vec<u32>,
    /// From each node to those that wait for it: of node n, `waiting[offsets[n]..offsets[n + 1]]`.
    pub(super) offsets: Vec<u32>,
    pub(super) waiting: Vec<u32>,
    /// Nothing starts before then.
    pub(super) paused_until: i64,
    pub(super) spawn_delay: i64,
    pub(super) next_spawn: i64,
    /// Goes before all others.
    pub(super) preferred: u32,
    pub(super) aging: Option<Millis>,
    pub(super) backoff: &'a [Millis],
    pub(super) max_attempts: u32,
    /// The unit of each bead by its number, or none.
    pub(super) by_number: Vec<u32>,
}

impl<'a> Model<'a> {
    /// Everything that is asked for in the town, and the beads of a staged convoy as if it were launched now.
    pub(super) fn of(state: &'a State, now: Timestamp, launched: Launched<'a>) -> Self {
        Builder::new(state, now, launched).build()
    }

    /// The nodes that wait for this one.
    pub(super) fn waiting_for(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.waiting[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }

    /// Whether a node is a bead rather than a door.
    pub(super) fn is_unit(&self, node: u32) -> bool {
        (node as usize) < self.units.len()
    }

    /// The unit of a bead, if it is one.
    pub(super) fn unit_of(&self, bead: &BeadId) -> Option<u32> {
        let unit = *self.by_number.get(self.state.beads.number(bead)? as usize)?;
        (unit != NONE).then_some(unit)
    }

    /// The moment that a time of the model stands for.
    pub(super) fn moment(&self, time: i64) -> Timestamp {
        Timestamp::from_millis(self.now.as_millis().saturating_add(time))
    }
}
