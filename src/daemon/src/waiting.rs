//! `wait`: answers when beads have ended, or when nothing can progress any more.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use yard_client::Reply;
use yard_client::views::{StuckView, WaitView};
use yard_engine::bead::Verdict;
use yard_engine::context::ContextEvent;
use yard_engine::{BeadId, Event, Recorded, Standing, State};

use crate::input::ReplyTo;

/// How often it is found out whether what one waits for can still end.
const BETWEEN_WALKS: Duration = Duration::from_secs(1);

/// One client that waits.
#[derive(Debug)]
struct Waiter {
    reply_to: ReplyTo,
    /// Everything it asked for.
    wanted: BTreeSet<BeadId>,
    /// What of it has not ended.
    pending: BTreeSet<BeadId>,
    all: bool,
    summary: bool,
    until: Option<Instant>,
    /// When to find out again whether it can still end.
    next_walk: Instant,
}

/// What one waits for.
#[derive(Debug)]
pub(crate) struct WaitFor {
    pub(crate) ids: BTreeSet<BeadId>,
    pub(crate) all: bool,
    pub(crate) summary: bool,
    pub(crate) until: Option<Instant>,
}

/// Whether what waits can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// By itself.
    GoesOn,
    /// Only if somebody sees to it.
    StandsStill,
    /// Nobody can tell: the journal takes no writes, and what has ended meanwhile is not in it.
    Unclear,
}

/// Every client that waits.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Vec<Waiter>);

impl Waiters {
    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the first one's time is up.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.0.iter().filter_map(|w| w.until).min()
    }

    /// Adds a client, which may be answered at the next look.
    pub(crate) fn add(&mut self, state: &State, now: Instant, reply_to: ReplyTo, wait: WaitFor) {
        let mut wanted = wait.ids;
        if wait.all {
            wanted.extend(state.open_contexts().map(|c| c.bead().clone()));
            wanted.extend(state.live_dispatches().map(|d| d.id.bead().clone()));
            wanted.extend(state.settled().map(|(id, _)| id.clone()));
        }
        let pending = wanted.clone();
        let WaitFor { all, summary, until, .. } = wait;
        self.0.push(Waiter { reply_to, wanted, pending, all, summary, until, next_walk: now });
    }

    /// Takes note of new work, for those who wait for everything.
    pub(crate) fn notice(&mut self, events: &[Recorded]) {
        if !self.0.iter().any(|w| w.all) {
            return;
        }
        for recorded in events {
            if let Event::Context(ContextEvent::Opened { context, .. }) = &recorded.event {
                for waiter in self.0.iter_mut().filter(|w| w.all) {
                    waiter.wanted.insert(context.bead().clone());
                    waiter.pending.insert(context.bead().clone());
                }
            }
        }
    }

    /// Answers whoever need not wait any longer.
    pub(crate) fn look(&mut self, state: &State, now: Instant, outlook: Outlook) {
        let mut left = Vec::new();
        for mut waiter in std::mem::take(&mut self.0) {
            if waiter.reply_to.is_gone() {
                continue;
            }
            let timed_out = waiter.until.is_some_and(|t| t <= now);
            if waiter.is_over(state, now, outlook) || timed_out {
                waiter.answer(state, timed_out);
            } else {
                left.push(waiter);
            }
        }
        self.0 = left;
    }
}

fn has_ended(state: &State, id: &BeadId) -> bool {
    let Some(entry) = state.bead(id) else { return true };
    // Work that is done still waits for its tracker to close it, and may be tried again.
    entry.bead.is_closed() || entry.work.verdict.is_some_and(|verdict| verdict != Verdict::Done)
}

impl Waiter {
    fn is_over(&mut self, state: &State, now: Instant, outlook: Outlook) -> bool {
        let dispatches_by_itself = match outlook {
            Outlook::GoesOn => true,
            Outlook::StandsStill => false,
            Outlook::Unclear => return self.wanted.iter().all(|id| has_ended(state, id)),
        };
        if self.all {
            // The town as a whole stands still when nothing runs, nothing could start and nothing becomes due. Looking
            // at every bead would take too long in a large town.
            // What is ready has just been given its chance: only a busy host can still let it start.
            let may_start = state.ready_count() > 0 && state.host_gate().is_some();
            let moves = may_start || state.next_due().is_some() || state.is_merging();
            return state.live_count() == 0 && !(dispatches_by_itself && moves);
        }
        self.pending.retain(|id| !has_ended(state, id));
        if self.pending.is_empty() {
            return true;
        }
        // Whether the rest can move takes a walk over the graph: not in every turn while something runs.
        if state.live_count() > 0 && now < self.next_walk {
            return false;
        }
        self.next_walk = now + BETWEEN_WALKS;
        self.pending.iter().all(|id| !state.can_progress(id, dispatches_by_itself))
    }

    fn answer(mut self, state: &State, timed_out: bool) {
        self.pending.retain(|id| !has_ended(state, id));
        let mut view = WaitView { timed_out, ..WaitView::default() };
        let mut done = 0;
        for id in &self.wanted {
            match state.standing(id) {
                Some(Standing::Closed) => {
                    done += 1;
                    if !self.summary {
                        view.done.push(id.clone());
                    }
                }
                Some(Standing::Failed | Standing::Cancelled | Standing::CircuitBroken) => {
                    view.failed.push(id.clone());
                }
                standing => {
                    let reasons = state.reasons(id);
                    view.stuck.push(StuckView { id: id.clone(), state: standing, reasons });
                }
            }
        }
        view.done_count = self.summary.then_some(done);
        self.reply_to.send(Reply::document(&view));
    }
}
