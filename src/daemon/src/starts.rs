//! Answers that wait for starts: a command that starts workers returns when each start has run or failed.

use std::collections::BTreeSet;

use serde::Serialize;
use yard_client::Reply;
use yard_client::views::{self, FailedStart, RunView, SlingView, StageDocument};
use yard_engine::command::{SlingAction, SlingResult};
use yard_engine::dispatch::{DispatchEvent, Outcome};
use yard_engine::plan::{PlanReason, Start};
use yard_engine::stage::StagePlan;
use yard_engine::{ContextId, ConvoyId, DispatchId, Event, Recorded, State};

use crate::input::ReplyTo;

/// What a command will answer once its starts are known.
#[derive(Debug)]
pub(crate) enum Promise {
    /// `sling`.
    Slung { direct: bool, results: Vec<SlingResult> },
    /// `add`.
    Added { direct: bool, results: Vec<SlingResult> },
    /// `convoy stage`.
    Staged { direct: bool, staged: Staged },
    /// `convoy launch`.
    Launched { direct: bool, convoy_id: ConvoyId, results: Vec<SlingResult> },
    /// `scheduler run`.
    Passed { starts: Vec<Start>, whole: u64, skipped: u64, reason: PlanReason, dry_run: bool },
}

/// What a plan of a convoy came to.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) convoy_id: Option<ConvoyId>,
    pub(crate) restaged: bool,
    pub(crate) plan: Box<StagePlan>,
    /// What became of the first wave, if it was launched at once.
    pub(crate) launched: Option<Vec<SlingResult>>,
}

#[derive(Serialize)]
struct AddedView<'a> {
    mode: &'a str,
    results: &'a [SlingResult],
}

/// One answer that waits.
#[derive(Debug)]
struct Waiting {
    reply_to: ReplyTo,
    promise: Promise,
    starting: BTreeSet<DispatchId>,
    notices: Vec<String>,
}

/// All answers that wait for starts.
#[derive(Debug, Default)]
pub(crate) struct PendingStarts(Vec<Waiting>);

impl PendingStarts {
    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether somebody waits for this dispatch to start.
    pub(crate) fn awaits(&self, id: &DispatchId) -> bool {
        self.0.iter().any(|w| w.starting.contains(id))
    }

    /// Answers now if nothing of it is starting, otherwise when that is over.
    pub(crate) fn promise(
        &mut self,
        state: &State,
        reply_to: ReplyTo,
        promise: Promise,
        notices: Vec<String>,
    ) {
        let starting = promise.dispatches().into_iter().filter(|id| is_starting(state, id)).collect();
        let waiting = Waiting { reply_to, promise, starting, notices };
        if waiting.starting.is_empty() {
            waiting.answer(state);
        } else {
            self.0.push(waiting);
        }
    }

    /// Looks at what became durable: answers whose starts have all run or failed go out.
    pub(crate) fn notice(&mut self, state: &State, events: &[Recorded]) {
        if self.0.is_empty() {
            return;
        }
        for recorded in events {
            if let Event::Dispatch(DispatchEvent::Running { id, .. } | DispatchEvent::Ended { id, .. }) =
                &recorded.event
            {
                for waiting in &mut self.0 {
                    waiting.starting.remove(id);
                }
            }
        }
        let (ready, rest) = std::mem::take(&mut self.0).into_iter().partition(|w| w.starting.is_empty());
        self.0 = rest;
        let ready: Vec<Waiting> = ready;
        for waiting in ready {
            waiting.answer(state);
        }
    }
}

/// Whether a start is under way that is worth waiting for: a cluster may take hours for one.
fn is_starting(state: &State, id: &DispatchId) -> bool {
    state.dispatch(id).is_some_and(|d| d.is_live() && d.running_at.is_none() && !d.starts_elsewhere())
}

fn start_error(state: &State, id: &DispatchId) -> Option<String> {
    match &state.dispatch(id)?.ended.as_ref()?.outcome {
        Outcome::StartFailed { error } => Some(error.clone()),
        Outcome::NeverRan { why } => Some(why.clone()),
        Outcome::Succeeded | Outcome::Failed { .. } | Outcome::Stopped { .. } | Outcome::Lost { .. } => None,
    }
}

impl Promise {
    /// The results of beads that were asked for, and whether work starts at once.
    fn results(&self) -> Option<(bool, &[SlingResult])> {
        match self {
            Self::Slung { direct, results }
            | Self::Added { direct, results }
            | Self::Launched { direct, results, .. } => Some((*direct, results)),
            Self::Staged { direct, staged } => staged.launched.as_deref().map(|results| (*direct, results)),
            Self::Passed { .. } => None,
        }
    }

    fn results_mut(&mut self) -> Option<(bool, &mut Vec<SlingResult>)> {
        match self {
            Self::Slung { direct, results }
            | Self::Added { direct, results }
            | Self::Launched { direct, results, .. } => Some((*direct, results)),
            Self::Staged { direct, staged } => staged.launched.as_mut().map(|results| (*direct, results)),
            Self::Passed { .. } => None,
        }
    }

    /// In direct mode, the contexts that a command without a daemon is to start: those of a sling or an add.
    pub(crate) fn starts_at_once(&self) -> Option<BTreeSet<ContextId>> {
        match self {
            Self::Slung { direct: true, results } | Self::Added { direct: true, results } => {
                Some(results.iter().filter_map(|r| r.context_id.clone()).collect())
            }
            Self::Slung { .. }
            | Self::Added { .. }
            | Self::Staged { .. }
            | Self::Launched { .. }
            | Self::Passed { .. } => None,
        }
    }

    /// In direct mode, the dispatches that the results stand for now.
    pub(crate) fn name_dispatches(&mut self, state: &State) {
        let Some((true, results)) = self.results_mut() else { return };
        for result in results.iter_mut().filter(|r| r.action == SlingAction::Scheduled) {
            // It may have ended already: its context tells which dispatch it was.
            let made = result.id.parse().ok().and_then(|bead| {
                let mut dispatches = state.dispatches_of(&bead);
                dispatches.find(|d| Some(&d.context) == result.context_id.as_ref()).map(|d| d.id.clone())
            });
            if let Some(made) = made {
                result.action = SlingAction::Dispatched;
                result.dispatch_id = Some(made);
            }
        }
    }

    /// In direct mode, the contexts of a sling that are ready but have not started; none for other promises.
    pub(crate) fn put_off(&self, state: &State) -> Option<BTreeSet<ContextId>> {
        match self {
            Self::Slung { direct, results } | Self::Added { direct, results } => {
                let waiting = results.iter().filter(|r| *direct && r.action == SlingAction::Scheduled);
                let contexts = waiting.filter_map(|r| r.context_id.clone());
                Some(contexts.filter(|id| state.is_ready(id)).collect())
            }
            Self::Staged { .. } | Self::Launched { .. } => Some(BTreeSet::new()),
            Self::Passed { .. } => None,
        }
    }

    /// How many starts of a pass a spawn delay has put off.
    pub(crate) fn unstarted(&self) -> u64 {
        match self {
            Self::Passed { starts, whole, .. } => whole.saturating_sub(starts.len() as u64),
            Self::Slung { .. } | Self::Added { .. } | Self::Staged { .. } | Self::Launched { .. } => 0,
        }
    }

    /// More of a stretched pass has started; what is given up is skipped after all.
    pub(crate) fn went_on(&mut self, more: Vec<Start>, given_up: u64) {
        if let Self::Passed { starts, skipped, .. } = self {
            *skipped += given_up;
            starts.extend(more);
        }
    }

    /// How many beads stand in the queue because of this command.
    pub(crate) fn left_waiting(&self) -> usize {
        if let Self::Passed { skipped, dry_run, .. } = self {
            return if *dry_run { 0 } else { usize::try_from(*skipped).unwrap_or(usize::MAX) };
        }
        // A dry run names no context.
        let waits = |r: &&SlingResult| r.action == SlingAction::Scheduled && r.context_id.is_some();
        self.results().map_or(0, |(_, results)| results.iter().filter(waits).count())
    }

    fn dispatches(&self) -> Vec<DispatchId> {
        if let Self::Passed { starts, .. } = self {
            return starts.iter().map(|s| s.dispatch_id.clone()).collect();
        }
        let results = self.results().map(|(_, results)| results).unwrap_or_default();
        let new = results.iter().filter(|r| r.action == SlingAction::Dispatched);
        new.filter_map(|r| r.dispatch_id.clone()).collect()
    }
}

impl Waiting {
    fn answer(self, state: &State) {
        let reply = match self.promise {
            Promise::Slung { direct, results } => {
                Reply::document(&SlingView { mode: mode(direct).to_owned(), results: settle(state, results) })
            }
            Promise::Added { direct, results } => {
                let results = settle(state, results);
                Reply::document(&AddedView { mode: mode(direct), results: &results })
            }
            Promise::Staged { staged, .. } => {
                let Staged { convoy_id, restaged, plan, launched } = staged;
                let wave1 = launched.map(|results| settle(state, results));
                let (convoy_id, wave1) = (convoy_id.as_ref(), wave1.as_deref());
                let document = StageDocument { state, convoy_id, restaged, plan: &plan, wave1 };
                Reply::written(document.write())
            }
            Promise::Launched { convoy_id, results, .. } => {
                Reply::document(&views::launched(state, convoy_id, settle(state, results)))
            }
            Promise::Passed { starts, skipped, reason, dry_run, .. } => {
                let error = |s: &Start| start_error(state, &s.dispatch_id);
                let failed =
                    starts.iter().filter_map(|s| Some(FailedStart { id: s.id.clone(), error: error(s)? }));
                let failed: Vec<FailedStart> = failed.collect();
                let dispatched = starts.iter().filter(|s| dry_run || error(s).is_none()).cloned().collect();
                Reply::document(&RunView { dispatched, skipped, failed, reason, dry_run })
            }
        };
        let reply = match reply {
            Reply::Ok { document, .. } => Reply::Ok { document, notices: self.notices },
            other => other,
        };
        self.reply_to.send(reply);
    }
}

fn mode(direct: bool) -> &'static str {
    if direct { "direct" } else { "deferred" }
}

/// A start that failed leaves its bead on the schedule, and the result says why.
fn settle(state: &State, mut results: Vec<SlingResult>) -> Vec<SlingResult> {
    for result in &mut results {
        let error = result.dispatch_id.as_ref().and_then(|id| start_error(state, id));
        if let (SlingAction::Dispatched, Some(error)) = (result.action, error) {
            result.action = SlingAction::Scheduled;
            result.code = Some("start-failed".to_owned());
            result.message = Some(error);
        }
    }
    results
}
