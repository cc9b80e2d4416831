//! Sling contexts: one request to run one bead. An open context means scheduled; it closes exactly once, with a
//! reason. A requeue opens a successor that keeps the fields, the time enqueued and the counters.

mod stored;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::Order;
use crate::bead::Verdict;
use crate::capacity::Limit;
use crate::money::Usd;
use crate::seldom::Seldom;
use crate::session::Session;
use crate::settings::Merge;
use crate::state::State;
use crate::stored::is_default;
use crate::task::TaskPlace;
use crate::used::Used;
use crate::worktree::Worktree;
use crate::{
    AccountName, AgentName, BeadId, ContextId, ConvoyId, DispatchId, FormulaName, Millis, RigName, Timestamp,
};

/// The record of a sling, as JSON with `version: 1`; the field names are those users know. It also has what stands in
/// [`RequestExtras`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "stored::StoredFields")]
pub struct ContextFields {
    /// Schema version, 1.
    pub version: u32,
    /// The bead to run.
    pub work_bead_id: BeadId,
    /// Where it runs.
    pub target_rig: RigName,
    /// The formula to apply; none for a bead with its own command and for `--hook-raw-bead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<FormulaName>,
    /// When it was asked for.
    pub enqueued_at: Timestamp,
    /// The convoy that tracks the bead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convoy: Option<ConvoyId>,
    /// Keep the result on its branch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_merge: bool,
    /// Run without the default formula.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hook_raw_bead: bool,
    /// The caller looks after the convoy.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub owned: bool,
    /// Starts that failed in a row.
    pub dispatch_failures: u32,
    /// What few of them say.
    #[serde(flatten)]
    pub extras: Seldom<RequestExtras>,
}

/// What few slings say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RequestExtras {
    /// Instructions in plain language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// `key=value` lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vars: Option<String>,
    /// Merge strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// Base branch of the worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// The account whose cap counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountName>,
    /// Agent override.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Execution mode, `ralph` for a fresh session per step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What the last one said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
}

/// One request to run one bead. It also has what stands in [`ContextExtras`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "stored::StoredContext")]
pub struct Context {
    /// Its id.
    pub id: ContextId,
    /// What was asked for.
    pub fields: ContextFields,
    /// 1 to 100, higher first.
    pub priority: u8,
    /// Position of the first context of this request in the log; breaks ties in order.
    pub order: u64,
    /// Held back by a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Taken by force although somebody else is on it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// Its start does not wake the rig.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_boot: bool,
    /// Attempts that crashed so far.
    pub crashes: u32,
    /// Attempts that found their service unavailable so far.
    pub unavailables: u32,
    /// Set once, when it closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<ContextClosed>,
    /// What few of them have.
    #[serde(flatten)]
    pub extras: Seldom<ContextExtras>,
}

/// What few requests have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ContextExtras {
    /// Not before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Not started by then: expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Short rest after a failed start; a manual pass ignores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_until: Option<Timestamp>,
    /// By whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// Which executor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// It runs a task of the HTTP API, with its own lane, limits and number of attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskPlace>,
    /// It is given to an agent instead of being started here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assign: Option<Assign>,
    /// The order by which an agent has it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<Order>,
    /// Agents that had it and let it go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<Passed>,
    /// How long earlier attempts ran.
    #[serde(skip_serializing_if = "is_default")]
    pub active: Millis,
    /// What all attempts so far have cost.
    #[serde(skip_serializing_if = "is_default")]
    pub cost: Usd,
    /// Preemptions in a row that cost it all it had done since it started.
    #[serde(skip_serializing_if = "is_default")]
    pub pushed_out: u32,
    /// It was pushed out, and goes ahead of everything else from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead_from: Option<Timestamp>,
    /// Where the next attempt goes on.
    #[serde(skip_serializing_if = "is_default")]
    pub resume: Resume,
    /// The context this one succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<ContextId>,
}

/// How a request is given to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Assign {
    /// To this one; otherwise to whoever fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<AgentName>,
    /// An agent took the bead of its own accord: nobody else has asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// An agent that had an order or a claim and let it go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Which one.
    pub agent: AgentName,
    /// Before this time it is not offered to that one again.
    pub until: Timestamp,
}

impl Context {
    /// Whether it is still scheduled.
    pub fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// The limits that its run will count against, on a cluster or here.
    pub(crate) fn limits(&self, on_cluster: bool) -> impl Iterator<Item = Limit> + use<> {
        Limit::of(
            &self.fields.target_rig,
            self.fields.account.as_ref(),
            self.task.as_ref(),
            self.assign.is_some(),
            on_cluster,
        )
    }

    /// The bead it is for.
    pub fn bead(&self) -> &BeadId {
        &self.fields.work_bead_id
    }

    /// The moments at which something changes for it while it waits.
    pub(crate) fn turning_points(&self) -> impl Iterator<Item = Timestamp> + use<> {
        let given_back = self.passed.iter().map(|passed| passed.until).collect::<Vec<_>>();
        [self.not_before, self.rest_until, self.ahead_from].into_iter().flatten().chain(given_back)
    }

    /// Until when it is not offered to an agent that let it go, if that one did.
    pub(crate) fn passed_until(&self, agent: &AgentName) -> Option<Timestamp> {
        self.passed.iter().find(|passed| passed.agent == *agent).map(|passed| passed.until)
    }

    /// Whether it may be offered to an agent.
    pub(crate) fn may_be_offered(&self, agent: &AgentName, now: Timestamp) -> bool {
        self.passed_until(agent).is_none_or(|until| until <= now)
    }

    /// Whether nobody but the agent that took it has asked for it.
    pub fn is_own(&self) -> bool {
        self.assign.as_ref().is_some_and(|assign| assign.own)
    }

    /// Forgets what earlier attempts used up, as for a request that is made anew.
    pub(crate) fn renew_budgets(&mut self) {
        self.fields.dispatch_failures = 0;
        (self.crashes, self.unavailables) = (0, 0);
        (self.active, self.cost) = (Millis(0), Usd::ZERO);
        self.not_before = None;
    }
}

/// Where an attempt goes on after an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Resume {
    /// After this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// What the last checkpoint noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The agent's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The worktree in which the work lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<Worktree>>,
}

impl Resume {
    /// Whether nothing is known of an earlier attempt.
    pub fn is_from_the_start(&self) -> bool {
        *self == Self::default()
    }
}

/// When and why a context closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextClosed {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: CloseReason,
}

/// Why a context closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloseReason {
    /// Its first program runs.
    Dispatched,
    /// A person removed it.
    Cleared,
    /// It failed to start too often.
    CircuitBroken,
    /// The work was called off.
    Cancelled,
    /// Its deadline passed.
    Expired,
    /// The bead was closed, vanished or was taken meanwhile.
    StaleWorkBead,
    /// The record cannot be used.
    InvalidContext,
}

impl CloseReason {
    /// The word in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dispatched => "dispatched",
            Self::Cleared => "cleared",
            Self::CircuitBroken => "circuit-broken",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::StaleWorkBead => "stale-work-bead",
            Self::InvalidContext => "invalid-context",
        }
    }

    /// What the bead is left with.
    fn verdict(self) -> Option<Verdict> {
        match self {
            Self::CircuitBroken => Some(Verdict::CircuitBroken),
            Self::Cancelled => Some(Verdict::Cancelled),
            Self::Expired | Self::InvalidContext => Some(Verdict::Failed),
            Self::Dispatched | Self::Cleared | Self::StaleWorkBead => None,
        }
    }
}

/// What can happen to a context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ContextEvent {
    /// A bead was scheduled.
    #[serde(rename = "context.opened")]
    Opened {
        /// The record.
        context: Arc<Context>,
        /// Who did it.
        actor: String,
    },
    /// A start failed; the context stays open.
    #[serde(rename = "context.start_failed")]
    StartFailed {
        /// Which context.
        id: ContextId,
        /// The dispatch that failed.
        dispatch: DispatchId,
        /// Failures so far.
        failures: u32,
        /// What went wrong.
        error: String,
        /// When the daemon may try again.
        rest_until: Timestamp,
    },
    /// It could not be handed over; it rests a moment, and nothing is counted.
    #[serde(rename = "context.rested")]
    Rested {
        /// Which context.
        id: ContextId,
        /// When the daemon may try again.
        until: Timestamp,
        /// What stood in the way.
        why: String,
    },
    /// Its rest after a failed start is over early, or its counters were reset by a person.
    #[serde(rename = "context.rearmed")]
    Rearmed {
        /// Which context.
        id: ContextId,
        /// Whether the failure counter starts again.
        fresh: bool,
        /// Who did it.
        actor: String,
    },
    /// A person holds it back, or lets it go.
    #[serde(rename = "context.held")]
    Held {
        /// Which context.
        id: ContextId,
        /// Held or released.
        held: bool,
        /// Who did it.
        actor: String,
    },
    /// Its priority changed.
    #[serde(rename = "context.prioritised")]
    Prioritised {
        /// Which context.
        id: ContextId,
        /// The new priority.
        priority: u8,
        /// Who did it.
        actor: String,
    },
    /// A retry that had renewed its budgets was taken back, or done again.
    #[serde(rename = "context.budgets_put_back")]
    BudgetsPutBack {
        /// Which context.
        id: ContextId,
        /// What it has used up.
        used: Used,
        /// Who did it.
        actor: String,
    },
    /// It is no longer scheduled.
    #[serde(rename = "context.closed")]
    Closed {
        /// Which context.
        id: ContextId,
        /// The bead it was for.
        bead: BeadId,
        /// Why.
        reason: CloseReason,
        /// More about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// How its bead stood before, if what put it on the schedule was taken back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken_back: Option<Before>,
        /// Who did it.
        actor: String,
    },
}

/// How a bead stood before it was put on the schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// What became of its last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Its last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_context: Option<ContextId>,
}

impl State {
    pub(crate) fn apply_context(&mut self, event: &ContextEvent, at: Timestamp) {
        match event {
            ContextEvent::Opened { context, .. } => {
                let id = context.id.clone();
                let bead = context.bead().clone();
                if let Some(work) = self.work_mut(&bead) {
                    work.context = Some(id.clone());
                }
                self.set_verdict(&bead, None);
                self.contexts.insert(id.clone(), Arc::clone(context));
                if self.open_contexts.insert(id.clone()) {
                    self.count_priority(context.priority, true);
                }
                self.touch_context(&id);
                self.remember(&bead);
                self.refresh_context(&id);
            }
            ContextEvent::StartFailed { id, failures, error, rest_until, .. } => {
                self.change_context(id, |context| {
                    context.fields.dispatch_failures = *failures;
                    context.fields.last_failure = Some(error.clone());
                    context.rest_until = Some(*rest_until);
                });
            }
            ContextEvent::Rested { id, until, .. } => {
                self.change_context(id, |context| context.rest_until = Some(*until));
            }
            ContextEvent::Rearmed { id, fresh, .. } => {
                self.change_context(id, |context| {
                    context.rest_until = None;
                    if *fresh {
                        context.renew_budgets();
                    }
                });
            }
            ContextEvent::Held { id, held, actor } => {
                self.change_context(id, |context| {
                    context.held = *held;
                    context.held_by = held.then(|| actor.clone());
                });
            }
            ContextEvent::Prioritised { id, priority, .. } => {
                self.unqueue(id);
                let before = self.contexts.get(id).filter(|context| context.is_open()).map(|c| c.priority);
                if let Some(before) = before {
                    self.count_priority(before, false);
                    self.count_priority(*priority, true);
                }
                self.change_context(id, |context| context.priority = *priority);
            }
            ContextEvent::BudgetsPutBack { id, used, .. } => {
                self.change_context(id, |context| context.set_used(used));
            }
            ContextEvent::Closed { id, bead, reason, taken_back, .. } => {
                self.close_context(id, *reason, at);
                if let Some(before) = taken_back {
                    if let Some(work) = self.work_mut(bead) {
                        work.last_context.clone_from(&before.last_context);
                    }
                    self.set_verdict(bead, before.verdict);
                }
            }
        }
    }

    /// The one way a context closes.
    pub(crate) fn close_context(&mut self, id: &ContextId, reason: CloseReason, at: Timestamp) {
        self.unqueue(id);
        self.unpromise(id);
        self.order_is_over(id, reason, at);
        let Some(context) = self.context_mut(id) else { return };
        context.closed = Some(ContextClosed { at, reason });
        let (bead, priority) = (context.bead().clone(), context.priority);
        if self.open_contexts.remove(id) {
            self.count_priority(priority, false);
        }
        if let Some(work) = self.work_mut(&bead) {
            if work.context.as_ref() == Some(id) {
                work.context = None;
            }
            work.last_context = Some(id.clone());
        }
        if let Some(verdict) = reason.verdict() {
            self.set_verdict(&bead, Some(verdict));
        }
        self.refresh_hunger(&bead);
        self.touch_context(id);
        self.remember(&bead);
    }

    pub(crate) fn change_context(&mut self, id: &ContextId, change: impl FnOnce(&mut Context)) {
        self.unqueue(id);
        let Some(context) = self.context_mut(id) else { return };
        change(context);
        let bead = context.bead().clone();
        self.touch_context(id);
        self.remember(&bead);
        self.refresh_context(id);
    }

    /// The open contexts, oldest id first.
    pub fn open_contexts(&self) -> impl Iterator<Item = &Context> {
        self.open_contexts.iter().filter_map(|id| self.contexts.get(id)).map(|context| &**context)
    }

    fn count_priority(&mut self, priority: u8, one_more: bool) {
        let count = self.open_priorities.entry(priority).or_default();
        *count = if one_more { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.open_priorities.remove(&priority);
        }
    }

    /// How many open contexts there are of each priority, counted.
    pub(crate) fn derive_open_priorities(&self) -> BTreeMap<u8, u32> {
        let mut counts = BTreeMap::new();
        for context in self.open_contexts() {
            *counts.entry(context.priority).or_default() += 1;
        }
        counts
    }

    /// How many beads are scheduled.
    pub fn open_context_count(&self) -> usize {
        self.open_contexts.len()
    }
}
