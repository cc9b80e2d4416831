//! Reading the log back: its ends, its checkpoint, and the verified events after it. Every function here expects
//! to run inside one read transaction, so that what it returns belongs together.

use rusqlite::{Connection, OptionalExtension};
use yard_engine::{Seq, Timestamp};

use crate::chain::Sealer;
use crate::row::RawEvent;
use crate::{EntityRow, JournalError, Loaded, Row};

/// A place in the log and the sum there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) seq: Seq,
    pub(crate) sum: u64,
}

/// The journal's own notes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    /// The last event cut off by retention.
    pub(crate) base: Link,
    pub(crate) checkpoint: Seq,
}

pub(crate) fn meta(conn: &Connection) -> Result<Meta, JournalError> {
    let read = |row: &rusqlite::Row<'_>| {
        let (seq, sum, checkpoint): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let base = Link { seq: Seq(seq as u64), sum: sum as u64 };
        Ok(Meta { base, checkpoint: Seq(checkpoint as u64) })
    };
    conn.prepare_cached("SELECT base_seq, base_sum, checkpoint_seq FROM meta")?
        .query_row([], read)
        .optional()?
        .ok_or(JournalError::NotAJournal)
}

/// The last event, or where the log was cut off if none is left.
pub(crate) fn tip(conn: &Connection, meta: &Meta) -> Result<Link, JournalError> {
    let last = conn
        .prepare_cached("SELECT seq, sum FROM events ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| {
            let (seq, sum): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok(Link { seq: Seq(seq as u64), sum: sum as u64 })
        })
        .optional()?
        .unwrap_or(meta.base);
    if last.seq < meta.checkpoint {
        let what = "the log ends here, before its checkpoint";
        return Err(JournalError::Corrupt { seq: last.seq.next(), what });
    }
    Ok(last)
}

/// The link at a place that must exist.
pub(crate) fn link_at(conn: &Connection, meta: &Meta, seq: Seq) -> Result<Link, JournalError> {
    if seq == meta.base.seq {
        return Ok(meta.base);
    }
    conn.prepare_cached("SELECT sum FROM events WHERE seq = ?1")?
        .query_row([seq.0 as i64], |row| row.get::<_, i64>(0))
        .optional()?
        .map(|sum| Link { seq, sum: sum as u64 })
        .ok_or(JournalError::Corrupt { seq, what: "the event is missing" })
}

/// The last event in `(after, upto]` that happened before `at`; `after` if there is none. Time never goes back in the
/// log, so that a few looks find it.
pub(crate) fn last_before(
    conn: &Connection,
    at: Timestamp,
    after: Seq,
    upto: Seq,
) -> Result<Seq, JournalError> {
    let mut time = conn.prepare_cached("SELECT at FROM events WHERE seq = ?1")?;
    let (mut before, mut rest) = (after.0, upto.0);
    while before < rest {
        let middle = before + (rest - before).div_ceil(2);
        let found: Option<i64> = time.query_row([middle as i64], |row| row.get(0)).optional()?;
        if found.is_some_and(|found| found < at.as_millis()) {
            before = middle;
        } else {
            rest = middle - 1;
        }
    }
    Ok(Seq(before))
}

/// Walks all events after `from` and tells `visit` of each, with whether it continues the chain. The chain goes
/// on from what is stored, so that one damaged row is reported once.
pub(crate) fn walk(
    conn: &Connection,
    from: Link,
    mut visit: impl FnMut(&RawEvent<'_>, Result<(), JournalError>) -> Result<(), JournalError>,
) -> Result<Link, JournalError> {
    let mut statement =
        conn.prepare_cached("SELECT seq, at, kind, body, sum FROM events WHERE seq > ?1 ORDER BY seq")?;
    let mut rows = statement.query([from.seq.0 as i64])?;
    let (mut last, mut sealer) = (from, Sealer::default());
    while let Some(row) = rows.next()? {
        let event = RawEvent::read(row)?;
        let due = last.seq.next();
        let verdict = if event.seq != due {
            Err(JournalError::Corrupt { seq: due, what: "the event is missing" })
        } else if sealer.event(last.sum, event.seq, event.at, event.kind, event.body) == event.sum {
            Ok(())
        } else {
            let what = "its checksum does not match its content and predecessor";
            Err(JournalError::Corrupt { seq: due, what })
        };
        visit(&event, verdict)?;
        last = Link { seq: event.seq, sum: event.sum };
    }
    Ok(last)
}

/// Reads all entities and tells `visit` of each, with whether its seal is intact.
pub(crate) fn walk_entities(
    conn: &Connection,
    mut visit: impl FnMut(EntityRow, bool) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let mut statement = conn.prepare_cached("SELECT kind, id, body, sum FROM entities")?;
    let mut rows = statement.query([])?;
    let mut sealer = Sealer::default();
    let bytes = |row: &rusqlite::Row<'_>, column| -> Result<Vec<u8>, JournalError> {
        Ok(row.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from)?.to_vec())
    };
    while let Some(row) = rows.next()? {
        let (kind, id, body) = (bytes(row, 0)?, bytes(row, 1)?, bytes(row, 2)?);
        let sealed = sealer.entity(&kind, &id, &body) == row.get::<_, i64>(3)? as u64;
        let (kind, kind_whole) = text(kind);
        let (id, id_whole) = text(id);
        let (body, body_whole) = text(body);
        let entity = EntityRow { kind, id, body: Some(body) };
        visit(entity, sealed && kind_whole && id_whole && body_whole)?;
    }
    Ok(())
}

/// Bytes as text, and whether they were text.
fn text(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
    }
}

/// The checkpoint and the events after it, or where they are damaged.
pub(crate) fn load(conn: &Connection) -> Result<(Loaded, Link), JournalError> {
    /// Reserved at most; a damaged last number must not exhaust the memory.
    const RESERVE: u64 = 1 << 20;

    let meta = meta(conn)?;
    let end = tip(conn, &meta)?;
    let mut entities = Vec::new();
    walk_entities(conn, |entity, sealed| {
        if !sealed {
            return Err(JournalError::CorruptEntity { kind: entity.kind, id: entity.id });
        }
        entities.push(entity);
        Ok(())
    })?;
    let from = link_at(conn, &meta, meta.checkpoint)?;
    let mut tail: Vec<Row> = Vec::with_capacity((end.seq.0 - from.seq.0).min(RESERVE) as usize);
    let last = walk(conn, from, |event, verdict| {
        verdict?;
        tail.push(event.to_row()?);
        Ok(())
    })?;
    Ok((Loaded { checkpoint_seq: meta.checkpoint, entities, tail }, last))
}
