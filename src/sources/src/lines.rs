//! JSON lines: what can be read of a text is taken, and what cannot is counted.

use memchr::memchr;

use crate::ledger::Ledger;

/// Longer lines are not read.
const MAX_LINE: usize = 16 << 20;
/// How git marks what it could not merge.
const CONFLICT_MARKERS: [&[u8]; 4] = [b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||"];
/// Some editors begin a file with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The records of a text that could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadRecords {
    count: usize,
    first: usize,
    why: String,
}

impl BadRecords {
    /// Notes that the n-th record, from 1, cannot be read.
    pub(crate) fn note(bad: &mut Option<Self>, number: usize, why: String) {
        match bad {
            Some(bad) => bad.count += 1,
            None => *bad = Some(Self { count: 1, first: number, why }),
        }
    }

    /// In words: `issues.jsonl: line 3 cannot be read: not valid UTF-8`.
    pub(crate) fn describe(&self, text: &str, unit: &str) -> String {
        let Self { count, first, why } = self;
        if *count == 1 {
            return format!("{text}: {unit} {first} cannot be read: {why}");
        }
        format!("{text}: {count} {unit}s cannot be read, the first is {unit} {first}: {why}")
    }
}

/// The lines of a text that comes as a whole or in pieces.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Those that could not be read.
    pub(crate) bad: Option<BadRecords>,
    /// Whether there is anything but white space.
    pub(crate) any: bool,
    number: usize,
    /// Where in the text the next piece begins.
    offset: usize,
}

impl Lines {
    /// Takes every line of the next piece of the text, which ends with a line unless it is the last.
    pub(crate) fn take(&mut self, ledger: &mut Ledger, piece: &[u8]) {
        let is_marked = self.offset == 0 && piece.starts_with(BYTE_ORDER_MARK);
        self.any |= is_marked;
        let mut start = if is_marked { BYTE_ORDER_MARK.len() } else { 0 };
        while start < piece.len() {
            let end = memchr(b'\n', &piece[start..]).map_or(piece.len(), |newline| start + newline);
            self.number += 1;
            if let Err(why) = self.take_line(ledger, &piece[start..end], self.offset + start) {
                BadRecords::note(&mut self.bad, self.number, why);
            }
            start = end + 1;
        }
        self.offset += piece.len();
    }

    fn take_line(&mut self, ledger: &mut Ledger, line: &[u8], offset: usize) -> Result<(), String> {
        let json = line.trim_ascii_start();
        let offset = offset + line.len() - json.len();
        let json = json.trim_ascii_end();
        if json.is_empty() {
            return Ok(());
        }
        self.any = true;
        if json.len() > MAX_LINE {
            return Err("longer than 16 MiB".to_owned());
        }
        if CONFLICT_MARKERS.iter().any(|marker| json.starts_with(marker)) {
            return Err("a git conflict marker".to_owned());
        }
        ledger.take(json, offset)
    }

    /// How often what has come fits into a text of this length.
    pub(crate) fn times(&self, len: u64) -> usize {
        len as usize / self.offset.max(1)
    }
}
