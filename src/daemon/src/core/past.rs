//! How far back the log goes. Events older than `results.ttl` are cut off, a few at a time. The log then begins with the
//! town as it was: twice in every `results.ttl` the checkpoint is copied, on a thread of its own, and the log is cut at the
//! newest copy that is old enough. Where the copies lie is [`crate::shelf`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tracing::warn;
use yard_engine::Seq;
use yard_journal::JournalError;

use super::Core;
use crate::shelf::{Keeping, PastCopy, Shelf, copies};

/// What is going on about the beginning of the log.
pub(super) struct Beginning {
    keeping: Keeping,
    /// A copy of the checkpoint is being made.
    copying: Arc<AtomicBool>,
    /// Events up to here are to be cut off.
    cut_to: Option<Seq>,
}

impl Beginning {
    pub(super) fn kept(keeping: Keeping) -> Self {
        Self { keeping, copying: Arc::default(), cut_to: None }
    }
}

/// Why the log could not be made shorter.
#[derive(Debug, thiserror::Error)]
enum NotShortened {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the folder of its copies: {0}")]
    Folder(#[from] io::Error),
}

impl Core {
    /// Whether there is still something to cut off at once.
    pub(super) fn is_cutting(&self) -> bool {
        self.beginning.cut_to.is_some() && self.read_only.is_none()
    }

    /// Cuts off a few of the events that are too old.
    pub(super) fn cut_log(&mut self) {
        let Some(to) = self.beginning.cut_to.filter(|_| self.read_only.is_none()) else { return };
        match self.store.cut_off(to, self.beginning.keeping.cut_at_once) {
            Ok(0) => self.beginning.cut_to = None,
            Ok(_) => {}
            Err(error) => {
                self.beginning.cut_to = None;
                self.lost_the_disk(&error);
            }
        }
    }

    /// Looks how far back the log goes; copies the checkpoint and begins to cut if it is time.
    pub(super) fn look_at_beginning(&mut self) {
        let at_work = self.beginning.copying.load(Ordering::SeqCst) || self.is_cutting();
        if at_work || !self.role.dispatches_by_itself() {
            return;
        }
        if let Err(error) = self.shorten_log() {
            warn!(%error, "cannot tell how far back the log goes; the safety scan looks again");
        }
    }

    fn shorten_log(&mut self) -> Result<(), NotShortened> {
        let ttl = self.store.state().settings().results_ttl.duration();
        let shelf = Arc::clone(&self.beginning.keeping.shelf);
        let beginning = self.store.beginning()?;
        let mut newest = beginning;
        let mut old_enough: Option<PastCopy> = None;
        let mut needless = Vec::new();
        for copy in copies(&*shelf) {
            // One of a log that was in this place before, say until an older copy of the journal was put back.
            if !self.store.has_sum(copy.seq, copy.sum)? {
                needless.push(copy);
                continue;
            }
            newest = newest.max(copy.seq);
            if self.is_older_than(copy.seq, ttl)? {
                needless.extend(old_enough.replace(copy));
            }
        }
        let cut_to = old_enough.map(|copy| copy.seq).filter(|seq| *seq > beginning);
        if cut_to.is_some() || !needless.is_empty() {
            // The copy that everything before it goes for must still have its name after a power cut.
            shelf.sync()?;
        }
        for copy in needless {
            let _ = shelf.remove(&copy.name);
        }
        self.beginning.cut_to = cut_to;
        let worth_a_copy = self.beginning.keeping.worth_a_copy;
        let worth_it = self.store.checkpoint().0.saturating_sub(newest.0) >= worth_a_copy;
        if worth_it && self.is_older_than(newest.next(), ttl / 2)? {
            self.copy_checkpoint();
        }
        Ok(())
    }

    /// Whether an event happened longer ago than this. Whatever was cut off did.
    fn is_older_than(&mut self, seq: Seq, span: Duration) -> Result<bool, JournalError> {
        Ok(self.store.time_of(seq)?.is_none_or(|at| self.now.since(at) >= span))
    }

    fn copy_checkpoint(&mut self) {
        let copying = Arc::clone(&self.beginning.copying);
        let shelf = Arc::clone(&self.beginning.keeping.shelf);
        copying.store(true, Ordering::SeqCst);
        let work = move || {
            if let Err(error) = make_copy(&*shelf) {
                warn!(%error, "cannot copy the checkpoint; the log stays as long as it is");
            }
            copying.store(false, Ordering::SeqCst);
        };
        if let Some(stage) = &mut self.stage {
            stage.beside(Box::new(work));
        } else if thread::Builder::new().name("ym-past".to_owned()).spawn(work).is_err() {
            self.beginning.copying.store(false, Ordering::SeqCst);
        }
    }
}

/// Copies the checkpoint under a name that says where it stands. A copy that is not whole never has such a name.
fn make_copy(shelf: &dyn Shelf) -> io::Result<()> {
    const UNFINISHED: [&str; 2] = ["past.new", "past.new-journal"];
    let clear_away = || UNFINISHED.into_iter().for_each(|name| drop(shelf.remove(name)));
    clear_away();
    let copied = shelf.log().and_then(|log| log.copy_checkpoint_to(&shelf.path(UNFINISHED[0])));
    match copied {
        Ok((seq, sum)) => shelf.rename(UNFINISHED[0], &PastCopy::name(seq, sum)),
        Err(error) => {
            clear_away();
            Err(io::Error::other(error))
        }
    }
}
