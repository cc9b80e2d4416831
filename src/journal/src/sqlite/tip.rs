//! The last event that was acknowledged, noted in a small file beside the journal.
//!
//! SQLite drops the end of a damaged WAL without a word, and a page that has lost its last row looks like a page. The
//! note is written after each commit and read before each reading, so it never names an event that the log does not
//! have yet: a log that ends before it has lost something. It is not synced. After `kill -9` it is exact; after a power
//! cut it may be older than the log, or unreadable, and then says less, but nothing wrong.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64_with_seed;
use yard_engine::Seq;

use crate::load::Link;

/// Sets the note's sum apart from those of events.
const SEED: u64 = 0x7469_7021;

/// Where the note of a journal lies.
pub(super) fn note_path(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push("-tip");
    name.into()
}

/// What the note of a journal says; nothing if there is none that can be read.
pub(super) fn read(journal: &Path) -> Option<Link> {
    decode(&std::fs::read(note_path(journal)).ok()?)
}

/// The writer's note.
pub(super) struct TipNote {
    path: PathBuf,
    file: Option<File>,
}

impl TipNote {
    pub(super) fn of(journal: &Path) -> Self {
        Self { path: note_path(journal), file: None }
    }

    /// Notes that the log ends here now. A note that cannot be written stays behind, which only means that it says less.
    pub(super) fn write(&mut self, tip: Link) {
        if self.file.is_none() {
            let mut open = OpenOptions::new();
            self.file = open.write(true).create(true).truncate(false).mode(0o600).open(&self.path).ok();
        }
        if let Some(file) = &self.file {
            let _ = file.write_all_at(encode(tip).as_bytes(), 0);
        }
    }
}

/// Always of the same length, so that a newer note covers the older one.
fn encode(tip: Link) -> String {
    let text = format!("{:020} {:016x}", tip.seq.0, tip.sum);
    format!("{text} {:016x}\n", xxh3_64_with_seed(text.as_bytes(), SEED))
}

fn decode(bytes: &[u8]) -> Option<Link> {
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let (content, check) = text.rsplit_once(' ')?;
    if u64::from_str_radix(check, 16).ok()? != xxh3_64_with_seed(content.as_bytes(), SEED) {
        return None;
    }
    let (seq, sum) = content.split_once(' ')?;
    Some(Link { seq: Seq(seq.parse().ok()?), sum: u64::from_str_radix(sum, 16).ok()? })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_note_is_believed_whole_or_not_at_all() {
        let tip = Link { seq: Seq(u64::MAX), sum: 7 };
        let text = encode(tip).into_bytes();
        assert_eq!(decode(&text), Some(tip));
        assert_eq!(text.len(), encode(Link { seq: Seq(1), sum: u64::MAX }).len());
        for place in 0..text.len() {
            let mut changed = text.clone();
            changed[place] ^= 1;
            assert_eq!(decode(&changed), None, "byte {place}");
            assert_eq!(decode(&text[..place]), None);
        }
    }

    #[test]
    fn the_newest_note_counts() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal.db");
        assert_eq!(read(&journal), None);
        let mut note = TipNote::of(&journal);
        for seq in [9, 10, 11] {
            note.write(Link { seq: Seq(seq), sum: seq });
        }
        assert_eq!(read(&journal), Some(Link { seq: Seq(11), sum: 11 }));
    }
}
