//! Next in line: while runs are short, one or two starts that follow each of them are on disk, and with its worker, before
//! it ends. Whatever might change who is next calls all of that back first, before it is decided or at the latest before it
//! is on disk, so that nobody who was told of a pause or a hold sees a start after it.

use tracing::warn;
use yard_client::Ask;
use yard_engine::bead::BeadEvent;
use yard_engine::context::ContextEvent;
use yard_engine::dispatch::Dispatch;
use yard_engine::task::TaskEvent;
use yard_engine::town::TownEvent;
use yard_engine::{DispatchId, Event, Millis, Timestamp};
use yard_workers::{LinePlace, WorkerReport};

use super::Core;
use crate::input::Input;
use crate::launch;

/// A run as long as this is worth the wait for the disk after it.
const SHORT: Millis = Millis(50);
/// So many short runs in a row are a reason to expect more of them.
const SEVERAL: u32 = 4;

/// How long the last runs took.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How many short ones there were since the last long one.
    short: u32,
}

impl Pace {
    fn note(&mut self, active: Option<Millis>) {
        let is_short = active.is_some_and(|active| active < SHORT);
        self.short = if is_short { self.short.saturating_add(1) } else { 0 };
    }

    fn is_quick(&self) -> bool {
        self.short >= SEVERAL
    }
}

impl Core {
    /// Notes how long a run took.
    pub(super) fn note_pace(&mut self, report: &WorkerReport) {
        if let WorkerReport::Ended { exit, .. } = report {
            self.pace.note(exit.active);
        }
    }

    /// Lines somebody up behind each short run, and behind whoever is next there and with his worker already.
    pub(super) fn line_up(&mut self) {
        if !self.pace.is_quick() || self.store.state().ready_count() == 0 {
            return;
        }
        let state = self.store.state();
        let long_since = self.long_since();
        let running = state.live_workers().filter(|it| it.started_at >= long_since).map(|it| &it.id);
        let next = state.lined_up().map(|(_, next)| &next.id);
        let followed: Vec<DispatchId> = running.chain(next).cloned().collect();
        let now = self.now;
        for id in followed {
            self.store.decide(now, |tx| tx.line_up(&id));
        }
    }

    /// Whether what came in may change who is next.
    pub(super) fn disturbs_line(input: &Input) -> bool {
        match input {
            Input::Ask { request, .. } => {
                matches!(request.ask, Ask::Command { .. } | Ask::Stop { .. } | Ask::Poke { .. })
            }
            Input::Source { .. } | Input::Git(_) | Input::ActionAnswered { .. } | Input::Terminate => true,
            Input::Worker(_)
            | Input::AlertTold { .. }
            | Input::MessageTold { .. }
            | Input::WebhookTried { .. }
            | Input::LeaseLost(_)
            | Input::Nudge => false,
        }
    }

    /// Whether something that was decided in this turn, by the clock or by a worker's end, changes who is next.
    pub(super) fn line_is_disturbed(&self) -> bool {
        let Some(least_urgent) = self.store.state().least_urgent_in_line() else { return false };
        let disturbs = |event: &Event| match event {
            Event::Town(event) => !matches!(event, TownEvent::ClockAdvanced {} | TownEvent::Retired { .. }),
            Event::Rig(_) | Event::Preemption(_) | Event::Convoy(_) => true,
            Event::Bead(event) => !matches!(event, BeadEvent::Closed { .. }),
            Event::Context(ContextEvent::Opened { context, .. }) => context.priority > least_urgent,
            Event::Context(event) => !matches!(event, ContextEvent::Closed { .. }),
            Event::Task(event) => matches!(event, TaskEvent::Submitted { .. }),
            Event::Dispatch(_) | Event::Alert(_) | Event::Agent(_) | Event::Merge(_) => false,
        };
        self.store.pending().iter().any(|recorded| disturbs(&recorded.event))
    }

    /// What began before this is no short run.
    fn long_since(&self) -> Timestamp {
        Timestamp::from_millis(self.now.as_millis().saturating_sub(SHORT.0.cast_signed()))
    }

    /// Takes those out of the line for whom there is room elsewhere, or who stand behind a run that is not short.
    pub(super) fn call_back_stuck(&mut self) {
        let stuck = self.store.state().stuck_in_line(self.long_since());
        let stuck: Vec<_> = stuck.map(|(after, next)| (after.clone(), next.id.clone())).collect();
        for (after, next) in stuck {
            self.call_back(&after, &next);
        }
    }

    /// Takes everybody out of the line whom no worker has taken yet.
    pub(super) fn call_back_all(&mut self) {
        let line = self.line();
        let is_second = |id: &DispatchId| line.iter().any(|(_, next)| next == id);
        for (after, next) in line.iter().filter(|(after, _)| !is_second(after)) {
            self.call_back(after, next);
        }
    }

    /// Who is next in line, and behind whom.
    pub(super) fn line(&self) -> Vec<(DispatchId, DispatchId)> {
        let lined_up = self.store.state().lined_up();
        lined_up.map(|(after, next)| (after.clone(), next.id.clone())).collect()
    }

    /// Takes the one who is next behind a run out of the line, and first whoever stands behind him: nobody must find
    /// himself next because the one before him has left.
    pub(super) fn call_back(&mut self, after: &DispatchId, next: &DispatchId) {
        let second = self.store.state().next_in_line(next).map(|second| second.id.clone());
        if let Some(second) = second
            && !self.calls_back(&second, &[after, next])
        {
            return;
        }
        // Its turn may have come meanwhile.
        if self.store.state().dispatch(next).is_none() {
            self.calls_back(next, &[after]);
        }
    }

    /// Calls one back who stands behind these; whether he is out of the line. If his turn has come, so has their end, which
    /// is news that has not reached us yet.
    fn calls_back(&mut self, id: &DispatchId, before: &[&DispatchId]) -> bool {
        for ended in before {
            match self.pool.call_back(id, ended) {
                Ok(None) => {
                    self.store.decide(self.now, |tx| tx.called_back(id));
                    return true;
                }
                Ok(Some(found)) => self.take_recovered(ended, found),
                Err(error) => {
                    warn!(dispatch = %id, %error, "cannot call it back");
                    return false;
                }
            }
            if self.store.state().dispatch(ended).is_none_or(Dispatch::is_live) {
                // It could not be found out how it ended.
                return false;
            }
        }
        false
    }

    /// Hears of somebody who is still in line; whether that was all there is to it.
    pub(super) fn take_line_report(&mut self, report: &WorkerReport) -> bool {
        let id = report.dispatch();
        let line = self.line();
        let Some(place) = line.iter().find(|(_, next)| next == id) else { return false };
        // If it is the second, what is said of it is news of the first as well.
        let (after, next) = line.iter().find(|(_, next)| *next == place.0).unwrap_or(place);
        let is_followed = self.store.state().next_in_line(id).is_some();
        match report {
            WorkerReport::NeverRan { .. } if !is_followed => {
                self.store.decide(self.now, |tx| tx.called_back(id));
                self.pool.forget(id);
                true
            }
            WorkerReport::NeverRan { .. }
            | WorkerReport::Running { .. }
            | WorkerReport::Isolated { .. }
            | WorkerReport::StepDone { .. }
            | WorkerReport::Metered { .. }
            | WorkerReport::StartFailed { .. }
            | WorkerReport::Lost { .. }
            | WorkerReport::Ended { .. } => {
                // Nobody begins before the one before has ended.
                self.call_back(after, next);
                // If that could not be found out, its claim keeps what it says until it can be.
                self.line().iter().any(|(_, next)| next == id)
            }
        }
    }

    /// Gives what is lined up to the worker that has the slot.
    pub(super) fn hand_on(&mut self, dispatch: &Dispatch, after: &DispatchId) {
        let order = launch::order(self.store.state(), &self.town, &self.sources, dispatch);
        let runs = self.store.state().dispatch(after).is_some();
        let place = if runs { LinePlace::First } else { LinePlace::Second };
        let handed = order.and_then(|order| {
            self.note_steps(&order);
            self.pool.start_after(order, after, place).map_err(|error| error.to_string())
        });
        if let Err(why) = handed {
            // What failed once would fail again in the next turn: that is left to its start.
            self.pace = Pace::default();
            let dispatch = dispatch.id.clone();
            self.own_reports.push(WorkerReport::NeverRan { dispatch, why });
        }
    }
}
