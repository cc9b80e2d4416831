//! What can go wrong with the journal, told apart by what the caller must do about it.

use std::io;
use std::path::PathBuf;

use rusqlite::{Connection, ErrorCode, ffi};
use yard_engine::Seq;

use crate::Holder;

/// Why the journal did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk or the quota is full. Nothing was stored; the same append may be tried again.
    #[error(
        "no space left for the journal, so the change was not stored: free some disk space (or quota) and try again"
    )]
    Full,
    /// The disk refused to make data durable. What is on it is unknown: the process must end and start again.
    #[error(
        "the disk failed to store the journal durably (fsync): check the disk and the kernel log, then start again"
    )]
    Fsync,
    /// A newer program wrote this journal.
    #[error(
        "the journal has format {found}, this ym knows formats up to {known}: use the newer ym that wrote it"
    )]
    NewerSchema {
        /// The version in the file.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// There is no journal at this place.
    #[error("there is no journal at {}: restore it from a copy, or begin anew with `ym init`", .0.display())]
    Missing(PathBuf),
    /// The database holds the log of another town than this directory's.
    #[error(
        "{0} holds the log of another town than this directory's: correct `store` in the config; a town moves with `ym journal copy` and `ym config set store`"
    )]
    OtherTown(String),
    /// Workers may be alive that only another directory knows.
    #[error(
        "workers of the town were started by {0}, and only a daemon there can tell what becomes of them: start one there, or, if that place is gone for good, give them up with `ym doctor --give-up-workers` here"
    )]
    WorkersElsewhere(Holder),
    /// The file is something else.
    #[error("the journal file is not a yardmaster journal: move it away, or restore it from a copy")]
    NotAJournal,
    /// All that is left is the WAL, which SQLite would delete if it opened the file.
    #[error(
        "the journal file is empty, but its write-ahead log is not: restore the file from a copy, or let `ym doctor --fix` put both aside"
    )]
    Emptied,
    /// A row is missing or changed.
    #[error(
        "the journal is damaged at event {seq}: {what}; run `ym journal check`, and restore the file from a copy or let `ym doctor --fix` keep what is whole"
    )]
    Corrupt {
        /// The first event that is wrong.
        seq: Seq,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An entity of the checkpoint is changed.
    #[error(
        "the journal's checkpoint is damaged at {kind} {id}; run `ym journal check`, and restore the file from a copy or let `ym doctor --fix` keep what is whole"
    )]
    CorruptEntity {
        /// The entity's kind.
        kind: String,
        /// The entity's id.
        id: String,
    },
    /// The checkpoint has an entity too few or too many.
    #[error(
        "the journal's checkpoint is damaged: entities are missing; run `ym journal check`, and restore the file from a copy or let `ym doctor --fix` keep what is whole"
    )]
    CorruptCheckpoint,
    /// The journal's own notes are changed.
    #[error(
        "the journal's own notes are damaged; run `ym journal check`, and restore the file from a copy or let `ym doctor --fix` keep what is whole"
    )]
    CorruptNotes,
    /// Events that were acknowledged are not there any more.
    #[error(
        "the journal ends at event {last}, but event {noted} was stored: its end is damaged, or an older copy was put in its place; run `ym doctor`, which says what can be done"
    )]
    CutOff {
        /// The last event that is there.
        last: Seq,
        /// The last event that was acknowledged.
        noted: Seq,
    },
    /// Neither the checkpoint nor the events alone yield a state.
    #[error(
        "the journal cannot be repaired: its checkpoint is damaged, and the events before it were dropped long ago; restore the file from a copy"
    )]
    BeyondRepair,
    /// SQLite itself finds the file damaged.
    #[error(
        "the journal file is damaged ({0}); run `ym journal check`, and restore the file from a copy or let `ym doctor --fix` keep what is whole"
    )]
    Damaged(#[source] rusqlite::Error),
    /// The rows handed to an append do not continue the log. A defect in the caller.
    #[error("event {found} does not continue the journal, which expects event {expected}")]
    OutOfOrder {
        /// The number that would continue the log.
        expected: Seq,
        /// The number that came.
        found: Seq,
    },
    /// Another writer has appended meanwhile, although only the lease's holder may.
    #[error(
        "another process has written event {seq} to the journal: make sure only one uses this town, then start again"
    )]
    Overtaken {
        /// The number that was already taken.
        seq: Seq,
    },
    /// Somebody else has taken the town over; nothing was stored.
    #[error(
        "another process has taken this town over meanwhile, so nothing more is written: look with ym status, and start again as a standby"
    )]
    Replaced,
    /// The database cannot be reached, or went away for too long. Whether the last write was stored is unknown.
    #[error("the PostgreSQL journal cannot be reached: {0}; check the server and `store` in the config")]
    Unreachable(String),
    /// The database refused.
    #[error("the PostgreSQL journal failed: {0}")]
    Server(String),
    /// The config does not say where the journal is.
    #[error("`store` in the config is not valid: {0}")]
    BadStore(String),
    /// A database is to be written without the lease that it keeps. A defect in the caller.
    #[error("a journal in PostgreSQL is only written by whoever holds its lease")]
    WithoutLease,
    /// A copy is to go where there is something already.
    #[error("{0} holds a journal already; nothing was copied: move it away, or name another place")]
    NotEmpty(String),
    /// A checkpoint may neither go back nor reach past the log. A defect in the caller.
    #[error("a checkpoint at event {seq} is impossible: it must lie between {from} and {to}")]
    CheckpointOutOfRange {
        /// What was asked for.
        seq: Seq,
        /// The present checkpoint.
        from: Seq,
        /// The end of the log.
        to: Seq,
    },
    /// Somebody else holds the file locked for too long.
    #[error("the journal is locked by another program: close it (a database browser?) and try again")]
    Busy,
    /// The file or its directory may not be written, or not be opened at all.
    #[error(
        "the journal cannot be opened or written ({0}): check the owner and permissions of the file and its directory"
    )]
    Readonly(String),
    /// The file system refused something else.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The disk refused to read or write.
    #[error("the disk failed to read or write the journal ({0}): check the disk and the kernel log")]
    Disk(String),
    /// Anything else SQLite reports.
    #[error("the journal failed: {0}")]
    Sqlite(#[source] rusqlite::Error),
}

impl JournalError {
    /// Whether the journal is no longer the writer's: another may be writing by now.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Replaced | Self::Unreachable(_))
    }

    /// Wraps an error of the file system, sorting out full disks and missing rights.
    pub(crate) fn io(what: &'static str, path: &std::path::Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Readonly(format!("{}: {source}", path.display()))
            }
            _ => Self::Io { what, path: path.to_owned(), source },
        }
    }

    /// Looks behind SQLite's "disk I/O error" for the system's own reason: a full quota is no broken disk.
    /// Call it before anything else happens on the connection.
    pub(crate) fn with_cause(self, conn: &Connection) -> Self {
        let Self::Disk(said) = self else { return self };
        // SAFETY: the handle is open as long as `conn` lives, and the call only reads from it.
        let errno = unsafe { ffi::sqlite3_system_errno(conn.handle()) };
        let cause = io::Error::from_raw_os_error(errno);
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::ReadOnlyFilesystem => Self::Readonly(cause.to_string()),
            _ if errno != 0 => Self::Disk(format!("{said}: {cause}")),
            _ => Self::Disk(said),
        }
    }
}

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        let Some(code) = error.sqlite_error() else {
            return Self::Sqlite(error);
        };
        match (code.code, code.extended_code) {
            // The shared-memory file only ever fails to grow for want of space.
            (ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE) => Self::Full,
            (_, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => Self::Fsync,
            (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => Self::Busy,
            (ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen, _) => {
                Self::Readonly(error.to_string())
            }
            (ErrorCode::NotADatabase, _) => Self::NotAJournal,
            (ErrorCode::DatabaseCorrupt, _) => Self::Damaged(error),
            (ErrorCode::SystemIoFailure, _) => Self::Disk(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_code(code: i32) -> JournalError {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()
    }

    #[test]
    fn errors_are_told_apart_by_what_the_caller_must_do() {
        assert!(matches!(from_code(ffi::SQLITE_FULL), JournalError::Full));
        assert!(matches!(from_code(ffi::SQLITE_IOERR_SHMSIZE), JournalError::Full));
        assert!(matches!(from_code(ffi::SQLITE_IOERR_FSYNC), JournalError::Fsync));
        assert!(matches!(from_code(ffi::SQLITE_IOERR_DIR_FSYNC), JournalError::Fsync));
        assert!(matches!(from_code(ffi::SQLITE_IOERR_WRITE), JournalError::Disk(_)));
        assert!(matches!(from_code(ffi::SQLITE_BUSY), JournalError::Busy));
        assert!(matches!(from_code(ffi::SQLITE_BUSY_RECOVERY), JournalError::Busy));
        assert!(matches!(from_code(ffi::SQLITE_READONLY), JournalError::Readonly(_)));
        assert!(matches!(from_code(ffi::SQLITE_CANTOPEN), JournalError::Readonly(_)));
        assert!(matches!(from_code(ffi::SQLITE_CORRUPT), JournalError::Damaged(_)));
        assert!(matches!(from_code(ffi::SQLITE_NOTADB), JournalError::NotAJournal));
    }
}
