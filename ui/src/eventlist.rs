//! Which events the filter lets through. Each event is put into words once, however long the log is and however often it
//! is drawn or the filter changes; of a long log only some at a time, so that no key waits for it.

use std::collections::VecDeque;
use std::sync::Arc;

use yard_engine::{Recorded, Seq};

use crate::filter::Filter;
use crate::views::events::line_of;

/// Older events put into words in one frame.
const SLICE: usize = 2_000;

/// The events that pass, oldest first.
#[derive(Debug, Default)]
pub(crate) struct EventList {
    filter: String,
    lines: VecDeque<(Seq, String)>,
    found: Vec<Seq>,
}

impl EventList {
    /// Puts what is new into words, and some of what is older; finds what passes.
    pub(crate) fn refresh<'a>(
        &mut self,
        filter: &Filter,
        events: impl DoubleEndedIterator<Item = &'a Arc<Recorded>> + Clone,
    ) {
        if filter.is_empty() {
            self.found.clear();
            return;
        }
        let before = self.lines.len();
        let last = self.lines.back().map_or(Seq(0), |(seq, _)| *seq);
        let told = |event: &'a Arc<Recorded>| (event.seq, line_of(event));
        if last > Seq(0) {
            let new: Vec<_> = events.clone().rev().take_while(|event| event.seq > last).map(told).collect();
            self.lines.extend(new.into_iter().rev());
        }
        let first = self.lines.front().map_or(Seq(u64::MAX), |(seq, _)| *seq);
        for event in events.rev().skip_while(|event| event.seq >= first).take(SLICE) {
            self.lines.push_front(told(event));
        }
        if self.filter != filter.text() || before != self.lines.len() {
            filter.text().clone_into(&mut self.filter);
            let passing = self.lines.iter().filter(|(_, line)| filter.lets_text_through(line));
            self.found = passing.map(|(seq, _)| *seq).collect();
        }
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
