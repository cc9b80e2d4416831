//! How far back the log goes. Events older than `results.ttl` are cut off, a few at a time. The log then begins with the
//! town as it was: twice in every `results.ttl` the checkpoint is copied, on a thread of its own, and the log is cut at the
//! newest copy that is old enough.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use tracing::warn;
use yard_engine::Seq;
use yard_journal::{JournalError, Reader};

use super::Core;
use crate::town::TownDir;

/// So many events are cut off in one turn: a few milliseconds' worth.
const CUT_AT_ONCE: u64 = 2_000;
/// So many events must have come since the last copy: a short log is no burden.
const WORTH_A_COPY: u64 = 1_000;

/// What is going on about the beginning of the log.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// A copy of the checkpoint is being made.
    copying: Arc<AtomicBool>,
    /// Events up to here are to be cut off.
    cut_to: Option<Seq>,
}

impl Core {
    /// Whether there is still something to cut off at once.
    pub(super) fn is_cutting(&self) -> bool {
        self.beginning.cut_to.is_some() && self.read_only.is_none()
    }

    /// Cuts off a few of the events that are too old.
    pub(super) fn cut_log(&mut self) {
        let Some(to) = self.beginning.cut_to.filter(|_| self.read_only.is_none()) else { return };
        match self.store.cut_off(to, CUT_AT_ONCE) {
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
        // A rehearsal has no folder for copies.
        if at_work || self.stage.is_some() || !self.role.dispatches_by_itself() {
            return;
        }
        if let Err(error) = self.shorten_log() {
            warn!(%error, "cannot tell how far back the log goes; the safety scan looks again");
        }
    }

    fn shorten_log(&mut self) -> Result<(), JournalError> {
        let ttl = self.store.state().settings().results_ttl.duration();
        let mut newest = self.store.beginning()?;
        let mut old_enough: Option<PastCopy> = None;
        for copy in self.town.past_copies() {
            // One of a log that was in this place before, say until an older copy of the journal was put back.
            if !self.store.has_sum(copy.seq, copy.sum)? {
                let _ = fs::remove_file(&copy.path);
                continue;
            }
            newest = newest.max(copy.seq);
            if self.is_older_than(copy.seq, ttl)?
                && let Some(older) = old_enough.replace(copy)
            {
                let _ = fs::remove_file(&older.path);
            }
        }
        self.beginning.cut_to = old_enough.map(|copy| copy.seq);
        let worth_it = self.store.checkpoint().0.saturating_sub(newest.0) >= WORTH_A_COPY;
        if worth_it && self.is_older_than(newest.next(), ttl / 2)? {
            self.copy_checkpoint();
        }
        Ok(())
    }

    /// Whether an event happened longer ago than this. Whatever was cut off did.
    fn is_older_than(&self, seq: Seq, span: Duration) -> Result<bool, JournalError> {
        Ok(self.store.time_of(seq)?.is_none_or(|at| self.now.since(at) >= span))
    }

    fn copy_checkpoint(&self) {
        let copying = Arc::clone(&self.beginning.copying);
        let town = self.town.clone();
        copying.store(true, Ordering::SeqCst);
        let work = move || {
            if let Err(error) = make_copy(&town) {
                warn!(%error, "cannot copy the checkpoint; the log stays as long as it is");
            }
            copying.store(false, Ordering::SeqCst);
        };
        if thread::Builder::new().name("ym-past".to_owned()).spawn(work).is_err() {
            self.beginning.copying.store(false, Ordering::SeqCst);
        }
    }
}

/// Copies the checkpoint under a name that says where it stands. A copy that is not whole never has such a name.
fn make_copy(town: &TownDir) -> io::Result<()> {
    let unfinished = town.folder().join("past.new");
    for left_over in [unfinished.clone(), town.folder().join("past.new-journal")] {
        let _ = fs::remove_file(left_over);
    }
    let copied = Reader::open(&town.journal()).and_then(|reader| reader.copy_checkpoint_to(&unfinished));
    let (seq, sum) = copied.map_err(io::Error::other)?;
    fs::rename(&unfinished, town.folder().join(format!("past-{seq}-{sum:016x}.db")))
}

/// A copy of a checkpoint that the log may begin with.
#[derive(Debug)]
pub(crate) struct PastCopy {
    /// The last event it contains.
    pub(crate) seq: Seq,
    /// The sum of the log there.
    pub(crate) sum: u64,
    pub(crate) path: PathBuf,
}

impl PastCopy {
    fn named(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let (seq, sum) = name.strip_prefix("past-")?.strip_suffix(".db")?.split_once('-')?;
        let (seq, sum) = (Seq(seq.parse().ok()?), u64::from_str_radix(sum, 16).ok()?);
        Some(Self { seq, sum, path })
    }
}

impl TownDir {
    /// The copies of checkpoints that the log may begin with, oldest first.
    pub(crate) fn past_copies(&self) -> Vec<PastCopy> {
        let entries = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let mut copies: Vec<PastCopy> = entries.filter_map(|entry| PastCopy::named(entry.path())).collect();
        copies.sort_unstable_by_key(|copy| copy.seq);
        copies
    }
}
