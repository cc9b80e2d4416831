//! The lease: one process at a time may write a town's journal and serve its socket.
//!
//! The lock is the kernel's, on an open file, so it ends with the process however that ends. The text inside is a
//! courtesy to people and to error messages, and never decides anything. The file is never removed: another
//! process could then lock the old one and a third the new one.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use yard_engine::Timestamp;

/// How often a lock that turns out to be only somebody looking is tried again.
const ATTEMPTS: u32 = 100;

/// How long somebody may look before it is tried again.
const LOOK: Duration = Duration::from_micros(50);

/// What a holder is doing with the town.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A headless daemon, here to stay.
    Daemon,
    /// An open console that embeds the engine.
    Console,
    /// A command that will be gone in a moment.
    Command,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Daemon => "daemon",
            Self::Console => "console",
            Self::Command => "command",
        })
    }
}

/// Who holds a lease, as far as it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: Option<u32>,
    /// What it is.
    pub role: Option<Role>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Some(role) => write!(f, "a {role}")?,
            None => f.write_str("another process")?,
        }
        self.pid.map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
    }
}

/// Why a lease was not given.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody has it.
    #[error("the town is already served by {0}: talk to it, or wait until it has ended")]
    Held(Holder),
    /// The lock file cannot be used.
    #[error("cannot lock the town: {0}; check the permissions of its .yardmaster folder")]
    Io(#[from] io::Error),
}

/// The right to write a town's journal, until dropped.
#[derive(Debug)]
pub struct Lease {
    file: File,
}

/// What is written into the file.
#[derive(Serialize)]
struct Note {
    pid: u32,
    role: Role,
    started_at: Timestamp,
}

impl Lease {
    /// Takes the lease if nobody has it. Never waits.
    pub fn try_acquire(path: &Path, role: Role) -> Result<Self, LeaseError> {
        let mut open = OpenOptions::new();
        let mut file = open.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        for _ in 0..ATTEMPTS {
            if locked(file.try_lock())? {
                sign(&mut file, role);
                return Ok(Self { file });
            }
            // Whoever only looks (`holder`) has a shared lock for a moment. If we can share it, nobody holds the lease.
            if !locked(file.try_lock_shared())? {
                return Err(LeaseError::Held(read_note(&mut file)));
            }
            file.unlock()?;
            // Asleep, not spinning: threads that only yield to each other can keep everybody else from running.
            thread::sleep(LOOK);
        }
        Err(LeaseError::Held(Holder::default()))
    }

    /// Who holds the lease now, if anybody does.
    pub fn holder(path: &Path) -> Option<Holder> {
        let mut file = File::open(path).ok()?;
        match locked(file.try_lock_shared()) {
            Ok(false) => Some(read_note(&mut file)),
            // Closing the file ends our look.
            Ok(true) | Err(_) => None,
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
        // Said outright: a child forked a moment ago may still have a copy of the descriptor.
        let _ = self.file.unlock();
    }
}

/// Whether the lock was given.
fn locked(attempt: Result<(), TryLockError>) -> io::Result<bool> {
    match attempt {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Leaves a note for people. A full disk is no reason to refuse the lease.
fn sign(file: &mut File, role: Role) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started_at = Timestamp::from_millis(now.as_millis() as i64);
    let note = Note { pid: std::process::id(), role, started_at };
    let _ = file.set_len(0);
    let _ = serde_json::to_string(&note).map(|text| file.write_all((text + "\n").as_bytes()));
}

/// What the note says; nothing if it is missing or half written.
fn read_note(file: &mut File) -> Holder {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(4096).read_to_string(&mut text));
    read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
}
