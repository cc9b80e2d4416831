//! Which events the filter lets through. Each event is looked at once, however long the log is and however often it is
//! drawn.

use std::sync::Arc;

use yard_engine::{Recorded, Seq};

use crate::filter::Filter;
use crate::views::events::line_of;

/// The events that pass, oldest first.
#[derive(Debug, Default)]
pub(crate) struct EventList {
    filter: String,
    /// Everything up to here was looked at.
    seen: Seq,
    found: Vec<Seq>,
}

impl EventList {
    /// Looks at what is new; begins anew with another filter, or when the log is not the one it was.
    pub(crate) fn refresh<'a>(
        &mut self,
        filter: &Filter,
        events: impl DoubleEndedIterator<Item = &'a Arc<Recorded>>,
    ) {
        if self.filter != filter.text() {
            *self = Self { filter: filter.text().to_owned(), ..Self::default() };
        }
        if filter.is_empty() {
            return;
        }
        let mut new: Vec<&Arc<Recorded>> = events.rev().take_while(|event| event.seq > self.seen).collect();
        new.reverse();
        if let Some(last) = new.last() {
            self.seen = last.seq;
        }
        let passing = new.into_iter().filter(|event| filter.lets_text_through(&line_of(event)));
        self.found.extend(passing.map(|event| event.seq));
    }

    /// Forgets everything, because the events are others.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Those that pass, up to a position.
    pub(crate) fn until(&self, seq: Seq) -> &[Seq] {
        &self.found[..self.found.partition_point(|found| *found <= seq)]
    }
}
