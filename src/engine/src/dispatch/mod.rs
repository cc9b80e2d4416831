//! Dispatches: attempts to run a bead, each with an id of its own that serves as a fencing token. A dispatch has
//! exactly one outcome; a report that carries an ended id changes nothing.

mod event;
mod slots;

pub use event::DispatchEvent;
use serde::{Deserialize, Serialize};

use crate::agent::Order;
use crate::bead::Verdict;
use crate::capacity::Limit;
pub use crate::money::Usd;
use crate::queue::Lane;
use crate::session::Session;
use crate::state::State;
pub use crate::stop::{Recovery, STOP_REASONS, StopReason};
use crate::stored::is_default;
use crate::task::TaskPlace;
use crate::worktree::Worktree;
use crate::{AccountName, AgentName, BeadId, ContextId, DispatchId, RigName, Timestamp};

/// The executor that runs workers as plain processes of this machine.
pub const LOCAL_EXECUTOR: &str = "local";
/// The executor that gives each worker a tmux session, which one can attach to.
pub const TMUX_EXECUTOR: &str = "tmux";
/// The executor that has workers run as jobs of a cluster.
pub const SLURM_EXECUTOR: &str = "slurm";
/// The executors that workers can be given to.
pub const EXECUTORS: [&str; 3] = [LOCAL_EXECUTOR, TMUX_EXECUTOR, SLURM_EXECUTOR];

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
    /// The task of the HTTP API that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskPlace>,
    /// The agent that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
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
    /// It was decided ahead of time, and given to a worker then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lined_up: bool,
    /// The last finished step, be it one of an earlier attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// All steps it has, in order, if it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// What the worker noted last, for whoever goes on after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// The agent's session, by which its tool can go on where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The worktree it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<Worktree>>,
    /// What the worker says it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// The last line of the running step's output that was passed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<String>,
    /// What it has cost so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cost: Usd,
    /// Tokens it has used so far, as far as it is known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tokens: u64,
    /// So much of the cost was read off its output.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metered: Usd,
    /// So many of the tokens were read off its output.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metered_tokens: u64,
    /// What the worker declared about its work, which counts more than its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
    /// When it last gave a sign of life other than its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// It has given none for too long, and a person was told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stuck: bool,
    /// When it last finished a step or noted something: what it did until then is not lost if it is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got_on_at: Option<Timestamp>,
    /// Since when it is asked to give way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yield_asked: Option<Timestamp>,
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

    /// The limits it counts against.
    pub(crate) fn limits(&self) -> impl Iterator<Item = Limit> + use<> {
        let on_cluster = self.executor == SLURM_EXECUTOR;
        Limit::of(&self.rig, self.account.as_ref(), self.task.as_ref(), self.claim.is_some(), on_cluster)
    }

    /// Whether it is an action over HTTP: without a worker, and over at once when it is called off.
    pub fn is_action(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.takes_worker)
    }

    /// Whether a worker of ours runs it, rather than an agent or a server elsewhere.
    pub fn has_worker(&self) -> bool {
        self.claim.is_none() && !self.is_action()
    }

    /// Whether somebody else decides when it begins, so that its start may take any time.
    pub fn starts_elsewhere(&self) -> bool {
        self.executor == SLURM_EXECUTOR
    }

    /// Index of the step that runs, if it has several and has begun.
    pub fn running_step(&self) -> Option<usize> {
        if self.steps.is_empty() || self.running_at.is_none() {
            return None;
        }
        let finished = self.step.as_ref().and_then(|id| self.steps.iter().position(|step| step == id));
        // After the last one nothing could run: then everything is done again.
        Some(finished.map(|index| index + 1).filter(|index| *index < self.steps.len()).unwrap_or(0))
    }

    /// What it is doing: what its worker says counts more than what it writes.
    pub fn doing(&self) -> Option<&str> {
        self.progress.as_deref().or(self.last_line.as_deref())
    }

    /// How it ended, in words.
    pub(crate) fn words_about_end(&self) -> String {
        match self.ended.as_ref().map(|ended| &ended.outcome) {
            None => "goes on".to_owned(),
            Some(Outcome::Succeeded) => "was done".to_owned(),
            Some(Outcome::Failed { message, .. }) => message.clone(),
            Some(Outcome::StartFailed { error }) => error.clone(),
            Some(Outcome::Stopped { reason }) => reason.words().to_owned(),
            Some(Outcome::Lost { why } | Outcome::NeverRan { why }) => why.clone(),
        }
    }

    /// Whether its worker should come to an end as soon as it can.
    pub fn should_yield(&self) -> bool {
        self.yield_asked.is_some() || self.stop.is_some()
    }
}

/// An agent's hold on a bead, for as long as the lease is renewed. The dispatch's id is its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Whose it is.
    pub agent: AgentName,
    /// The order it came by, if it came by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// The agent has shown that it knows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seen: bool,
}

impl Claim {
    /// The order that was claimed on the agent's behalf, as long as it has not shown that it knows.
    pub(crate) fn unseen(&self) -> Option<&Order> {
        self.order.as_ref().filter(|order| order.auto_claim && !self.seen)
    }
}

/// What a worker declares about its own work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Said {
    /// It is done, whatever the exit code.
    Done {
        /// Why the bead closes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It failed, whatever the exit code.
    Failed {
        /// In words.
        message: String,
        /// What class of failure it is.
        category: Category,
    },
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
    /// Nobody but the agent that let it go has asked for it: the bead is as it was.
    GivenBack,
    /// The worker is done; its branch is to be merged, and closes the bead.
    AwaitingMerge,
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

impl State {
    /// The dispatches that hold a slot, by id.
    pub fn live_dispatches(&self) -> impl Iterator<Item = &Dispatch> {
        self.live.iter().filter_map(|id| self.dispatch(id))
    }

    /// Those of them that workers of ours run.
    pub fn live_workers(&self) -> impl Iterator<Item = &Dispatch> {
        self.live_dispatches().filter(|dispatch| dispatch.has_worker())
    }

    /// How many dispatches hold a slot.
    pub fn live_count(&self) -> usize {
        self.live.len()
    }

    /// What the last dispatch of a bead left behind, in words.
    pub(crate) fn last_words_about(&self, bead: &BeadId) -> Option<String> {
        let ended = self.dispatches_of(bead).rfind(|dispatch| dispatch.ended.is_some())?;
        Some(match ended.ended.as_ref()?.outcome {
            Outcome::Succeeded => "its worker finished, but nobody closed it".to_owned(),
            _ => ended.words_about_end(),
        })
    }

    /// Why we ended the last dispatch of a bead, if we did.
    pub(crate) fn last_stop_of(&self, bead: &BeadId) -> Option<StopReason> {
        let ended = self.dispatches_of(bead).filter_map(|dispatch| dispatch.ended.as_ref()).next_back()?;
        match ended.outcome {
            Outcome::Stopped { reason } => Some(reason),
            Outcome::Succeeded
            | Outcome::Failed { .. }
            | Outcome::StartFailed { .. }
            | Outcome::Lost { .. }
            | Outcome::NeverRan { .. } => None,
        }
    }
}
