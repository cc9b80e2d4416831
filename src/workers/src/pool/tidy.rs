//! Removing claims that are no longer needed, when there is time. An unlink takes as long as a good part of a start, and
//! ext4 makes the next file slowly after many were removed (it goes round inodes it has freed in the last seconds): so
//! claims pile up while work comes and goes, and go together when it pauses.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{settle, spec_path};

/// Work pauses when nothing has ended for so long.
const PAUSE: Duration = Duration::from_millis(500);
/// So many claims are removed whether it pauses or not.
const LARGEST_PILE: usize = 20_000;
/// With nothing to remove it does not matter how long it waits.
const LONG: Duration = Duration::from_hours(1);

/// A thread that removes files.
pub(super) struct Tidier {
    paths: Option<Sender<PathBuf>>,
    thread: Option<JoinHandle<()>>,
}

impl Tidier {
    pub(super) fn start() -> std::io::Result<Self> {
        let (paths, received) = mpsc::channel::<PathBuf>();
        let thread = std::thread::Builder::new().name("ym-tidy".to_owned()).spawn(move || {
            let mut pile: Vec<PathBuf> = Vec::new();
            loop {
                let patience = if pile.is_empty() { LONG } else { PAUSE };
                let over = match received.recv_timeout(patience) {
                    Ok(path) => {
                        pile.push(path);
                        if pile.len() < LARGEST_PILE {
                            continue;
                        }
                        false
                    }
                    Err(RecvTimeoutError::Timeout) => false,
                    Err(RecvTimeoutError::Disconnected) => true,
                };
                for path in pile.drain(..) {
                    remove(&path);
                }
                if over {
                    return;
                }
            }
        })?;
        Ok(Self { paths: Some(paths), thread: Some(thread) })
    }

    /// Removes a claim and what belongs to it, some time.
    pub(super) fn remove(&self, claim: PathBuf) {
        if let Some(Err(unsent)) = self.paths.as_ref().map(|paths| paths.send(claim)) {
            remove(&unsent.0);
        }
    }
}

impl Drop for Tidier {
    fn drop(&mut self) {
        self.paths = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn remove(claim: &Path) {
    // A file that stays is only clutter, and the next daemon looks for it.
    let _ = std::fs::remove_file(claim);
    let _ = std::fs::remove_file(spec_path(claim));
}

/// The claims in a directory that nobody holds and that belong to none of the dispatches still to be known.
pub(super) fn leftovers(run_dir: &Path, is_live: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run_dir).into_iter().flatten().flatten();
    let claims =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "claim"));
    let over = claims.filter(|path| path.file_stem().and_then(|s| s.to_str()).is_some_and(|id| !is_live(id)));
    over.filter(|path| settle::is_held(path).is_ok_and(|held| !held)).collect()
}
