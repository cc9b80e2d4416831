//! The simulated disk of one thread: files in memory, what of them has been made durable, and what goes wrong with them.
//!
//! A write is seen by everybody at once and is durable after the next sync of its file. A kill loses nothing; a power cut
//! loses, of all sectors written since the last sync, any. Writes and syncs can fail, the disk can be full, and the process
//! can be ended in the middle of the n-th step, after which nothing it does reaches the disk. After a failed sync the
//! system may, as Linux does, take for clean what it could not store: it is still read, but no later sync stores it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::rc::Rc;

use rusqlite::ffi;

use crate::sim::dice::Dice;

/// What is written in one piece.
pub(super) const SECTOR: usize = 512;
/// The system's number for a full disk, and for one that fails.
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// A file.
#[derive(Default)]
pub(super) struct Inode {
    pub(super) now: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors written since the last sync.
    dirty: BTreeSet<usize>,
    /// Sectors that a sync failed to store and that the system takes for clean.
    given_up: BTreeSet<usize>,
    pub(super) locks: Locks,
    pub(super) shm: Shm,
}

/// Who holds the file: SQLite's ladder of locks.
#[derive(Default)]
pub(super) struct Locks {
    pub(super) shared: u32,
    pub(super) reserved: bool,
    pub(super) pending: bool,
    pub(super) exclusive: bool,
}

/// The wal-index: memory that all connections share.
#[derive(Default)]
pub(super) struct Shm {
    pub(super) users: u32,
    pub(super) regions: Vec<Box<[u8]>>,
    pub(super) shared: [u32; 8],
    pub(super) exclusive: [bool; 8],
}

/// What is to go wrong, at which step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The process ends in the middle of this step.
    Crash,
    /// The step fails, and nothing of it happens.
    Fail,
}

/// A step that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Write,
    Sync,
    Truncate,
    Delete,
    Rename,
    SyncFolder,
}

/// How far a step goes.
pub(super) enum Verdict {
    Go,
    /// Only so much of it, then the process is gone.
    Partly(Dice),
    /// Not at all, and this is what SQLite hears.
    No(i32),
}

/// The disk of a thread.
pub(super) struct Disk {
    pub(super) files: BTreeMap<String, Rc<RefCell<Inode>>>,
    /// Deleted since the last sync of anything: a power cut may bring them back. File systems keep the order of changes to
    /// folders, so that a sync of any file makes all earlier ones durable.
    deleted: Vec<(String, Rc<RefCell<Inode>>)>,
    /// Old and new names since the folder was last synced: a power cut may take any of them back. Syncs of files do not
    /// count, because SQLite's overwrite what is there already, which file systems store without touching the folder.
    renamed: Vec<(String, String)>,
    /// The process is gone: nothing it does counts any more.
    pub(super) dead: bool,
    pub(super) full: bool,
    /// Steps until something goes wrong, and what.
    fault: Option<(u64, Fault)>,
    /// What is to go wrong with the next step of a kind.
    awaited: Option<(Step, Fault)>,
    /// Whoever looks on from outside meets no faults.
    pub(super) onlooker: bool,
    /// Steps since the history began.
    pub(super) steps: u64,
    /// What went wrong, for the story.
    pub(super) events: Vec<String>,
    pub(super) errno: i32,
    /// A sync failed since this process began: it may promise nothing more.
    pub(super) sync_failed: bool,
    pub(super) dice: Dice,
    /// Asked before each step that changes something; what it says is a broken promise.
    pub(super) watch: Option<Rc<dyn Fn() -> Option<String>>>,
    pub(super) broken: Option<String>,
}

thread_local! {
    pub(super) static DISK: RefCell<Disk> = RefCell::new(Disk::new(0));
}

/// Does something with this thread's disk.
pub(super) fn disk<T>(work: impl FnOnce(&mut Disk) -> T) -> T {
    DISK.with_borrow_mut(work)
}

impl Disk {
    fn new(seed: u64) -> Self {
        Self {
            files: BTreeMap::new(),
            deleted: Vec::new(),
            renamed: Vec::new(),
            dead: false,
            full: false,
            fault: None,
            awaited: None,
            onlooker: false,
            steps: 0,
            events: Vec::new(),
            errno: 0,
            sync_failed: false,
            dice: Dice::new(seed),
            watch: None,
            broken: None,
        }
    }

    /// A new disk for a new history.
    pub(super) fn format(&mut self, seed: u64) {
        *self = Self::new(seed ^ 0x6469_736b);
    }

    /// Something goes wrong at the n-th step from now.
    pub(super) fn plan(&mut self, steps: u64, fault: Fault) {
        self.fault = Some((steps, fault));
    }

    /// Something goes wrong with the next step of this kind.
    pub(super) fn plan_for(&mut self, step: Step, fault: Fault) {
        self.awaited = Some((step, fault));
    }

    /// Nothing is planned any more.
    pub(super) fn heal(&mut self) {
        (self.fault, self.awaited) = (None, None);
    }

    /// Whether something is planned.
    pub(super) fn has_plan(&self) -> bool {
        self.fault.is_some()
    }

    /// The process is ended from outside.
    pub(super) fn kill(&mut self) {
        self.dead = true;
    }

    /// Another process begins on what the disk has; after a power cut that is less.
    pub(super) fn boot(&mut self, power_cut: bool) {
        self.dead = false;
        self.sync_failed = false;
        self.heal();
        for inode in self.files.values() {
            let mut inode = inode.borrow_mut();
            (inode.locks, inode.shm) = (Locks::default(), Shm::default());
            if power_cut {
                inode.lose(&mut self.dice);
            }
        }
        for (name, inode) in std::mem::take(&mut self.deleted) {
            if power_cut && self.dice.one_in(2) && !self.files.contains_key(&name) {
                inode.borrow_mut().lose(&mut self.dice);
                self.events.push(format!("{name} is back"));
                self.files.insert(name, inode);
            }
        }
        if power_cut {
            for (from, to) in std::mem::take(&mut self.renamed).into_iter().rev() {
                if self.dice.one_in(2)
                    && let Some(inode) = self.files.remove(&to)
                {
                    self.events.push(format!("{to} is called {from} again"));
                    self.files.insert(from, inode);
                }
            }
        }
    }

    /// Whether a step may go on.
    pub(super) fn step(&mut self, step: Step, grows: bool) -> Verdict {
        let code = match step {
            Step::Write => ffi::SQLITE_IOERR_WRITE,
            Step::Sync => ffi::SQLITE_IOERR_FSYNC,
            Step::Truncate => ffi::SQLITE_IOERR_TRUNCATE,
            Step::Delete | Step::Rename => ffi::SQLITE_IOERR_DELETE,
            Step::SyncFolder => ffi::SQLITE_IOERR_DIR_FSYNC,
        };
        if self.onlooker {
            return Verdict::Go;
        }
        self.errno = EIO;
        if self.dead {
            return Verdict::No(code);
        }
        self.steps += 1;
        if let Some(watch) = self.watch.clone()
            && let Some(broken) = watch()
        {
            self.broken.get_or_insert(broken);
        }
        let awaited = self.awaited.take_if(|(awaited, _)| *awaited == step).map(|(_, fault)| fault);
        let due = match &mut self.fault {
            Some((left, fault)) if *left <= 1 => Some(*fault),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        };
        if due.is_some() {
            self.fault = None;
        }
        match due.or(awaited) {
            Some(Fault::Crash) => {
                self.dead = true;
                self.events.push(format!("the process is gone in the middle of a {step:?}"));
                Verdict::Partly(Dice::new(self.dice.between(0, u64::MAX - 1)))
            }
            Some(Fault::Fail) => {
                self.events.push(format!("a {step:?} fails"));
                Verdict::No(code)
            }
            None if self.full && grows => {
                self.errno = ENOSPC;
                Verdict::No(ffi::SQLITE_FULL)
            }
            None => {
                if step == Step::Sync {
                    self.deleted.clear();
                }
                Verdict::Go
            }
        }
    }

    /// A file goes away.
    pub(super) fn delete(&mut self, name: &str, synced: bool) -> bool {
        let Some(inode) = self.files.remove(name) else { return false };
        if !synced {
            self.deleted.push((name.to_owned(), inode));
        }
        true
    }

    /// A file gets another name, at once or not at all.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let happens = match self.step(Step::Rename, false) {
            Verdict::Go => true,
            Verdict::Partly(mut dice) => dice.one_in(2),
            Verdict::No(_) => false,
        };
        if !happens {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let inode = self.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        self.files.insert(to.to_owned(), inode);
        self.renamed.push((from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// All names become durable.
    pub(super) fn sync_folder(&mut self) -> io::Result<()> {
        match self.step(Step::SyncFolder, false) {
            Verdict::Go => {
                self.renamed.clear();
                self.deleted.clear();
                Ok(())
            }
            Verdict::Partly(_) | Verdict::No(_) => Err(io::Error::from_raw_os_error(EIO)),
        }
    }
}

impl Inode {
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let (end, had) = (at + bytes.len(), self.now.len());
        if had < end {
            self.now.resize(end, 0);
        }
        self.now[at..end].copy_from_slice(bytes);
        self.becomes_dirty(at.min(had) / SECTOR..end.div_ceil(SECTOR));
    }

    fn becomes_dirty(&mut self, sectors: Range<usize>) {
        for sector in sectors {
            self.given_up.remove(&sector);
            self.dirty.insert(sector);
        }
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.now.truncate(length);
        // Where it was cut, and whatever is written there later, is not what is durable.
        self.becomes_dirty(length / SECTOR..length / SECTOR + 1);
    }

    /// A sync fails; whether the system tries again what it could not store is open.
    pub(super) fn sync_fails(&mut self, dice: &mut Dice) {
        if dice.one_in(2) {
            self.given_up.append(&mut self.dirty);
        }
    }

    pub(super) fn sync(&mut self) {
        if self.now.len() < self.durable.len() {
            self.durable.truncate(self.now.len());
        }
        self.durable.resize(self.now.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            self.keep(sector);
        }
    }

    /// Some of what is dirty becomes durable, in no order.
    pub(super) fn sync_partly(&mut self, dice: &mut Dice) {
        let dirty: Vec<usize> = self.dirty.iter().copied().collect();
        self.durable.resize(self.now.len().max(self.durable.len()), 0);
        for sector in dirty {
            if dice.one_in(2) {
                self.keep(sector);
            }
        }
    }

    fn keep(&mut self, sector: usize) {
        let (from, to) = (sector * SECTOR, ((sector + 1) * SECTOR).min(self.now.len()));
        if from < to {
            if self.durable.len() < to {
                self.durable.resize(to, 0);
            }
            self.durable[from..to].copy_from_slice(&self.now[from..to]);
        }
    }

    /// After a power cut: of each sector that was not synced, either what is new or what was durable.
    fn lose(&mut self, dice: &mut Dice) {
        if self.dirty.is_empty() && self.given_up.is_empty() {
            return;
        }
        if self.given_up.is_empty() && dice.one_in(4) {
            // The disk was quick enough.
            self.sync();
            return;
        }
        if !dice.one_in(4) {
            self.sync_partly(dice);
            // A cut may be durable, too.
            if self.now.len() < self.durable.len() && dice.one_in(2) {
                self.durable.truncate(self.now.len());
            }
        }
        self.dirty.clear();
        self.given_up.clear();
        self.now.clone_from(&self.durable);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::{Connection, OpenFlags};
    use yard_engine::{Seq, Timestamp};
    use yard_journal::{Journal, JournalError, OtherDisk, Row};

    use super::*;
    use crate::sim::deep::vfs;

    fn open(synchronous: &str) -> Connection {
        vfs::register();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let conn = Connection::open_with_flags_and_vfs(Path::new("/t.db"), flags, vfs::NAME).expect("a file");
        conn.pragma_update(None, "journal_mode", "wal").expect("a WAL");
        conn.pragma_update(None, "synchronous", synchronous).expect("a mode");
        conn
    }

    /// How many of ten committed rows are there after a power cut, or none if the file is damaged.
    fn rows_after_a_power_cut(seed: u64, synchronous: &str) -> Option<i64> {
        disk(|disk| disk.format(seed));
        let conn = open(synchronous);
        conn.execute_batch("CREATE TABLE t (x)").expect("a table");
        for n in 0..10 {
            conn.execute("INSERT INTO t VALUES (?1)", [n]).expect("a row");
        }
        disk(Disk::kill);
        drop(conn);
        disk(|disk| disk.boot(true));
        let again = open(synchronous);
        again.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).ok()
    }

    #[test]
    fn what_was_synced_survives_a_power_cut_and_only_that_is_sure_to() {
        assert!((0..200).all(|seed| rows_after_a_power_cut(seed, "full") == Some(10)));
        assert!((0..200).any(|seed| rows_after_a_power_cut(seed, "off") != Some(10)));
    }

    #[test]
    fn a_crash_at_any_step_of_a_commit_leaves_all_of_it_or_nothing() {
        for steps in 1..40 {
            for power_cut in [false, true] {
                disk(|disk| disk.format(steps));
                let conn = open("full");
                conn.execute_batch("CREATE TABLE t (x)").expect("a table");
                disk(|disk| disk.plan(steps, Fault::Crash));
                let both = "BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); COMMIT";
                let told = conn.execute_batch(both).is_ok();
                disk(Disk::kill);
                drop(conn);
                disk(|disk| disk.boot(power_cut));
                let count = open("full").query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
                let count = count.expect("the table");
                assert!(count == 2 || (count == 0 && !told), "{count} rows after a crash at step {steps}");
            }
        }
    }

    #[test]
    fn a_new_name_is_sure_only_after_its_folder_was_synced() {
        let kept = |synced: bool| {
            (0..50)
                .filter(|seed| {
                    disk(|disk| {
                        disk.format(*seed);
                        disk.files.insert("/new".to_owned(), Rc::default());
                        disk.rename("/new", "/name").expect("a name");
                        if synced {
                            disk.sync_folder().expect("a sync");
                        }
                        // A kill alone makes nothing durable, and loses nothing.
                        disk.kill();
                        disk.boot(false);
                        assert!(disk.files.contains_key("/name"));
                        disk.kill();
                        disk.boot(true);
                        disk.files.contains_key("/name")
                    })
                })
                .count()
        };
        assert_eq!(kept(true), 50);
        assert!((1..50).contains(&kept(false)));
    }

    fn journal() -> Journal {
        vfs::register();
        let place = OtherDisk { vfs: vfs::NAME, wal_limit: 1_000 };
        Journal::open_on(place, Path::new("/j.db")).expect("a journal")
    }

    fn row(seq: u64) -> Row {
        let (at, kind) = (Timestamp::from_millis(7), "bead.added".to_owned());
        Row { seq: Seq(seq), at, kind, body: "x".repeat(700) }
    }

    /// The process is gone, and another one begins.
    fn begins_anew(journal: Journal, power_cut: bool) -> Journal {
        disk(Disk::kill);
        drop(journal);
        disk(|disk| disk.boot(power_cut));
        self::journal()
    }

    #[test]
    fn what_a_journal_shows_after_a_failed_sync_outlasts_a_power_cut() {
        let mut shown = BTreeSet::new();
        for seed in 0..200 {
            disk(|disk| disk.format(seed));
            let mut it = journal();
            it.append(&[row(1)]).expect("room");
            let refused = (1..20).any(|steps| {
                disk(|disk| disk.plan(steps, Fault::Fail));
                matches!(it.append(&[row(it.last_seq().0 + 1)]), Err(JournalError::Fsync))
            });
            assert!(refused, "no sync failed");
            let promised = it.last_seq();
            let mut it = begins_anew(it, false);
            let seen = it.last_seq();
            shown.insert(seen.0 - promised.0);
            if seed % 2 == 0 {
                it.append(&[row(seen.0 + 1)]).expect("room");
            }
            let seen = it.last_seq();
            assert_eq!(begins_anew(it, true).last_seq(), seen, "seed {seed}");
        }
        assert!(shown.contains(&1), "the event that was refused was never shown");
    }

    #[test]
    fn a_full_disk_is_told_as_such() {
        disk(|disk| disk.format(1));
        let conn = open("full");
        conn.execute_batch("CREATE TABLE t (x)").expect("a table");
        disk(|disk| disk.full = true);
        let refused = conn.execute("INSERT INTO t VALUES (zeroblob(100000))", []).expect_err("no room");
        assert_eq!(refused.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull));
        disk(|disk| disk.full = false);
        conn.execute("INSERT INTO t VALUES (1)", []).expect("room again");
    }
}
