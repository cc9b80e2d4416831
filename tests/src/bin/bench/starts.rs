//! Workers that say when their first instruction ran, and live until the bench lets them end. Both sides read the
//! same clock, and a worker ends with the bench, whatever ends the bench.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::Fallible;

/// The word that makes this program a worker.
pub(crate) const WORKER: &str = "worker";
/// How long a start is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

/// A worker that has started. It ends when this is dropped.
pub(crate) struct Started {
    /// What it works on.
    pub(crate) bead: String,
    at: SystemTime,
    _life: UnixStream,
}

impl Started {
    /// How long after a moment it started.
    pub(crate) fn since(&self, moment: SystemTime) -> Fallible<Duration> {
        let elapsed = self.at.duration_since(moment);
        elapsed
            .map_err(|_| format!("{} started before it was told to, or the clock was set", self.bead).into())
    }
}

/// Where workers say that they have started.
pub(crate) struct Starts {
    socket: PathBuf,
    started: Receiver<Started>,
}

impl Starts {
    /// Listens at a path. The thread behind it lives as long as the program.
    pub(crate) fn listen(socket: PathBuf) -> io::Result<Self> {
        let listener = UnixListener::bind(&socket)?;
        let (sender, started) = channel();
        thread::spawn(move || receive(&listener, &sender));
        Ok(Self { socket, started })
    }

    /// The command line of a worker.
    pub(crate) fn worker(&self) -> io::Result<[String; 3]> {
        let program = std::env::current_exe()?.display().to_string();
        Ok([program, WORKER.to_owned(), self.socket.display().to_string()])
    }

    /// The next starts, in the order in which they happened.
    pub(crate) fn next(&self, count: usize) -> Fallible<Vec<Started>> {
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            let started = self.started.recv_timeout(PATIENCE);
            all.push(started.map_err(|_| format!("only {} of {count} workers started", all.len()))?);
        }
        all.sort_by_key(|started| started.at);
        Ok(all)
    }
}

fn receive(listener: &UnixListener, sender: &Sender<Started>) {
    for stream in listener.incoming().flatten() {
        // A worker that cannot say who it is counts as none, and is missed by whoever waits for it.
        if let Some(started) = introduction(stream)
            && sender.send(started).is_err()
        {
            return;
        }
    }
}

fn introduction(stream: UnixStream) -> Option<Started> {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).ok()?;
    let (bead, nanos) = line.trim_end().split_once(' ')?;
    let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos.parse().ok()?);
    Some(Started { bead: bead.to_owned(), at, _life: stream })
}

/// The worker's side.
pub(crate) fn work(socket: &Path) -> ExitCode {
    let now = SystemTime::now();
    let told = || -> io::Result<()> {
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).map_err(io::Error::other)?;
        let mut stream = UnixStream::connect(socket)?;
        let bead = std::env::var("YM_BEAD").unwrap_or_default();
        writeln!(stream, "{bead} {}", since_epoch.as_nanos())?;
        stream.read(&mut [0]).map(drop)
    };
    if told().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
