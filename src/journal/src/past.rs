//! The town as it was at the beginning of its log. Events are cut off when they are too old; whoever goes through what is
//! left has to begin with something, which is a copy of a checkpoint from then, in a file of its own.
//!
//! Such a copy is a journal without events, so that it is read and verified like one.

use std::path::Path;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use yard_engine::{Seq, Timestamp};

use crate::load::{self, Meta};
use crate::writer::transact;
use crate::{Journal, JournalError, OtherDisk, Reader, schema, wal};

impl Reader {
    /// Writes a copy of the checkpoint alone to a new file, readable by its owner only, and says where it stands and what
    /// the sum is there. Works beside a live writer, and holds nobody up. What is there after an error is of no use.
    pub fn copy_checkpoint_to(&self, target: &Path) -> Result<(Seq, u64), JournalError> {
        let mut copy = create(self.disk, target)?;
        self.read(|conn, _| copy_checkpoint(conn, &mut copy))
    }

    /// The last event that was cut off; 0 if none was.
    pub fn beginning(&self) -> Result<Seq, JournalError> {
        self.read(|conn, _| Ok(load::meta(conn)?.base.seq))
    }

    /// As [`Journal::has_sum`].
    pub fn has_sum(&self, seq: Seq, sum: u64) -> Result<bool, JournalError> {
        self.read(|conn, _| has_sum(conn, seq, sum))
    }
}

fn has_sum(conn: &Connection, seq: Seq, sum: u64) -> Result<bool, JournalError> {
    match load::link_at(conn, &load::meta(conn)?, seq) {
        Ok(link) => Ok(link.sum == sum),
        Err(JournalError::Corrupt { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn create(disk: Option<OtherDisk>, target: &Path) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    if let Some(disk) = disk {
        return wal::connect_on(disk, target, flags | OpenFlags::SQLITE_OPEN_CREATE);
    }
    schema::create_file(target)?;
    wal::connect(target, flags)
}

fn copy_checkpoint(conn: &Connection, copy: &mut Connection) -> Result<(Seq, u64), JournalError> {
    let meta = load::meta(conn)?;
    let base = load::link_at(conn, &meta, meta.checkpoint)?;
    schema::ensure(copy)?;
    let tx = copy.transaction()?;
    let mut put = tx.prepare("INSERT INTO entities VALUES (?1, ?2, ?3, ?4)")?;
    let mut all = conn.prepare("SELECT kind, id, body, sum FROM entities")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let text = |column| Ok::<_, rusqlite::Error>(ToSqlOutput::Borrowed(row.get_ref(column)?));
        put.execute((text(0)?, text(1)?, text(2)?, row.get::<_, i64>(3)?))?;
    }
    drop(put);
    load::set_meta(&tx, &Meta { base, ..meta })?;
    tx.commit()?;
    Ok((base.seq, base.sum))
}

impl Journal {
    /// When an event happened; none if it is not in the log, or no longer.
    pub fn time_of(&self, seq: Seq) -> Result<Option<Timestamp>, JournalError> {
        let mut at = self.conn.prepare_cached("SELECT at FROM events WHERE seq = ?1")?;
        let at: Option<i64> = at.query_row([seq.0 as i64], |row| row.get(0)).optional()?;
        Ok(at.map(Timestamp::from_millis))
    }

    /// Whether this log has, or was cut off at, an event with this sum: whatever was copied there is about this log, not
    /// about another that was in its place.
    pub fn has_sum(&self, seq: Seq, sum: u64) -> Result<bool, JournalError> {
        has_sum(&self.conn, seq, sum)
    }

    /// The last event that was cut off; 0 if none was.
    pub fn beginning(&self) -> Result<Seq, JournalError> {
        Ok(load::meta(&self.conn)?.base.seq)
    }

    /// Cuts off the events up to `seq`, the oldest first and not more than `most`, but none that the checkpoint does not
    /// contain. Answers how many went.
    pub fn cut_off(&mut self, seq: Seq, most: u64) -> Result<u64, JournalError> {
        let stored = transact(&self.conn, &self.wal, |conn| {
            let meta = load::meta(conn)?;
            let limit = Seq(meta.base.seq.0.saturating_add(most));
            let last = seq.min(meta.checkpoint).min(limit);
            if last <= meta.base.seq {
                return Ok(0);
            }
            let base = load::link_at(conn, &meta, last)?;
            let mut cut = conn.prepare_cached("DELETE FROM events WHERE seq <= ?1")?;
            let gone = cut.execute([base.seq.0 as i64])?;
            load::set_meta(conn, &Meta { base, ..meta })?;
            Ok(gone as u64)
        });
        self.settle(stored)
    }
}
