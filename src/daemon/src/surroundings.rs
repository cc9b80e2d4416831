//! What the loop finds around itself: workers, clocks, and everything else it touches outside the journal. A daemon has
//! the real things; a rehearsal (see [`crate::rehearsal`]) brings its own.

use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use yard_engine::agent::Process;
use yard_engine::settings::HttpSettings;
use yard_engine::slurm::SlurmRequest;
use yard_engine::worktree::Worktree;
use yard_engine::{
    AgentName, AlertId, BeadId, DispatchId, Millis, RigName, Settings, SourceReading, Timestamp,
};
use yard_workers::{LinePlace, LocalPool, Recovered, StartOrder, Waker};

use crate::branches::GitJob;
use crate::clock::Time;
use crate::shelf::Keeping;

/// Where beads run, as the loop needs it; [`LocalPool`] says what each of these promises.
pub trait Workers {
    /// Waits for news, not longer than this.
    fn attend(&mut self, patience: Duration);
    /// A handle by which other threads end a wait, if any may.
    fn waker(&self) -> Option<Waker>;
    /// Starts a dispatch whose start is durable.
    fn start(&mut self, order: StartOrder) -> io::Result<()>;
    /// Asks a dispatch to stop.
    fn request_stop(&mut self, dispatch: &DispatchId, grace: Millis, reason: &str) -> io::Result<()>;
    /// From now on who does not obey is killed soon after its grace.
    fn hurry(&mut self);
    /// Asks a dispatch to give way between two steps, or takes that back.
    fn request_yield(&mut self, dispatch: &DispatchId, wanted: bool) -> io::Result<()>;
    /// The worktree a dispatch works in, from its claim.
    fn worktree(&self, dispatch: &DispatchId) -> Option<Worktree>;
    /// Removes the claim of a dispatch whose end is durable.
    fn forget(&mut self, dispatch: &DispatchId);
    /// Removes the claims of all other dispatches.
    fn forget_all_but(&mut self, live: &BTreeSet<DispatchId>);
    /// What became of a dispatch that the journal calls live.
    fn recover(&mut self, dispatch: &DispatchId) -> io::Result<Recovered>;
    /// Closes the windows of dispatches that are over.
    fn close_leftover_windows(&mut self);
    /// Gives a dispatch that is lined up to the worker that has another, which runs or is in line itself.
    fn start_after(&mut self, order: StartOrder, after: &DispatchId, place: LinePlace) -> io::Result<()>;
    /// Takes a dispatch out of the line behind another; if it is too late for that, how the other ended.
    fn call_back(&mut self, dispatch: &DispatchId, after: &DispatchId) -> io::Result<Option<Recovered>>;
    /// Dispatches that have a claim although nobody knows of them.
    fn strangers(&self, _is_known: &dyn Fn(&DispatchId) -> bool) -> Vec<DispatchId> {
        Vec::new()
    }
    /// Ends one of those, if it runs; whether it was there.
    fn evict(&mut self, _dispatch: &DispatchId) -> io::Result<bool> {
        Ok(false)
    }
    /// How many jobs like this a cluster has room for, if that is news.
    fn cluster_room(&mut self, _wanted: Option<&SlurmRequest>) -> Option<u64> {
        None
    }
    /// Prepares for so many starts at once.
    fn stand_by(&mut self, _wanted: usize) {}
    /// Lets go what was prepared beyond so many starts.
    fn stand_down(&mut self, _wanted: usize) {}
}

impl Workers for LocalPool {
    fn attend(&mut self, patience: Duration) {
        Self::attend(self, patience);
    }

    fn waker(&self) -> Option<Waker> {
        Some(Self::waker(self))
    }

    fn start(&mut self, order: StartOrder) -> io::Result<()> {
        Self::start(self, order)
    }

    fn request_stop(&mut self, dispatch: &DispatchId, grace: Millis, reason: &str) -> io::Result<()> {
        Self::request_stop(self, dispatch, grace, reason)
    }

    fn hurry(&mut self) {
        Self::hurry(self);
    }

    fn request_yield(&mut self, dispatch: &DispatchId, wanted: bool) -> io::Result<()> {
        Self::request_yield(self, dispatch, wanted)
    }

    fn worktree(&self, dispatch: &DispatchId) -> Option<Worktree> {
        Self::worktree(self, dispatch)
    }

    fn forget(&mut self, dispatch: &DispatchId) {
        Self::forget(self, dispatch);
    }

    fn forget_all_but(&mut self, live: &BTreeSet<DispatchId>) {
        Self::forget_all_but(self, live);
    }

    fn recover(&mut self, dispatch: &DispatchId) -> io::Result<Recovered> {
        Self::recover(self, dispatch)
    }

    fn close_leftover_windows(&mut self) {
        Self::close_leftover_windows(self);
    }

    fn start_after(&mut self, order: StartOrder, after: &DispatchId, place: LinePlace) -> io::Result<()> {
        Self::start_after(self, order, after, place)
    }

    fn call_back(&mut self, dispatch: &DispatchId, after: &DispatchId) -> io::Result<Option<Recovered>> {
        Self::call_back(self, dispatch, after)
    }

    fn strangers(&self, is_known: &dyn Fn(&DispatchId) -> bool) -> Vec<DispatchId> {
        Self::strangers(self, is_known)
    }

    fn evict(&mut self, dispatch: &DispatchId) -> io::Result<bool> {
        Self::evict(self, dispatch)
    }

    fn cluster_room(&mut self, wanted: Option<&SlurmRequest>) -> Option<u64> {
        Self::cluster_room(self, wanted)
    }

    fn stand_by(&mut self, wanted: usize) {
        Self::stand_by(self, wanted);
    }

    fn stand_down(&mut self, wanted: usize) {
        Self::stand_down(self, wanted);
    }
}

/// Everything else that the loop touches, for a rehearsal. What is sent off is only ordered here; how it went is told to
/// [`crate::rehearsal::Rehearsal`] later, or never.
pub trait Stage {
    /// Git is to do something.
    fn git(&mut self, job: GitJob);
    /// The alert command is to be told.
    fn tell_alert(&mut self, id: &AlertId);
    /// The hook is to be told of a message.
    fn tell_message(&mut self, agent: &AgentName, message: u64);
    /// A rig's wake command is to be run.
    fn wake(&mut self, rig: &RigName);
    /// An action is to be sent.
    fn send_action(&mut self, dispatch: &DispatchId);
    /// A webhook is to be sent.
    fn send_webhook(&mut self, task: &BeadId);
    /// The HTTP API is to be served like this; what is wrong, if anything is.
    fn listen(&mut self, settings: &HttpSettings) -> Option<String>;
    /// Why the host has no room for new work, if so.
    fn too_busy(&mut self, settings: &Settings) -> Option<String>;
    /// Whether an agent's process lives.
    fn lives(&mut self, process: &Process) -> bool;
    /// When a worker last wrote something.
    fn last_output(&mut self, dispatch: &DispatchId) -> Option<Timestamp>;
    /// What a rig's workspace shows when somebody begins to follow it; none if it cannot be read. Later readings are told
    /// to the rehearsal.
    fn read_workspace(&mut self, rig: &RigName) -> Option<SourceReading>;
    /// Has workspaces read again: all of them, or one rig's.
    fn poke(&mut self, rig: Option<&str>);
    /// Something is to be done beside the loop, on a thread of its own.
    fn beside(&mut self, work: Box<dyn FnOnce()>);
    /// The process is to end at once. Whoever returns from this has not ended it.
    fn end(&mut self);
}

/// What a loop is opened with.
pub(crate) struct Surroundings {
    pub(crate) pool: Box<dyn Workers>,
    pub(crate) time: Rc<dyn Time>,
    /// None in real life.
    pub(crate) stage: Option<Box<dyn Stage>>,
    pub(crate) keeping: Keeping,
}
