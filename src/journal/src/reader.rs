//! Reading beside a writer, or where none lives. Needs no lease and never changes the log.

use std::cell::{Ref, RefCell};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use yard_engine::Seq;

use crate::check::{self, CheckReport};
use crate::load::Link;
use crate::query::{self, EventQuery};
use crate::schema::{self, Found};
use crate::{JournalError, Loaded, OtherDisk, Piece, Row, load, tip, wal};

/// A read-only view of the log. Each call sees one moment of it, and later calls see what was appended meanwhile.
pub struct Reader {
    path: PathBuf,
    /// None in real life.
    pub(crate) disk: Option<OtherDisk>,
    source: RefCell<Source>,
}

/// How the file is open.
struct Source {
    conn: Connection,
    /// In a place that cannot be written and without a WAL, the file is read as if nobody could change it. That
    /// holds until a WAL appears.
    frozen: bool,
}

impl Reader {
    /// Opens an existing journal.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Ok(Self { path: path.to_owned(), disk: None, source: RefCell::new(Source::open(path)?) })
    }

    /// Opens an existing journal on another disk than the system's.
    pub fn open_on(disk: OtherDisk, path: &Path) -> Result<Self, JournalError> {
        let conn = wal::connect_on(disk, path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        schema::inspect(&conn)?;
        let source = Source { conn, frozen: false };
        Ok(Self { path: path.to_owned(), disk: Some(disk), source: RefCell::new(source) })
    }

    /// The last checkpoint and all events after it, verified.
    pub fn load(&self) -> Result<Loaded, JournalError> {
        self.read(|conn, noted| load::load(conn, noted).map(|(loaded, _)| loaded))
    }

    /// The same, handed out as it is read. What was handed out before an error counts for nothing.
    pub fn load_in_pieces(&self, take: &mut dyn FnMut(Piece)) -> Result<(), JournalError> {
        self.read(|conn, noted| load::load_in_pieces(conn, noted, take).map(|_| ()))
    }

    /// The last event in the log; 0 if there never was one.
    pub fn last_seq(&self) -> Result<Seq, JournalError> {
        self.read(|conn, noted| load::tip(conn, &load::meta(conn)?, noted).map(|tip| tip.seq))
    }

    /// The events a query asks for, in the order of the log.
    pub fn events(&self, query: &EventQuery) -> Result<Vec<Row>, JournalError> {
        self.read(|conn, _| query.run(conn))
    }

    /// Those of the wanted events that still exist, in the order of the log, each once.
    pub fn events_at(&self, wanted: &[Seq]) -> Result<Vec<Row>, JournalError> {
        self.read(|conn, _| query::events_at(conn, wanted))
    }

    /// Checks the whole file, every event and every entity. Damage is in the report; an error means that the
    /// journal could not be looked at.
    pub fn check(&self) -> Result<CheckReport, JournalError> {
        self.read(|conn, noted| Ok(check::check(conn, noted)))
    }

    /// Writes a copy of this moment to a new file, readable by its owner only. Works beside a live writer.
    pub fn copy_to(&self, target: &Path) -> Result<(), JournalError> {
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
        if self.source.borrow().frozen && has_wal(&self.path) {
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
        match Self::connect(path, false) {
            // SQLite needs to create its helper files here, and may not, or has no space for them.
            Err(JournalError::Readonly(_) | JournalError::Full | JournalError::Disk(_)) if !has_wal(path) => {
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

/// Whether there is a WAL with anything in it beside the journal.
fn has_wal(path: &Path) -> bool {
    fs::metadata(wal::wal_of(path)).is_ok_and(|it| it.len() > 0)
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
