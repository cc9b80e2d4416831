//! What the pool tells the daemon about its workers.

use yard_engine::money::Usd;
use yard_engine::session::Session;
use yard_engine::worktree::Worktree;
use yard_engine::{DispatchId, Timestamp};

use crate::record::ExitRecord;

/// News of a worker. `StartFailed`, `Ended`, `Lost` and `NeverRan` are final, and every order that was handed over
/// gets one of them; the same one may be reported again (after [`Recovered`] said it), so the first counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerReport {
    /// The first program runs.
    Running {
        /// Which attempt.
        dispatch: DispatchId,
        /// Process id of the program.
        pid: u32,
        /// Since when.
        at: Timestamp,
    },
    /// It works in a worktree.
    Isolated {
        /// Which attempt.
        dispatch: DispatchId,
        /// Where.
        worktree: Box<Worktree>,
    },
    /// The first program could not be run.
    StartFailed {
        /// Which attempt.
        dispatch: DispatchId,
        /// Why, for a person.
        error: String,
    },
    /// A step finished well and another follows.
    StepDone {
        /// Which attempt.
        dispatch: DispatchId,
        /// The finished step.
        step: String,
        /// When it finished.
        at: Timestamp,
    },
    /// What its output told so far about its cost and session, and what it is doing.
    Metered {
        /// Which attempt.
        dispatch: DispatchId,
        /// What it cost so far.
        usd: Usd,
        /// Tokens it used so far.
        tokens: u64,
        /// The agent's session.
        session: Option<Session>,
        /// The last line of its output, if that is news.
        line: Option<String>,
    },
    /// The dispatch ran and is over, with everything it started.
    Ended {
        /// Which attempt.
        dispatch: DispatchId,
        /// How it ended.
        exit: ExitRecord,
    },
    /// The shim died without a record; nothing of the dispatch is left running.
    Lost {
        /// Which attempt.
        dispatch: DispatchId,
        /// What was found.
        why: String,
    },
    /// The order never started anything and never will: its claim is revoked.
    NeverRan {
        /// Which attempt.
        dispatch: DispatchId,
        /// Why not.
        why: String,
    },
}

impl WorkerReport {
    /// The dispatch this is about.
    pub fn dispatch(&self) -> &DispatchId {
        match self {
            Self::Running { dispatch, .. }
            | Self::Isolated { dispatch, .. }
            | Self::StartFailed { dispatch, .. }
            | Self::StepDone { dispatch, .. }
            | Self::Metered { dispatch, .. }
            | Self::Ended { dispatch, .. }
            | Self::Lost { dispatch, .. }
            | Self::NeverRan { dispatch, .. } => dispatch,
        }
    }
}

/// What a claim says about a dispatch that the journal calls live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered {
    /// A shim holds the lock (or is about to take it for this pool): it works on, reports follow.
    Adopted {
        /// Process id of the first program and since when, if it runs already.
        running: Option<(u32, Timestamp)>,
    },
    /// It ran and ended.
    Ended(ExitRecord),
    /// Its first program could not be run.
    StartFailed(String),
    /// Its shim died without a record; everything left of it has been ended.
    Lost(String),
    /// It never started anything, and now never will: the claim is revoked.
    NeverRan,
}
