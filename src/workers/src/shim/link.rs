//! A shim's line to the daemon: the pool's connection while it lives, afterwards `reports.sock` for each message.
//!
//! Messages are news, not truth: whoever misses one finds it in the claim.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::socket::socket_address;
use crate::sys;
use crate::wire::{Filled, Inbox, ToShim};

/// The socket in the run directory where a daemon hears shims that are not its own.
pub(crate) const REPORTS: &str = "reports.sock";

/// A connection that may be gone.
#[derive(Debug)]
pub(super) struct Link {
    socket: Option<UnixStream>,
    inbox: Inbox,
}

impl Link {
    pub(super) fn to_pool(socket: UnixStream) -> Self {
        Self { socket: Some(socket), inbox: Inbox::default() }
    }

    /// A standalone shim has no pool.
    pub(super) fn none() -> Self {
        Self { socket: None, inbox: Inbox::default() }
    }

    pub(super) fn socket(&self) -> Option<&UnixStream> {
        self.socket.as_ref()
    }

    /// Reads what has arrived. A connection that ended or broke is dropped.
    pub(super) fn fill(&mut self) {
        if let Some(socket) = &self.socket
            && !matches!(self.inbox.fill(socket), Ok(Filled::More | Filled::Nothing))
        {
            self.socket = None;
        }
    }

    /// The next message that arrived whole.
    pub(super) fn next(&mut self) -> Option<ToShim> {
        if let Ok(message) = self.inbox.next() {
            return message;
        }
        self.socket = None;
        self.inbox = Inbox::default();
        None
    }

    /// Sends frames to the pool or else to whoever listens now, and takes them out of `frames`.
    pub(super) fn deliver(&mut self, frames: &mut Vec<u8>, run_dir: &Path) {
        if frames.is_empty() {
            return;
        }
        let sent = self.socket.as_ref().map(|socket| sys::transmit(socket, frames));
        match sent {
            Some(Ok(n)) if n == frames.len() => {}
            _ => {
                // A pool that does not read learns everything from the claim when it sees this connection end.
                self.socket = None;
                if let Ok(mut listener) = socket_address(run_dir, REPORTS).and_then(|a| a.connect()) {
                    let _ = listener.set_write_timeout(Some(Duration::from_secs(1)));
                    let _ = listener.write_all(frames);
                }
            }
        }
        frames.clear();
    }
}
