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

/// Takes every line of the text.
pub(crate) fn take_lines(ledger: &mut Ledger, text: &[u8]) -> Option<BadRecords> {
    let mut bad = None;
    let mut start = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut number = 0;
    while start < text.len() {
        let end = memchr(b'\n', &text[start..]).map_or(text.len(), |newline| start + newline);
        number += 1;
        if let Err(why) = take_line(ledger, &text[start..end], start) {
            BadRecords::note(&mut bad, number, why);
        }
        start = end + 1;
    }
    bad
}

fn take_line(ledger: &mut Ledger, line: &[u8], offset: usize) -> Result<(), String> {
    let json = line.trim_ascii_start();
    let offset = offset + line.len() - json.len();
    let json = json.trim_ascii_end();
    if json.is_empty() {
        return Ok(());
    }
    if json.len() > MAX_LINE {
        return Err("longer than 16 MiB".to_owned());
    }
    if CONFLICT_MARKERS.iter().any(|marker| json.starts_with(marker)) {
        return Err("a git conflict marker".to_owned());
    }
    ledger.take(json, offset)
}
