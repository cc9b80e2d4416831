//! Reading the log back: its ends, its checkpoint, and the verified events after it, wherever it is stored. Every function
//! here expects to run inside one read transaction, so that what it returns belongs together.

use std::ops::ControlFlow;

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

/// An entity as stored, not yet believed.
pub(crate) struct RawEntity {
    pub(crate) kind: Vec<u8>,
    pub(crate) id: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) sum: u64,
}

/// One moment of a stored log. What it hands out is as it lies there: whoever asks verifies it.
pub(crate) trait Log {
    /// The notes, verified as far as they are sealed.
    fn meta(&self) -> Result<Meta, JournalError>;

    /// The last event, if there is one.
    fn last(&self) -> Result<Option<Link>, JournalError>;

    /// The sum of an event, if it is there.
    fn sum_of(&self, seq: Seq) -> Result<Option<u64>, JournalError>;

    /// Hands out one event, if it is there; says so.
    fn event(
        &self,
        seq: Seq,
        visit: impl FnOnce(&RawEvent<'_>) -> Result<(), JournalError>,
    ) -> Result<bool, JournalError>;

    /// Hands out the events after this place in their order.
    fn events_after(
        &self,
        seq: Seq,
        visit: impl FnMut(&RawEvent<'_>) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<(), JournalError>;

    /// Hands out the events from the last one back to the one after this place, each with the sum of the one before it.
    fn events_back(
        &self,
        seq: Seq,
        visit: impl FnMut(&RawEvent<'_>, Option<u64>) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<(), JournalError>;

    /// Hands out all entities, in no particular order.
    fn entities(&self, visit: impl FnMut(RawEntity) -> Result<(), JournalError>) -> Result<(), JournalError>;

    /// What the store itself finds wrong with what it holds.
    fn damages(&self, note: impl FnMut(String)) -> Result<(), JournalError>;
}

impl Meta {
    /// The seal over all notes.
    pub(crate) fn seal(&self) -> u64 {
        let Content { entities, digest } = self.content.unwrap_or_default();
        Sealer::default().notes([self.base.seq.0, self.base.sum, self.checkpoint.0, entities, digest])
    }

    /// The notes as they are stored: `base_seq, base_sum, checkpoint_seq, entities, digest, seal`.
    pub(crate) fn notes(&self) -> [i64; 6] {
        let Content { entities, digest } = self.content.unwrap_or_default();
        let notes = [self.base.seq.0, self.base.sum, self.checkpoint.0, entities, digest, self.seal()];
        notes.map(|note| note as i64)
    }
}

/// The last event, or where the log was cut off if none is left. It must not lie before the checkpoint, nor before the
/// event that was `noted` as acknowledged.
pub(crate) fn tip(log: &impl Log, meta: &Meta, noted: Option<Link>) -> Result<Link, JournalError> {
    let last = log.last()?.unwrap_or(meta.base);
    if last.seq < meta.checkpoint {
        let what = "the log ends here, before its checkpoint";
        return Err(JournalError::Corrupt { seq: last.seq.next(), what });
    }
    match noted {
        Some(noted) if noted.seq > last.seq => {
            return Err(JournalError::CutOff { last: last.seq, noted: noted.seq });
        }
        Some(noted) if noted.seq >= meta.base.seq && link_at(log, meta, noted.seq)? != noted => {
            let what = "it is not the event that was stored under this number";
            return Err(JournalError::Corrupt { seq: noted.seq, what });
        }
        Some(_) | None => {}
    }
    Ok(last)
}

/// The link at a place that must exist.
pub(crate) fn link_at(log: &impl Log, meta: &Meta, seq: Seq) -> Result<Link, JournalError> {
    if seq == meta.base.seq {
        return Ok(meta.base);
    }
    let sum = log.sum_of(seq)?.ok_or(JournalError::Corrupt { seq, what: "the event is missing" })?;
    Ok(Link { seq, sum })
}

/// Whether the log has, or was cut off at, an event with this sum.
pub(crate) fn has_sum(log: &impl Log, seq: Seq, sum: u64) -> Result<bool, JournalError> {
    match link_at(log, &log.meta()?, seq) {
        Ok(link) => Ok(link.sum == sum),
        Err(JournalError::Corrupt { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Walks all events after `from` and tells `visit` of each, with whether it continues the chain. The chain goes
/// on from what is stored, so that one damaged row is reported once.
pub(crate) fn walk(
    log: &impl Log,
    from: Link,
    mut visit: impl FnMut(&RawEvent<'_>, Result<(), JournalError>) -> Result<ControlFlow<()>, JournalError>,
) -> Result<Link, JournalError> {
    let (mut last, mut sealer) = (from, Sealer::default());
    log.events_after(from.seq, |event| {
        let due = last.seq.next();
        let verdict = if event.seq == due {
            event.verify(Some(last.sum), &mut sealer)
        } else {
            Err(JournalError::Corrupt { seq: due, what: "the event is missing" })
        };
        last = Link { seq: event.seq, sum: event.sum };
        visit(event, verdict)
    })?;
    Ok(last)
}

/// The same from the end of the log backwards, not further than to the event after `base`.
pub(crate) fn walk_back(
    log: &impl Log,
    base: Link,
    mut visit: impl FnMut(&RawEvent<'_>, Result<(), JournalError>) -> Result<ControlFlow<()>, JournalError>,
) -> Result<(), JournalError> {
    let mut sealer = Sealer::default();
    log.events_back(base.seq, |event, before| {
        let before = if event.seq == base.seq.next() { Some(base.sum) } else { before };
        visit(event, event.verify(before, &mut sealer))
    })
}

/// Reads all entities and tells `visit` of each, with whether its seal is intact. Answers what they come to.
pub(crate) fn walk_entities(
    log: &impl Log,
    mut visit: impl FnMut(EntityRow, bool) -> Result<(), JournalError>,
) -> Result<Content, JournalError> {
    let mut content = Content::default();
    let mut sealer = Sealer::default();
    log.entities(|RawEntity { kind, id, body, sum }| {
        let sealed = sealer.entity(&kind, &id, &body) == sum;
        content.add(sum);
        let (kind, kind_whole) = text(kind);
        let (id, id_whole) = text(id);
        let (body, body_whole) = text(body);
        let entity = EntityRow { kind, id, body: Some(body) };
        visit(entity, sealed && kind_whole && id_whole && body_whole)
    })?;
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
pub(crate) fn load(log: &impl Log, noted: Option<Link>) -> Result<(Loaded, Link), JournalError> {
    let mut loaded = Loaded::default();
    let (checkpoint_seq, last) = load_in_pieces(log, noted, &mut |piece| match piece {
        Piece::Entities(mut entities) => loaded.entities.append(&mut entities),
        Piece::Tail { mut events, .. } => loaded.tail.append(&mut events),
    })?;
    Ok((Loaded { checkpoint_seq, ..loaded }, last))
}

/// The same, handed out as it is read. Says where the checkpoint stands. What was handed out before an error counts for
/// nothing.
pub(crate) fn load_in_pieces(
    log: &impl Log,
    noted: Option<Link>,
    take: &mut dyn FnMut(Piece),
) -> Result<(Seq, Link), JournalError> {
    let meta = log.meta()?;
    tip(log, &meta, noted)?;
    let mut entities = Vec::with_capacity(PIECE);
    let content = walk_entities(log, |entity, sealed| {
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
    let from = link_at(log, &meta, meta.checkpoint)?;
    let checkpoint = meta.checkpoint;
    let mut events: Vec<Row> = Vec::new();
    let last = walk(log, from, |event, verdict| {
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
