//! The writer: appends, checkpoints and retention, each in one durable transaction.
//!
//! What the writer remembers (the last event and its sum) changes only after a commit, so a failed call leaves
//! both file and memory as they were and may simply be made again.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, OptionalExtension, params};
use yard_engine::Seq;

use super::rows::set_meta;
use super::tip::{self, TipNote};
use super::wal::{self, WalKeeper};
use super::{OtherDisk, schema};
use crate::chain::Sealer;
use crate::load::{self, Link, Log, Meta};
use crate::{EntityRow, JournalError, Loaded, Piece, Row};

/// The WAL is overwritten, not shrunk, unless one huge transaction has blown it up beyond this size (in bytes).
const WAL_KEPT: i64 = 64 << 20;

/// The event log in a file, open for writing.
pub(crate) struct SqliteJournal {
    pub(super) conn: Connection,
    pub(super) wal: WalKeeper,
    sealer: Sealer,
    tip: Link,
    /// None on another disk than the system's.
    note: Option<TipNote>,
}

impl SqliteJournal {
    /// Makes an empty journal, readable by its owner only, unless there is one, or was one.
    pub(crate) fn create(path: &Path) -> Result<(), JournalError> {
        if tip::read(path).is_some_and(|noted| noted.seq > Seq(0)) {
            Ok(())
        } else {
            schema::create_file(path)
        }
    }

    /// Refuses a place where there is no journal, and no trace of one.
    pub(crate) fn must_exist(path: &Path) -> Result<(), JournalError> {
        if path.exists() || tip::read(path).is_some() {
            Ok(())
        } else {
            Err(JournalError::Missing(path.to_owned()))
        }
    }

    /// Opens the journal, and creates it (readable by its owner only) where there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        let noted = tip::read(path);
        match noted {
            // It was there: an empty one in its place would be a town that has forgotten everything.
            Some(Link { seq: noted, .. }) if noted > Seq(0) && !path.exists() => {
                return Err(JournalError::CutOff { last: Seq(0), noted });
            }
            Some(_) | None => schema::create_file(path)?,
        }
        wal::spare(path)?;
        let conn = wal::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // Until it is known to be whole, nothing may be taken away of it: a person may find more than we do.
        wal::keep_on_close(&conn, true)?;
        look_over(&conn, noted)?;
        let mut journal = Self::open_with(conn, path, None, noted)?;
        wal::keep_on_close(&journal.conn, false)?;
        journal.note = Some(TipNote::of(path));
        Ok(journal)
    }

    /// Opens or creates the journal on another disk than the system's.
    pub(crate) fn open_on(disk: OtherDisk, path: &Path) -> Result<Self, JournalError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Self::open_with(wal::connect_on(disk, path, flags)?, path, Some(disk), None)
    }

    fn open_with(
        mut conn: Connection,
        path: &Path,
        disk: Option<OtherDisk>,
        noted: Option<Link>,
    ) -> Result<Self, JournalError> {
        prepare(&mut conn).map_err(|error| error.with_cause(&conn))?;
        let wal = WalKeeper::watch(&mut conn, path, disk)?;
        let tip = load::tip(&conn, &conn.meta()?, noted)?;
        Ok(Self { conn, wal, sealer: Sealer::default(), tip, note: None })
    }

    /// Prepares for many appends, beside them: for whoever stays.
    pub(crate) fn settle_in(&self) {
        self.wal.make_room();
    }

    /// The last checkpoint and all events after it, verified. Appends continue from what was read.
    pub(crate) fn load(&mut self) -> Result<Loaded, JournalError> {
        let tx = self.conn.unchecked_transaction()?;
        // Only we write: what was noted is what we know.
        let (loaded, tip) = load::load(&*tx, Some(self.tip))?;
        tx.finish()?;
        self.tip = tip;
        Ok(loaded)
    }

    /// The same, handed out as it is read. What was handed out before an error counts for nothing.
    pub(crate) fn load_in_pieces(&mut self, take: &mut dyn FnMut(Piece)) -> Result<(), JournalError> {
        let tx = self.conn.unchecked_transaction()?;
        let (_, tip) = load::load_in_pieces(&*tx, Some(self.tip), take)?;
        tx.finish()?;
        self.tip = tip;
        Ok(())
    }

    /// Gives back the memory that only a busy writer needs.
    pub(crate) fn rest(&self) {
        // Whatever cannot be given back is kept.
        let _ = self.conn.execute_batch("PRAGMA shrink_memory");
    }

    /// Stores rows that continue the log, all or none. They are durable when this returns.
    pub(crate) fn append(&mut self, rows: &[Row]) -> Result<(), JournalError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut tip = self.tip;
        let sealer = &mut self.sealer;
        let stored = transact(&self.conn, &self.wal, |conn| {
            let mut insert = conn.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for row in rows {
                let expected = tip.seq.next();
                if row.seq != expected {
                    return Err(JournalError::OutOfOrder { expected, found: row.seq });
                }
                let at = row.at.as_millis();
                let sum = sealer.event(tip.sum, row.seq, at, row.kind.as_bytes(), row.body.as_bytes());
                insert
                    .execute(params![row.seq.0 as i64, at, row.kind, row.body, sum as i64])
                    .map_err(|error| taken(error, row.seq))?;
                tip = Link { seq: row.seq, sum };
            }
            Ok(())
        });
        self.settle(stored)?;
        self.tip = tip;
        if let Some(note) = &mut self.note {
            note.write(tip);
        }
        Ok(())
    }

    /// Stores what has changed since the last checkpoint, and that the entities now stand at event `seq`.
    pub(crate) fn checkpoint(&mut self, seq: Seq, changed: &[EntityRow]) -> Result<(), JournalError> {
        let to = self.tip.seq;
        let sealer = &mut self.sealer;
        let stored = transact(&self.conn, &self.wal, |conn| {
            let meta = conn.meta()?;
            let from = meta.checkpoint;
            let mut content = meta.content.unwrap_or_default();
            if seq < from || seq > to {
                return Err(JournalError::CheckpointOutOfRange { seq, from, to });
            }
            let mut put = conn.prepare_cached(
                "INSERT INTO entities VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, sum = excluded.sum",
            )?;
            let mut remove = conn.prepare_cached("DELETE FROM entities WHERE kind = ?1 AND id = ?2")?;
            let mut before = conn.prepare_cached("SELECT sum FROM entities WHERE kind = ?1 AND id = ?2")?;
            // The first checkpoint finds nothing to replace.
            let is_first = content.entities == 0;
            for EntityRow { kind, id, body } in changed {
                let replaced = if is_first {
                    None
                } else {
                    before.query_row([kind, id], |row| row.get::<_, i64>(0)).optional()?
                };
                if let Some(sum) = replaced {
                    content.remove(sum as u64);
                }
                if let Some(body) = body {
                    let sum = sealer.entity(kind.as_bytes(), id.as_bytes(), body.as_bytes());
                    put.execute(params![kind, id, body, sum as i64])?;
                    content.add(sum);
                } else {
                    remove.execute([kind, id])?;
                }
            }
            set_meta(conn, &Meta { checkpoint: seq, content: Some(content), ..meta })
        });
        self.settle(stored)
    }

    /// The last event in the log; 0 if there never was one.
    pub(crate) fn last_seq(&self) -> Seq {
        self.tip.seq
    }

    /// After a transaction: keeps the WAL short.
    pub(super) fn settle<T>(&mut self, stored: Result<T, JournalError>) -> Result<T, JournalError> {
        match &stored {
            Ok(_) => self.wal.tidy(),
            Err(JournalError::Full) => self.wal.hurry(),
            Err(_) => {}
        }
        stored
    }
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        self.wal.close(&self.conn);
    }
}

/// Looks whether the log goes as far as it was noted, and changes nothing.
fn look_over(conn: &Connection, noted: Option<Link>) -> Result<(), JournalError> {
    let tx = conn.unchecked_transaction()?;
    let is_blank = schema::inspect(&tx)? == schema::Found::Blank;
    if !is_blank {
        load::tip(&*tx, &tx.meta()?, noted)?;
    }
    Ok(tx.finish()?)
}

/// Makes the connection a writer's, and the file a journal of today's format.
fn prepare(conn: &mut Connection) -> Result<(), JournalError> {
    schema::inspect(conn)?;
    // SQLite opens what it may not write for reading only, without a word.
    if conn.is_readonly(MAIN_DB)? {
        return Err(JournalError::Readonly("it is write-protected".to_owned()));
    }
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(JournalError::Readonly(format!(
            "its file system allows only journal mode {mode:?}, not \"wal\""
        )));
    }
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "journal_size_limit", WAL_KEPT)?;
    conn.pragma_update(None, "cache_size", -32 * 1024)?;
    make_sure(conn)?;
    schema::ensure(conn)
}

/// Makes durable what a process that died has left in the WAL, before anybody acts upon it: it may have died because it
/// could not sync it, and then the system may take it for clean, so that no later sync stores it. So it is copied into the
/// database, the WAL emptied, and that made durable by a commit.
fn make_sure(conn: &Connection) -> Result<(), JournalError> {
    let made_sure = wal::start_over(conn).and_then(|was_left| {
        if was_left {
            let version: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
            conn.pragma_update(None, "user_version", version)?;
        }
        Ok(())
    });
    match made_sure {
        // Without room, or with a reader in the way, it is synced at least, which is all that is needed unless a sync failed.
        Err(JournalError::Full | JournalError::Busy) => Ok(()),
        other => other,
    }
}

/// Runs `work` in one transaction: committed and durable if it succeeds, otherwise without a trace.
pub(super) fn transact<T>(
    conn: &Connection,
    wal: &WalKeeper,
    work: impl FnOnce(&Connection) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    let _turn = wal.turn();
    if wal.fsync_failed() {
        return Err(JournalError::Fsync);
    }
    let run = |sql| -> Result<(), JournalError> {
        conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    };
    let done = run("BEGIN IMMEDIATE")
        .and_then(|()| work(conn))
        .and_then(|value| wal.make_name_durable().map(|()| value))
        .and_then(|value| run("COMMIT").map(|()| value));
    done.map_err(|error| {
        let error = error.with_cause(conn);
        if matches!(error, JournalError::Fsync) {
            wal.set_fsync_failed();
        }
        // SQLite has rolled back by itself after some errors.
        if !conn.is_autocommit() {
            let _ = run("ROLLBACK");
        }
        error
    })
}

/// A number that is already taken means a second writer.
fn taken(error: rusqlite::Error, seq: Seq) -> JournalError {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => JournalError::Overtaken { seq },
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn row(seq: u64, length: usize) -> Row {
        let (at, kind) = (yard_engine::Timestamp::from_millis(7), "bead.added".to_owned());
        Row { seq: Seq(seq), at, kind, body: "x".repeat(length) }
    }

    /// A full file stands in for a full disk where no file system can be mounted.
    #[test]
    fn an_append_without_room_leaves_nothing_and_may_be_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = SqliteJournal::open(&folder.path().join("journal.db")).unwrap();
        journal.append(&[row(1, 10)]).unwrap();
        let pages = journal.conn.pragma_query_value(None, "page_count", |it| it.get::<_, i64>(0)).unwrap();
        let limit = |conn: &Connection, pages: i64| {
            conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        };
        limit(&journal.conn, pages + 1);
        let batch = [row(2, 10), row(3, 100_000)];
        assert!(matches!(journal.append(&batch), Err(JournalError::Full)));
        assert_eq!(journal.last_seq(), Seq(1));
        assert_eq!(journal.load().unwrap().tail, [row(1, 10)]);
        limit(&journal.conn, 1_000_000);
        journal.append(&batch).unwrap();
        assert_eq!(journal.load().unwrap().tail.len(), 3);
    }

    #[test]
    fn after_a_failed_fsync_nothing_more_is_promised() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = SqliteJournal::open(&folder.path().join("journal.db")).unwrap();
        journal.wal.set_fsync_failed();
        assert!(matches!(journal.append(&[row(1, 10)]), Err(JournalError::Fsync)));
        assert!(matches!(journal.checkpoint(Seq(0), &[]), Err(JournalError::Fsync)));
        assert_eq!(journal.load().unwrap(), Loaded::default());
    }
}
