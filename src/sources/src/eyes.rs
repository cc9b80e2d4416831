//! Being told when a file changes. The directory is watched, because a file that is replaced by a rename is another
//! file each time.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use crate::watch::Signal;

/// Watches the directory of a file, as long as there is one.
pub(crate) struct Eyes {
    dir: PathBuf,
    /// None where changes cannot be notified, or shall not be.
    notifier: Option<RecommendedWatcher>,
    /// The directory that is watched: device and inode.
    watched: Option<(u64, u64)>,
}

impl Eyes {
    /// Closed eyes; they stay closed without a signal to raise.
    pub(crate) fn new(file: &Path, signal: Option<Arc<Signal>>) -> Self {
        let dir = file.parent().unwrap_or(Path::new("/")).to_path_buf();
        let notifier = signal.and_then(|signal| notifier(file, &dir, signal).ok());
        Self { dir, notifier, watched: None }
    }

    /// Opens the eyes, or sees to it that they still look at the right directory; says whether they are open.
    pub(crate) fn keep_open(&mut self, moved: bool) -> bool {
        let Some(notifier) = &mut self.notifier else { return false };
        let there = fs::metadata(&self.dir).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        if moved || there != self.watched {
            if self.watched.take().is_some() {
                // An error means that the old directory is no longer watched, which is what is wanted.
                let _ = notifier.unwatch(&self.dir);
            }
            let opened = notifier.watch(&self.dir, RecursiveMode::NonRecursive).is_ok();
            self.watched = there.filter(|_| opened);
        }
        self.watched.is_some()
    }
}

fn notifier(file: &Path, dir: &Path, signal: Arc<Signal>) -> notify::Result<RecommendedWatcher> {
    let name = file.file_name().map(ToOwned::to_owned);
    let dir = dir.to_path_buf();
    notify::recommended_watcher(move |event: notify::Result<Event>| {
        let Ok(event) = event else { return signal.raise(|raised| raised.touched = true) };
        if !may_change_contents(event.kind) {
            return;
        }
        let moved = event.paths.contains(&dir);
        let touched =
            event.need_rescan() || event.paths.iter().any(|path| path.file_name() == name.as_deref());
        if moved || touched {
            signal.raise(|raised| {
                raised.moved |= moved;
                raised.touched |= touched;
            });
        }
    })
}

/// Our own reading must not wake us, nor what leaves the contents alone.
fn may_change_contents(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => matches!(access, AccessKind::Close(AccessMode::Write)),
        EventKind::Modify(ModifyKind::Metadata(_)) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

#[cfg(test)]
mod tests;
