//! The town as it was at the beginning of its log. Events are cut off when they are too old; whoever goes through what is
//! left has to begin with something, which is a copy of a checkpoint from then, in a file of its own.
//!
//! Such a copy is a journal without events, so that it is read and verified like one. It is a file wherever the journal is.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use yard_engine::{Seq, Timestamp};

use super::rows::set_meta;
use super::writer::{SqliteJournal, transact};
use super::{OtherDisk, schema, wal};
use crate::JournalError;
use crate::load::{self, Log, Meta, RawEntity};

/// Writes a copy of a log's checkpoint alone to a new file, readable by its owner only, and says where it stands and what
/// the sum is there. What is there after an error is of no use.
pub(crate) fn new_copy(
    log: &impl Log,
    disk: Option<OtherDisk>,
    target: &Path,
) -> Result<(Seq, u64), JournalError> {
    let mut copy = create(disk, target)?;
    let meta = log.meta()?;
    let base = load::link_at(log, &meta, meta.checkpoint)?;
    schema::ensure(&mut copy)?;
    let tx = copy.transaction()?;
    let mut put = tx.prepare("INSERT INTO entities VALUES (?1, ?2, ?3, ?4)")?;
    // As they lie there: one that is damaged stays so, and is found out when the copy is read.
    log.entities(|RawEntity { kind, id, body, sum }| {
        let texts = [kind, id, body].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        put.execute((&texts[0], &texts[1], &texts[2], sum as i64))?;
        Ok(())
    })?;
    drop(put);
    set_meta(&tx, &Meta { base, ..meta })?;
    tx.commit()?;
    Ok((base.seq, base.sum))
}

fn create(disk: Option<OtherDisk>, target: &Path) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    if let Some(disk) = disk {
        return wal::connect_on(disk, target, flags | OpenFlags::SQLITE_OPEN_CREATE);
    }
    schema::create_file(target)?;
    wal::connect(target, flags)
}

impl SqliteJournal {
    /// When an event happened; none if it is not in the log, or no longer.
    pub(crate) fn time_of(&self, seq: Seq) -> Result<Option<Timestamp>, JournalError> {
        let mut at = self.conn.prepare_cached("SELECT at FROM events WHERE seq = ?1")?;
        let at: Option<i64> = at.query_row([seq.0 as i64], |row| row.get(0)).optional()?;
        Ok(at.map(Timestamp::from_millis))
    }

    /// Whether this log has, or was cut off at, an event with this sum: whatever was copied there is about this log, not
    /// about another that was in its place.
    pub(crate) fn has_sum(&self, seq: Seq, sum: u64) -> Result<bool, JournalError> {
        load::has_sum(&self.conn, seq, sum)
    }

    /// The last event that was cut off; 0 if none was.
    pub(crate) fn beginning(&self) -> Result<Seq, JournalError> {
        Ok(self.conn.meta()?.base.seq)
    }

    /// Cuts off the events up to `seq`, the oldest first and not more than `most`, but none that the checkpoint does not
    /// contain. Answers how many went.
    pub(crate) fn cut_off(&mut self, seq: Seq, most: u64) -> Result<u64, JournalError> {
        let stored = transact(&self.conn, &self.wal, |conn| {
            let meta = conn.meta()?;
            let limit = Seq(meta.base.seq.0.saturating_add(most));
            let last = seq.min(meta.checkpoint).min(limit);
            if last <= meta.base.seq {
                return Ok(0);
            }
            let base = load::link_at(conn, &meta, last)?;
            let mut cut = conn.prepare_cached("DELETE FROM events WHERE seq <= ?1")?;
            let gone = cut.execute([base.seq.0 as i64])?;
            set_meta(conn, &Meta { base, ..meta })?;
            Ok(gone as u64)
        });
        self.settle(stored)
    }
}
