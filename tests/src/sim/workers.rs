//! Simulated workers and their claim files, which outlive the daemon: the protocol of the design, step by step.
//!
//! A launched shim arrives at its claim at any later time. It runs its payload only if the claim exists, nobody holds
//! its lock and nothing is written in it. The payload dies with its shim. Whoever settles a claim takes its lock.

use std::collections::BTreeMap;

use yard_engine::dispatch::Category;
use yard_engine::{BeadId, DispatchId, WorkerExit};

use super::Mutant;
use super::dice::Dice;

/// What stands in a claim file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    Empty,
    Claimed,
    StartFailed,
    Exited(WorkerExit),
    Revoked,
}

#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) record: Record,
    /// A stop request was written into it.
    pub(super) stop: bool,
    /// It was asked to give way.
    pub(super) yields: bool,
    /// The shim's lock: held while its payload runs.
    pub(super) held: bool,
}

/// What became of a launched shim when it arrived at its claim.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It exits 75 without a trace.
    Refused,
    /// It claimed, but its program could not be run.
    StartFailed,
    /// Its payload runs.
    Runs,
}

/// How a bead's programs behave.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    /// So many payloads fail before one succeeds.
    pub(super) failures: u32,
    /// So many starts fail before one works.
    pub(super) start_failures: u32,
    /// It never succeeds.
    pub(super) hopeless: bool,
    /// It ends well even when it is told to stop.
    pub(super) stubborn: bool,
    /// So many times it ends well and leaves its bead open in the tracker.
    pub(super) forgets: u32,
    /// It closes its bead in the tracker only after it has ended.
    pub(super) closes_late: bool,
}

/// A report on its way to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    Running(DispatchId),
    StepDone(DispatchId),
    StartFailed(DispatchId),
    Ended(DispatchId, WorkerExit),
}

#[derive(Default)]
pub(super) struct Workers {
    pub(super) claims: BTreeMap<DispatchId, Claim>,
    /// Shims that have not arrived at their claim yet.
    pub(super) launched: Vec<DispatchId>,
    pub(super) programs: BTreeMap<BeadId, Program>,
    pub(super) reports: Vec<Report>,
}

impl Workers {
    /// Creates the empty claim of a dispatch; one that exists stays as it is.
    pub(super) fn create_claim(&mut self, id: &DispatchId) {
        let fresh = Claim { record: Record::Empty, stop: false, yields: false, held: false };
        self.claims.entry(id.clone()).or_insert(fresh);
    }

    pub(super) fn launch(&mut self, id: &DispatchId) {
        self.launched.push(id.clone());
    }

    /// Writes a stop request. A claim that does not exist needs none: nothing will start without one.
    pub(super) fn request_stop(&mut self, id: &DispatchId) {
        if let Some(claim) = self.claims.get_mut(id) {
            claim.stop = true;
        }
    }

    /// Asks a payload to give way, or takes that back.
    pub(super) fn request_yield(&mut self, id: &DispatchId, wanted: bool) {
        if let Some(claim) = self.claims.get_mut(id) {
            claim.yields = wanted;
        }
    }

    /// Writes "revoked" into a claim, creating it if need be.
    pub(super) fn revoke(&mut self, id: &DispatchId) {
        self.create_claim(id);
        if let Some(claim) = self.claims.get_mut(id) {
            claim.record = Record::Revoked;
        }
    }

    /// A launched shim arrives at its claim.
    pub(super) fn arrive(&mut self, nth: usize, mutant: Option<Mutant>) -> (DispatchId, Arrival) {
        let id = self.launched.swap_remove(nth);
        let Some(claim) = self.claims.get_mut(&id) else { return (id, Arrival::Refused) };
        let fence_open = !claim.held && claim.record == Record::Empty && !claim.stop;
        if !fence_open && mutant != Some(Mutant::NoFence) {
            return (id, Arrival::Refused);
        }
        let program = self.programs.entry(id.bead().clone()).or_default();
        if program.start_failures > 0 {
            program.start_failures -= 1;
            claim.record = Record::StartFailed;
            return (id, Arrival::StartFailed);
        }
        claim.record = Record::Claimed;
        claim.held = true;
        (id, Arrival::Runs)
    }

    /// The dispatches whose payload runs.
    pub(super) fn running(&self) -> Vec<DispatchId> {
        self.claims.iter().filter(|(_, claim)| claim.held).map(|(id, _)| id.clone()).collect()
    }

    /// A payload ends by itself, or because it was told to; its shim writes the exit record and lets go of the lock.
    pub(super) fn finish(&mut self, id: &DispatchId, dice: &mut Dice) -> Option<WorkerExit> {
        let claim = self.claims.get_mut(id).filter(|claim| claim.held)?;
        let program = self.programs.entry(id.bead().clone()).or_default();
        let exit = if claim.stop && !program.stubborn {
            exit(None, Some(15), true, Category::Crash)
        } else if claim.yields && dice.one_in(2) {
            exit(Some(75), None, false, Category::Yielded)
        } else if program.hopeless {
            exit(Some(1), None, false, Category::Crash)
        } else if program.failures > 0 {
            program.failures -= 1;
            match dice.below(4) {
                0 => exit(Some(69), None, false, Category::Unavailable),
                1 => exit(Some(75), None, false, Category::Yielded),
                2 => exit(None, Some(11), false, Category::Crash),
                _ => exit(Some(1), None, false, Category::Crash),
            }
        } else {
            exit(Some(0), None, false, Category::Crash)
        };
        claim.record = Record::Exited(exit.clone());
        claim.held = false;
        Some(exit)
    }

    /// The shim is killed; its payload dies with it, and the claim stays as it is.
    pub(super) fn kill(&mut self, id: &DispatchId) {
        if let Some(claim) = self.claims.get_mut(id) {
            claim.held = false;
        }
    }
}

pub(super) fn exit(code: Option<i32>, signal: Option<i32>, stopped: bool, category: Category) -> WorkerExit {
    WorkerExit {
        code,
        signal,
        step: None,
        stopped,
        awaits_close: false,
        active: None,
        resumes: false,
        worktree: None,
        category,
        message: "it ended".to_owned(),
    }
}
