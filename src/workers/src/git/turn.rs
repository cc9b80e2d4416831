//! One at a time: git stumbles over a worktree that another git is just making or removing in the same repository.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long one waits for one's turn. Whoever has it may be held up; going on without is only less certain.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often one looks whether it is one's turn.
const LOOK: Duration = Duration::from_millis(5);

/// The turn to make or remove a worktree, until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _lock: Option<File>,
}

impl Turn {
    /// Waits for it; everything in one directory of worktrees goes one after the other.
    pub(crate) fn wait(worktree: &Path) -> Self {
        let directory = worktree.parent().unwrap_or(worktree);
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        let lock = || OpenOptions::new().create(true).append(true).mode(0o600).open(directory.join(".lock"));
        let opened = made.and_then(|()| lock());
        let Ok(file) = opened else { return Self { _lock: None } };
        let until = Instant::now() + PATIENCE;
        while file.try_lock().is_err() {
            if Instant::now() >= until {
                return Self { _lock: None };
            }
            std::thread::sleep(LOOK);
        }
        Self { _lock: Some(file) }
    }
}
