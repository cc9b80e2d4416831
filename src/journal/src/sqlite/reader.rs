//! Reading beside a writer, or where none lives. Needs no lease and never changes the log.

use std::cell::{Ref, RefCell};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use yard_engine::Seq;

use super::schema::{self, Found};
use super::{OtherDisk, tip, wal};
use crate::JournalError;
use crate::load::Link;

/// A read-only view of the log in a file.
pub(crate) struct SqliteReader {
    path: PathBuf,
    /// None in real life.
    disk: Option<OtherDisk>,
    source: RefCell<Source>,
}

/// How the file is open.
struct Source {
    conn: Connection,
    /// In a place that cannot be written and without a WAL, the file is read as if nobody could change it. That
    /// holds until a WAL appears.
    frozen: bool,
}

impl SqliteReader {
    /// Opens an existing journal.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        Ok(Self { path: path.to_owned(), disk: None, source: RefCell::new(Source::open(path)?) })
    }

    /// Opens an existing journal on another disk than the system's.
    pub(crate) fn open_on(disk: OtherDisk, path: &Path) -> Result<Self, JournalError> {
        let conn = wal::connect_on(disk, path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        schema::inspect(&conn)?;
        let source = Source { conn, frozen: false };
        Ok(Self { path: path.to_owned(), disk: Some(disk), source: RefCell::new(source) })
    }

    /// Which file it reads.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The disk that it lies on, if that is not the system's.
    pub(crate) fn disk(&self) -> Option<OtherDisk> {
        self.disk
    }

    /// Writes a copy of this moment to a new file, readable by its owner only. Works beside a live writer.
    pub(crate) fn copy_to(&self, target: &Path) -> Result<(), JournalError> {
        let failed = |error| JournalError::io("create the copy", target, error);
        let source = self.source()?;
        schema::inspect(&source.conn)?;
        let mut open = OpenOptions::new();
        let file = open.write(true).create_new(true).mode(0o600).open(target).map_err(failed)?;
        let copied = source.conn.execute("VACUUM INTO ?1", [uri(target, "mode=rw")]);
        let copied = copied.map_err(|error| JournalError::from(error).with_cause(&source.conn));
        // SQLite leaves it to us to make the copy durable.
        let copied = copied.and_then(|_| file.sync_all().map_err(failed));
        if copied.is_err() {
            let _ = fs::remove_file(target);
        }
        copied
    }

    /// Runs `work` on one moment of the log, and tells it what was noted as its end before that moment. A file without
    /// tables yet is an empty log.
    pub(crate) fn read<T: Default>(
        &self,
        work: impl FnOnce(&Connection, Option<Link>) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let source = self.source()?;
        let noted = if self.disk.is_none() { tip::read(&self.path) } else { None };
        let tx = source.conn.unchecked_transaction()?;
        let answer = match (schema::inspect(&tx)?, noted) {
            (Found::Blank, Some(Link { seq: noted, .. })) if noted > Seq(0) => {
                return Err(JournalError::CutOff { last: Seq(0), noted });
            }
            (Found::Blank, _) => T::default(),
            (Found::Older | Found::Current, noted) => work(&tx, noted)?,
        };
        tx.finish()?;
        Ok(answer)
    }

    fn source(&self) -> Result<Ref<'_, Source>, JournalError> {
        if self.source.borrow().frozen && wal::has_wal(&self.path) {
            *self.source.borrow_mut() = Source::open(&self.path)?;
        }
        Ok(self.source.borrow())
    }
}

impl Source {
    fn open(path: &Path) -> Result<Self, JournalError> {
        match fs::metadata(path) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(JournalError::Missing(path.to_owned()));
            }
            Err(error) => return Err(JournalError::io("open the journal", path, error)),
        }
        wal::spare(path)?;
        match Self::connect(path, false) {
            // SQLite needs to create its helper files here, and may not, or has no space for them.
            Err(JournalError::Readonly(_) | JournalError::Full | JournalError::Disk(_))
                if !wal::has_wal(path) =>
            {
                Self::connect(Path::new(&uri(path, "immutable=1")), true)
            }
            other => other,
        }
    }

    fn connect(name: &Path, frozen: bool) -> Result<Self, JournalError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let conn = wal::connect(name, flags)?;
        conn.pragma_update(None, "cache_size", -32 * 1024)?;
        schema::inspect(&conn)?;
        Ok(Self { conn, frozen })
    }
}

/// A path as SQLite's URI.
fn uri(path: &Path, options: &str) -> String {
    let mut text = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            text.push(byte as char);
        } else {
            let _ = write!(text, "%{byte:02x}");
        }
    }
    text + "?" + options
}
