//! Asking the log for some of its events.

use rusqlite::{Connection, OptionalExtension, params};
use yard_engine::{Seq, Timestamp};

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
    pub(crate) fn run(&self, conn: &Connection) -> Result<Vec<Row>, JournalError> {
        let (order, count) = match self.tail {
            Some(tail) => ("DESC", Some(tail)),
            None => ("ASC", self.limit),
        };
        let mut statement = conn.prepare_cached(&format!(
            "SELECT seq, at, kind, body, sum FROM events
             WHERE seq > ?1 AND at >= ?2
               AND (?3 IS NULL OR kind = ?3 OR (kind > ?3 || '.' AND kind < ?3 || '/'))
             ORDER BY seq {order} LIMIT ?4"
        ))?;
        let mut rows = statement.query(params![
            self.since.map_or(-1, |seq| i64::try_from(seq.0).unwrap_or(i64::MAX)),
            self.since_time.map_or(i64::MIN, Timestamp::as_millis),
            self.kind,
            count.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX)),
        ])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(RawEvent::read(row)?.to_row()?);
        }
        if self.tail.is_some() {
            found.reverse();
            found.truncate(self.limit.unwrap_or(usize::MAX));
        }
        Ok(found)
    }
}

/// Those of the wanted events that still exist, in the order of the log, each once.
pub(crate) fn events_at(conn: &Connection, wanted: &[Seq]) -> Result<Vec<Row>, JournalError> {
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let mut statement = conn.prepare_cached("SELECT seq, at, kind, body, sum FROM events WHERE seq = ?1")?;
    let mut found = Vec::with_capacity(wanted.len());
    for seq in wanted {
        let row = statement
            .query_row([seq.0 as i64], |row| Ok(RawEvent::read(row).and_then(|event| event.to_row())));
        if let Some(row) = row.optional()? {
            found.push(row?);
        }
    }
    Ok(found)
}
