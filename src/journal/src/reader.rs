//! Reading beside a writer, or where none lives, wherever the log is stored. Needs no lease and never changes the log.

use std::path::Path;
use std::time::Duration;

use yard_engine::Seq;

use crate::check::{self, CheckReport};
use crate::load::{self, Link, Log};
use crate::postgres::{PostgresReader, PostgresUrl};
use crate::query::{self, EventQuery};
use crate::sqlite::{SqliteReader, new_copy};
use crate::{Holder, JournalError, Lease, Loaded, OtherDisk, Piece, Row, Store};

/// A read-only view of the log. Each call sees one moment of it, and later calls see what was appended meanwhile.
pub struct Reader(Kind);

enum Kind {
    Sqlite(SqliteReader),
    Postgres(Box<PostgresReader>),
}

/// Runs the same work on one moment of either log, with what was noted as its end before.
macro_rules! read {
    ($reader:expr, |$log:ident, $noted:ident| $work:expr) => {
        match &$reader.0 {
            Kind::Sqlite(it) => it.read(|$log, $noted| $work),
            Kind::Postgres(it) => it.read(|$log| {
                let $noted: Option<Link> = None;
                $work
            }),
        }
    };
}

impl Reader {
    /// Opens an existing journal.
    pub fn open(store: impl Into<Store>) -> Result<Self, JournalError> {
        Ok(Self(match store.into() {
            Store::Sqlite(path) => Kind::Sqlite(SqliteReader::open(&path)?),
            Store::Postgres(url) => Kind::Postgres(Box::new(PostgresReader::open(&url)?)),
        }))
    }

    /// Opens an existing journal in a file on another disk than the system's.
    pub fn open_on(disk: OtherDisk, path: &Path) -> Result<Self, JournalError> {
        Ok(Self(Kind::Sqlite(SqliteReader::open_on(disk, path)?)))
    }

    /// Who led the town last, if that was from another directory: only there anybody knows of its workers.
    pub fn led_from_elsewhere(&self) -> Result<Option<Holder>, JournalError> {
        match &self.0 {
            Kind::Sqlite(_) => Ok(None),
            Kind::Postgres(it) => it.led_from_elsewhere(),
        }
    }

    /// The last checkpoint and all events after it, verified.
    pub fn load(&self) -> Result<Loaded, JournalError> {
        read!(self, |log, noted| load::load(log, noted).map(|(loaded, _)| loaded))
    }

    /// The same, handed out as it is read. What was handed out before an error counts for nothing.
    pub fn load_in_pieces(&self, take: &mut dyn FnMut(Piece)) -> Result<(), JournalError> {
        read!(self, |log, noted| load::load_in_pieces(log, noted, take).map(|_| ()))
    }

    /// The last event in the log; 0 if there never was one.
    pub fn last_seq(&self) -> Result<Seq, JournalError> {
        self.tip().map(|(seq, _)| seq)
    }

    /// The last event in the log and its sum, by which two logs can be compared.
    pub fn tip(&self) -> Result<(Seq, u64), JournalError> {
        read!(self, |log, noted| load::tip(log, &log.meta()?, noted).map(|tip| (tip.seq, tip.sum)))
    }

    /// The last event that the checkpoint contains.
    pub fn checkpoint(&self) -> Result<Seq, JournalError> {
        read!(self, |log, _noted| Ok(log.meta()?.checkpoint))
    }

    /// The events a query asks for, in the order of the log.
    pub fn events(&self, query: &EventQuery) -> Result<Vec<Row>, JournalError> {
        read!(self, |log, _noted| query.run(log))
    }

    /// Those of the wanted events that still exist, in the order of the log, each once.
    pub fn events_at(&self, wanted: &[Seq]) -> Result<Vec<Row>, JournalError> {
        read!(self, |log, _noted| query::events_at(log, wanted))
    }

    /// Checks the whole journal, every event and every entity. Damage is in the report; an error means that the
    /// journal could not be looked at.
    pub fn check(&self) -> Result<CheckReport, JournalError> {
        read!(self, |log, noted| Ok(check::check(log, noted)))
    }

    /// Writes a copy of this moment to a new file, readable by its owner only. Works beside a live writer.
    pub fn copy_to(&self, target: &Path) -> Result<(), JournalError> {
        match &self.0 {
            Kind::Sqlite(it) => it.copy_to(target),
            Kind::Postgres(it) => it.read(|log| crate::sqlite::write_copy(log, target)),
        }
    }

    /// Writes a copy of this moment into an empty schema of a database.
    pub(crate) fn copy_into(&self, url: &PostgresUrl) -> Result<(), JournalError> {
        read!(self, |log, noted| {
            load::tip(log, &log.meta()?, noted)?;
            crate::postgres::write_copy(log, url)
        })
    }

    /// Writes a copy of the checkpoint alone to a new file, readable by its owner only, and says where it stands and what
    /// the sum is there. Works beside a live writer, and holds nobody up. What is there after an error is of no use.
    pub fn copy_checkpoint_to(&self, target: &Path) -> Result<(Seq, u64), JournalError> {
        match &self.0 {
            Kind::Sqlite(it) => it.read(|log, _| new_copy(log, it.disk(), target)),
            Kind::Postgres(it) => it.read(|log| new_copy(log, None, target)),
        }
    }

    /// The last event that was cut off; 0 if none was.
    pub fn beginning(&self) -> Result<Seq, JournalError> {
        read!(self, |log, _noted| Ok(log.meta()?.base.seq))
    }

    /// As [`Journal::has_sum`](crate::Journal::has_sum).
    pub fn has_sum(&self, seq: Seq, sum: u64) -> Result<bool, JournalError> {
        read!(self, |log, _noted| load::has_sum(log, seq, sum))
    }

    /// Who holds the lease of this journal now, if anybody does.
    pub fn holder(&self) -> Result<Option<Holder>, JournalError> {
        match &self.0 {
            Kind::Sqlite(it) => Ok(Lease::holder(it.path())),
            Kind::Postgres(it) => it.holder(),
        }
    }

    /// Waits until the log may have grown or the lease may have changed hands, not longer than this. With SQLite nobody
    /// tells, so it waits for as long.
    pub fn wait_for_news(&self, patience: Duration) -> Result<(), JournalError> {
        match &self.0 {
            Kind::Sqlite(_) => {
                std::thread::sleep(patience);
                Ok(())
            }
            Kind::Postgres(it) => it.wait_for_news(patience),
        }
    }
}
