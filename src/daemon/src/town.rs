//! A town on disk: a directory with a `.yardmaster/` folder, and where everything lies in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder that makes a directory a town.
const FOLDER: &str = ".yardmaster";

/// A town on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TownDir {
    root: PathBuf,
}

/// There is no town where one was looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no town here: {0} has no .yardmaster folder, nor has any directory above it")]
pub struct NoTown(pub PathBuf);

impl TownDir {
    /// The town that `start` lies in: the nearest directory upwards with a `.yardmaster/`.
    pub fn find(start: &Path) -> Result<Self, NoTown> {
        let start = start.canonicalize().map_err(|_| NoTown(start.to_owned()))?;
        let found = start.ancestors().find(|dir| dir.join(FOLDER).is_dir());
        found.map(|root| Self { root: root.to_owned() }).ok_or(NoTown(start.clone()))
    }

    /// Exactly this directory, which must be a town.
    pub fn at(root: &Path) -> Result<Self, NoTown> {
        let root = root.canonicalize().map_err(|_| NoTown(root.to_owned()))?;
        if root.join(FOLDER).is_dir() { Ok(Self { root }) } else { Err(NoTown(root)) }
    }

    /// Makes the folders of a new town. The journal is made when it is first opened.
    pub fn create(root: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        fs::create_dir_all(root)?;
        let root = root.canonicalize()?;
        let folder = root.join(FOLDER);
        let private = |path: &Path| match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        };
        private(&folder)?;
        for part in ["run", "logs", "formulas"] {
            private(&folder.join(part))?;
        }
        fs::write(folder.join(".gitignore"), "*\n!config.toml\n!formulas/\n!.gitignore\n")?;
        Ok(Self { root })
    }

    /// The town's own directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `.yardmaster/`.
    pub fn folder(&self) -> PathBuf {
        self.root.join(FOLDER)
    }

    /// The event log.
    pub fn journal(&self) -> PathBuf {
        self.folder().join("journal.db")
    }

    /// The single-writer lease.
    pub fn lease(&self) -> PathBuf {
        self.folder().join("lease")
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
