//! What pool and shim say to each other: JSON in frames of a four-byte length (little endian) and the text.
//!
//! A frame that did not arrive whole is never acted upon. Several frames may travel in one write.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use yard_engine::money::Usd;
use yard_engine::session::Session;
use yard_engine::worktree::Worktree;
use yard_engine::{DispatchId, Millis, Timestamp};

use crate::record::ExitRecord;
use crate::spec::RunSpec;
use crate::sys;

/// Orders larger than this travel by file, so that one always fits into a socket's buffer.
pub(crate) const INLINE_LIMIT: usize = 64 * 1024;

/// Nobody sends more than this; a larger length means that the stream is broken.
const FRAME_LIMIT: usize = 1 << 20;

/// From the pool to a shim.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToShim {
    /// Take this claim and run.
    Start { dispatch: DispatchId, claim: PathBuf, spec: Box<SpecSource> },
    /// Give way between two steps, or no longer, if it is the one you run.
    Yield { dispatch: DispatchId, wanted: bool },
    /// End the dispatch, if it is the one you run.
    Stop { dispatch: DispatchId, grace: Millis, reason: String },
}

/// Where the order itself is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SpecSource {
    /// Here.
    Inline(RunSpec),
    /// In a file, which the shim removes when it has taken the claim.
    File(PathBuf),
}

/// From a shim to the pool, or to whoever listens on `reports.sock`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FromShim {
    /// The fork server could make no shim; the connection ends after this.
    NoShim {
        why: String,
    },
    /// The claim was not to be had: nothing was started.
    Refused {
        dispatch: DispatchId,
        why: String,
    },
    Running {
        dispatch: DispatchId,
        pid: u32,
        at: Timestamp,
    },
    /// It works in a worktree.
    Isolated {
        dispatch: DispatchId,
        worktree: Box<Worktree>,
    },
    StartFailed {
        dispatch: DispatchId,
        error: String,
    },
    StepDone {
        dispatch: DispatchId,
        step: String,
        at: Timestamp,
    },
    /// What its output told so far.
    Metered {
        dispatch: DispatchId,
        usd: Usd,
        tokens: u64,
        session: Option<Session>,
        /// The last line of its output, if it is time to pass it on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<String>,
    },
    /// Sent after the claim's lock was released.
    Ended {
        dispatch: DispatchId,
        exit: ExitRecord,
    },
}

/// Appends `message` to `out` as a frame.
pub(crate) fn encode(message: &impl Serialize, out: &mut Vec<u8>) -> io::Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    if let Err(e) = serde_json::to_writer(&mut *out, message) {
        out.truncate(start);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, e));
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Something new.
    More,
    /// Nothing at the moment.
    Nothing,
    /// The other side is gone.
    End,
}

/// The receiving end of a stream: bytes in, whole frames out.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    begin: usize,
}

impl Inbox {
    /// Reads once, without waiting.
    pub(crate) fn fill(&mut self, socket: &impl AsFd) -> io::Result<Filled> {
        self.bytes.drain(..self.begin);
        self.begin = 0;
        let old = self.bytes.len();
        self.bytes.resize(old + 16 * 1024, 0);
        let result = sys::receive(socket, &mut self.bytes[old..]);
        self.bytes.truncate(old + *result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => Ok(Filled::End),
            Ok(_) => Ok(Filled::More),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock || e.kind() == io::ErrorKind::Interrupted => {
                Ok(Filled::Nothing)
            }
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Ok(Filled::End),
            Err(e) => Err(e),
        }
    }

    /// Takes bytes that came another way.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame. An error means that the stream cannot be trusted any more.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let waiting = &self.bytes[self.begin..];
        let Some((length, rest)) = waiting.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > FRAME_LIMIT {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too large"));
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let message =
            serde_json::from_slice(body).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        self.begin += 4 + length;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_frame_waits_for_its_rest() {
        let mut bytes = Vec::new();
        encode(&"hello", &mut bytes).expect("encoded");
        encode(&"you", &mut bytes).expect("encoded");
        let mut inbox = Inbox::default();
        let mut got: Vec<String> = Vec::new();
        for byte in bytes {
            inbox.push(&[byte]);
            while let Some(text) = inbox.next().expect("valid") {
                got.push(text);
            }
        }
        assert_eq!(got, ["hello", "you"]);
    }

    #[test]
    fn nonsense_is_an_error_and_no_panic() {
        let mut inbox = Inbox::default();
        inbox.push(&[0xff; 64]);
        assert!(inbox.next::<String>().is_err());
        let mut inbox = Inbox::default();
        inbox.push(b"\x02\0\0\0{]");
        assert!(inbox.next::<String>().is_err());
    }
}
