//! Deciding happens in a transaction over the state whose only mutator is `emit` = apply + record. A refusal comes
//! before the first emit, so planning sees each start it has just made and a refused command leaves no trace.

use std::sync::Arc;

use crate::Timestamp;
use crate::bead::{Bead, BeadEvent};
use crate::command::Command;
use crate::event::{Event, Recorded};
use crate::state::State;

/// A decision in progress.
#[derive(Debug)]
pub struct Tx<'a> {
    state: &'a mut State,
    at: Timestamp,
    events: Vec<Recorded>,
    /// While a command is taken back or done again: what leads the other way, instead of entries of their own.
    pub(crate) way_back: Option<Vec<Command>>,
}

impl<'a> Tx<'a> {
    /// Starts deciding at a time. Time never runs backwards in the log.
    pub fn new(state: &'a mut State, now: Timestamp) -> Self {
        let at = now.max(state.clock());
        Self { state, at, events: Vec::new(), way_back: None }
    }

    /// The state as it is after everything emitted so far.
    pub fn state(&self) -> &State {
        self.state
    }

    pub(crate) fn state_mut(&mut self) -> &mut State {
        self.state
    }

    /// The time of this decision.
    pub fn now(&self) -> Timestamp {
        self.at
    }

    /// Records an event and applies it.
    pub fn emit(&mut self, event: impl Into<Event>) {
        let recorded = Recorded { seq: self.state.seq().next(), at: self.at, event: event.into() };
        self.state.apply(&recorded);
        self.events.push(recorded);
    }

    /// Records that beads appeared of which nobody has heard, and applies that at once.
    pub(crate) fn emit_arrivals(&mut self, beads: &[Arc<Bead>]) {
        let (at, mut seq) = (self.at, self.state.seq());
        self.events.extend(beads.iter().map(|bead| {
            seq = seq.next();
            Recorded { seq, at, event: BeadEvent::Observed { bead: Arc::clone(bead) }.into() }
        }));
        self.state.apply_arrivals(beads, at);
    }

    /// Whether nothing was decided so far.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// What was decided.
    pub fn finish(self) -> Vec<Recorded> {
        self.state.beads.look_away();
        self.events
    }
}
