//! A connection to whoever serves a town: small, synchronous, without a runtime.

use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::value::RawValue;
use yard_engine::Refusal;

use crate::document::Document;
use crate::place::Place;
use crate::protocol::{Hello, PROTOCOL_VERSION, Reply, Request, document_in};
use crate::socket::SocketPath;
use crate::stream::{Relay, Stream};

/// How long a server may take to greet.
const GREETING: Duration = Duration::from_secs(5);
/// How much is read at once: some answers are long.
pub(crate) const AT_ONCE: usize = 128 * 1024;
/// How long a server far away may take to greet, once the way there is open.
const GREETING_AFAR: Duration = Duration::from_secs(15);

/// Longest greeting.
const LONGEST_GREETING: u64 = 64 * 1024;

/// An open connection, greeted by the server.
#[derive(Debug)]
pub struct Connection {
    reader: BufReader<Stream>,
    hello: Hello,
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The server never saw the request: trying again is safe.
    #[error("nobody serves the town: {0}")]
    BeforeAsking(io::Error),
    /// The server is elsewhere and was not reached; it never saw the request.
    #[error("the town cannot be reached: {0}")]
    Unreachable(String),
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
    /// Connects to a town on this host and reads the greeting.
    pub fn open(directory: &Path) -> Result<Self, Lost> {
        let path = SocketPath::new(directory, "ym.sock").map_err(Lost::BeforeAsking)?;
        let stream = UnixStream::connect(path.as_path()).map_err(Lost::BeforeAsking)?;
        Self::greeted(BufReader::with_capacity(AT_ONCE, Stream::Unix(stream)), GREETING)
    }

    /// Connects to a town wherever it is.
    pub fn to(place: &Place) -> Result<Self, Lost> {
        let reader = match place {
            Place::Folder(directory) => return Self::open(directory),
            Place::Ssh(town) => BufReader::with_capacity(AT_ONCE, Stream::Ssh(Box::new(Relay::start(town)?))),
            Place::Web(town) => town.open()?,
        };
        Self::greeted(reader, GREETING_AFAR)
    }

    fn greeted(mut reader: BufReader<Stream>, patience: Duration) -> Result<Self, Lost> {
        // A server that was stopped still has its socket: it must not stop us too.
        reader.get_ref().set_read_timeout(Some(patience)).map_err(Lost::BeforeAsking)?;
        let mut line = String::new();
        let read = match reader.by_ref().take(LONGEST_GREETING).read_line(&mut line) {
            Ok(0) => Err(io::ErrorKind::ConnectionReset.into()),
            read => read,
        };
        let hello = read.and_then(|_| serde_json::from_str::<Hello>(&line).map_err(|_| odd_greeting(&line)));
        let hello = match hello {
            Ok(hello) => hello,
            Err(error) => return Err(reader.get_mut().explain(error)),
        };
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
        let stream = self.reader.get_mut();
        stream.write_all(&line).and_then(|()| stream.flush()).map_err(Lost::WhileWaiting)?;
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

/// Shells that say something before the program does are the usual reason.
fn odd_greeting(line: &str) -> io::Error {
    let start: String = line.trim().chars().take(80).collect();
    io::Error::other(format!("instead of a town's greeting there came {start:?}"))
}
