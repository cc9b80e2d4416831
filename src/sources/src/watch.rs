//! Watching a source: one thread that reads it whenever it may have changed, and passes on what is new.
//!
//! A file is read as soon as something happens to it, and at most every few milliseconds while it goes on happening.
//! What the notifications miss is found by looking at the file now and then; where there are none, by looking often.
//! A command is run when asked, and on a poll if one is wanted.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use yard_engine::SourceReading;

use crate::eyes::Eyes;
use crate::source::Source;

/// Between two looks at a file whose changes are notified.
const BELT: Duration = Duration::from_secs(2);
/// Between two looks at a file whose changes are not.
const POLL: Duration = Duration::from_millis(200);
/// Between two readings of a file to which things keep happening.
const GAP: Duration = Duration::from_millis(20);
/// How long trouble with a file must last before it is told.
const PATIENCE: Duration = Duration::from_secs(1);
/// Set to 1, files are polled even where changes could be notified.
const POLL_VARIABLE: &str = "YM_SOURCES_POLL";

/// Where readings go. It is called on the watching thread, and must not wait for whoever drops the watch.
pub type Sink = Arc<dyn Fn(SourceReading) + Send + Sync>;

/// How to watch.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatchOptions {
    /// How often to run a command; none means only when poked.
    pub poll: Option<Duration>,
    /// Look at files often instead of being notified.
    pub force_polling: bool,
}

/// A source being watched; it stops when dropped, even in the middle of a command.
pub struct Watch {
    signal: Arc<Signal>,
    stop_reading: Option<Arc<AtomicBool>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches a source from where its last reading left off.
    pub fn start(mut source: Source, options: WatchOptions, sink: Sink) -> io::Result<Self> {
        source.set_patience(PATIENCE);
        let signal = Arc::new(Signal::default());
        let stop_reading = source.stop_flag();
        let polling = options.force_polling || std::env::var_os(POLL_VARIABLE).is_some_and(|v| v == "1");
        let eyes = source.file().map(|file| Eyes::new(&file, (!polling).then(|| signal.clone())));
        let watcher = Watcher { source, eyes, poll: options.poll, sink, signal: signal.clone() };
        let thread = thread::Builder::new().name("source".to_owned()).spawn(move || watcher.run())?;
        Ok(Self { signal, stop_reading, thread: Some(thread) })
    }

    /// Asks for a reading now.
    pub fn poke(&self) {
        self.signal.raise(|raised| raised.touched = true);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.signal.raise(|raised| raised.stop = true);
        if let Some(stop) = &self.stop_reading {
            stop.store(true, Ordering::Relaxed);
        }
        if let Some(thread) = self.thread.take() {
            // A panic over there has been reported over there.
            let _ = thread.join();
        }
    }
}

/// What the watching thread is told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Raised {
    /// It is over.
    pub(crate) stop: bool,
    /// Something may have changed.
    pub(crate) touched: bool,
    /// The directory may be another one.
    pub(crate) moved: bool,
}

/// How it is told. However often things happen meanwhile, they are one thing when it looks.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: Mutex<Raised>,
    changed: Condvar,
}

impl Signal {
    pub(crate) fn raise(&self, how: impl FnOnce(&mut Raised)) {
        how(&mut self.raised());
        self.changed.notify_all();
    }

    fn raised(&self) -> MutexGuard<'_, Raised> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something that `matters` is raised, or the time comes.
    pub(crate) fn wait(&self, until: Option<Instant>, matters: impl Fn(Raised) -> bool) {
        let mut raised = self.raised();
        while !matters(*raised) {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            raised = match left {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    self.changed.wait_timeout(raised, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(raised).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Takes what was raised; a stop stays.
    pub(crate) fn take(&self) -> Raised {
        let mut raised = self.raised();
        let stop = raised.stop;
        std::mem::replace(&mut *raised, Raised { stop, ..Raised::default() })
    }
}

/// The watching thread.
struct Watcher {
    source: Source,
    eyes: Option<Eyes>,
    poll: Option<Duration>,
    sink: Sink,
    signal: Arc<Signal>,
}

impl Watcher {
    fn run(mut self) {
        // What happened between the caller's reading and the opening of the eyes is seen by a reading after it. A
        // command has just been run.
        let mut next = match &self.eyes {
            Some(_) => Some(Instant::now()),
            None => self.poll.map(|poll| Instant::now() + poll),
        };
        loop {
            self.signal.wait(next, |raised| raised.stop || raised.touched || raised.moved);
            let raised = self.signal.take();
            if raised.stop {
                return;
            }
            let pace = match &mut self.eyes {
                Some(eyes) => Some(if eyes.keep_open(raised.moved) { BELT } else { POLL }),
                None => self.poll,
            };
            let started = Instant::now();
            if let Some(reading) = self.source.read() {
                (self.sink)(reading);
            }
            let ended = Instant::now();
            next = pace.map(|pace| ended + pace).into_iter().chain(self.source.due()).min();
            // However fast things happen, at most half of the time goes into reading.
            let rested = ended + GAP.max(ended - started);
            self.signal.wait(Some(rested), |raised| raised.stop);
        }
    }
}
