//! Following the log of one bead across its attempts: a thread reads the files and passes on what is new.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use yard_client::views::LogView;
use yard_client::{Ask, Connection, Request};
use yard_engine::BeadId;

use crate::msg::{LogLine, LogNews};

/// How often a log that may grow is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Of a longer log, only the end is read.
const LARGEST: u64 = 8 * 1024 * 1024;
/// Read at once.
const AT_ONCE: usize = 256 * 1024;

/// Whose log, and of which attempts.
struct Wanted {
    bead: BeadId,
    attempts: Vec<String>,
}

/// The way to the thread.
pub(crate) struct Follower(Sender<Wanted>);

impl Follower {
    /// Starts the thread; what it reads goes to `tell`.
    pub(crate) fn start(folder: PathBuf, tell: impl Fn(LogNews) + Send + 'static) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        thread::Builder::new().name("ym-logs".to_owned()).spawn(move || run(&folder, &receiver, &tell))?;
        Ok(Self(sender))
    }

    /// Follows this bead from now on.
    pub(crate) fn follow(&self, bead: BeadId, attempts: Vec<String>) {
        let _ = self.0.send(Wanted { bead, attempts });
    }
}

/// A log that is being read.
struct Reading {
    bead: BeadId,
    /// What has been shown in full.
    done: Vec<String>,
    /// The attempts still to be read, the first of them under way.
    pending: Vec<String>,
    file: Option<Tail>,
}

/// The rest of a file, line by line.
struct Tail {
    path: PathBuf,
    at: u64,
    half: Vec<u8>,
}

fn run(folder: &Path, wanted: &Receiver<Wanted>, tell: &impl Fn(LogNews)) {
    let mut reading: Option<Reading> = None;
    loop {
        let next = match &reading {
            None => wanted.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => wanted.recv_timeout(LOOK),
        };
        match next {
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(wish) => {
                // Only the last wish counts: the cursor may have run over many rows.
                let wish = wanted.try_iter().last().unwrap_or(wish);
                reading = Some(begin(reading.take(), wish, tell));
            }
        }
        if let Some(reading) = &mut reading {
            let lines = reading.read(folder);
            if !lines.is_empty() {
                tell(LogNews { bead: reading.bead.clone(), fresh: false, lines });
            }
        }
    }
}

/// Begins anew, or goes on when the same bead has another attempt.
fn begin(before: Option<Reading>, wish: Wanted, tell: &impl Fn(LogNews)) -> Reading {
    if let Some(mut reading) = before.filter(|reading| reading.bead == wish.bead) {
        let known = |id: &String| reading.done.contains(id) || reading.pending.contains(id);
        let new: Vec<String> = wish.attempts.into_iter().filter(|id| !known(id)).collect();
        reading.pending.extend(new);
        return reading;
    }
    tell(LogNews { bead: wish.bead.clone(), fresh: true, lines: Vec::new() });
    Reading { bead: wish.bead, done: Vec::new(), pending: wish.attempts, file: None }
}

impl Reading {
    /// What is new since the last look.
    fn read(&mut self, folder: &Path) -> Vec<LogLine> {
        let mut lines = Vec::new();
        while let Some(attempt) = self.pending.first().cloned() {
            if self.file.is_none() {
                let Some(path) = log_path(folder, &attempt) else { break };
                lines.push(LogLine::Attempt(attempt.clone()));
                let tail = Tail::open(path);
                if tail.at > 0 {
                    let cut = format!("its beginning is not here: ym logs {attempt} has all of it");
                    lines.push(LogLine::Attempt(cut));
                }
                self.file = Some(tail);
            }
            if let Some(tail) = &mut self.file {
                tail.read(&mut lines);
            }
            // The last attempt is followed as long as one looks at it; earlier ones are over.
            if self.pending.len() == 1 {
                break;
            }
            if let Some(tail) = self.file.take() {
                tail.finish(&mut lines);
            }
            self.done.push(self.pending.remove(0));
        }
        lines
    }
}

impl Tail {
    fn open(path: PathBuf) -> Self {
        let size = path.metadata().map_or(0, |meta| meta.len());
        Self { path, at: size.saturating_sub(LARGEST), half: Vec::new() }
    }

    fn read(&mut self, lines: &mut Vec<LogLine>) {
        let Ok(mut file) = File::open(&self.path) else { return };
        if file.metadata().is_ok_and(|meta| meta.len() <= self.at)
            || file.seek(SeekFrom::Start(self.at)).is_err()
        {
            return;
        }
        let mut bytes = vec![0; AT_ONCE];
        while let Ok(read @ 1..) = file.read(&mut bytes) {
            self.at += read as u64;
            self.half.extend_from_slice(&bytes[..read]);
            while let Some(end) = self.half.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.half.drain(..=end).collect();
                lines.push(line_of(&line[..end]));
            }
            if self.half.len() > AT_ONCE {
                // A line without an end is shown in pieces.
                lines.push(line_of(&std::mem::take(&mut self.half)));
            }
        }
    }

    fn finish(self, lines: &mut Vec<LogLine>) {
        if !self.half.is_empty() {
            lines.push(line_of(&self.half));
        }
    }
}

fn line_of(bytes: &[u8]) -> LogLine {
    LogLine::Text(String::from_utf8_lossy(bytes).into_owned())
}

/// Where the log of a dispatch lies.
fn log_path(folder: &Path, dispatch: &str) -> Option<PathBuf> {
    let mut connection = Connection::open(folder).ok()?;
    let ask = Ask::LogOf { id: dispatch.to_owned() };
    let answer = connection.ask(&Request { actor: "console".to_owned(), ask }, |_| true).ok()?.ok()?;
    let view: LogView = serde_json::from_str(answer.0.get()).ok()?;
    Some(view.path.into())
}
