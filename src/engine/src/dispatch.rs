//! Dispatches: attempts to run a bead, each with an id of its own that serves as a fencing token. A dispatch has
//! exactly one outcome; a report that carries an ended id changes nothing.

use serde::{Deserialize, Serialize};

use crate::bead::Verdict;
use crate::capacity::Limit;
use crate::context::CloseReason;
use crate::queue::Lane;
use crate::state::State;
use crate::{AccountName, BeadId, ContextId, DispatchId, RigName, Timestamp};

/// One attempt to run a bead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// `<bead>@<attempt>`.
    pub id: DispatchId,
    /// The context that asked for it.
    pub context: ContextId,
    /// Where it runs.
    pub rig: RigName,
    /// The account it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountName>,
    /// Whose queue it came from.
    pub lane: Lane,
    /// Which executor runs it.
    pub executor: String,
    /// Position of its start in the log; lanes are served by it.
    pub order: u64,
    /// When it was decided.
    pub started_at: Timestamp,
    /// When its first program ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_at: Option<Timestamp>,
    /// The process, for people to look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The last finished step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Why it was asked to stop; the first reason wins, except that a person's word beats ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    /// Its one end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

impl Dispatch {
    /// Whether it holds a slot.
    pub fn is_live(&self) -> bool {
        self.ended.is_none()
    }
}

/// Why a running dispatch is ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A person called it off.
    UserCancelled,
    /// The daemon drains.
    GracefulShutdown,
    /// The start took too long.
    SpawnTimeout,
}

impl StopReason {
    /// The word in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserCancelled => "user_cancelled",
            Self::GracefulShutdown => "graceful_shutdown",
            Self::SpawnTimeout => "spawn_timeout",
        }
    }
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum Outcome {
    /// Exit 0 of the last step.
    Succeeded,
    /// Another exit, a signal, a timeout.
    Failed {
        /// Exit code, if it exited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// Signal, if it was killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        /// The step that failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
        /// What class of failure it is.
        category: Category,
        /// In words.
        message: String,
    },
    /// Its first program could not be run.
    StartFailed {
        /// What went wrong.
        error: String,
    },
    /// Ended because we asked.
    Stopped {
        /// Why we asked.
        reason: StopReason,
    },
    /// The shim died and took its worker along.
    Lost {
        /// What was found.
        why: String,
    },
    /// Nothing ever ran, and never will under this id.
    NeverRan {
        /// What was found.
        why: String,
    },
}

/// The class of a failure, which decides how it is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// The worker failed.
    Crash,
    /// A service was not there; not the worker's fault.
    Unavailable,
    /// The worker gave way of its own accord (exit 75).
    Yielded,
    /// The active-time budget is used up.
    HardCap,
}

/// What follows an end, decided when it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Next {
    /// The context it came from is still open and stands in the queue again.
    BackInQueue,
    /// A successor context follows.
    Requeued,
    /// The bead closes, or is closed already.
    Finished,
    /// The bead is left with a verdict.
    Settled(Verdict),
    /// The worker is done; the bead's own tracker is to close it.
    AwaitingClose {
        /// Without a close by then, the worker counts as crashed.
        until: Timestamp,
    },
}

/// The one end of a dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When.
    pub at: Timestamp,
    /// How.
    pub outcome: Outcome,
    /// What follows.
    pub next: Next,
}

/// What can happen to a dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum DispatchEvent {
    /// It was decided and is to be spawned.
    #[serde(rename = "dispatch.started")]
    Started {
        /// The record.
        dispatch: Box<Dispatch>,
    },
    /// Its first program runs; its context closes as dispatched.
    #[serde(rename = "dispatch.running")]
    Running {
        /// Which dispatch.
        id: DispatchId,
        /// The process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
    },
    /// A step finished.
    #[serde(rename = "dispatch.step_done")]
    StepDone {
        /// Which dispatch.
        id: DispatchId,
        /// Which step.
        step: String,
    },
    /// It was asked to stop.
    #[serde(rename = "dispatch.stop_requested")]
    StopRequested {
        /// Which dispatch.
        id: DispatchId,
        /// Why.
        reason: StopReason,
        /// Without waiting for SIGTERM to work.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        at_once: bool,
        /// Who asked.
        actor: String,
    },
    /// It ended.
    #[serde(rename = "dispatch.ended")]
    Ended {
        /// Which dispatch.
        id: DispatchId,
        /// How.
        outcome: Outcome,
        /// What follows.
        next: Next,
    },
    /// Its bead was not closed in time, so it counts as a crash after all.
    #[serde(rename = "dispatch.close_overdue")]
    CloseOverdue {
        /// Which dispatch.
        id: DispatchId,
        /// What follows.
        next: Next,
    },
    /// A report came for a dispatch that had already ended, and was ignored.
    #[serde(rename = "dispatch.late_report")]
    LateReport {
        /// Which dispatch.
        id: DispatchId,
        /// What it said.
        report: String,
    },
}

impl DispatchEvent {
    /// The dispatch this is about.
    pub fn dispatch(&self) -> &DispatchId {
        match self {
            Self::Started { dispatch } => &dispatch.id,
            Self::Running { id, .. }
            | Self::StepDone { id, .. }
            | Self::StopRequested { id, .. }
            | Self::Ended { id, .. }
            | Self::CloseOverdue { id, .. }
            | Self::LateReport { id, .. } => id,
        }
    }
}

impl State {
    pub(crate) fn apply_dispatch(&mut self, event: &DispatchEvent, at: Timestamp) {
        let id = event.dispatch().clone();
        match event {
            DispatchEvent::Started { dispatch } => {
                let dispatch = Dispatch::clone(dispatch);
                if let Some(work) = self.work_mut(id.bead()) {
                    work.attempts = work.attempts.max(id.attempt());
                    work.live = Some(id.clone());
                }
                self.last_dispatch_at = Some(at);
                self.touch_town();
                self.unqueue(&dispatch.context);
                self.hold_slot(&dispatch);
                self.dispatches.insert(id.clone(), dispatch);
            }
            DispatchEvent::Running { pid, .. } => {
                let Some(dispatch) = self.dispatches.get_mut(&id) else { return };
                dispatch.running_at = Some(at);
                dispatch.pid = *pid;
                let context = dispatch.context.clone();
                self.close_context(&context, CloseReason::Dispatched, at);
            }
            DispatchEvent::StepDone { step, .. } => {
                if let Some(dispatch) = self.dispatches.get_mut(&id) {
                    dispatch.step = Some(step.clone());
                }
            }
            DispatchEvent::StopRequested { reason, .. } => {
                if let Some(dispatch) = self.dispatches.get_mut(&id) {
                    // The first reason wins, but a person's word beats ours.
                    match reason {
                        StopReason::UserCancelled => dispatch.stop = Some(*reason),
                        StopReason::GracefulShutdown | StopReason::SpawnTimeout => {
                            dispatch.stop.get_or_insert(*reason);
                        }
                    }
                }
            }
            DispatchEvent::Ended { outcome, next, .. } => self.end_dispatch(&id, outcome, *next, at),
            DispatchEvent::CloseOverdue { next, .. } => {
                self.set_verdict(id.bead(), None);
                self.follow(id.bead(), *next);
            }
            DispatchEvent::LateReport { .. } => {}
        }
        self.touch_dispatch(&id);
        self.remember(id.bead());
    }

    /// The one end of a dispatch: frees its slot and leaves the bead with what follows.
    fn end_dispatch(&mut self, id: &DispatchId, outcome: &Outcome, next: Next, at: Timestamp) {
        let Some(dispatch) = self.dispatches.get_mut(id) else { return };
        dispatch.ended = Some(Ended { at, outcome: outcome.clone(), next });
        let dispatch = dispatch.clone();
        self.free_slot(&dispatch);
        if let Some(work) = self.work_mut(id.bead())
            && work.live.as_ref() == Some(id)
        {
            work.live = None;
        }
        self.follow(id.bead(), next);
        self.refresh_context(&dispatch.context);
        self.refresh_hunger(id.bead());
    }

    /// What an end, or a close that did not come, leaves the bead with.
    fn follow(&mut self, bead: &BeadId, next: Next) {
        match next {
            Next::Settled(verdict) => self.set_verdict(bead, Some(verdict)),
            Next::AwaitingClose { until } => {
                self.set_verdict(bead, Some(Verdict::Done));
                if let Some(work) = self.work_mut(bead) {
                    work.close_by = Some(until);
                }
                if self.beads.contains_key(bead) {
                    self.awaited_closes.insert((until, bead.clone()));
                }
            }
            Next::BackInQueue | Next::Requeued | Next::Finished => {}
        }
    }

    fn hold_slot(&mut self, dispatch: &Dispatch) {
        self.live.insert(dispatch.id.clone());
        for limit in Limit::of(&dispatch.rig, dispatch.account.as_ref()) {
            *self.active.entry(limit).or_default() += 1;
        }
        self.queue.lane_started(&dispatch.lane, dispatch.order);
    }

    fn free_slot(&mut self, dispatch: &Dispatch) {
        self.live.remove(&dispatch.id);
        for limit in Limit::of(&dispatch.rig, dispatch.account.as_ref()) {
            if let Some(active) = self.active.get_mut(&limit) {
                *active = active.saturating_sub(1);
                if *active == 0 {
                    self.active.remove(&limit);
                }
            }
            self.queue.limit_freed(&limit);
        }
        self.queue.lane_ended(&dispatch.lane);
    }

    /// Rebuilds what live dispatches occupy, for `rebuild_indexes`.
    pub(crate) fn reoccupy_slots(&mut self) {
        self.live.clear();
        self.active.clear();
        let dispatches = std::mem::take(&mut self.dispatches);
        for dispatch in dispatches.values() {
            self.hold_slot(dispatch);
            if !dispatch.is_live() {
                self.free_slot(dispatch);
            }
        }
        self.dispatches = dispatches;
    }

    /// A dispatch by id.
    pub fn dispatch(&self, id: &DispatchId) -> Option<&Dispatch> {
        self.dispatches.get(id)
    }

    /// The dispatches that hold a slot, by id.
    pub fn live_dispatches(&self) -> impl Iterator<Item = &Dispatch> {
        self.live.iter().filter_map(|id| self.dispatches.get(id))
    }

    /// How many dispatches hold a slot.
    pub fn live_count(&self) -> usize {
        self.live.len()
    }

    /// What the last dispatch of a bead left behind, in words.
    pub(crate) fn last_words_about(&self, bead: &BeadId) -> Option<String> {
        let ended = self.dispatches_of(bead).filter_map(|dispatch| dispatch.ended.as_ref()).next_back()?;
        Some(match &ended.outcome {
            Outcome::Succeeded => "its worker finished, but nobody closed it".to_owned(),
            Outcome::Failed { message, .. } => message.clone(),
            Outcome::StartFailed { error } => error.clone(),
            Outcome::Stopped { reason } => reason.as_str().to_owned(),
            Outcome::Lost { why } | Outcome::NeverRan { why } => why.clone(),
        })
    }

    /// All dispatches of one bead, first attempt first.
    pub fn dispatches_of(&self, bead: &BeadId) -> impl DoubleEndedIterator<Item = &Dispatch> {
        let from = DispatchId::new(bead.clone(), 0);
        let to = DispatchId::new(bead.clone(), u32::MAX);
        self.dispatches.range(from..=to).map(|(_, d)| d)
    }
}
