//! What can happen to a dispatch, and what follows from it for its bead, its context and its slot.

use serde::{Deserialize, Serialize};

use super::{Dispatch, Ended, Next, Outcome, Said, Usd};
use crate::bead::Verdict;
use crate::context::CloseReason;
use crate::session::Session;
use crate::state::State;
use crate::stop::StopReason;
use crate::worktree::Worktree;
use crate::{BeadId, DispatchId, Timestamp};

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
    /// It was decided ahead of time, for the slot of another, and may be given to the worker that has it.
    #[serde(rename = "dispatch.lined_up")]
    LinedUp {
        /// The record, as it is when its turn comes.
        dispatch: Box<Dispatch>,
        /// The one whose end it waits for.
        after: DispatchId,
    },
    /// It was in line, and no worker will take it any more.
    #[serde(rename = "dispatch.called_back")]
    CalledBack {
        /// Which dispatch.
        id: DispatchId,
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
    /// It works in a worktree, which has this on it.
    #[serde(rename = "dispatch.isolated")]
    Isolated {
        /// Which dispatch.
        id: DispatchId,
        /// Where it works.
        worktree: Box<Worktree>,
    },
    /// It has several steps.
    #[serde(rename = "dispatch.steps")]
    Steps {
        /// Which dispatch.
        id: DispatchId,
        /// Their names, in order.
        steps: Vec<String>,
    },
    /// A step finished.
    #[serde(rename = "dispatch.step_done")]
    StepDone {
        /// Which dispatch.
        id: DispatchId,
        /// Which step.
        step: String,
    },
    /// Its worker noted where it is.
    #[serde(rename = "dispatch.checkpoint")]
    Checkpoint {
        /// Which dispatch.
        id: DispatchId,
        /// For whoever goes on after it.
        note: String,
        /// The agent's session, if it is a new one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<Session>,
    },
    /// Its agent's session became known.
    #[serde(rename = "dispatch.session")]
    Session {
        /// Which dispatch.
        id: DispatchId,
        /// The session.
        session: Session,
    },
    /// Its worker says what it is doing.
    #[serde(rename = "dispatch.progress")]
    Progress {
        /// Which dispatch.
        id: DispatchId,
        /// In its own words.
        text: String,
    },
    /// Its output has another last line. Not every line becomes an event, at most one in ten seconds.
    #[serde(rename = "dispatch.last_line")]
    LastLine {
        /// Which dispatch.
        id: DispatchId,
        /// As a person would read it.
        line: String,
    },
    /// It cost something.
    #[serde(rename = "dispatch.cost")]
    Cost {
        /// Which dispatch.
        id: DispatchId,
        /// How much more.
        usd: Usd,
        /// Tokens used for it, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// That was read off its output.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        metered: bool,
    },
    /// Its worker declared how the work came out.
    #[serde(rename = "dispatch.said")]
    Said {
        /// Which dispatch.
        id: DispatchId,
        /// What it declared.
        said: Said,
    },
    /// It gave a sign of life, by writing something.
    #[serde(rename = "dispatch.heard")]
    Heard {
        /// Which dispatch.
        id: DispatchId,
        /// When.
        heard_at: Timestamp,
    },
    /// It has given no sign of life for too long.
    #[serde(rename = "dispatch.stuck")]
    Stuck {
        /// Which dispatch.
        id: DispatchId,
        /// Since when it is silent.
        since: Timestamp,
    },
    /// The agent for which it was claimed has shown that it knows.
    #[serde(rename = "dispatch.taken_up")]
    TakenUp {
        /// Which dispatch.
        id: DispatchId,
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
            Self::Started { dispatch } | Self::LinedUp { dispatch, .. } => &dispatch.id,
            Self::CalledBack { id }
            | Self::Running { id, .. }
            | Self::Isolated { id, .. }
            | Self::Steps { id, .. }
            | Self::StepDone { id, .. }
            | Self::Checkpoint { id, .. }
            | Self::Session { id, .. }
            | Self::Progress { id, .. }
            | Self::LastLine { id, .. }
            | Self::Cost { id, .. }
            | Self::Said { id, .. }
            | Self::Heard { id, .. }
            | Self::Stuck { id, .. }
            | Self::TakenUp { id }
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
                self.leave_line(&id);
                self.promised = None;
                self.unqueue(&dispatch.context);
                self.hold_slot(&dispatch);
                self.note_attempt(&dispatch, at);
                self.dispatches.insert(id.clone(), dispatch.clone());
                self.claim_began(&dispatch);
            }
            DispatchEvent::LinedUp { dispatch, after } => return self.apply_lined_up(dispatch, after),
            DispatchEvent::CalledBack { .. } => return self.leave_line(&id),
            DispatchEvent::Running { pid, .. } => {
                let Some(dispatch) = self.dispatch_mut(&id) else { return };
                dispatch.running_at = Some(at);
                dispatch.pid = *pid;
                let context = dispatch.context.clone();
                // One that was called off while its dispatch stood in line has closed before.
                if self.context(&context).is_some_and(super::super::context::Context::is_open) {
                    self.close_context(&context, CloseReason::Dispatched, at);
                }
            }
            DispatchEvent::Isolated { worktree, .. } => {
                let was_unmerged = self.is_unmerged(id.bead());
                self.change_dispatch(&id, |dispatch| dispatch.worktree = Some(worktree.clone()));
                self.merging_changed(id.bead(), was_unmerged);
            }
            DispatchEvent::Steps { steps, .. } => {
                self.change_dispatch(&id, |dispatch| dispatch.steps.clone_from(steps));
            }
            DispatchEvent::StepDone { step, .. } => self.hear(&id, at, |dispatch| {
                dispatch.step = Some(step.clone());
                dispatch.got_on_at = Some(at);
                // The next step has said nothing yet.
                (dispatch.progress, dispatch.last_line) = (None, None);
            }),
            DispatchEvent::Checkpoint { note, session, .. } => self.hear(&id, at, |dispatch| {
                dispatch.checkpoint = Some(note.clone());
                dispatch.got_on_at = Some(at);
                if session.is_some() {
                    dispatch.session.clone_from(session);
                }
            }),
            DispatchEvent::Session { session, .. } => {
                self.hear(&id, at, |dispatch| dispatch.session = Some(session.clone()));
            }
            DispatchEvent::Progress { text, .. } => {
                self.hear(&id, at, |dispatch| dispatch.progress = Some(text.clone()));
            }
            DispatchEvent::LastLine { line, .. } => {
                self.hear(&id, at, |dispatch| dispatch.last_line = Some(line.clone()));
            }
            DispatchEvent::Cost { usd, tokens, metered, .. } => {
                let tokens = tokens.unwrap_or(0);
                self.hear(&id, at, |dispatch| {
                    dispatch.cost += *usd;
                    dispatch.tokens = dispatch.tokens.saturating_add(tokens);
                    if *metered {
                        dispatch.metered += *usd;
                        dispatch.metered_tokens = dispatch.metered_tokens.saturating_add(tokens);
                    }
                });
                self.charge(&id, *usd, at);
            }
            DispatchEvent::Said { said, .. } => {
                self.hear(&id, at, |dispatch| dispatch.said = Some(said.clone()));
            }
            DispatchEvent::Heard { heard_at, .. } => self.hear(&id, *heard_at, |_| {}),
            DispatchEvent::Stuck { .. } => self.change_dispatch(&id, |dispatch| dispatch.stuck = true),
            DispatchEvent::TakenUp { .. } => {
                let claim = self.dispatch_mut(&id).and_then(|dispatch| dispatch.claim.as_mut());
                if let Some(claim) = claim {
                    claim.seen = true;
                    let agent = claim.agent.clone();
                    self.refresh_untold(&agent);
                }
            }
            DispatchEvent::StopRequested { reason, .. } => self.change_dispatch(&id, |dispatch| {
                if dispatch.stop.is_none_or(|earlier| reason.replaces(earlier)) {
                    dispatch.stop = Some(*reason);
                }
            }),
            DispatchEvent::Ended { outcome, next, .. } => self.end_dispatch(&id, outcome, *next, at),
            DispatchEvent::CloseOverdue { next, .. } => {
                self.set_verdict(id.bead(), None);
                self.follow(id.bead(), *next);
            }
            DispatchEvent::LateReport { .. } => {}
        }
        self.watch(&id);
        self.touch_dispatch(&id);
        match event {
            // Chatter: it is in the log, and the last of it in the record.
            DispatchEvent::Progress { .. }
            | DispatchEvent::LastLine { .. }
            | DispatchEvent::Steps { .. }
            | DispatchEvent::Heard { .. } => {}
            DispatchEvent::Started { .. }
            | DispatchEvent::LinedUp { .. }
            | DispatchEvent::CalledBack { .. }
            | DispatchEvent::Running { .. }
            | DispatchEvent::Isolated { .. }
            | DispatchEvent::StepDone { .. }
            | DispatchEvent::Checkpoint { .. }
            | DispatchEvent::Session { .. }
            | DispatchEvent::Cost { .. }
            | DispatchEvent::Said { .. }
            | DispatchEvent::Stuck { .. }
            | DispatchEvent::TakenUp { .. }
            | DispatchEvent::StopRequested { .. }
            | DispatchEvent::Ended { .. }
            | DispatchEvent::CloseOverdue { .. }
            | DispatchEvent::LateReport { .. } => self.remember(id.bead()),
        }
    }

    fn change_dispatch(&mut self, id: &DispatchId, change: impl FnOnce(&mut Dispatch)) {
        if let Some(dispatch) = self.dispatch_mut(id) {
            change(dispatch);
        }
    }

    /// A sign of life, and what it says.
    fn hear(&mut self, id: &DispatchId, at: Timestamp, change: impl FnOnce(&mut Dispatch)) {
        self.change_dispatch(id, |dispatch| {
            dispatch.heard_at = Some(dispatch.heard_at.map_or(at, |before| before.max(at)));
            dispatch.stuck = false;
            change(dispatch);
        });
    }

    /// The one end of a dispatch: frees its slot and leaves the bead with what follows.
    fn end_dispatch(&mut self, id: &DispatchId, outcome: &Outcome, next: Next, at: Timestamp) {
        let was_unmerged = self.is_unmerged(id.bead());
        let Some(dispatch) = self.dispatch_mut(id) else { return };
        dispatch.ended = Some(Ended { at, outcome: outcome.clone(), next });
        let dispatch = dispatch.clone();
        self.learn_from(&dispatch);
        self.free_slot(&dispatch);
        if let Some(work) = self.work_mut(id.bead())
            && work.live.as_ref() == Some(id)
        {
            work.live = None;
        }
        self.merging_changed(id.bead(), was_unmerged);
        self.claim_ended(&dispatch, outcome, at);
        self.follow(id.bead(), next);
        self.refresh_context(&dispatch.context);
        self.refresh_hunger(id.bead());
    }

    /// What an end, or a close that did not come, leaves the bead with.
    fn follow(&mut self, bead: &BeadId, next: Next) {
        match next {
            Next::Settled(verdict) => self.set_verdict(bead, Some(verdict)),
            Next::AwaitingMerge => self.set_verdict(bead, Some(Verdict::Done)),
            Next::AwaitingClose { until } => {
                self.set_verdict(bead, Some(Verdict::Done));
                if let Some(work) = self.work_mut(bead) {
                    work.close_by = Some(until);
                }
                if self.beads.contains_key(bead) {
                    self.awaited_closes.insert((until, bead.clone()));
                }
            }
            Next::BackInQueue | Next::Requeued | Next::Finished | Next::GivenBack => {}
        }
    }
}
