//! `status`, and what commands answer: `sling`, `scheduler run`, `wait`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use yard_engine::command::SlingResult;
use yard_engine::money::Usd;
use yard_engine::plan::{PlanReason, Start};
use yard_engine::readiness::Reason;
use yard_engine::{AccountName, BeadId, DispatchId, RigName, State, Timestamp};

use super::alert::{AlertView, alerts};
use super::convoy::{ConvoySummary, convoys};
use super::scheduler::{SchedulerStatus, scheduler_part};

/// The combined picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusView {
    /// The scheduler.
    pub scheduler: SchedulerStatus,
    /// Staged and open convoys.
    pub convoys: Vec<ConvoySummary>,
    /// What runs.
    pub running: Vec<RunningView>,
    /// What was spent, and what may be.
    #[serde(default)]
    pub spending: SpendingView,
    /// Accounts whose service was unavailable.
    #[serde(default)]
    pub resting_accounts: Vec<RestingAccount>,
    /// Beads left with a verdict a person should look at.
    pub problems: Vec<StuckView>,
    /// What a person should know and has not seen yet, oldest first.
    pub alerts: Vec<AlertView>,
    /// Who serves the town.
    pub daemon: DaemonView,
}

/// What was spent, and what may be, in US dollars.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SpendingView {
    /// Today, UTC.
    pub today: Usd,
    /// This month, UTC.
    pub this_month: Usd,
    /// `cost.daily`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily: Option<Usd>,
    /// `cost.monthly`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly: Option<Usd>,
}

/// An account that nobody uses for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestingAccount {
    /// Which.
    pub account: AccountName,
    /// Until when.
    pub until: Timestamp,
}

/// Renders what was spent.
pub fn spending(state: &State) -> SpendingView {
    let (today, this_month) = state.spent_lately();
    let cost = &state.settings().cost;
    SpendingView { today, this_month, daily: cost.daily, monthly: cost.monthly }
}

/// Renders the accounts that rest.
pub fn resting_accounts(state: &State) -> Vec<RestingAccount> {
    let resting = state.cooling_accounts();
    resting.map(|(account, until)| RestingAccount { account: account.clone(), until }).collect()
}

/// A live worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningView {
    /// The bead.
    pub id: BeadId,
    /// Its title.
    pub title: String,
    /// The dispatch.
    pub dispatch_id: DispatchId,
    /// Where.
    pub rig: RigName,
    /// By which executor.
    pub executor: String,
    /// Since when.
    pub started_at: Timestamp,
    /// The last finished step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The step that runs, if it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step: Option<String>,
    /// Its number, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<usize>,
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// What it says it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// What it wrote last, as of a few seconds ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<String>,
    /// What this attempt has cost so far, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// Tokens it has used so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// It was asked to stop.
    pub stopping: bool,
    /// It was asked to give way to this bead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yielding_to: Option<BeadId>,
    /// It has given no sign of life for too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stuck: bool,
}

/// Who serves the town.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonView {
    /// Whether one does, and dispatches.
    pub running: bool,
    /// Its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Where it serves HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// The process that has the town and does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_pid: Option<u32>,
    /// It does so under TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
}

/// What a sling answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlingView {
    /// `direct` or `deferred`.
    pub mode: String,
    /// One per bead.
    pub results: Vec<SlingResult>,
}

/// What a pass answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// What started.
    pub dispatched: Vec<Start>,
    /// How many ready ones wait.
    pub skipped: u64,
    /// What could not be started.
    pub failed: Vec<FailedStart>,
    /// What limited the pass.
    pub reason: PlanReason,
    /// Nothing was started.
    pub dry_run: bool,
}

/// A start that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedStart {
    /// The bead.
    pub id: BeadId,
    /// What went wrong.
    pub error: String,
}

/// What a wait answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WaitView {
    /// Closed.
    pub done: Vec<BeadId>,
    /// Failed, cancelled or circuit-broken.
    pub failed: Vec<BeadId>,
    /// Cannot progress.
    pub stuck: Vec<StuckView>,
    /// How many are done, when the list was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_count: Option<usize>,
    /// The time was up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
}

/// How many beads ended, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcomes {
    /// Closed.
    pub closed: usize,
    /// Left with a verdict.
    pub failed: usize,
}

/// A bead that cannot progress, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckView {
    /// The bead.
    pub id: BeadId,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<yard_engine::Standing>,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// Renders what runs, by id.
pub fn running(state: &State) -> Vec<RunningView> {
    let view = |d: &yard_engine::dispatch::Dispatch| RunningView {
        id: d.id.bead().clone(),
        title: state.bead(d.id.bead()).map(|e| e.bead.title.clone()).unwrap_or_default(),
        dispatch_id: d.id.clone(),
        rig: d.rig.clone(),
        executor: d.executor.clone(),
        started_at: d.running_at.unwrap_or(d.started_at),
        step: d.step.clone(),
        current_step: d.running_step().map(|index| d.steps[index].clone()),
        step_number: d.running_step().map(|index| index + 1),
        steps: d.running_step().map(|_| d.steps.len()),
        progress: d.progress.clone(),
        last_line: d.last_line.clone(),
        cost: Some(d.cost).filter(|cost| !cost.is_zero()),
        tokens: Some(d.tokens).filter(|tokens| *tokens > 0),
        pid: d.pid,
        stopping: d.stop.is_some(),
        yielding_to: state.preemption().filter(|cycle| cycle.victim == d.id).map(|cycle| cycle.bead.clone()),
        stuck: d.stuck,
    };
    state.live_dispatches().map(view).collect()
}

/// Renders the combined picture; `transient` are alerts of the moment, which the log knows nothing of.
pub fn status(state: &State, summary: bool, transient: Vec<AlertView>, daemon: DaemonView) -> StatusView {
    // What only waits for its turn to be merged needs nobody.
    let needs_person =
        |id: &&BeadId| state.merge_of(id).is_none_or(|merge| merge.is_merged() || merge.problem().is_some());
    let conflicts = state.merges().filter(|merge| merge.problem().is_some()).map(|merge| &merge.bead);
    let settled = state.settled().map(|(id, _)| id).chain(conflicts).filter(needs_person);
    let problems = settled.collect::<BTreeSet<_>>().into_iter().map(|id| StuckView {
        id: id.clone(),
        state: state.standing(id),
        reasons: state.reasons(id),
    });
    StatusView {
        scheduler: scheduler_part(state, summary),
        convoys: convoys(state, false).convoys,
        running: running(state),
        spending: spending(state),
        resting_accounts: resting_accounts(state),
        problems: problems.collect(),
        alerts: alerts(state, false, transient).alerts,
        daemon,
    }
}
