//! A connection to whoever serves a town: small, synchronous, without a runtime.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::value::RawValue;
use yard_engine::Refusal;

use crate::document::Document;
use crate::protocol::{Hello, PROTOCOL_VERSION, Reply, Request, document_in};
use crate::socket::SocketPath;

/// How long a server may take to greet.
const GREETING: Duration = Duration::from_secs(5);
/// How much is read at once: some answers are long.
const AT_ONCE: usize = 128 * 1024;

/// An open connection, greeted by the server.
#[derive(Debug)]
pub struct Connection {
    reader: BufReader<UnixStream>,
    hello: Hello,
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The server never saw the request: trying again is safe.
    #[error("nobody serves the town: {0}")]
    BeforeAsking(io::Error),
    /// The connection broke while the answer was awaited.
    #[error(
        "the connection broke before the answer came ({0}); the command may or may not have been carried out: look with ym status"
    )]
    WhileWaiting(io::Error),
    /// The server is of another version.
    #[error(
        "the town is served by ym {version} (protocol {theirs}, this program speaks {PROTOCOL_VERSION}): restart the daemon"
    )]
    OtherVersion {
        /// Its program version.
        version: String,
        /// Its protocol version.
        theirs: u32,
    },
}

/// A document with notices for people, or a refusal.
pub type Answer = Result<(Document, Vec<String>), Refusal>;

impl Connection {
    /// Connects and reads the greeting.
    pub fn open(directory: &Path) -> Result<Self, Lost> {
        let path = SocketPath::new(directory, "ym.sock").map_err(Lost::BeforeAsking)?;
        let stream = UnixStream::connect(path.as_path()).map_err(Lost::BeforeAsking)?;
        // A server that was stopped still has its socket: it must not stop us too.
        stream.set_read_timeout(Some(GREETING)).map_err(Lost::BeforeAsking)?;
        let mut reader = BufReader::with_capacity(AT_ONCE, stream);
        let mut line = String::new();
        let read = reader.read_line(&mut line).map_err(Lost::BeforeAsking)?;
        if read == 0 {
            return Err(Lost::BeforeAsking(io::ErrorKind::ConnectionReset.into()));
        }
        let hello: Hello =
            serde_json::from_str(&line).map_err(|e| Lost::BeforeAsking(io::Error::other(e)))?;
        if hello.ym != PROTOCOL_VERSION {
            return Err(Lost::OtherVersion { version: hello.version, theirs: hello.ym });
        }
        reader.get_ref().set_read_timeout(None).map_err(Lost::BeforeAsking)?;
        Ok(Self { reader, hello })
    }

    /// Who serves.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Sends a request; items go to `each`, which may end the exchange early by returning false.
    pub fn ask(
        &mut self,
        request: &Request,
        mut each: impl FnMut(Box<RawValue>) -> bool,
    ) -> Result<Answer, Lost> {
        let mut line = serde_json::to_vec(request).map_err(|e| Lost::BeforeAsking(io::Error::other(e)))?;
        line.push(b'\n');
        self.reader.get_mut().write_all(&line).map_err(Lost::WhileWaiting)?;
        let mut answer = String::new();
        loop {
            answer.clear();
            let read = self.reader.read_line(&mut answer).map_err(Lost::WhileWaiting)?;
            if read == 0 {
                return Err(Lost::WhileWaiting(io::ErrorKind::UnexpectedEof.into()));
            }
            if let Some(place) = document_in(&answer) {
                return Ok(Ok((Document::within(answer, place), Vec::new())));
            }
            let reply: Reply =
                serde_json::from_str(&answer).map_err(|e| Lost::WhileWaiting(io::Error::other(e)))?;
            match reply {
                Reply::Item(item) => {
                    if !each(item) {
                        return Ok(Ok((Document::null(), Vec::new())));
                    }
                }
                Reply::Ok { document, notices } => return Ok(Ok((document, notices))),
                Reply::Error(refusal) => return Ok(Err(refusal)),
            }
        }
    }
}
