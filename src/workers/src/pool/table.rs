//! Who works on what: the connections and dispatches of a pool, shared with the threads that follow dead shims.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use yard_engine::slurm::SlurmRequest;
use yard_engine::worktree::Worktree;
use yard_engine::{DispatchId, Timestamp};

use super::jobs::Lines;
use crate::slurm::JobState;
use crate::sys;
use crate::wire::Inbox;

/// Idle shims beyond this number are let go.
pub(super) const MAX_IDLE: usize = 128;

/// A shim made for this pool.
pub(super) struct Shim {
    pub socket: UnixStream,
    pub inbox: Inbox,
    /// What it works on.
    pub dispatch: Option<DispatchId>,
    /// What it works on after that, in this order.
    pub next: VecDeque<DispatchId>,
    /// What it said before its connection ended.
    pub last_words: Option<String>,
}

impl Shim {
    pub(super) fn new(socket: UnixStream, dispatch: Option<DispatchId>) -> Self {
        Self { socket, inbox: Inbox::default(), dispatch, next: VecDeque::new(), last_words: None }
    }
}

/// Something the pool watches.
pub(super) enum Watched {
    Shim(Shim),
    /// A shim that is not our child tells us something.
    Visitor(UnixStream, Inbox),
    /// A shim that is not our child: in a window, or of a former daemon.
    Adopted(DispatchId, sys::Handle),
}

/// A dispatch that has no final report yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live {
    /// What its shim is watched as, if we started it: a connection or a process. None once that has ended.
    pub shim: Option<u64>,
    /// Its first program.
    pub running: Option<(u32, Timestamp)>,
}

/// A stop request whose shim is killed if it does not obey in time.
pub(super) struct Patience {
    pub until: Instant,
    pub dispatch: DispatchId,
}

/// A dispatch whose shim is made by a cluster.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// When the cluster got it; none while that is not over.
    pub handed_over: Option<Instant>,
    /// Since when the cluster does not know it.
    pub unknown_since: Option<Instant>,
    /// That is so for so long that it is not coming back.
    pub is_missing: bool,
    /// What became of it, as the cluster says.
    pub end: Option<JobState>,
    /// Since when its claim says that it is over.
    pub over_since: Option<Instant>,
    /// Its shim is still to be told to look into the claim.
    pub to_signal: bool,
    /// It is to be called off as a whole.
    pub to_cancel: bool,
    /// Its first program was told of.
    pub told_running: bool,
    /// So many of its steps were told of.
    pub told_steps: usize,
    /// What was told of its worktree.
    pub told_worktree: Option<Worktree>,
}

/// How much room a cluster has.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// What a job asks for that somebody wants to start.
    pub wanted: Option<SlurmRequest>,
    /// How many jobs like it there may be, those that run included, if that is news.
    pub seen: Option<u64>,
}

/// The pool's books.
#[derive(Default)]
pub(super) struct Table {
    next: u64,
    pub watched: HashMap<u64, Watched>,
    pub idle: Vec<u64>,
    pub live: HashMap<DispatchId, Live>,
    /// Those of them whose shims a cluster makes.
    pub jobs: HashMap<DispatchId, Job>,
    /// How much room the cluster has.
    pub room: Room,
    /// The ways to those who deal with the cluster.
    pub cluster: Option<Lines>,
    /// Dispatches of dead shims whose remains are being ended.
    pub burying: HashSet<DispatchId>,
    pub patience: Vec<Patience>,
    /// Dispatches whose shims were gone before they could be watched, and why nothing ran if nothing did.
    pub unclear: Vec<(DispatchId, String)>,
    /// The fork server, which a sweep must not mistake for a worker.
    pub server: Option<u32>,
}

/// Tokens below this belong to the pool itself.
const FIRST_TOKEN: u64 = 16;

impl Table {
    /// A token that was never used before, so that late news of a closed connection reach nobody.
    pub(super) fn token(&mut self) -> u64 {
        self.next += 1;
        FIRST_TOKEN + self.next
    }

    /// The connection of the shim that works on a dispatch.
    pub(super) fn shim_of(&mut self, dispatch: &DispatchId) -> Option<&mut Shim> {
        let token = self.live.get(dispatch)?.shim?;
        match self.watched.get_mut(&token)? {
            Watched::Shim(shim) => Some(shim),
            Watched::Visitor(..) | Watched::Adopted(..) => None,
        }
    }

    /// Gives a shim time until then to obey. Asking again never gives it more.
    pub(super) fn be_patient(&mut self, dispatch: &DispatchId, until: Instant) {
        let until =
            self.patience.iter().find(|p| p.dispatch == *dispatch).map_or(until, |p| p.until.min(until));
        self.patience.retain(|p| p.dispatch != *dispatch);
        self.patience.push(Patience { until, dispatch: dispatch.clone() });
    }

    /// Processes that carry a dispatch's marks by accident: a daemon that was started from inside a dispatch.
    pub(super) fn spared(&self) -> Vec<u32> {
        self.server.into_iter().chain([std::process::id()]).collect()
    }
}
