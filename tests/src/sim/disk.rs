//! The simulated journal: what was appended in whole is durable, everything else never happened.

use std::collections::BTreeMap;

use yard_engine::{Event, Recorded, Seq, State};

use super::{Broken, Mutant};

#[derive(Default)]
pub(super) struct Disk {
    log: Vec<Recorded>,
    checkpoint: BTreeMap<(&'static str, String), String>,
    checkpoint_at: Seq,
    pub(super) full: bool,
}

impl Disk {
    /// The durable log, first event first.
    pub(super) fn log(&self) -> &[Recorded] {
        &self.log
    }

    pub(super) fn append(&mut self, events: &[Recorded]) {
        self.log.extend_from_slice(events);
    }

    /// Writes the records that changed since the last checkpoint, in one transaction.
    pub(super) fn write_checkpoint(&mut self, state: &mut State, mutant: Option<Mutant>) {
        let mut rows = state.take_changed_records();
        if mutant == Some(Mutant::CheckpointIncomplete) {
            rows.pop();
        }
        for row in rows {
            match row.body {
                Some(body) => self.checkpoint.insert((row.kind, row.id), body),
                None => self.checkpoint.remove(&(row.kind, row.id)),
            };
        }
        self.checkpoint_at = state.seq();
    }

    /// The state as the whole log tells it; `written` reads each event from its written form.
    pub(super) fn replay(&self, written: bool) -> Result<State, Broken> {
        let mut state = State::default();
        self.fold(&mut state, written)?;
        Ok(state)
    }

    /// The state as the last checkpoint and the events after it tell it.
    pub(super) fn restore(&self, written: bool) -> Result<State, Broken> {
        let rows = self.checkpoint.iter().map(|((kind, id), body)| (*kind, id.as_str(), body.as_str()));
        let mut state = State::restore(self.checkpoint_at, rows).map_err(|e| Broken(e.to_string()))?;
        self.fold(&mut state, written)?;
        Ok(state)
    }

    fn fold(&self, state: &mut State, written: bool) -> Result<(), Broken> {
        let from = state.seq();
        for recorded in self.log.iter().skip_while(|r| r.seq <= from) {
            if written {
                let kind = recorded.event.kind();
                let read = Event::from_stored(kind, &recorded.event.body());
                let event = read.map_err(|e| Broken(e.to_string()))?;
                Broken::unless(event == recorded.event, || format!("{kind} changed by being written"))?;
                state.apply(&Recorded { event, ..*recorded });
            } else {
                state.apply(recorded);
            }
        }
        Ok(())
    }
}
