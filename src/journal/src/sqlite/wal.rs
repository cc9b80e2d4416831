//! Keeping the write-ahead log short without slowing the writer.
//!
//! The writer never checkpoints. Once the WAL has grown by [`LIMIT`] frames, a thread with its own connection
//! copies them into the database beside the running writer. What the writer adds meanwhile would keep the WAL
//! from ever starting over, so a last, small pass runs in the writer's turn; the next append then overwrites the
//! WAL from its beginning instead of growing it.

use std::cell::Cell;
use std::ffi::c_int;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

use super::folder::sync_folder_of;
use crate::JournalError;

/// Frames (pages) after which the WAL is copied back: 8 MB, which one region of the wal-index covers.
const LIMIT: u32 = 2000;

/// A pass that copied fewer frames than this has caught up with the writer.
const CAUGHT_UP: u32 = 100;

/// Passes beside the writer before the one in its turn.
const PASSES: u32 = 8;

/// How long the WAL is made in advance, in bytes: what it holds when a round is due, and what is written meanwhile.
const ROOM: u64 = (LIMIT as u64 + 1000) * (4096 + 24);

/// A disk with less free space than so many times [`ROOM`] keeps it for what happens.
const PLENTY: u64 = 16;

/// Opens a connection that checkpoints only when told to, and when it is the last one to close. (Then SQLite also
/// deletes the WAL. Keeping it was slower: the next command had to read it all, to find nothing new.)
pub(super) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, JournalError> {
    prepare(Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

/// Refuses a file that was emptied while its WAL was not: SQLite would delete the WAL, which may hold all there is.
pub(super) fn spare(path: &Path) -> Result<(), JournalError> {
    let is_empty = fs::metadata(path).is_ok_and(|it| it.len() == 0);
    if is_empty && has_wal(path) { Err(JournalError::Emptied) } else { Ok(()) }
}

/// Whether there is a WAL with anything in it beside the journal.
pub(super) fn has_wal(path: &Path) -> bool {
    fs::metadata(wal_of(path)).is_ok_and(|it| it.len() > 0)
}

/// Says whether a connection leaves the WAL as it is when it is the last one to close.
pub(super) fn keep_on_close(conn: &Connection, keep: bool) -> Result<(), JournalError> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)?;
    Ok(())
}

/// The same on another disk.
pub(super) fn connect_on(disk: OtherDisk, path: &Path, flags: OpenFlags) -> Result<Connection, JournalError> {
    prepare(Connection::open_with_flags_and_vfs(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX, disk.vfs)?)
}

fn prepare(conn: Connection) -> Result<Connection, JournalError> {
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(conn)
}

/// A disk that is not the system's, for simulations. Everything happens on the caller's thread there.
#[derive(Debug, Clone, Copy)]
pub struct OtherDisk {
    /// SQLite's name for it, under which it is registered as a VFS.
    pub vfs: &'static str,
    /// Frames after which the WAL is copied back.
    pub wal_limit: u32,
}

/// What the writer and the thread both see.
struct Shared {
    /// Held by the writer during a transaction, and by the thread for its last pass.
    turn: Mutex<()>,
    /// Held while waiting for the turn, so that a busy writer cannot take the turn twice before the thread has it.
    queue: Mutex<()>,
    /// The length of the WAL after the writer's last commit.
    frames: AtomicU32,
    /// The length at which the next round is due.
    due: AtomicU32,
    /// Some fsync failed, here or there: nothing more may be promised.
    fsync_failed: AtomicBool,
}

impl Shared {
    fn turn(&self) -> MutexGuard<'_, ()> {
        let _place = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer's side of the arrangement.
pub(super) struct WalKeeper {
    path: PathBuf,
    /// None in real life.
    disk: Option<OtherDisk>,
    limit: u32,
    /// The WAL's name is on the disk.
    named: Cell<bool>,
    shared: Arc<Shared>,
    /// Started when first needed: most commands never write that much.
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
    /// The thread's own connection, where there is no thread.
    own: Option<Connection>,
}

impl WalKeeper {
    /// Watches the commits of the writer's connection.
    pub(super) fn watch(
        conn: &mut Connection,
        path: &Path,
        disk: Option<OtherDisk>,
    ) -> Result<Self, JournalError> {
        let limit = disk.map_or(LIMIT, |disk| disk.wal_limit);
        let shared = Arc::new(Shared {
            turn: Mutex::new(()),
            queue: Mutex::new(()),
            frames: AtomicU32::new(0),
            due: AtomicU32::new(limit),
            fsync_failed: AtomicBool::new(false),
        });
        let seen = Arc::clone(&shared);
        conn.wal_hook(Some(move |_: &mut Wal, frames: c_int| {
            seen.frames.store(frames.max(0) as u32, Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            path: path.to_owned(),
            disk,
            limit,
            named: Cell::new(false),
            shared,
            thread: None,
            own: None,
        })
    }

    /// The writer's turn: while the guard lives, no last pass runs.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.shared.turn()
    }

    /// Whether an fsync has failed.
    pub(super) fn fsync_failed(&self) -> bool {
        self.shared.fsync_failed.load(Relaxed)
    }

    /// Remembers that an fsync has failed.
    pub(super) fn set_fsync_failed(&self) {
        self.shared.fsync_failed.store(true, Relaxed);
    }

    /// Makes the WAL's name durable, once: what is committed to a file whose name a power cut takes away is lost. SQLite
    /// would sync the folder by itself, but takes no notice if that fails, so it is told not to (`.cargo/config.toml`).
    pub(super) fn make_name_durable(&self) -> Result<(), JournalError> {
        if self.disk.is_none() && !self.named.get() {
            sync_folder_of(&self.path)?;
            self.named.set(true);
        }
        Ok(())
    }

    /// Writes the WAL in advance, on a thread of its own: overwriting a file costs one write per sync, and making it
    /// longer costs several. A failure costs only that.
    pub(super) fn make_room(&self) {
        if self.disk.is_some() {
            return;
        }
        let (path, shared) = (wal_of(&self.path), Arc::clone(&self.shared));
        let named = thread::Builder::new().name("ym-wal-room".to_owned());
        let _ = named.spawn(move || {
            if let Ok(Some(room)) = make_room(&path, &shared)
                && room.sync_data().is_err()
            {
                shared.fsync_failed.store(true, Relaxed);
            }
        });
    }

    /// After a commit: asks for a round if one is due. Never waits.
    pub(super) fn tidy(&mut self) {
        let frames = self.shared.frames.load(Relaxed);
        if frames < self.limit {
            self.shared.due.store(self.limit, Relaxed);
        } else if frames >= self.shared.due.load(Relaxed) {
            self.nudge();
        }
    }

    /// Asks for a round whatever the length: on a full disk, a WAL that starts over may be just the missing space.
    pub(super) fn hurry(&mut self) {
        self.shared.due.store(0, Relaxed);
        self.nudge();
    }

    /// Asks for a round. A full channel means one is coming anyway; a thread that cannot be started is tried
    /// again with the next commit.
    fn nudge(&mut self) {
        if let Some(disk) = self.disk {
            let connect = || connect_on(disk, &self.path, OpenFlags::SQLITE_OPEN_READ_WRITE);
            return keep_once(&mut self.own, connect, &self.shared, self.limit);
        }
        if self.thread.is_none() {
            let (ask, asked) = sync_channel(1);
            let (path, shared) = (self.path.clone(), Arc::clone(&self.shared));
            let named = thread::Builder::new().name("ym-wal".to_owned());
            self.thread = named.spawn(move || keep(&path, &shared, &asked)).ok().map(|it| (ask, it));
        }
        if let Some((ask, _)) = &self.thread {
            let _ = ask.try_send(());
        }
    }

    /// Ends the thread, then copies what is left so that the database file is complete by itself.
    pub(super) fn close(&mut self, writer: &Connection) {
        if let Some((ask, thread)) = self.thread.take() {
            drop(ask);
            let _ = thread.join();
        }
        self.own = None;
        // A failure costs nothing: the WAL is still there, and whoever opens the journal next reads it.
        let _ = if self.fsync_failed() {
            // A disk that fails to sync gets no chance to replace what it has already stored.
            keep_on_close(writer, true)
        } else {
            pass(writer).map(|_| ())
        };
    }
}

/// Where SQLite keeps the WAL of a database.
pub(super) fn wal_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Fills the WAL up with zeros, which SQLite takes for its end. Answers what is to be synced.
fn make_room(wal: &Path, shared: &Shared) -> io::Result<Option<File>> {
    // SQLite locks the database and its index, never this file, so that closing it again gives no lock away.
    let file = OpenOptions::new().write(true).open(wal)?;
    let free = nix::sys::statvfs::fstatvfs(&file)?;
    if free.blocks_available().saturating_mul(free.fragment_size()) < ROOM * PLENTY {
        return Ok(None);
    }
    let zeros = vec![0; 1 << 20];
    let _turn = shared.turn();
    let length = file.metadata()?.len();
    let mut at = length;
    while at < ROOM {
        let piece = &zeros[..zeros.len().min((ROOM - at) as usize)];
        if let Err(error) = file.write_all_at(piece, at) {
            // Zeros are in nobody's way, but the space they take may be.
            file.set_len(length)?;
            return Err(error);
        }
        at += piece.len() as u64;
    }
    Ok(Some(file))
}

/// The thread: one round per request, until the writer hangs up.
fn keep(path: &Path, shared: &Shared, asked: &Receiver<()>) {
    let mut conn = None;
    let connect = || connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
    while asked.recv().is_ok() {
        keep_once(&mut conn, connect, shared, LIMIT);
    }
}

/// One round, if it is still due.
fn keep_once(
    conn: &mut Option<Connection>,
    connect: impl FnOnce() -> Result<Connection, JournalError>,
    shared: &Shared,
    limit: u32,
) {
    // Asked for while the last round ran, and done by it.
    if shared.frames.load(Relaxed) < shared.due.load(Relaxed) {
        return;
    }
    if conn.is_none() {
        *conn = connect().and_then(joined).ok();
    }
    let Some(conn) = &conn else { return };
    match round(conn, shared) {
        Ok(frames) => shared.due.store(frames.saturating_add(limit), Relaxed),
        Err(JournalError::Fsync) => shared.fsync_failed.store(true, Relaxed),
        // A full disk, say. The WAL keeps everything; the next commit asks again.
        Err(_) => {}
    }
}

/// A connection knows of the WAL only once it has read something; a checkpoint before that does nothing.
fn joined(conn: Connection) -> Result<Connection, JournalError> {
    conn.pragma_query_value(None, "schema_version", |_| Ok(()))?;
    Ok(conn)
}

/// Copies until the writer is caught up with, then the rest in its turn. Answers the length of the WAL.
fn round(conn: &Connection, shared: &Shared) -> Result<u32, JournalError> {
    let mut before = 0;
    for _ in 0..PASSES {
        let (_, copied) = pass(conn)?;
        if copied.saturating_sub(before) < CAUGHT_UP {
            break;
        }
        before = copied;
    }
    let _turn = shared.turn();
    pass(conn).map(|(frames, _)| frames)
}

/// One passive checkpoint. Answers how many frames the WAL had, and how many of them are copied.
fn pass(conn: &Connection) -> Result<(u32, u32), JournalError> {
    let (frames, copied) = conn.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::PASSIVE)?;
    Ok((frames.max(0) as u32, copied.max(0) as u32))
}

/// Copies a WAL that somebody has left behind into the database, and empties it; whether there was one. What is copied is
/// durable then, but the WAL may come back as it was until the next commit.
pub(super) fn start_over(writer: &Connection) -> Result<bool, JournalError> {
    let (frames, _) = pass(writer)?;
    if frames > 0 {
        writer.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::TRUNCATE)?;
    }
    Ok(frames > 0)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// A writer's connection on a new file, and who keeps its WAL.
    fn writer(path: &Path) -> (Connection, WalKeeper) {
        let mut conn = Connection::open(path).unwrap();
        conn.pragma_update(None, "journal_mode", "wal").unwrap();
        conn.execute_batch("CREATE TABLE t (x)").unwrap();
        let keeper = WalKeeper::watch(&mut conn, path, None).unwrap();
        (conn, keeper)
    }

    fn write(conn: &Connection) {
        conn.execute("INSERT INTO t VALUES (zeroblob(100000))", []).unwrap();
    }

    #[test]
    fn after_a_round_the_wal_is_overwritten_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let (conn, keeper) = writer(&path);
        let own = Connection::open(&path).unwrap();
        own.query_row("SELECT count(*) FROM t", [], |_| Ok(())).unwrap();
        (0..10).for_each(|_| write(&conn));
        let long = keeper.shared.frames.load(Relaxed);
        assert_eq!(round(&own, &keeper.shared).unwrap(), long);
        write(&conn);
        assert!(keeper.shared.frames.load(Relaxed) < long / 5);
    }

    #[test]
    fn a_reader_in_the_way_only_postpones_the_next_round() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let (conn, mut keeper) = writer(&path);
        write(&conn);
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        while keeper.shared.frames.load(Relaxed) < LIMIT {
            write(&conn);
        }
        keeper.tidy();
        // Ends the thread, so that its round is over.
        let (ask, thread) = keeper.thread.take().unwrap();
        drop(ask);
        thread.join().unwrap();
        let frames = keeper.shared.frames.load(Relaxed);
        assert_eq!(keeper.shared.due.load(Relaxed), frames + LIMIT);
        keeper.tidy();
        assert!(keeper.thread.is_none(), "nothing is due yet");
    }
}
