//! A workspace that keeps its truth elsewhere: its own tool is asked.
//!
//! It may print a JSON array, an envelope around one, or JSON lines. A clean answer is certain about what is not in
//! it; an answer that says nothing at all is not.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;
use yard_engine::{RigName, SourceReading};

use crate::details::Descriptions;
use crate::ledger::Ledger;
use crate::lines::{BadRecords, Lines};
use crate::news::{Finding, News};
use crate::run::{Ended, Failure, Limits, run};

const LIMITS: Limits = Limits { time: Duration::from_mins(1), output: 1 << 30 };
/// Longest complaint that is passed on.
const MAX_COMPLAINT: usize = 200;

/// A tool that prints beads.
pub(crate) struct CommandSource {
    argv: Vec<String>,
    dir: PathBuf,
    ledger: Ledger,
    news: News,
    /// Whether there were beads before this process.
    had_beads: bool,
    /// The hash of the last answer, if another reading of it could not find more.
    exhausted: Option<u128>,
    stop: Arc<AtomicBool>,
    limits: Limits,
}

/// How an answer is written.
enum Answer<'a> {
    /// An array, in an envelope or not.
    Records(Vec<&'a RawValue>),
    /// An object per line.
    Lines,
    /// Nothing that says anything.
    Nothing,
}

/// `{"schema_version": 1, "data": […]}`.
#[derive(Deserialize)]
struct Envelope<'a> {
    schema_version: Option<serde::de::IgnoredAny>,
    #[serde(borrow)]
    data: Option<Vec<&'a RawValue>>,
}

impl CommandSource {
    /// The beads of a rig as a tool prints them, run in the rig's directory; nothing is run yet.
    pub(crate) fn open(rig: RigName, argv: Vec<String>, dir: PathBuf) -> Self {
        Self {
            argv,
            dir,
            ledger: Ledger::new(rig.clone(), Descriptions::of_output()),
            news: News::new(rig),
            had_beads: false,
            exhausted: None,
            stop: Arc::default(),
            limits: LIMITS,
        }
    }

    pub(crate) fn expect_beads(&mut self) {
        self.had_beads = true;
    }

    pub(crate) fn descriptions(&self) -> Descriptions {
        self.ledger.descriptions().clone()
    }

    /// Once set, a running tool is killed and none is started.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    pub(crate) fn read(&mut self) -> Option<SourceReading> {
        match run(&self.argv, &self.dir, self.limits, &self.stop) {
            Ok(ended) if ended.status.success() => self.take(ended.output),
            Ok(ended) => self.trouble(how_it_failed(&ended)),
            Err(Failure::Broken(error)) => {
                self.trouble(format!("could not be run in {}: {error}", self.dir.display()))
            }
            Err(Failure::TimedOut) => {
                self.trouble(format!("did not answer within {} seconds", self.limits.time.as_secs()))
            }
            Err(Failure::TooMuch) => self.trouble("printed more than 1 GiB".to_owned()),
            Err(Failure::Stopped) => None,
        }
    }

    fn take(&mut self, output: Vec<u8>) -> Option<SourceReading> {
        let hash = xxh3_128(&output);
        let stamp = Some(format!("{hash:032x}"));
        if self.exhausted == Some(hash) {
            return self.news.tell(Finding { stamp, certain: true, ..Finding::default() });
        }
        self.exhausted = None;
        let answer = match Answer::read(&output) {
            Ok(answer) => answer,
            Err(why) => return self.trouble(format!("printed something that is not JSON: {why}")),
        };
        let says_nothing = matches!(answer, Answer::Nothing);
        if says_nothing && (self.had_beads || self.ledger.has_beads()) {
            return self.trouble("printed nothing, and there were beads before".to_owned());
        }
        self.ledger.begin();
        let trouble = match answer {
            Answer::Records(records) => {
                self.take_records(&output, &records).map(|bad| bad.describe(&self.name(), "record"))
            }
            Answer::Lines => {
                let mut lines = Lines::default();
                lines.take(&mut self.ledger, &output);
                lines.bad.map(|bad| bad.describe(&self.name(), "line"))
            }
            Answer::Nothing => None,
        };
        let certain = trouble.is_none() && !says_nothing;
        let whole = self.news.wants_all(certain);
        let gone = if certain { self.ledger.forget_missing() } else { Vec::new() };
        let beads = self.ledger.finish(&output, whole);
        self.ledger.publish(Some(Arc::new(output)));
        self.exhausted = certain.then_some(hash);
        let gone = if whole { Vec::new() } else { gone };
        self.news.tell(Finding { stamp, certain, beads, whole, gone, trouble, doubtful: false })
    }

    fn take_records(&mut self, output: &[u8], records: &[&RawValue]) -> Option<BadRecords> {
        let mut bad = None;
        for (number, record) in (1..).zip(records) {
            // Where the record stands in the text it borrows from.
            let offset = record.get().as_ptr() as usize - output.as_ptr() as usize;
            if let Err(why) = self.ledger.take(record.get().as_bytes(), offset) {
                BadRecords::note(&mut bad, number, why);
            }
        }
        bad
    }

    fn trouble(&mut self, what: String) -> Option<SourceReading> {
        let trouble = Some(format!("{} {what}", self.name()));
        self.news.tell(Finding { trouble, ..Finding::default() })
    }

    /// The command as a person knows it.
    fn name(&self) -> String {
        let words: Vec<&str> = self.argv.iter().map(String::as_str).take(3).collect();
        let more = if self.argv.len() > words.len() { " …" } else { "" };
        format!("`{}{more}`", words.join(" "))
    }
}

impl<'a> Answer<'a> {
    fn read(output: &'a [u8]) -> Result<Self, String> {
        let start = output.trim_ascii();
        if start.is_empty() || start == b"null" {
            return Ok(Self::Nothing);
        }
        if start.starts_with(b"[") {
            let records = serde_json::from_slice(output).map_err(|error| error.to_string())?;
            return Ok(Self::Records(records));
        }
        Ok(match serde_json::from_slice(output) {
            Ok(Envelope { data: Some(records), .. }) => Self::Records(records),
            Ok(Envelope { data: None, schema_version: Some(_) }) => Self::Nothing,
            Ok(Envelope { data: None, schema_version: None }) | Err(_) => Self::Lines,
        })
    }
}

/// The exit status, and the last thing it complained about.
fn how_it_failed(ended: &Ended) -> String {
    let complaints = String::from_utf8_lossy(&ended.complaints);
    let last = complaints.lines().map(str::trim).rfind(|line| !line.is_empty());
    let last: String = last.unwrap_or("it did not say why").chars().take(MAX_COMPLAINT).collect();
    format!("failed ({}): {last}", ended.status)
}

#[cfg(test)]
mod tests;
