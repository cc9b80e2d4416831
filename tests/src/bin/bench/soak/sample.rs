//! What is looked at every few seconds.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use yard_client::Ask;
use yard_engine::Command;
use yard_engine::command::AddItem;

use super::feeder::Counts;
use crate::Fallible;
use crate::contest::middle;
use crate::graph::{stamp, stamps};
use crate::served::Daemon;
use crate::stage::memory_of;

/// How many urgent beads are timed at a time.
const PROBES: usize = 5;
/// How long one is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// One thing that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Memory,
    HelpersMemory,
    Descriptors,
    Journal,
    Wal,
    RunFiles,
    LogFiles,
    LogBytes,
    Latency,
    Rate,
}

const MEBIBYTE: f64 = 1024.0 * 1024.0;

impl What {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory of the daemon",
            Self::HelpersMemory => "memory of fork server and shims",
            Self::Descriptors => "open descriptors of the daemon",
            Self::Journal => "journal",
            Self::Wal => "its write-ahead log",
            Self::RunFiles => "files in run/",
            Self::LogFiles => "files in logs/",
            Self::LogBytes => "bytes in logs/",
            Self::Latency => "latency of an urgent bead",
            Self::Rate => "beads ended a second",
        }
    }

    /// A value in words.
    pub(super) fn words(self, value: f64) -> String {
        match self {
            Self::Memory | Self::HelpersMemory | Self::Journal | Self::Wal | Self::LogBytes => {
                format!("{:.1} MiB", value / MEBIBYTE)
            }
            Self::Descriptors | Self::RunFiles | Self::LogFiles | Self::Rate => format!("{value:.0}"),
            Self::Latency => format!("{value:.1} ms"),
        }
    }

    /// What may come on top without counting as growth.
    pub(super) fn a_little(self) -> f64 {
        match self {
            Self::Memory | Self::HelpersMemory | Self::Journal | Self::Wal | Self::LogBytes => MEBIBYTE,
            Self::Descriptors => 4.0,
            Self::RunFiles | Self::LogFiles => 100.0,
            Self::Latency => 2.0,
            Self::Rate => f64::MAX,
        }
    }

    /// Whether growth is a defect; a rate may grow as it likes.
    pub(super) fn must_be_flat(self) -> bool {
        self != Self::Rate
    }
}

/// All figures on one line.
pub(super) fn brief(figures: &[(What, f64)]) -> String {
    figures
        .iter()
        .map(|(what, value)| format!("{} {}", what.name(), what.words(*value)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Looks at a daemon again and again.
pub(super) struct Sampler<'a> {
    daemon: &'a Daemon,
    counts: Arc<Counts>,
    before: (Instant, u64),
    probes: usize,
    took: Duration,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(daemon: &'a Daemon, counts: Arc<Counts>) -> Self {
        Self { daemon, counts, before: (Instant::now(), 0), probes: 0, took: Duration::ZERO }
    }

    /// How long the last look took.
    pub(super) fn took(&self) -> Duration {
        self.took
    }

    pub(super) fn look(&mut self) -> Fallible<Vec<(What, f64)>> {
        let began = Instant::now();
        let folder = self.daemon.folder();
        let pid = self.daemon.pid();
        let (log_files, log_bytes) = contents(&folder.join("logs"));
        let (run_files, _) = contents(&folder.join("run"));
        let size = |name: &str| fs::metadata(folder.join(name)).map_or(0, |about| about.len()) as f64;
        let ended = self.counts.ended();
        let rate = (ended - self.before.1) as f64 / self.before.0.elapsed().as_secs_f64();
        self.before = (Instant::now(), ended);
        let figures = vec![
            (What::Memory, memory_of(pid, "VmRSS:")? as f64 * 1024.0),
            (What::HelpersMemory, self.daemon.helpers_memory()? as f64 * 1024.0),
            (What::Descriptors, fs::read_dir(format!("/proc/{pid}/fd"))?.count() as f64),
            (What::Journal, size("journal.db")),
            (What::Wal, size("journal.db-wal")),
            (What::RunFiles, run_files as f64),
            (What::LogFiles, log_files as f64),
            (What::LogBytes, log_bytes as f64),
            (What::Latency, self.latency()?),
            (What::Rate, rate),
        ];
        self.took = began.elapsed();
        Ok(figures)
    }

    /// The median latency of urgent beads, in milliseconds.
    fn latency(&mut self) -> Fallible<f64> {
        let mut spans = Vec::new();
        for _ in 0..PROBES {
            let log = self.daemon.root().join(format!("probe-{}", self.probes));
            self.probes += 1;
            let item = AddItem { argv: stamp(&log, "probe", 0)?, priority: Some(100), ..AddItem::default() };
            let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
            self.daemon.ask(Ask::Command { command: Command::Add { items: vec![item] } })?;
            let until = Instant::now() + PATIENCE;
            let began = loop {
                if let Some(stamp) = stamps(&log).ok().and_then(|stamps| stamps.first().cloned()) {
                    break stamp.began;
                }
                if Instant::now() > until {
                    return Err("an urgent bead did not start".into());
                }
                thread::sleep(Duration::from_millis(2));
            };
            spans.push((Duration::from_nanos(began).saturating_sub(moment)).as_secs_f64() * 1e3);
            fs::remove_file(&log)?;
        }
        middle(spans.into_iter()).ok_or_else(|| "no probe was made".into())
    }
}

/// How many files a directory has, and their bytes.
fn contents(dir: &Path) -> (usize, u64) {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            let (more_files, more_bytes) = contents(&entry.path());
            (files, bytes) = (files + more_files, bytes + more_bytes);
        } else {
            (files, bytes) = (files + 1, bytes + about.len());
        }
    }
    (files, bytes)
}
