//! The rows of the file as a log to be read.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension};
use yard_engine::Seq;

use crate::JournalError;
use crate::chain::Content;
use crate::check::MOST;
use crate::load::{Link, Log, Meta, RawEntity};
use crate::row::RawEvent;

impl Log for Connection {
    fn meta(&self) -> Result<Meta, JournalError> {
        let number = |row: &rusqlite::Row<'_>, column: usize| row.get::<_, i64>(column).map(|it| it as u64);
        let read = |row: &rusqlite::Row<'_>| {
            let base = Link { seq: Seq(number(row, 1)?), sum: number(row, 2)? };
            let mut meta = Meta { base, checkpoint: Seq(number(row, 3)?), content: None };
            if row.as_ref().column_count() < 7 {
                return Ok((meta, true));
            }
            meta.content = Some(Content { entities: number(row, 4)?, digest: number(row, 5)? });
            Ok((meta, meta.seal() == number(row, 6)?))
        };
        let (meta, intact) = self
            .prepare_cached("SELECT meta.* FROM meta")?
            .query_row([], read)
            .optional()?
            .ok_or(JournalError::NotAJournal)?;
        if intact { Ok(meta) } else { Err(JournalError::CorruptNotes) }
    }

    fn last(&self) -> Result<Option<Link>, JournalError> {
        let mut last = self.prepare_cached("SELECT seq, sum FROM events ORDER BY seq DESC LIMIT 1")?;
        let read = |row: &rusqlite::Row<'_>| {
            let (seq, sum): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok(Link { seq: Seq(seq as u64), sum: sum as u64 })
        };
        Ok(last.query_row([], read).optional()?)
    }

    fn sum_of(&self, seq: Seq) -> Result<Option<u64>, JournalError> {
        let mut sum = self.prepare_cached("SELECT sum FROM events WHERE seq = ?1")?;
        let sum = sum.query_row([seq.0 as i64], |row| row.get::<_, i64>(0)).optional()?;
        Ok(sum.map(|sum| sum as u64))
    }

    fn event(
        &self,
        seq: Seq,
        visit: impl FnOnce(&RawEvent<'_>) -> Result<(), JournalError>,
    ) -> Result<bool, JournalError> {
        let mut statement =
            self.prepare_cached("SELECT seq, at, kind, body, sum FROM events WHERE seq = ?1")?;
        let read = |row: &rusqlite::Row<'_>| Ok(read_event(row).and_then(|event| visit(&event)));
        statement.query_row([seq.0 as i64], read).optional()?.transpose().map(|found| found.is_some())
    }

    fn events_after(
        &self,
        seq: Seq,
        mut visit: impl FnMut(&RawEvent<'_>) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<(), JournalError> {
        let mut statement =
            self.prepare_cached("SELECT seq, at, kind, body, sum FROM events WHERE seq > ?1 ORDER BY seq")?;
        let mut rows = statement.query([seq.0 as i64])?;
        while let Some(row) = rows.next()? {
            if visit(&read_event(row)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn events_back(
        &self,
        seq: Seq,
        mut visit: impl FnMut(&RawEvent<'_>, Option<u64>) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<(), JournalError> {
        // Each with the sum of the one before it, which is all that is needed to verify it.
        let mut statement = self.prepare_cached(
            "SELECT it.seq, it.at, it.kind, it.body, it.sum, before.sum
             FROM events AS it LEFT JOIN events AS before ON before.seq = it.seq - 1
             WHERE it.seq > ?1 ORDER BY it.seq DESC",
        )?;
        let mut rows = statement.query([seq.0 as i64])?;
        while let Some(row) = rows.next()? {
            let before = row.get::<_, Option<i64>>(5)?.map(|sum| sum as u64);
            if visit(&read_event(row)?, before)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn entities(
        &self,
        mut visit: impl FnMut(RawEntity) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let mut statement = self.prepare_cached("SELECT kind, id, body, sum FROM entities")?;
        let mut rows = statement.query([])?;
        let bytes = |row: &rusqlite::Row<'_>, column| -> Result<Vec<u8>, JournalError> {
            Ok(row.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from)?.to_vec())
        };
        while let Some(row) = rows.next()? {
            let sum = row.get::<_, i64>(3)? as u64;
            visit(RawEntity { kind: bytes(row, 0)?, id: bytes(row, 1)?, body: bytes(row, 2)?, sum })?;
        }
        Ok(())
    }

    fn damages(&self, mut note: impl FnMut(String)) -> Result<(), JournalError> {
        let mut statement = self.prepare(&format!("PRAGMA integrity_check({MOST})"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let said: String = row.get(0)?;
            if said != "ok" {
                note(format!("the journal file is damaged: {said}"));
            }
        }
        Ok(())
    }
}

/// Reads the columns `seq, at, kind, body, sum`, in this order.
fn read_event<'a>(row: &'a rusqlite::Row<'_>) -> Result<RawEvent<'a>, JournalError> {
    let seq = Seq(row.get::<_, i64>(0)? as u64);
    let odd = |_| JournalError::Corrupt { seq, what: "the row has a column of the wrong type" };
    Ok(RawEvent {
        seq,
        at: row.get(1)?,
        kind: row.get_ref(2)?.as_bytes().map_err(odd)?,
        body: row.get_ref(3)?.as_bytes().map_err(odd)?,
        sum: row.get::<_, i64>(4)? as u64,
    })
}

/// Writes the notes, sealed.
pub(super) fn set_meta(conn: &Connection, meta: &Meta) -> Result<(), JournalError> {
    conn.prepare_cached(
        "UPDATE meta SET base_seq = ?1, base_sum = ?2, checkpoint_seq = ?3, entities = ?4, digest = ?5, seal = ?6",
    )?
    .execute(meta.notes())?;
    Ok(())
}
