//! JSON lines: what can be read of a text is taken, and what cannot is counted.

use memchr::memchr;

use yard_engine::RigName;

use crate::ledger::{Ledger, Parsed};

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

/// Tells of each line of a piece from `begin` on: where it starts and what it says, without white space around it.
fn for_each_line(piece: &[u8], begin: usize, mut tell: impl FnMut(usize, &[u8])) {
    let mut start = begin;
    while start < piece.len() {
        let end = memchr(b'\n', &piece[start..]).map_or(piece.len(), |newline| start + newline);
        let json = piece[start..end].trim_ascii_start();
        tell(end - json.len(), json.trim_ascii_end());
        start = end + 1;
    }
}

/// A line that may be a record; none if it is blank.
fn checked(json: &[u8]) -> Result<Option<&[u8]>, String> {
    if json.len() > MAX_LINE {
        return Err("longer than 16 MiB".to_owned());
    }
    if CONFLICT_MARKERS.iter().any(|marker| json.starts_with(marker)) {
        return Err("a git conflict marker".to_owned());
    }
    Ok(Some(json).filter(|json| !json.is_empty()))
}

/// A piece of a text whose lines were parsed, which any thread may do.
pub(crate) struct ParsedPiece {
    lines: Vec<ParsedLine>,
    len: usize,
}

enum ParsedLine {
    Blank,
    Record { parsed: Parsed, start: u32, len: u32 },
    Bad(String),
}

impl ParsedPiece {
    /// Parses every line of a piece that is not the first of its text.
    pub(crate) fn parse(piece: &[u8], rig: &RigName) -> Self {
        let mut lines = Vec::new();
        for_each_line(piece, 0, |start, json| {
            lines.push(
                match checked(json).and_then(|json| json.map(|json| Parsed::parse(json, rig)).transpose()) {
                    Ok(Some(parsed)) => {
                        ParsedLine::Record { parsed, start: start as u32, len: json.len() as u32 }
                    }
                    Ok(None) => ParsedLine::Blank,
                    Err(why) => ParsedLine::Bad(why),
                },
            );
        });
        Self { lines, len: piece.len() }
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
        let begin = if is_marked { BYTE_ORDER_MARK.len() } else { 0 };
        let offset = self.offset;
        for_each_line(piece, begin, |start, json| {
            self.number += 1;
            self.any |= !json.is_empty();
            let taken = checked(json).and_then(|json| match json {
                Some(json) => ledger.take(json, offset + start),
                None => Ok(()),
            });
            if let Err(why) = taken {
                BadRecords::note(&mut self.bad, self.number, why);
            }
        });
        self.offset += piece.len();
    }

    /// Takes the lines of the next piece, which is not the first, as they were parsed.
    pub(crate) fn take_parsed(&mut self, ledger: &mut Ledger, piece: ParsedPiece) {
        for line in piece.lines {
            self.number += 1;
            match line {
                ParsedLine::Blank => continue,
                ParsedLine::Record { parsed, start, len } => {
                    ledger.take_parsed(parsed, self.offset + start as usize, len as usize);
                }
                ParsedLine::Bad(why) => BadRecords::note(&mut self.bad, self.number, why),
            }
            self.any = true;
        }
        self.offset += piece.len;
    }

    /// How often what has come fits into a text of this length.
    pub(crate) fn times(&self, len: u64) -> usize {
        len as usize / self.offset.max(1)
    }
}
