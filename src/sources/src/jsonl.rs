//! A beads workspace's JSON lines.
//!
//! Good lines are believed at once. A disappearance is believed only when every line could be read and the file has
//! not changed for a while, because whoever rewrites a file in place empties it first. What cannot be read changes
//! nothing.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use yard_engine::{RigName, SourceReading};

use crate::details::Descriptions;
use crate::file::{self, Contents, Stamp, Unread};
use crate::hands::parse_together;
use crate::ledger::Ledger;
use crate::lines::Lines;
use crate::news::{Finding, News, UNCERTAIN};

/// How long a file must stay unchanged until what it lacks is believed to be gone.
const SETTLE: Duration = Duration::from_secs(1);
/// The stamp of a file that is not there and never was.
const ABSENT: &str = "absent";

/// A file of JSON lines.
pub(crate) struct JsonlSource {
    path: PathBuf,
    ledger: Ledger,
    news: News,
    /// Whether the file has been there, so that its absence means something.
    was_there: bool,
    /// Whether beads of it are known from before this process.
    expects_beads: bool,
    version: Option<Version>,
    /// The trouble with the last version that was read.
    trouble: Option<String>,
    settle: Duration,
}

/// The version of the file that was seen last.
struct Version {
    stamp: Stamp,
    seen: Instant,
    /// Whether it had not changed for a while when this process first looked. Only then is the clock of a file system
    /// believed, because a process that looks once has nothing else to go by.
    old: bool,
    /// When it was read.
    read: Instant,
    /// Whether it was read to the end, after it had settled: another reading could not find more.
    exhausted: bool,
}

/// A file whose lines the ledger has.
struct Taken {
    lines: Lines,
    stamp: Stamp,
    /// Whether nothing changed while it was read.
    steady: bool,
    /// Empty if nobody needs it any more.
    text: Vec<u8>,
}

impl JsonlSource {
    /// The beads of a rig in a file; nothing is read yet.
    pub(crate) fn open(rig: RigName, path: PathBuf) -> Self {
        let descriptions = Descriptions::of_file(path.clone());
        Self {
            ledger: Ledger::new(rig.clone(), descriptions),
            news: News::new(rig),
            path,
            was_there: false,
            expects_beads: false,
            version: None,
            trouble: None,
            settle: SETTLE,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn expect_beads(&mut self) {
        self.was_there = true;
        self.expects_beads = true;
    }

    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.news.patience = patience;
    }

    pub(crate) fn descriptions(&self) -> Descriptions {
        self.ledger.descriptions().clone()
    }

    pub(crate) fn stamp_now(&self) -> Option<String> {
        match file::look(&self.path) {
            Ok(stamp) => Some(stamp.to_string()),
            Err(Unread::Missing) => Some(ABSENT.to_owned() + UNCERTAIN),
            Err(Unread::Because(_)) => None,
        }
    }

    /// When the file should be read again although nothing seems to happen to it.
    pub(crate) fn due(&self) -> Option<Instant> {
        let unfinished = self.version.as_ref().filter(|version| !version.exhausted);
        let settled = unfinished.map(|version| {
            let settles = version.seen + self.settle;
            if version.read < settles { settles } else { version.read + self.settle }
        });
        settled.into_iter().chain(self.news.due()).min()
    }

    pub(crate) fn read(&mut self) -> Option<SourceReading> {
        let taken = file::look(&self.path).and_then(|stamp| {
            let known = self.version.as_ref().is_some_and(|known| known.exhausted && known.stamp == stamp);
            if known { Ok(None) } else { self.take_lines().map(Some) }
        });
        match taken {
            Ok(Some(taken)) => self.conclude(&taken),
            Ok(None) => self.nothing_changed(),
            Err(Unread::Missing) if !self.was_there => {
                let whole = self.news.wants_all(false);
                self.news.tell(Finding { stamp: Some(ABSENT.to_owned()), whole, ..Finding::default() })
            }
            Err(Unread::Missing) => self.unreadable("is missing, and was there before"),
            Err(Unread::Because(why)) => self.unreadable(&why),
        }
    }

    /// Hands the file's lines to the ledger.
    fn take_lines(&mut self) -> Result<Taken, Unread> {
        if self.ledger.is_new() {
            let taken = self.take_first_lines();
            if taken.as_ref().is_ok_and(|taken| taken.steady) {
                return taken;
            }
            // What was read of a file that changed meanwhile may never have been there.
            self.ledger.clear();
            taken?;
        }
        let Contents { text, stamp, steady } = file::read(&self.path)?;
        let mut lines = Lines::default();
        self.ledger.begin();
        lines.take(&mut self.ledger, &text);
        Ok(Taken { lines, stamp, steady, text })
    }

    /// The lines of a file of which nothing is known yet. All of them are parsed at once, so the text need not be kept,
    /// and most memory that a town takes is taken here.
    fn take_first_lines(&mut self) -> Result<Taken, Unread> {
        let mut lines = Lines::default();
        self.ledger.begin();
        let rig = self.ledger.rig().clone();
        let (stamp, steady) = parse_together(&rig, |hands| {
            let read = file::read_in_pieces(&self.path, |piece, len| {
                if lines.any {
                    hands.parse(piece, |parsed| lines.take_parsed(&mut self.ledger, parsed));
                } else {
                    lines.take(&mut self.ledger, piece);
                    self.ledger.expect(lines.times(len));
                }
            });
            hands.finish(|parsed| lines.take_parsed(&mut self.ledger, parsed));
            read
        })?;
        Ok(Taken { lines, stamp, steady, text: Vec::new() })
    }

    /// Makes a reading of what the ledger was given.
    fn conclude(&mut self, taken: &Taken) -> Option<SourceReading> {
        let settled = self.note_version(taken);
        self.was_there = true;
        let path = self.path.display();
        self.trouble = taken.lines.bad.as_ref().map(|bad| bad.describe(&path.to_string(), "line"));
        // A tracker that has nothing to say any more is rarer than a file that lost its contents.
        let had_beads = self.expects_beads || self.ledger.lacks_some();
        if settled && had_beads && !taken.lines.any {
            self.trouble = Some(format!("{path} is empty, and had beads before"));
        }
        let certain = settled && self.trouble.is_none();
        let whole = self.news.wants_all(certain);
        let doubtful = !certain && self.ledger.lacks_some();
        let gone = if certain { self.ledger.forget_missing() } else { Vec::new() };
        let beads = self.ledger.finish(&taken.text, whole);
        self.ledger.publish(None);
        self.news.tell(Finding {
            stamp: Some(taken.stamp.to_string()),
            certain,
            beads,
            whole,
            gone: if whole { Vec::new() } else { gone },
            trouble: self.trouble.clone(),
            doubtful,
        })
    }

    /// Remembers the version just read; says whether it had settled before.
    fn note_version(&mut self, taken: &Taken) -> bool {
        let stamp = taken.stamp;
        let read = Instant::now();
        let same = self.version.take().filter(|known| known.stamp == stamp);
        let mut version = same.unwrap_or_else(|| {
            let old = self.news.wants_all(false) && stamp.is_older_than(self.settle);
            Version { stamp, seen: read, old, read, exhausted: false }
        });
        let settled = version.old || version.seen.elapsed() >= self.settle;
        version.read = read;
        version.exhausted = settled && taken.steady;
        self.version.insert(version).exhausted
    }

    fn nothing_changed(&mut self) -> Option<SourceReading> {
        let stamp = self.version.as_ref().map(|version| version.stamp.to_string());
        let (certain, trouble) = (self.trouble.is_none(), self.trouble.clone());
        self.news.tell(Finding { stamp, certain, trouble, ..Finding::default() })
    }

    fn unreadable(&mut self, why: &str) -> Option<SourceReading> {
        self.version = None;
        let trouble = Some(format!("{} {why}", self.path.display()));
        self.news.tell(Finding { trouble, ..Finding::default() })
    }
}

#[cfg(test)]
mod tests;
