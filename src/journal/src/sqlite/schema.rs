//! The tables, their version, and whether a file has them.
//!
//! `events` has no index besides its row id: an append touches the last page and, rarely, its parent. `meta` has
//! one row; `base_*` is the place and sum of the last event cut off by retention, from which the chain goes on.
//! Format 2 added what the entities come to (`entities`, `digest`) and a seal over the row; the first writer that opens a
//! journal of format 1 adds them, and readers do without until then.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use yard_engine::Seq;

use super::folder::sync_folder_of;
use super::rows::set_meta;
use crate::JournalError;
use crate::chain::{Content, GENESIS};
use crate::load::{self, Link, Log, Meta};

/// The version of the tables this program reads and writes.
pub const SCHEMA_VERSION: i64 = 2;

/// The oldest version that is still read.
const OLDEST: i64 = 1;

/// Marks the file as ours: "yard" in ASCII.
const APPLICATION_ID: i64 = 0x7961_7264;

/// What is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing yet: a new file, or one whose creation was interrupted.
    Blank,
    /// Older tables, which can be read as they are.
    Older,
    /// The tables of [`SCHEMA_VERSION`].
    Current,
}

/// Looks at a file without changing it. Refuses what is newer or not ours.
pub(super) fn inspect(conn: &Connection) -> Result<Found, JournalError> {
    let pragma = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (id, version) = (pragma("application_id")?, pragma("user_version")?);
    if id == APPLICATION_ID {
        return match version {
            SCHEMA_VERSION => Ok(Found::Current),
            OLDEST..SCHEMA_VERSION => Ok(Found::Older),
            found if found > SCHEMA_VERSION => {
                Err(JournalError::NewerSchema { found, known: SCHEMA_VERSION })
            }
            _ => Err(JournalError::NotAJournal),
        };
    }
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if id == 0 && version == 0 && tables == 0 { Ok(Found::Blank) } else { Err(JournalError::NotAJournal) }
}

/// Creates an empty file that only its owner may read, unless there is one. An existing file is not opened:
/// closing it again would drop the locks SQLite holds on it elsewhere in this process.
pub(super) fn create_file(path: &Path) -> Result<(), JournalError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => sync_folder_of(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(JournalError::io("create the journal", path, error)),
    }
}

/// Creates the tables in a blank file, or brings older ones up to date, all or nothing.
pub(super) fn ensure(conn: &mut Connection) -> Result<(), JournalError> {
    if inspect(conn)? == Found::Current {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match inspect(&tx)? {
        Found::Current => {}
        Found::Older => bring_up_to_date(&tx)?,
        Found::Blank => create(&tx)?,
    }
    Ok(tx.commit()?)
}

fn create(conn: &Connection) -> Result<(), JournalError> {
    let meta = Meta {
        base: Link { seq: Seq(0), sum: GENESIS },
        checkpoint: Seq(0),
        content: Some(Content::default()),
    };
    conn.execute_batch(&format!(
            "CREATE TABLE events (
                 seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL
             ) STRICT;
             CREATE TABLE entities (
                 kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL, UNIQUE (kind, id)
             ) STRICT;
             CREATE TABLE meta (
                 one INTEGER PRIMARY KEY CHECK (one = 1),
                 base_seq INTEGER NOT NULL, base_sum INTEGER NOT NULL, checkpoint_seq INTEGER NOT NULL,
                 entities INTEGER NOT NULL, digest INTEGER NOT NULL, seal INTEGER NOT NULL
             ) STRICT;
             INSERT INTO meta VALUES (1, 0, {base_sum}, 0, 0, 0, {seal});
             PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {SCHEMA_VERSION};",
            base_sum = GENESIS as i64,
            seal = meta.seal() as i64,
        ))?;
    Ok(())
}

/// Adds what format 2 has. What is damaged already is refused rather than sealed.
fn bring_up_to_date(conn: &Connection) -> Result<(), JournalError> {
    let content = load::walk_entities(conn, |entity, sealed| {
        if sealed {
            return Ok(());
        }
        Err(JournalError::CorruptEntity { kind: entity.kind, id: entity.id })
    })?;
    let meta = Meta { content: Some(content), ..conn.meta()? };
    conn.execute_batch(&format!(
        "ALTER TABLE meta ADD COLUMN entities INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE meta ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE meta ADD COLUMN seal INTEGER NOT NULL DEFAULT 0;
         PRAGMA user_version = {SCHEMA_VERSION};"
    ))?;
    set_meta(conn, &meta)
}
