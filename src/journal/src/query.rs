//! Asking the log for some of its events. Each is verified, and so is that none is left out: a question about the past
//! must not be answered from a damaged page.

use std::ops::ControlFlow;

use yard_engine::{Seq, Timestamp};

use crate::chain::Sealer;
use crate::load::{self, Link, Log, Meta};
use crate::row::RawEvent;
use crate::{JournalError, Row};

/// Which events to return, always in the order of the log. The default asks for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Only events after this one.
    pub since: Option<Seq>,
    /// Only events of this time or later.
    pub since_time: Option<Timestamp>,
    /// Only events of this kind (`bead.closed`) or family (`bead`).
    pub kind: Option<String>,
    /// At most so many, the earliest first.
    pub limit: Option<usize>,
    /// Only the last so many of what the other conditions select (applied before `limit`).
    pub tail: Option<usize>,
}

impl EventQuery {
    pub(crate) fn run(&self, log: &impl Log) -> Result<Vec<Row>, JournalError> {
        let meta = log.meta()?;
        match self.tail {
            Some(count) => {
                let mut found = self.last(log, &meta, count)?;
                found.reverse();
                found.truncate(self.limit.unwrap_or(usize::MAX));
                Ok(found)
            }
            None => self.first(log, &meta, self.limit.unwrap_or(usize::MAX)),
        }
    }

    fn first(&self, log: &impl Log, meta: &Meta, count: usize) -> Result<Vec<Row>, JournalError> {
        let since = self.since.unwrap_or_default().max(meta.base.seq);
        let mut found = Vec::new();
        if count == 0 || since > load::tip(log, meta, None)?.seq {
            return Ok(found);
        }
        load::walk(log, load::link_at(log, meta, since)?, |event, verdict| {
            verdict?;
            if self.wants(event) {
                found.push(event.to_row()?);
            }
            Ok(if found.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(found)
    }

    /// The last ones, the very last first.
    fn last(&self, log: &impl Log, meta: &Meta, count: usize) -> Result<Vec<Row>, JournalError> {
        let mut found = Vec::new();
        if count == 0 {
            return Ok(found);
        }
        load::walk_back(log, meta.base, |event, verdict| {
            if self.since.is_some_and(|since| event.seq <= since) {
                return Ok(ControlFlow::Break(()));
            }
            verdict?;
            if self.wants(event) {
                found.push(event.to_row()?);
            }
            Ok(if found.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(found)
    }

    fn wants(&self, event: &RawEvent<'_>) -> bool {
        let of_kind = self.kind.as_ref().is_none_or(|kind| {
            let rest = event.kind.strip_prefix(kind.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with(b".") && rest.len() > 1))
        });
        of_kind && self.since_time.is_none_or(|since| event.at >= since.as_millis())
    }
}

/// Those of the wanted events that retention has left, in the order of the log, each once.
pub(crate) fn events_at(log: &impl Log, wanted: &[Seq]) -> Result<Vec<Row>, JournalError> {
    let meta = log.meta()?;
    let mut wanted: Vec<Seq> = wanted.iter().copied().filter(|seq| *seq > meta.base.seq).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let end = load::tip(log, &meta, None)?;
    let mut sealer = Sealer::default();
    let mut found: Vec<Row> = Vec::with_capacity(wanted.len());
    let mut last: Option<Link> = None;
    for seq in wanted.into_iter().take_while(|seq| *seq <= end.seq) {
        let before = match last {
            Some(last) if last.seq.next() == seq => last,
            _ => load::link_at(log, &meta, Seq(seq.0 - 1))?,
        };
        let mut read = None;
        log.event(seq, |event| {
            event.verify(Some(before.sum), &mut sealer)?;
            read = Some((event.to_row()?, Link { seq, sum: event.sum }));
            Ok(())
        })?;
        let (row, link) = read.ok_or(JournalError::Corrupt { seq, what: "the event is missing" })?;
        found.push(row);
        last = Some(link);
    }
    Ok(found)
}
