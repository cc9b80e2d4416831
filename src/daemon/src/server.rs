//! The socket's edge: accepts connections, passes requests to the loop, writes replies. It never touches the state. The
//! talk itself ([`Talk`]) is the same wherever the bytes come from.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use yard_client::{Hello, PROTOCOL_VERSION, Reply, Request, ServerRole, SocketPath};
use yard_engine::Refusal;

use crate::input::{Input, Inputs, ReplyTo};
use crate::town::TownDir;

/// Longest request accepted; an `add --file` of many thousand lines fits. All that are being sent together are no longer.
const LONGEST_REQUEST: usize = 256 * 1024 * 1024;
/// A longer reply is written in pieces rather than copied.
const AT_ONCE: usize = 64 * 1024;

/// How long answers may take to reach their clients when the server ends.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The file of the socket, as we made it. Whoever has taken the town over meanwhile has put his own in its place.
#[derive(Clone)]
struct OwnFile {
    path: PathBuf,
    stamp: Option<(u64, u64)>,
}

impl OwnFile {
    fn at(path: PathBuf) -> Self {
        Self { stamp: Self::stamp(&path), path }
    }

    fn stamp(path: &Path) -> Option<(u64, u64)> {
        path.symlink_metadata().ok().map(|it| (it.dev(), it.ino()))
    }

    fn remove(&self) {
        if self.stamp.is_some() && Self::stamp(&self.path) == self.stamp {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The listening socket and the thread that serves it.
pub(crate) struct Server {
    socket: OwnFile,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    talk: Talk,
    connections: AtomicUsize,
    /// No new connections are taken and those in the backlog were.
    closed: AtomicBool,
    close: Notify,
    end: Notify,
}

/// What all who talk by this protocol share.
pub(crate) struct Talk {
    role: ServerRole,
    inputs: Inputs,
    /// Bytes of requests that have come so far and are not whole yet, of all connections.
    unfinished: AtomicUsize,
}

impl Talk {
    pub(crate) fn new(role: ServerRole, inputs: Inputs) -> Self {
        Self { role, inputs, unfinished: AtomicUsize::new(0) }
    }
}

impl Server {
    /// Binds the town's socket, which only a holder of the lease may do, and serves it.
    pub(crate) fn start(town: &TownDir, role: ServerRole, inputs: Inputs, signals: bool) -> io::Result<Self> {
        let address = SocketPath::new(&town.folder(), "ym.sock")?;
        let socket = town.folder().join("ym.sock");
        // Whoever held the lease before may have died without tidying up.
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = std::os::unix::net::UnixListener::bind(address.as_path())?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let socket = OwnFile::at(socket);
        let shared = Arc::new(Shared {
            talk: Talk::new(role, inputs),
            connections: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            close: Notify::new(),
            end: Notify::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (theirs, path) = (Arc::clone(&shared), socket.clone());
        let thread = std::thread::Builder::new().name("ym-socket".to_owned()).spawn(move || {
            runtime.block_on(async {
                if signals {
                    tokio::spawn(watch_signals(theirs.talk.inputs.clone()));
                }
                accept(listener, path, theirs).await;
            });
        })?;
        Ok(Self { socket, shared, thread: Some(thread) })
    }

    /// Takes no more connections; those already made are served on.
    pub(crate) fn close(&self) {
        self.shared.close.notify_one();
    }

    /// Whether no connection is left and none can come.
    pub(crate) fn is_quiet(&self) -> bool {
        self.shared.closed.load(Ordering::SeqCst) && self.shared.connections.load(Ordering::SeqCst) == 0
    }
}

impl Server {
    /// Ends, once the answers that have been given have reached their clients; idle connections are not waited for long.
    pub(crate) fn finish(self) {
        self.close();
        let until = Instant::now() + LAST_WORDS;
        while !self.is_quiet() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.socket.remove();
        self.shared.end.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn watch_signals(inputs: Inputs) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if !inputs.send(Input::Terminate) {
            return;
        }
    }
}

async fn accept(listener: std::os::unix::net::UnixListener, path: OwnFile, shared: Arc<Shared>) {
    let Ok(listener) = UnixListener::from_std(listener) else { return };
    let tasks = tokio::task::LocalSet::new();
    tasks
        .run_until(async {
            loop {
                tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => welcome(stream, &shared),
                        // Out of descriptors: those who are connected are served on, and some will go.
                        Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                    },
                    () = shared.close.notified() => break,
                    () = shared.end.notified() => return,
                }
            }
            // Nobody new finds the socket; who is in the backlog is still served.
            path.remove();
            while let Ok(accepted) = tokio::time::timeout(Duration::ZERO, listener.accept()).await {
                match accepted {
                    Ok((stream, _)) => welcome(stream, &shared),
                    Err(_) => break,
                }
            }
            drop(listener);
            shared.closed.store(true, Ordering::SeqCst);
            shared.talk.inputs.send(Input::Nudge);
            shared.end.notified().await;
        })
        .await;
}

fn welcome(stream: UnixStream, shared: &Arc<Shared>) {
    let ours = nix::unistd::geteuid().as_raw();
    let trusted = stream.peer_cred().is_ok_and(|peer| peer.uid() == ours || peer.uid() == 0);
    if !trusted {
        return;
    }
    shared.connections.fetch_add(1, Ordering::SeqCst);
    let shared = Arc::clone(shared);
    tokio::task::spawn_local(async move {
        // A connection that breaks concerns nobody but its client.
        let (read, write) = stream.into_split();
        let _ = serve(read, write, &shared.talk).await;
        shared.connections.fetch_sub(1, Ordering::SeqCst);
        shared.talk.inputs.send(Input::Nudge);
    });
}

/// Talks with one client until it goes.
pub(crate) async fn serve(
    read: impl AsyncRead + Unpin,
    mut write: impl AsyncWrite + Unpin,
    talk: &Talk,
) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let hello = Hello { ym: PROTOCOL_VERSION, version, pid: std::process::id(), role: talk.role };
    write_line(&mut write, &hello).await?;
    let mut reader = BufReader::new(read);
    loop {
        let mut unfinished = Unfinished { talk, line: Vec::new() };
        let line = match unfinished.read(&mut reader).await? {
            Sent::Line(line) => line,
            Sent::Nothing => return Ok(()),
            Sent::TooMuch => {
                let refusal = Refusal::new("bad-request", "the request is too long or was cut off");
                return write_reply(&mut write, &Reply::Error(refusal)).await;
            }
        };
        let request: Request = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(error) => {
                let refusal = Refusal::new("bad-request", format!("the request cannot be read: {error}"));
                write_reply(&mut write, &Reply::Error(refusal)).await?;
                continue;
            }
        };
        let (reply_to, mut replies) = ReplyTo::new();
        if !talk.inputs.send(Input::Ask { request: Box::new(request), reply_to }) {
            return Ok(());
        }
        drop(line);
        let mut goes_on = false;
        loop {
            tokio::select! {
                reply = replies.recv() => match reply {
                    None => return Ok(()),
                    Some(reply) => {
                        write_reply(&mut write, &reply).await?;
                        if !matches!(reply, Reply::Item(_)) {
                            break;
                        }
                    }
                },
                // The client went away: dropping `replies` tells whoever works for it. If it says more, that is not even
                // read: it may be anything, and go on for ever.
                more = reader.fill_buf(), if !goes_on => {
                    if more?.is_empty() {
                        return Ok(());
                    }
                    goes_on = true;
                }
            }
        }
        if goes_on {
            let refusal = Refusal::new("bad-request", "one request at a time: wait for the answer");
            return write_reply(&mut write, &Reply::Error(refusal)).await;
        }
    }
}

/// A request on its way, counted among those of all connections until this is dropped.
struct Unfinished<'a> {
    talk: &'a Talk,
    line: Vec<u8>,
}

/// What came of it.
enum Sent {
    Line(Vec<u8>),
    Nothing,
    /// It never ends, or everybody sends too much at once, or it was cut off.
    TooMuch,
}

impl Unfinished<'_> {
    async fn read(&mut self, reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Sent> {
        loop {
            let more = reader.fill_buf().await?;
            if more.is_empty() {
                return Ok(if self.line.is_empty() { Sent::Nothing } else { Sent::TooMuch });
            }
            let end = memchr::memchr(b'\n', more);
            let part = &more[..end.unwrap_or(more.len())];
            let len = part.len();
            self.line.extend_from_slice(part);
            let before = self.talk.unfinished.fetch_add(len, Ordering::SeqCst);
            reader.consume(len + usize::from(end.is_some()));
            if before + len > LONGEST_REQUEST {
                return Ok(Sent::TooMuch);
            }
            if end.is_some() {
                return Ok(Sent::Line(self.take()));
            }
        }
    }

    fn take(&mut self) -> Vec<u8> {
        self.talk.unfinished.fetch_sub(self.line.len(), Ordering::SeqCst);
        std::mem::take(&mut self.line)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.take();
    }
}

async fn write_reply(write: &mut (impl AsyncWriteExt + Unpin), reply: &Reply) -> io::Result<()> {
    let pieces = reply.line()?;
    if pieces.iter().map(|piece| piece.len()).sum::<usize>() <= AT_ONCE {
        write.write_all(&pieces.concat()).await?;
    } else {
        for piece in &pieces {
            write.write_all(piece).await?;
        }
    }
    // What is encrypted may otherwise stay behind.
    write.flush().await
}

async fn write_line<T: serde::Serialize>(
    write: &mut (impl AsyncWriteExt + Unpin),
    value: &T,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    write.write_all(&line).await?;
    write.flush().await
}
