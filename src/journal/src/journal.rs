//! The writer, wherever the log is stored.

use std::path::Path;

use yard_engine::{Seq, Timestamp};

use crate::postgres::{PostgresJournal, PostgresUrl, RowLease};
use crate::sqlite::SqliteJournal;
use crate::{EntityRow, JournalError, Loaded, OtherDisk, Piece, Row};

/// The event log, open for writing. The caller holds the town's [`Lease`](crate::Lease).
pub struct Journal(Kind);

#[expect(clippy::large_enum_variant, reason = "there is one of them, and the larger is the usual one")]
enum Kind {
    Sqlite(SqliteJournal),
    Postgres(Box<PostgresJournal>),
}

/// Does the same with either.
macro_rules! either {
    ($journal:expr, $it:ident => $do:expr) => {
        match $journal {
            Kind::Sqlite($it) => $do,
            Kind::Postgres($it) => $do,
        }
    };
}

impl Journal {
    /// Opens the journal in a file, and creates it (readable by its owner only) where there is none.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Ok(Self(Kind::Sqlite(SqliteJournal::open(path)?)))
    }

    /// Makes an empty journal in a file, readable by its owner only, unless there is one, or was one.
    pub fn create(path: &Path) -> Result<(), JournalError> {
        SqliteJournal::create(path)
    }

    /// Makes an empty journal in a schema of a database, unless there is one.
    pub fn begin_in_postgres(url: &PostgresUrl) -> Result<(), JournalError> {
        crate::postgres::begin(url)
    }

    /// Refuses a place where there is no journal, and no trace of one.
    pub fn must_exist(path: &Path) -> Result<(), JournalError> {
        SqliteJournal::must_exist(path)
    }

    /// Opens or creates the journal in a file on another disk than the system's.
    pub fn open_on(disk: OtherDisk, path: &Path) -> Result<Self, JournalError> {
        Ok(Self(Kind::Sqlite(SqliteJournal::open_on(disk, path)?)))
    }

    pub(crate) fn in_postgres(url: &PostgresUrl, lease: &RowLease) -> Result<Self, JournalError> {
        Ok(Self(Kind::Postgres(Box::new(PostgresJournal::open(url, lease)?))))
    }

    /// Prepares for many appends, beside them: for whoever stays.
    pub fn settle_in(&self) {
        match &self.0 {
            Kind::Sqlite(journal) => journal.settle_in(),
            // The server sees to itself.
            Kind::Postgres(_) => {}
        }
    }

    /// The last checkpoint and all events after it, verified. Appends continue from what was read.
    pub fn load(&mut self) -> Result<Loaded, JournalError> {
        either!(&mut self.0, it => it.load())
    }

    /// The same, handed out as it is read. What was handed out before an error counts for nothing.
    pub fn load_in_pieces(&mut self, take: &mut dyn FnMut(Piece)) -> Result<(), JournalError> {
        either!(&mut self.0, it => it.load_in_pieces(take))
    }

    /// Gives back the memory that only a busy writer needs.
    pub fn rest(&self) {
        match &self.0 {
            Kind::Sqlite(journal) => journal.rest(),
            Kind::Postgres(_) => {}
        }
    }

    /// Stores rows that continue the log, all or none. They are durable when this returns.
    pub fn append(&mut self, rows: &[Row]) -> Result<(), JournalError> {
        either!(&mut self.0, it => it.append(rows))
    }

    /// Stores what has changed since the last checkpoint, and that the entities now stand at event `seq`.
    pub fn checkpoint(&mut self, seq: Seq, changed: &[EntityRow]) -> Result<(), JournalError> {
        either!(&mut self.0, it => it.checkpoint(seq, changed))
    }

    /// Whether whoever opened this may still write: an error if the lease was lost. A lock on a file is never lost.
    pub fn confirm(&mut self) -> Result<(), JournalError> {
        match &mut self.0 {
            Kind::Sqlite(_) => Ok(()),
            Kind::Postgres(journal) => journal.confirm(),
        }
    }

    /// The last event in the log; 0 if there never was one.
    pub fn last_seq(&self) -> Seq {
        either!(&self.0, it => it.last_seq())
    }

    /// When an event happened; none if it is not in the log, or no longer.
    pub fn time_of(&mut self, seq: Seq) -> Result<Option<Timestamp>, JournalError> {
        either!(&mut self.0, it => it.time_of(seq))
    }

    /// Whether this log has, or was cut off at, an event with this sum: whatever was copied there is about this log, not
    /// about another that was in its place.
    pub fn has_sum(&mut self, seq: Seq, sum: u64) -> Result<bool, JournalError> {
        either!(&mut self.0, it => it.has_sum(seq, sum))
    }

    /// The last event that was cut off; 0 if none was.
    pub fn beginning(&mut self) -> Result<Seq, JournalError> {
        either!(&mut self.0, it => it.beginning())
    }

    /// Cuts off the events up to `seq`, the oldest first and not more than `most`, but none that the checkpoint does not
    /// contain. Answers how many went.
    pub fn cut_off(&mut self, seq: Seq, most: u64) -> Result<u64, JournalError> {
        either!(&mut self.0, it => it.cut_off(seq, most))
    }
}
