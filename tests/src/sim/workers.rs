//! Simulated workers and their claim files, which outlive the daemon: the protocol of the design, step by step.
//!
//! A launched shim arrives at its claim at any later time. It runs its payload only if the claim exists, nobody holds
//! its lock and nothing is written in it. The payload dies with its shim. Whoever settles a claim takes its lock.

use std::collections::BTreeMap;

use yard_engine::dispatch::Category;
use yard_engine::money::Usd;
use yard_engine::session::Session;
use yard_engine::worktree::Worktree;
use yard_engine::{BeadId, DispatchId, Millis, Timestamp, WorkerExit};
use yard_workers::{ExitCause, ExitRecord, RunSpec, StartOrder, WorkerReport, WorktreePlace, WorktreeSpec};

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
    /// The payload's process.
    pub(super) pid: u32,
    /// Where it works.
    pub(super) worktree: Option<Worktree>,
    /// When a payload that does not obey is killed.
    pub(super) killed_at: Option<Millis>,
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
    /// It takes no notice of SIGTERM.
    pub(super) deaf: bool,
    /// How long it runs, as its shim says; none in quick histories.
    pub(super) takes: Option<Millis>,
}

/// A report on its way to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    Running(DispatchId),
    StepDone(DispatchId),
    StartFailed(DispatchId),
    Ended(DispatchId, WorkerExit),
    Isolated(DispatchId),
    Metered(DispatchId),
    Lost(DispatchId),
    NeverRan(DispatchId),
}

impl Report {
    /// What is reported of an end that stands in its claim.
    pub(super) fn ended(id: &DispatchId, workers: &Workers) -> Self {
        match workers.claims.get(id).map(|claim| &claim.record) {
            Some(Record::Exited(exit)) => Self::Ended(id.clone(), exit.clone()),
            _ => Self::Lost(id.clone()),
        }
    }

    /// The dispatch it is about.
    pub(super) fn dispatch(&self) -> &DispatchId {
        match self {
            Self::Running(id)
            | Self::StepDone(id)
            | Self::StartFailed(id)
            | Self::Ended(id, _)
            | Self::Isolated(id)
            | Self::Metered(id)
            | Self::Lost(id)
            | Self::NeverRan(id) => id,
        }
    }

    /// As a pool tells it.
    pub(super) fn in_full(&self, workers: &Workers, at: Timestamp) -> WorkerReport {
        let dispatch = self.dispatch().clone();
        let claim = workers.claims.get(&dispatch);
        match self {
            Self::Running(_) => {
                WorkerReport::Running { dispatch, pid: claim.map_or(1, |claim| claim.pid), at }
            }
            Self::StepDone(id) => WorkerReport::StepDone { step: workers.step_of(id), dispatch, at },
            Self::StartFailed(_) => {
                WorkerReport::StartFailed { dispatch, error: "it could not be run".to_owned() }
            }
            Self::Ended(_, exit) => {
                let worktree = exit.worktree.clone();
                WorkerReport::Ended { dispatch, exit: record_of(exit, worktree, at) }
            }
            Self::Isolated(_) => match claim.and_then(|claim| claim.worktree.clone()) {
                Some(worktree) => WorkerReport::Isolated { dispatch, worktree: Box::new(worktree) },
                None => WorkerReport::StepDone { dispatch, step: "work".to_owned(), at },
            },
            Self::Metered(id) => WorkerReport::Metered {
                usd: Usd::from_dollars(f64::from(id.attempt())).unwrap_or_default(),
                tokens: 1_000,
                session: Session::new(Some("claude"), &format!("s{}", id.attempt())).ok(),
                line: Some("at it".to_owned()),
                dispatch,
            },
            Self::Lost(_) => WorkerReport::Lost { dispatch, why: "its shim died".to_owned() },
            Self::NeverRan(_) => WorkerReport::NeverRan { dispatch, why: "no shim took it".to_owned() },
        }
    }
}

/// An exit as a shim writes it down.
fn record_of(exit: &WorkerExit, worktree: Option<Box<Worktree>>, at: Timestamp) -> ExitRecord {
    ExitRecord {
        code: exit.code,
        signal: exit.signal,
        step: exit.step.clone(),
        cause: if exit.stopped { ExitCause::Stopped } else { ExitCause::Exit },
        started_at: at,
        ended_at: at,
        active: exit.active,
        usd: Usd::default(),
        tokens: 0,
        session: None,
        worktree,
        unavailable: None,
        note: None,
    }
}

#[derive(Default)]
pub(super) struct Workers {
    pub(super) claims: BTreeMap<DispatchId, Claim>,
    /// Shims that have not arrived at their claim yet.
    pub(super) launched: Vec<DispatchId>,
    /// Orders that wait with a shim, by the one that it is busy with. They outlive the daemon, not the shim.
    pub(super) waiting: BTreeMap<DispatchId, DispatchId>,
    pub(super) programs: BTreeMap<BeadId, Program>,
    pub(super) reports: Vec<Report>,
    /// What was ordered of real pools.
    orders: BTreeMap<DispatchId, RunSpec>,
    pids: u32,
}

impl Workers {
    /// Creates the empty claim of a dispatch; one that exists stays as it is.
    pub(super) fn create_claim(&mut self, id: &DispatchId) {
        let fresh = Claim {
            record: Record::Empty,
            stop: false,
            yields: false,
            held: false,
            pid: 0,
            worktree: None,
            killed_at: None,
        };
        self.claims.entry(id.clone()).or_insert(fresh);
    }

    pub(super) fn launch(&mut self, id: &DispatchId) {
        self.launched.push(id.clone());
    }

    /// Makes the claim of an order and keeps what is to be run.
    pub(super) fn take_order(&mut self, order: StartOrder) {
        self.create_claim(&order.dispatch);
        self.orders.insert(order.dispatch, order.spec);
    }

    /// A shim was launched and has not arrived, or has the order and is busy with another.
    pub(super) fn is_on_its_way(&self, id: &DispatchId) -> bool {
        self.launched.contains(id) || self.waiting.values().any(|next| next == id)
    }

    /// Gives an order to the shim that is busy with another; false if that shim is gone.
    pub(super) fn wait_behind(&mut self, id: &DispatchId, after: &DispatchId) -> bool {
        if self.is_on_its_way(after) || self.is_held(after) {
            self.waiting.insert(after.clone(), id.clone());
            return true;
        }
        let died = self.claims.get(after).is_some_and(|claim| claim.record == Record::Claimed);
        if !died {
            // It has finished the other one, and begins at once.
            self.launch(id);
        }
        !died
    }

    /// A shim holds the claim.
    pub(super) fn is_held(&self, id: &DispatchId) -> bool {
        self.claims.get(id).is_some_and(|claim| claim.held)
    }

    /// Asks for a stop; whoever does not obey is killed at that time.
    pub(super) fn stop_by(&mut self, id: &DispatchId, until: Millis) {
        self.request_stop(id);
        if let Some(claim) = self.claims.get_mut(id) {
            claim.killed_at = Some(claim.killed_at.map_or(until, |known| known.min(until)));
        }
    }

    /// Whether a payload takes no notice of a stop request, and its time has not come.
    pub(super) fn ignores_signals(&self, id: &DispatchId, uptime: Millis) -> bool {
        let deaf = self.programs.get(id.bead()).is_some_and(|program| program.deaf);
        let waits = |claim: &Claim| claim.stop && claim.killed_at.is_some_and(|at| uptime < at);
        deaf && self.claims.get(id).is_some_and(waits)
    }

    /// Removes a claim, unless a shim holds it.
    pub(super) fn forget(&mut self, id: &DispatchId) {
        if !self.is_held(id) {
            self.claims.remove(id);
            self.orders.remove(id);
        }
    }

    /// The step that a worker of this order finishes first.
    fn step_of(&self, id: &DispatchId) -> String {
        let first = self.orders.get(id).and_then(|spec| spec.steps.get(spec.first_step));
        first.map_or_else(|| "work".to_owned(), |step| step.id.clone())
    }

    /// How it ended, as its claim says.
    pub(super) fn exit_record(&self, id: &DispatchId, at: Timestamp) -> ExitRecord {
        let claim = self.claims.get(id);
        match claim.map(|claim| &claim.record) {
            Some(Record::Exited(exit)) => record_of(exit, exit.worktree.clone(), at),
            _ => record_of(&exit(None, None, false, Category::Crash), None, at),
        }
    }

    /// Nothing runs after a power cut; says what did.
    pub(super) fn power_is_cut(&mut self) -> Vec<DispatchId> {
        self.launched.clear();
        self.waiting.clear();
        let running = self.running();
        for id in &running {
            self.kill(id);
        }
        running
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
        self.pids += 1;
        claim.record = Record::Claimed;
        claim.held = true;
        claim.pid = self.pids;
        claim.worktree = self.orders.get(&id).and_then(|spec| spec.worktree.as_ref()).and_then(|it| made(it));
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
        let mut exit = if claim.stop && !program.stubborn {
            exit(None, Some(if program.deaf { 9 } else { 15 }), true, Category::Crash)
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
        exit.active = program.takes;
        exit.worktree = claim.worktree.clone().map(|worktree| {
            let head = Some(format!("commit-of-{id}"));
            Box::new(Worktree { finished: true, head, ..worktree })
        });
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

/// The worktree that a shim makes for its order.
fn made(spec: &WorktreeSpec) -> Option<Worktree> {
    match &spec.place {
        WorktreePlace::New { made_for, branch, base } => Some(Worktree {
            made_for: made_for.clone(),
            branch: branch.clone(),
            base: base.clone().unwrap_or_else(|| "main".to_owned()),
            start: "start".to_owned(),
            finished: false,
            head: None,
        }),
        WorktreePlace::Again { worktree } => Some(worktree.clone()),
        WorktreePlace::Detached { .. } => None,
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
