//! The lease as a lock on a file.
//!
//! The lock is the kernel's, on an open file, so it ends with the process however that ends. The text inside is a
//! courtesy to people and to error messages, and never decides anything. The file is never removed: another
//! process could then lock the old one and a third the new one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use yard_engine::Timestamp;

use crate::{Holder, LeaseError, Role};

/// How often a lock that turns out to be only somebody looking is tried again.
const ATTEMPTS: u32 = 100;

/// How long somebody may look before it is tried again.
const LOOK: Duration = Duration::from_micros(50);

/// The lock, until dropped.
#[derive(Debug)]
pub(crate) struct FileLease {
    file: File,
}

/// What is written into the file.
#[derive(Serialize)]
struct Note {
    pid: u32,
    role: Role,
    started_at: Timestamp,
}

impl FileLease {
    /// Takes the lease if nobody has it. Never waits.
    pub(crate) fn try_acquire(path: &Path, role: Role) -> Result<Self, LeaseError> {
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
    pub(crate) fn holder(path: &Path) -> Option<Holder> {
        let mut file = File::open(path).ok()?;
        match locked(file.try_lock_shared()) {
            Ok(false) => Some(read_note(&mut file)),
            // Closing the file ends our look.
            Ok(true) | Err(_) => None,
        }
    }
}

impl Drop for FileLease {
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
