//! Keeps a town's queue filled, and looks after what has failed as a person would: it is closed after a while.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use yard_client::{Ask, Connection, Request};
use yard_engine::Command;
use yard_engine::command::AddItem;

/// The queue is filled up when fewer wait.
const LOW: u64 = 1_000;
/// By so many at a time.
const BATCH: usize = 1_000;
/// How often the queue is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// A bead that fails has failed for good by then.
const GIVEN_UP: Duration = Duration::from_secs(20);

/// What has been done so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    added: AtomicU64,
    queued: AtomicU64,
    over: AtomicBool,
}

impl Counts {
    pub(super) fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    /// Those no longer waiting; the few that run count too.
    pub(super) fn ended(&self) -> u64 {
        self.added().saturating_sub(self.queued.load(Ordering::Relaxed))
    }
}

/// A thread that feeds.
pub(super) struct Feeder {
    counts: Arc<Counts>,
    thread: JoinHandle<Result<(), String>>,
}

impl Feeder {
    pub(super) fn start(folder: &Path) -> Self {
        let counts = Arc::<Counts>::default();
        let mut work = Work {
            folder: folder.to_owned(),
            counts: Arc::clone(&counts),
            failing: VecDeque::new(),
            made: 0,
        };
        let thread = thread::spawn(move || work.feed());
        Self { counts, thread }
    }

    pub(super) fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Ends it; says what went wrong.
    pub(super) fn stop(self) -> Result<(), String> {
        self.counts.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err("the feeder failed".to_owned()))
    }
}

struct Work {
    folder: PathBuf,
    counts: Arc<Counts>,
    /// Beads that fail, and when they were added.
    failing: VecDeque<(String, Instant)>,
    made: u64,
}

impl Work {
    fn feed(&mut self) -> Result<(), String> {
        while !self.counts.over.load(Ordering::Relaxed) {
            let status = self.ask(Ask::SchedulerStatus { summary: true })?;
            let queued = status["queued_total"].as_u64().unwrap_or(0);
            self.counts.queued.store(queued, Ordering::Relaxed);
            if queued < LOW {
                let items: Vec<AddItem> = (0..BATCH).map(|_| self.item()).collect();
                self.ask(Ask::Command { command: Command::Add { items } })?;
                self.counts.added.fetch_add(BATCH as u64, Ordering::Relaxed);
                self.counts.queued.fetch_add(BATCH as u64, Ordering::Relaxed);
            }
            self.close_failed()?;
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Mostly nothing at all; some write, some fail once, some always, some wait for the one before.
    fn item(&mut self) -> AddItem {
        self.made += 1;
        let id = format!("y-s{}", self.made);
        let shell = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
        let argv = match self.made % 50 {
            0 => {
                self.failing.push_back((id.clone(), Instant::now()));
                vec!["/bin/false".to_owned()]
            }
            10 => shell("case $YM_DISPATCH in *@1) exit 1;; esac"),
            20 | 30 => shell("echo a line of output"),
            _ => vec!["/bin/true".to_owned()],
        };
        let after = if self.made % 50 == 41 { vec![format!("y-s{}", self.made - 1)] } else { Vec::new() };
        AddItem { argv, id: Some(id), after, ..AddItem::default() }
    }

    fn close_failed(&mut self) -> Result<(), String> {
        let mut ids = Vec::new();
        while let Some((id, _)) = self.failing.pop_front_if(|(_, added)| added.elapsed() > GIVEN_UP) {
            ids.push(id);
        }
        if ids.is_empty() {
            return Ok(());
        }
        let reason = Some("seen".to_owned());
        self.ask(Ask::Command { command: Command::BeadClose { ids, reason } }).map(drop)
    }

    fn ask(&self, ask: Ask) -> Result<Value, String> {
        let mut connection = Connection::open(&self.folder).map_err(|error| error.to_string())?;
        let request = Request { actor: "feeder".to_owned(), ask };
        let answer = connection.ask(&request, |_| true).map_err(|error| error.to_string())?;
        let (document, _) = answer.map_err(|refusal| refusal.message)?;
        serde_json::from_str(document.get()).map_err(|error| error.to_string())
    }
}
