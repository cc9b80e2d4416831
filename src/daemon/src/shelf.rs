//! Where copies of checkpoints lie that the log may begin with: files beside the journal, whose names say what is in them.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use yard_engine::Seq;
use yard_journal::{JournalError, Reader};

use crate::town::TownDir;

/// So many events are cut off in one turn: a few milliseconds' worth.
const CUT_AT_ONCE: u64 = 2_000;
/// So many events must have come since the last copy: a short log is no burden.
const WORTH_A_COPY: u64 = 1_000;

/// The folder that copies lie in, with the journal they are of. A rehearsal has one on its own disk.
pub trait Shelf: Send + Sync {
    /// What lies there.
    fn names(&self) -> Vec<String>;
    /// Where something of this name lies.
    fn path(&self, name: &str) -> PathBuf;
    /// Gives something another name, which may be lost in a power cut until the next [`Shelf::sync`].
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Takes something away.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes all names durable.
    fn sync(&self) -> io::Result<()>;
    /// A look at the journal.
    fn log(&self) -> Result<Reader, JournalError>;
}

/// How the past is kept.
pub struct Keeping {
    /// Where copies lie.
    pub shelf: Arc<dyn Shelf>,
    /// So many events must have come since the last copy.
    pub worth_a_copy: u64,
    /// So many events are cut off in one turn.
    pub cut_at_once: u64,
}

impl Keeping {
    /// As every daemon keeps it.
    pub(crate) fn of(town: &TownDir) -> Self {
        Self { shelf: Arc::new(town.clone()), worth_a_copy: WORTH_A_COPY, cut_at_once: CUT_AT_ONCE }
    }
}

impl Shelf for TownDir {
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(self.folder())?.sync_all()
    }

    fn log(&self) -> Result<Reader, JournalError> {
        self.reader()
    }
}

/// A copy of a checkpoint that the log may begin with.
#[derive(Debug)]
pub(crate) struct PastCopy {
    /// The last event it contains.
    pub(crate) seq: Seq,
    /// The sum of the log there.
    pub(crate) sum: u64,
    pub(crate) name: String,
}

impl PastCopy {
    /// The name of a copy that stands here.
    pub(crate) fn name(seq: Seq, sum: u64) -> String {
        format!("past-{seq}-{sum:016x}.db")
    }

    fn named(name: String) -> Option<Self> {
        let (seq, sum) = name.strip_prefix("past-")?.strip_suffix(".db")?.split_once('-')?;
        let (seq, sum) = (Seq(seq.parse().ok()?), u64::from_str_radix(sum, 16).ok()?);
        Some(Self { seq, sum, name })
    }
}

/// The copies that lie there, oldest first.
pub(crate) fn copies(shelf: &dyn Shelf) -> Vec<PastCopy> {
    let mut copies: Vec<PastCopy> = shelf.names().into_iter().filter_map(PastCopy::named).collect();
    copies.sort_unstable_by_key(|copy| copy.seq);
    copies
}
