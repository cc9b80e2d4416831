//! The lease: one process at a time may write a town's journal and serve its socket. With SQLite it is a lock on a file,
//! with PostgreSQL a row with a term that every write checks.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use yard_engine::Timestamp;

use crate::postgres::RowLease;
use crate::sqlite::FileLease;
use crate::{Journal, JournalError, Store};

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
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: Option<u32>,
    /// What it is.
    pub role: Option<Role>,
    /// The host it runs on, if that may be another one than ours.
    #[serde(skip)]
    pub host: Option<String>,
    /// The directory of the town there.
    #[serde(skip)]
    pub town: Option<String>,
    /// Since when, by the clock of whoever keeps the lease, if that says so.
    #[serde(skip)]
    pub since: Option<Timestamp>,
}

impl Holder {
    /// Whether it is known to run on another host.
    pub fn is_elsewhere(&self) -> bool {
        self.host.as_ref().is_some_and(|host| *host != this_host())
    }
}

/// The name of this host.
pub(crate) fn this_host() -> String {
    nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Some(role) => write!(f, "a {role}")?,
            None => f.write_str("another process")?,
        }
        match (self.pid, self.host.as_ref().filter(|_| self.is_elsewhere())) {
            (Some(pid), Some(host)) => write!(f, " (pid {pid} on {host})"),
            (Some(pid), None) => write!(f, " (pid {pid})"),
            (None, Some(host)) => write!(f, " (on {host})"),
            (None, None) => Ok(()),
        }?;
        match self.town.as_ref().filter(|_| self.role.is_none()) {
            Some(town) => write!(f, " in {town}"),
            None => Ok(()),
        }
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
    /// The database that keeps the lease cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The right to write a town's journal, until dropped, or until it was lost ([`Lease::when_lost`]).
#[derive(Debug)]
pub struct Lease(Kind);

#[derive(Debug)]
enum Kind {
    File(#[expect(dead_code, reason = "it is locked for as long as it lives")] FileLease),
    Row(Box<RowLease>),
}

impl Lease {
    /// Takes the lease if nobody has it. Never waits for whoever has it.
    pub fn try_acquire(store: impl Into<Store>, role: Role) -> Result<Self, LeaseError> {
        Ok(Self(match store.into() {
            Store::Sqlite(journal) => Kind::File(FileLease::try_acquire(&lock_beside(&journal), role)?),
            Store::Postgres(url) => Kind::Row(Box::new(RowLease::try_acquire(&url, role)?)),
        }))
    }

    /// Who holds the lease now, if anybody does and it can be found out.
    pub fn holder(store: impl Into<Store>) -> Option<Holder> {
        match store.into() {
            Store::Sqlite(journal) => FileLease::holder(&lock_beside(&journal)),
            Store::Postgres(url) => RowLease::holder(&url).ok().flatten(),
        }
    }

    /// Who led the town last, if that was from another directory: only there anybody knows of its workers.
    pub fn led_from_elsewhere(&self) -> Option<&Holder> {
        match &self.0 {
            Kind::File(_) => None,
            Kind::Row(lease) => lease.led_from_elsewhere(),
        }
    }

    /// Notes that the town is led from this directory from now on.
    pub fn make_home(&self) -> Result<(), JournalError> {
        match &self.0 {
            Kind::File(_) => Ok(()),
            Kind::Row(lease) => lease.make_home(),
        }
    }

    /// Opens the journal that this lease is about, and creates it where there is none.
    pub fn open_journal(&self, store: &Store) -> Result<Journal, JournalError> {
        match (store, &self.0) {
            (Store::Sqlite(path), _) => Journal::open(path),
            (Store::Postgres(url), Kind::Row(lease)) => Journal::in_postgres(url, lease),
            (Store::Postgres(_), Kind::File(_)) => Err(JournalError::WithoutLease),
        }
    }

    /// A name for whoever holds it, which no other holder has; none where a holder is only replaced once it is dead.
    pub fn leader(&self) -> Option<String> {
        match &self.0 {
            Kind::File(_) => None,
            Kind::Row(lease) => Some(lease.leader()),
        }
    }

    /// Has something done, on another thread, when the lease is lost although it was not dropped: somebody else took it
    /// over, or it could not be renewed for long. A lock on a file is never lost. Without this, the next write says so.
    pub fn when_lost(&self, act: impl FnOnce(JournalError) + Send + 'static) {
        match &self.0 {
            Kind::File(_) => {}
            Kind::Row(lease) => lease.when_lost(Box::new(act)),
        }
    }
}

fn lock_beside(journal: &std::path::Path) -> std::path::PathBuf {
    journal.with_file_name("lease")
}
