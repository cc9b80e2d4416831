//! Builders that keep the tests short.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use yard_engine::{Seq, Timestamp};
use yard_journal::{EntityRow, Journal, Row};

/// A folder for one journal.
pub(crate) struct Town {
    folder: TempDir,
}

impl Town {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }

    pub(crate) fn open(&self) -> Journal {
        Journal::open(&self.path()).unwrap()
    }

    /// A journal that holds the events 1 to `last`, closed again.
    pub(crate) fn with_events(last: u64) -> Self {
        let town = Self::new();
        town.open().append(&rows(1..=last)).unwrap();
        town
    }
}

/// Some event number `seq`: every third is of another family.
pub(crate) fn row(seq: u64) -> Row {
    let kind = ["bead.closed", "bead.added", "convoy.launched"][(seq % 3) as usize].to_owned();
    let body = format!(r#"{{"id":"gt-{seq}","note":"größer"}}"#);
    Row { seq: Seq(seq), at: Timestamp::from_millis(1_700_000_000_000 + seq as i64), kind, body }
}

pub(crate) fn rows(range: std::ops::RangeInclusive<u64>) -> Vec<Row> {
    range.map(row).collect()
}

pub(crate) fn entity(id: &str, body: Option<&str>) -> EntityRow {
    EntityRow { kind: "bead".to_owned(), id: id.to_owned(), body: body.map(str::to_owned) }
}

pub(crate) fn numbers(rows: &[Row]) -> Vec<u64> {
    rows.iter().map(|row| row.seq.0).collect()
}

/// Changes the closed journal behind its back.
pub(crate) fn tamper(town: &Town, sql: &str) {
    let conn = rusqlite::Connection::open(town.path()).unwrap();
    conn.execute_batch(sql).unwrap();
}

/// A file system of its own, of a fixed size. Only root can make one.
pub(crate) struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    pub(crate) fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .output();
        mounted.is_ok_and(|it| it.status.success()).then_some(Self { folder })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the whole file system unwritable, for root too.
    pub(crate) fn freeze(&self) {
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(self.folder.path()).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}
