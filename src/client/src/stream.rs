//! The bytes to and from whoever serves a town, whichever way they go.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};

use crate::connection::Lost;
use crate::ssh::SshTown;

/// How long ssh may take to end by itself once it is no longer needed.
const FAREWELL: Duration = Duration::from_millis(500);
/// The same when how it ends says what went wrong.
const EXPLANATION: Duration = Duration::from_secs(5);
/// So much of what ssh complains about is kept, from its end.
const COMPLAINT: usize = 4096;

/// One way.
#[derive(Debug)]
pub(crate) enum Stream {
    /// The town's socket.
    Unix(UnixStream),
    /// A relay at the other end of ssh.
    Ssh(Box<Relay>),
    /// HTTP that was upgraded, in plain.
    Plain(TcpStream),
    /// HTTP that was upgraded, under TLS.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// How long a read may take; ssh has its own ways to notice that nobody answers.
    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(timeout),
            Self::Ssh(_) => Ok(()),
            Self::Plain(stream) => stream.set_read_timeout(timeout),
            Self::Tls(stream) => stream.sock.set_read_timeout(timeout),
        }
    }

    /// Why nothing came of it, in the words of who was in between; the error itself where nobody was.
    pub(crate) fn explain(&mut self, error: io::Error) -> Lost {
        match self {
            Self::Unix(_) => Lost::BeforeAsking(error),
            Self::Ssh(relay) => Lost::Unreachable(relay.explain(&error)),
            Self::Plain(_) | Self::Tls(_) => Lost::Unreachable(error.to_string()),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Ssh(relay) => relay.output.read(buffer),
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Ssh(relay) => match &mut relay.input {
                Some(input) => input.write(bytes),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.flush(),
            Self::Ssh(relay) => relay.input.as_mut().map_or(Ok(()), Write::flush),
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// ssh with `ym __relay` at its other end. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    town: SshTown,
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    complaint: Arc<Mutex<Vec<u8>>>,
    listener: Option<thread::JoinHandle<()>>,
}

impl Relay {
    pub(crate) fn start(town: &SshTown) -> Result<Self, Lost> {
        let unreachable = |error: io::Error| Lost::Unreachable(format!("ssh cannot be run: {error}"));
        let mut command = town.relay().map_err(|error| Lost::Unreachable(error.to_string()))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(unreachable)?;
        let complaint = Arc::<Mutex<Vec<u8>>>::default();
        let listener = child.stderr.take().map(|mut stderr| {
            let heard = Arc::clone(&complaint);
            // Whoever does not read what ssh says makes it wait.
            thread::Builder::new().name("ym-ssh".to_owned()).spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(read @ 1..) = stderr.read(&mut buffer) {
                    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                    heard.extend_from_slice(&buffer[..read]);
                    let spare = heard.len().saturating_sub(COMPLAINT);
                    heard.drain(..spare);
                }
            })
        });
        let listener = listener.transpose().map_err(unreachable)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or_else(|| unreachable(io::Error::other("it has no output")))?;
        Ok(Self { town: town.clone(), child, input, output, complaint, listener })
    }

    /// What went wrong, in one line: what ssh or the relay said, and what its exit code means.
    fn explain(&mut self, error: &io::Error) -> String {
        let status = self.end(EXPLANATION);
        if let Some(listener) = self.listener.take()
            && status.is_some()
        {
            let _ = listener.join();
        }
        let heard = self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8_lossy(&heard);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<&str> =
            lines.map(|line| line.trim_start_matches("ym: ").trim_start_matches("hint: ")).collect();
        let failure = self.town.failure(status.and_then(|status| status.code()));
        match (failure, lines.last()) {
            (Some(failure), Some(last)) => format!("{} ({last}); {}", failure.message, failure.hint),
            (Some(failure), None) => format!("{}; {}", failure.message, failure.hint),
            (None, Some(_)) => lines.join("; "),
            (None, None) => error.to_string(),
        }
    }

    /// Ends it, gently at first: it may carry other sessions, too.
    fn end(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.input = None;
        let until = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                Ok(None) | Err(_) => {
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    return None;
                }
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end(FAREWELL);
    }
}
