//! A town on disk: a directory with a `.yardmaster/` folder, and where everything lies in it.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use yard_journal::{Holder, Journal, JournalError, Lease, LeaseError, Reader, Role, Store};

use crate::config;

/// The folder that makes a directory a town.
const FOLDER: &str = ".yardmaster";

/// A town on disk.
#[derive(Debug, Clone)]
pub struct TownDir {
    root: PathBuf,
    /// Where its journal is, once that was asked. It stays there for as long as this process knows the town.
    store: Arc<OnceLock<Store>>,
}

impl PartialEq for TownDir {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for TownDir {}

/// There is no town where one was looked for, or none to be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTown {
    /// There is none.
    #[error("no town here: {0} has no .yardmaster folder, nor has any directory above it")]
    Here(PathBuf),
    /// The nearest one is another user's, and a town says what is run.
    #[error("{} belongs to another user (uid {owner}), and what it says would be run as you", folder.display())]
    Foreign {
        /// Its folder.
        folder: PathBuf,
        /// Whose it is.
        owner: u32,
    },
}

impl TownDir {
    /// The town that `start` lies in: the nearest directory upwards with a `.yardmaster/`. Whoever can write to a
    /// directory above could put one there, so it must be our own; one that is named ([`TownDir::at`]) is trusted.
    pub fn find(start: &Path) -> Result<Self, NoTown> {
        let start = start.canonicalize().map_err(|_| NoTown::Here(start.to_owned()))?;
        let found = start.ancestors().find(|dir| dir.join(FOLDER).is_dir());
        found.map_or_else(|| Err(NoTown::Here(start.clone())), Self::own)
    }

    /// Exactly this directory, which must be a town of ours.
    pub fn own(root: &Path) -> Result<Self, NoTown> {
        let town = Self::at(root)?;
        match foreign_owner(&town.folder()) {
            Some(owner) => Err(NoTown::Foreign { folder: town.folder(), owner }),
            None => Ok(town),
        }
    }

    /// Exactly this directory, which must be a town.
    pub fn at(root: &Path) -> Result<Self, NoTown> {
        let root = root.canonicalize().map_err(|_| NoTown::Here(root.to_owned()))?;
        if root.join(FOLDER).is_dir() { Ok(Self::in_directory(root)) } else { Err(NoTown::Here(root)) }
    }

    /// Makes the folders of a new town, or those that are missing.
    pub fn create(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        let root = root.canonicalize()?;
        let folder = root.join(FOLDER);
        if let Some(owner) = foreign_owner(&folder) {
            return Err(io::Error::other(NoTown::Foreign { folder, owner }));
        }
        private(&folder)?;
        for part in ["run", "logs", "formulas"] {
            private(&folder.join(part))?;
        }
        let mut open = fs::OpenOptions::new();
        let mut file =
            open.write(true).create(true).truncate(true).mode(0o600).open(folder.join(".gitignore"))?;
        file.write_all(b"*\n!config.toml\n!formulas/\n!.gitignore\n")?;
        Ok(Self::in_directory(root))
    }

    /// Gives a new town an empty journal, by which it is told from one that has lost its own.
    pub fn begin_journal(&self) -> Result<(), JournalError> {
        match self.store()? {
            Store::Sqlite(path) => Journal::create(path),
            Store::Postgres(url) => Journal::begin_in_postgres(url),
        }
    }

    fn in_directory(root: PathBuf) -> Self {
        Self { root, store: Arc::default() }
    }

    /// Shuts others out of a town whose folder came from elsewhere, say from git. Says whether they could look in.
    pub(crate) fn make_private(&self) -> io::Result<bool> {
        let folder = self.folder();
        let mode = fs::metadata(&folder)?.permissions().mode() & 0o777;
        let was_open = mode & 0o077 != 0;
        if was_open {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode & 0o700))?;
        }
        Ok(was_open)
    }

    /// The town's own directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `.yardmaster/`.
    pub fn folder(&self) -> PathBuf {
        self.root.join(FOLDER)
    }

    /// The event log, if it is in a file.
    pub fn journal(&self) -> PathBuf {
        self.folder().join("journal.db")
    }

    /// The lock of the single-writer lease, if the event log is in a file.
    pub fn lease(&self) -> PathBuf {
        self.folder().join("lease")
    }

    /// Where the event log is.
    pub fn store(&self) -> Result<&Store, JournalError> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let store = match config::read_store(&self.config(), &self.journal())? {
            Store::Postgres(url) => Store::Postgres(url.of_town(&self.root)),
            store @ Store::Sqlite(_) => store,
        };
        Ok(self.store.get_or_init(|| store))
    }

    /// The event log, for those who only look.
    pub fn reader(&self) -> Result<Reader, JournalError> {
        Reader::open(self.store()?)
    }

    /// Takes the single-writer lease if nobody has it.
    pub fn try_lease(&self, role: Role) -> Result<Lease, LeaseError> {
        Lease::try_acquire(self.store()?, role)
    }

    /// Who has the single-writer lease, if anybody does and it can be found out.
    pub fn holder(&self) -> Option<Holder> {
        Lease::holder(self.store().ok()?)
    }

    /// Who serves the town on another host, if that is known.
    pub fn leader_elsewhere(&self) -> Option<Holder> {
        let stays = |holder: &Holder| matches!(holder.role, Some(Role::Daemon | Role::Console));
        self.holder().filter(|holder| holder.is_elsewhere() && stays(holder))
    }

    /// The config file; it need not exist.
    pub fn config(&self) -> PathBuf {
        self.folder().join("config.toml")
    }

    /// Claims and the workers' report socket.
    pub fn run(&self) -> PathBuf {
        self.folder().join("run")
    }

    /// The worktrees of dispatches.
    pub fn worktrees(&self) -> PathBuf {
        self.folder().join("worktrees")
    }

    /// Logs of dispatches.
    pub fn logs(&self) -> PathBuf {
        self.folder().join("logs")
    }

    /// Where a rig's workers run; its path may be relative to the town.
    pub fn rig_path(&self, path: &str) -> PathBuf {
        let joined = self.root.join(path);
        if path == "." { self.root.clone() } else { joined }
    }
}

/// Whose a folder is, if it is not ours: the link's or that of what it leads to, because either could be planted.
fn foreign_owner(folder: &Path) -> Option<u32> {
    let ours = nix::unistd::geteuid().as_raw();
    let found = [fs::symlink_metadata(folder), fs::metadata(folder)];
    found.into_iter().flatten().map(|found| found.uid()).find(|owner| *owner != ours)
}

/// Makes a directory for its owner alone, whatever the umask is.
fn private(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made?,
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}
