//! Following the log of one bead across its attempts: a thread reads the files, or has them read where they are, and passes
//! on what is new.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;
use yard_client::views::{LogPiece, LogPlace, LogView};
use yard_client::{Ask, Connection, Place, Request};
use yard_engine::BeadId;

use crate::msg::{LogLine, LogNews};

/// How often a log that may grow is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// The same where each look is a question over the network.
const LOOK_AFAR: Duration = Duration::from_secs(1);
/// From there, only so many lines are fetched of what was written before.
const LINES_AFAR: usize = 5_000;
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
    pub(crate) fn start(place: Place, tell: impl Fn(LogNews) + Send + 'static) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        thread::Builder::new().name("ym-logs".to_owned()).spawn(move || run(place, &receiver, &tell))?;
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
    source: Option<Source>,
}

/// Where what is read comes from.
enum Source {
    File(Tail),
    Pieces(Pieces),
}

/// Whoever serves the town, asked again and again where that is far away.
struct Server {
    place: Place,
    connection: Option<Connection>,
}

/// The rest of a file, line by line.
struct Tail {
    path: PathBuf,
    at: u64,
    half: Half,
}

/// The rest of a log that is read where it is.
struct Pieces {
    attempt: String,
    from: Option<LogPlace>,
    half: Half,
}

/// The start of a line whose end has not been read yet.
#[derive(Default)]
struct Half(Vec<u8>);

fn run(place: Place, wanted: &Receiver<Wanted>, tell: &impl Fn(LogNews)) {
    let look = if place.is_remote() { LOOK_AFAR } else { LOOK };
    let mut server = Server { place, connection: None };
    let mut reading: Option<Reading> = None;
    loop {
        let next = match &reading {
            None => wanted.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => wanted.recv_timeout(look),
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
            let lines = reading.read(&mut server);
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
    Reading { bead: wish.bead, done: Vec::new(), pending: wish.attempts, source: None }
}

impl Reading {
    /// What is new since the last look.
    fn read(&mut self, server: &mut Server) -> Vec<LogLine> {
        let mut lines = Vec::new();
        while let Some(attempt) = self.pending.first().cloned() {
            if self.source.is_none() {
                let Some(source) = server.open(&attempt, &mut lines) else { break };
                self.source = Some(source);
            }
            let read = match &mut self.source {
                Some(Source::File(tail)) => {
                    tail.read(&mut lines);
                    true
                }
                Some(Source::Pieces(pieces)) => pieces.read(server, &mut lines),
                None => false,
            };
            if !read {
                break;
            }
            // The last attempt is followed as long as one looks at it; earlier ones are over.
            if self.pending.len() == 1 {
                break;
            }
            match self.source.take() {
                Some(Source::File(Tail { half, .. }) | Source::Pieces(Pieces { half, .. })) => {
                    half.finish(&mut lines);
                }
                None => {}
            }
            self.done.push(self.pending.remove(0));
        }
        lines
    }
}

impl Tail {
    fn open(path: PathBuf) -> Self {
        let size = path.metadata().map_or(0, |meta| meta.len());
        Self { path, at: size.saturating_sub(LARGEST), half: Half::default() }
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
            self.half.take(&bytes[..read], lines);
        }
    }
}

impl Pieces {
    /// Reads what there is; false if nobody answers at present.
    fn read(&mut self, server: &mut Server, lines: &mut Vec<LogLine>) -> bool {
        loop {
            let id = self.attempt.clone();
            let ask = Ask::LogPiece { id, from: self.from, lines: Some(LINES_AFAR) };
            let Some(piece) = server.ask::<LogPiece>(ask) else { return false };
            if self.from.is_none() && !piece.from_start {
                lines.push(LogLine::Attempt(cut(&self.attempt)));
            }
            self.half.take(&piece.bytes, lines);
            self.from = piece.next;
            if piece.bytes.is_empty() {
                return true;
            }
        }
    }
}

impl Half {
    fn take(&mut self, bytes: &[u8], lines: &mut Vec<LogLine>) {
        self.0.extend_from_slice(bytes);
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.0.drain(..=end).collect();
            lines.push(line_of(&line[..end]));
        }
        if self.0.len() > AT_ONCE {
            // A line without an end is shown in pieces.
            lines.push(line_of(&std::mem::take(&mut self.0)));
        }
    }

    fn finish(self, lines: &mut Vec<LogLine>) {
        if !self.0.is_empty() {
            lines.push(line_of(&self.0));
        }
    }
}

fn cut(attempt: &str) -> String {
    format!("its beginning is not here: ym logs {attempt} has all of it")
}

fn line_of(bytes: &[u8]) -> LogLine {
    LogLine::Text(String::from_utf8_lossy(bytes).into_owned())
}

impl Server {
    /// Where the log of an attempt is read from.
    fn open(&mut self, attempt: &str, lines: &mut Vec<LogLine>) -> Option<Source> {
        if self.place.is_remote() {
            lines.push(LogLine::Attempt(attempt.to_owned()));
            let pieces = Pieces { attempt: attempt.to_owned(), from: None, half: Half::default() };
            return Some(Source::Pieces(pieces));
        }
        let view: LogView = self.ask(Ask::LogOf { id: attempt.to_owned() })?;
        lines.push(LogLine::Attempt(attempt.to_owned()));
        let tail = Tail::open(view.path.into());
        if tail.at > 0 {
            lines.push(LogLine::Attempt(cut(attempt)));
        }
        Some(Source::File(tail))
    }

    /// Asks; a connection is kept where making one takes a while.
    fn ask<T: DeserializeOwned>(&mut self, ask: Ask) -> Option<T> {
        let mut connection = self.connection.take().or_else(|| Connection::to(&self.place).ok())?;
        let answer = connection.ask(&Request { actor: "console".to_owned(), ask }, |_| true).ok()?;
        self.connection = Some(connection).filter(|_| self.place.is_remote());
        serde_json::from_str(answer.ok()?.0.get()).ok()
    }
}
