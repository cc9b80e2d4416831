//! Reading the log back: its ends, its checkpoint, and the verified events after it. Every function here expects
//! to run inside one read transaction, so that what it returns belongs together.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension};
use yard_engine::Seq;

use crate::chain::{Content, Sealer};
use crate::row::RawEvent;
use crate::{EntityRow, JournalError, Loaded, Piece, Row};

/// So many rows are handed out together.
const PIECE: usize = 1000;

/// A place in the log and the sum there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) seq: Seq,
    pub(crate) sum: u64,
}

/// The journal's own notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The last event cut off by retention.
    pub(crate) base: Link,
    pub(crate) checkpoint: Seq,
    /// What the entities of the checkpoint come to; none in a journal of format 1.
    pub(crate) content: Option<Content>,
}

/// The notes, verified as far as they are sealed.
pub(crate) fn meta(conn: &Connection) -> Result<Meta, JournalError> {
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
    let (meta, intact) = conn
        .prepare_cached("SELECT meta.* FROM meta")?
        .query_row([], read)
        .optional()?
        .ok_or(JournalError::NotAJournal)?;
    if intact { Ok(meta) } else { Err(JournalError::CorruptNotes) }
}

/// Writes the notes, sealed.
pub(crate) fn set_meta(conn: &Connection, meta: &Meta) -> Result<(), JournalError> {
    let Meta { base, checkpoint, content } = meta;
    let Content { entities, digest } = content.unwrap_or_default();
    let notes = [base.seq.0, base.sum, checkpoint.0, entities, digest, meta.seal()];
    conn.prepare_cached(
        "UPDATE meta SET base_seq = ?1, base_sum = ?2, checkpoint_seq = ?3, entities = ?4, digest = ?5, seal = ?6",
    )?
    .execute(notes.map(|note| note as i64))?;
    Ok(())
}

impl Meta {
    /// The seal over all notes.
    pub(crate) fn seal(&self) -> u64 {
        let Content { entities, digest } = self.content.unwrap_or_default();
        Sealer::default().notes([self.base.seq.0, self.base.sum, self.checkpoint.0, entities, digest])
    }
}

/// The last event, or where the log was cut off if none is left. It must not lie before the checkpoint, nor before the
/// event that was `noted` as acknowledged.
pub(crate) fn tip(conn: &Connection, meta: &Meta, noted: Option<Link>) -> Result<Link, JournalError> {
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
    match noted {
        Some(noted) if noted.seq > last.seq => {
            return Err(JournalError::CutOff { last: last.seq, noted: noted.seq });
        }
        Some(noted) if noted.seq >= meta.base.seq && link_at(conn, meta, noted.seq)? != noted => {
            let what = "it is not the event that was stored under this number";
            return Err(JournalError::Corrupt { seq: noted.seq, what });
        }
        Some(_) | None => {}
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

/// Walks all events after `from` and tells `visit` of each, with whether it continues the chain. The chain goes
/// on from what is stored, so that one damaged row is reported once.
pub(crate) fn walk(
    conn: &Connection,
    from: Link,
    mut visit: impl FnMut(&RawEvent<'_>, Result<(), JournalError>) -> Result<ControlFlow<()>, JournalError>,
) -> Result<Link, JournalError> {
    let mut statement =
        conn.prepare_cached("SELECT seq, at, kind, body, sum FROM events WHERE seq > ?1 ORDER BY seq")?;
    let mut rows = statement.query([from.seq.0 as i64])?;
    let (mut last, mut sealer) = (from, Sealer::default());
    while let Some(row) = rows.next()? {
        let event = RawEvent::read(row)?;
        let due = last.seq.next();
        let verdict = if event.seq == due {
            event.verify(Some(last.sum), &mut sealer)
        } else {
            Err(JournalError::Corrupt { seq: due, what: "the event is missing" })
        };
        last = Link { seq: event.seq, sum: event.sum };
        if visit(&event, verdict)?.is_break() {
            break;
        }
    }
    Ok(last)
}

/// The same from the end of the log backwards, not further than to the event after `base`.
pub(crate) fn walk_back(
    conn: &Connection,
    base: Link,
    mut visit: impl FnMut(&RawEvent<'_>, Result<(), JournalError>) -> Result<ControlFlow<()>, JournalError>,
) -> Result<(), JournalError> {
    // Each with the sum of the one before it, which is all that is needed to verify it.
    let mut statement = conn.prepare_cached(
        "SELECT it.seq, it.at, it.kind, it.body, it.sum, before.sum
         FROM events AS it LEFT JOIN events AS before ON before.seq = it.seq - 1
         WHERE it.seq > ?1 ORDER BY it.seq DESC",
    )?;
    let mut rows = statement.query([base.seq.0 as i64])?;
    let mut sealer = Sealer::default();
    while let Some(row) = rows.next()? {
        let event = RawEvent::read(row)?;
        let before = row.get::<_, Option<i64>>(5)?.map(|sum| sum as u64);
        let before = if event.seq == base.seq.next() { Some(base.sum) } else { before };
        if visit(&event, event.verify(before, &mut sealer))?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Reads all entities and tells `visit` of each, with whether its seal is intact. Answers what they come to.
pub(crate) fn walk_entities(
    conn: &Connection,
    mut visit: impl FnMut(EntityRow, bool) -> Result<(), JournalError>,
) -> Result<Content, JournalError> {
    let mut statement = conn.prepare_cached("SELECT kind, id, body, sum FROM entities")?;
    let mut rows = statement.query([])?;
    let mut content = Content::default();
    let mut sealer = Sealer::default();
    let bytes = |row: &rusqlite::Row<'_>, column| -> Result<Vec<u8>, JournalError> {
        Ok(row.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from)?.to_vec())
    };
    while let Some(row) = rows.next()? {
        let (kind, id, body) = (bytes(row, 0)?, bytes(row, 1)?, bytes(row, 2)?);
        let sum = row.get::<_, i64>(3)? as u64;
        let sealed = sealer.entity(&kind, &id, &body) == sum;
        content.add(sum);
        let (kind, kind_whole) = text(kind);
        let (id, id_whole) = text(id);
        let (body, body_whole) = text(body);
        let entity = EntityRow { kind, id, body: Some(body) };
        visit(entity, sealed && kind_whole && id_whole && body_whole)?;
    }
    Ok(content)
}

/// Bytes as text, and whether they were text.
fn text(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
    }
}

/// The checkpoint and the events after it, or where they are damaged.
pub(crate) fn load(conn: &Connection, noted: Option<Link>) -> Result<(Loaded, Link), JournalError> {
    let mut loaded = Loaded::default();
    let (checkpoint_seq, last) = load_in_pieces(conn, noted, &mut |piece| match piece {
        Piece::Entities(mut entities) => loaded.entities.append(&mut entities),
        Piece::Tail { mut events, .. } => loaded.tail.append(&mut events),
    })?;
    Ok((Loaded { checkpoint_seq, ..loaded }, last))
}

/// The same, handed out as it is read. Says where the checkpoint stands. What was handed out before an error counts for
/// nothing.
pub(crate) fn load_in_pieces(
    conn: &Connection,
    noted: Option<Link>,
    take: &mut dyn FnMut(Piece),
) -> Result<(Seq, Link), JournalError> {
    let meta = meta(conn)?;
    tip(conn, &meta, noted)?;
    let mut entities = Vec::with_capacity(PIECE);
    let content = walk_entities(conn, |entity, sealed| {
        if !sealed {
            return Err(JournalError::CorruptEntity { kind: entity.kind, id: entity.id });
        }
        entities.push(entity);
        if entities.len() == PIECE {
            take(Piece::Entities(std::mem::replace(&mut entities, Vec::with_capacity(PIECE))));
        }
        Ok(())
    })?;
    take(Piece::Entities(entities));
    if meta.content.is_some_and(|it| it != content) {
        return Err(JournalError::CorruptCheckpoint);
    }
    let from = link_at(conn, &meta, meta.checkpoint)?;
    let checkpoint = meta.checkpoint;
    let mut events: Vec<Row> = Vec::new();
    let last = walk(conn, from, |event, verdict| {
        verdict?;
        events.push(event.to_row()?);
        if events.len() == PIECE {
            take(Piece::Tail { checkpoint, events: std::mem::take(&mut events) });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    take(Piece::Tail { checkpoint, events });
    Ok((checkpoint, last))
}
