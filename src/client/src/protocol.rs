//! The socket protocol: JSON lines over a Unix socket. The server speaks first, with a versioned hello; then each
//! request gets zero or more items and one final reply.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use yard_engine::{Command, Refusal, Seq, Timestamp};

use crate::document::Document;
use crate::views::LogPlace;
use crate::views::task::TaskFilter;

/// Version of this protocol; a server of another version is refused with a clear message.
pub const PROTOCOL_VERSION: u32 = 1;

/// What the server says first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// Protocol version.
    pub ym: u32,
    /// Program version.
    pub version: String,
    /// The process that serves.
    pub pid: u32,
    /// What it is.
    pub role: ServerRole,
}

/// Who serves the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerRole {
    /// A daemon: dispatches by itself.
    Daemon,
    /// An open console: dispatches by itself.
    Console,
    /// A passing command: serves while it is there.
    Command,
}

impl ServerRole {
    /// Whether waiting work starts by itself while this one serves.
    pub fn dispatches_by_itself(self) -> bool {
        match self {
            Self::Daemon | Self::Console => true,
            Self::Command => false,
        }
    }
}

/// One request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// Who asks.
    pub actor: String,
    /// What is asked.
    pub ask: Ask,
}

/// What can be asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Ask {
    /// A change.
    Command {
        /// Which.
        command: Command,
    },
    /// `scheduler status`; a summary leaves the beads out.
    SchedulerStatus {
        /// Without the list of beads.
        summary: bool,
    },
    /// `scheduler list`.
    SchedulerList,
    /// `status`.
    Status {
        /// Without the list of queued beads.
        summary: bool,
    },
    /// `rig list`.
    RigList,
    /// `bead list`, `ready`, `blocked`.
    BeadList {
        /// Which ones.
        filter: BeadFilter,
    },
    /// `convoy list`.
    ConvoyList {
        /// Closed ones too.
        all: bool,
    },
    /// `convoy status`.
    ConvoyStatus {
        /// Which.
        id: String,
    },
    /// `convoy stranded`.
    ConvoyStranded,
    /// `forecast`.
    Forecast {
        /// Which; none for the whole town.
        convoy: Option<String>,
        /// What this many slots of the town would change.
        max_polecats: Option<i64>,
    },
    /// `agent list`.
    AgentList,
    /// `agent why`.
    AgentWhy {
        /// Which one; none for all that have no work, and all beads that wait for one.
        agent: Option<String>,
    },
    /// `agent tracks`.
    AgentTracks,
    /// `agent inbox --wait`: answers as soon as there is something to read.
    AgentWait {
        /// Which one.
        agent: String,
        /// What it reads stays unread.
        keep: bool,
        /// For how long.
        timeout_ms: Option<u64>,
    },
    /// `worktree list`.
    WorktreeList,
    /// `worktree prune`.
    WorktreePrune {
        /// Only these.
        ids: Vec<String>,
        /// Also those of failed attempts whose bead is still open.
        all: bool,
        /// Their branches, too.
        branches: bool,
        /// Only say what would go.
        dry_run: bool,
    },
    /// Tasks of the HTTP API.
    Tasks {
        /// Which.
        filter: TaskFilter,
    },
    /// One of them.
    Task {
        /// Which.
        id: String,
        /// Only if it belongs to this agent.
        agent: Option<String>,
    },
    /// What becomes of them altogether.
    TaskStats {
        /// By name only this agent.
        agent: Option<String>,
    },
    /// Whether whoever serves can take in what must not be lost.
    Health,
    /// Figures for a monitoring system.
    Metrics,
    /// `alerts`.
    Alerts {
        /// Those somebody has seen, too.
        all: bool,
    },
    /// `show`.
    Show {
        /// A bead, context, dispatch or convoy.
        id: String,
    },
    /// `why`.
    Why {
        /// Which bead.
        id: String,
    },
    /// Where the log of a dispatch lies.
    LogOf {
        /// A bead or dispatch.
        id: String,
    },
    /// What a worker wrote, for those who cannot open the file.
    LogPiece {
        /// A bead or dispatch.
        id: String,
        /// From there on; none for the beginning.
        from: Option<LogPlace>,
        /// Without a place: only the last so many lines.
        lines: Option<usize>,
    },
    /// The log of events, as items.
    Events {
        /// Which.
        query: EventsAsk,
    },
    /// The whole state, then every event as it happens, as [`Attached`] items.
    Attach {
        /// The caller has everything up to here, and needs only what came after.
        since: Option<Seq>,
    },
    /// The state at the beginning of the log, then all events of the log, as [`Attached`] items.
    Past,
    /// Waits until beads have ended or cannot progress.
    Wait {
        /// Which; empty with `all`.
        ids: Vec<String>,
        /// Everything that is scheduled or runs.
        all: bool,
        /// For how long.
        timeout_ms: Option<u64>,
        /// Without the list of what is done.
        summary: bool,
    },
    /// Has the config and the sources read again. Answers at once: a tool that is asked for beads may take its time.
    Poke {
        /// Only this rig's source.
        rig: Option<String>,
    },
    /// Drains and stops the daemon.
    Stop {
        /// How long workers may take.
        timeout_ms: Option<u64>,
        /// Leaves the workers to their shims.
        leave_running: bool,
    },
}

/// Which beads to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BeadFilter {
    /// Only beads that could be slung and would start.
    pub ready: bool,
    /// Only blocked ones.
    pub blocked: bool,
    /// Closed ones too.
    pub all: bool,
    /// Only of this rig.
    pub rig: Option<String>,
    /// `ready` or `blocked` as another tool would answer: `br` or `bd`.
    pub like: Option<String>,
}

/// Which events to read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventsAsk {
    /// After this position.
    pub since: Option<Seq>,
    /// From this time on.
    pub since_time: Option<Timestamp>,
    /// Only this type, or this concept.
    pub kind: Option<String>,
    /// Only the last so many.
    pub tail: Option<usize>,
    /// Goes on as they happen.
    pub follow: bool,
}

/// What whoever attaches is sent: the records of the last checkpoint, unless he has them, and then all events after it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attached {
    /// What follows: whether the state is told anew, and how much that is.
    Begin {
        /// The position before the first event that will be sent.
        seq: Seq,
        /// So many records come first; none when the caller goes on from what he has.
        records: Option<usize>,
        /// The end of the log at this moment.
        last: Seq,
    },
    /// Records of the checkpoint: kind, id and body.
    Records(Vec<(String, String, Box<RawValue>)>),
    /// Events, in the order of the log: position, time, type and body.
    Events(Vec<(Seq, Timestamp, String, Box<RawValue>)>),
}

/// One line from the server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// One of several.
    Item(Box<RawValue>),
    /// The final answer, with notices for people.
    Ok {
        /// The document.
        document: Document,
        /// For stderr.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    },
    /// The final refusal.
    Error(Refusal),
}

impl Reply {
    /// A final answer.
    pub fn document<T: Serialize>(value: &T) -> Self {
        Self::written(Document::of(value))
    }

    /// A final answer that was written already.
    pub fn written(document: serde_json::Result<Document>) -> Self {
        match document {
            Ok(document) => Self::Ok { document, notices: Vec::new() },
            Err(error) => Self::Error(Refusal::new("internal", error.to_string())),
        }
    }

    /// Its line on the wire, in pieces, so that a long document need not be copied for it. The document comes last:
    /// whoever reads finds it without going through it.
    pub fn line(&self) -> serde_json::Result<[Cow<'_, [u8]>; 3]> {
        const NOTHING: Cow<'static, [u8]> = Cow::Borrowed(b"");
        Ok(match self {
            Self::Ok { document, notices } => {
                let start = match notices.as_slice() {
                    [] => BEFORE_DOCUMENT.to_owned(),
                    notices => {
                        format!(r#"{{"ok":{{"notices":{},"document":"#, serde_json::to_string(notices)?)
                    }
                };
                let (document, end) = (document.get().as_bytes(), AFTER_DOCUMENT.as_bytes());
                [Cow::Owned(start.into_bytes()), Cow::Borrowed(document), Cow::Borrowed(end)]
            }
            Self::Item(_) | Self::Error(_) => {
                let mut line = serde_json::to_vec(self)?;
                line.push(b'\n');
                [Cow::Owned(line), NOTHING, NOTHING]
            }
        })
    }
}

/// A line with nothing but a document begins and ends like this.
const BEFORE_DOCUMENT: &str = r#"{"ok":{"notices":[],"document":"#;
const AFTER_DOCUMENT: &str = "}}\n";

/// Where the document of such a line stands; none of any other line.
pub(crate) fn document_in(line: &str) -> Option<Range<usize>> {
    let document = line.strip_prefix(BEFORE_DOCUMENT)?.strip_suffix(AFTER_DOCUMENT)?;
    Some(BEFORE_DOCUMENT.len()..BEFORE_DOCUMENT.len() + document.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_pieces_reads_like_the_line_as_a_whole() {
        let document = || Document::of(&["a", "b"]).expect("a document");
        let item = serde_json::value::to_raw_value(&["a", "b"]).expect("an item");
        let replies = [
            Reply::Ok { document: document(), notices: Vec::new() },
            Reply::Ok { document: document(), notices: vec!["one \"two\"".to_owned()] },
            Reply::Item(item),
            Reply::Error(Refusal::new("code", "message")),
        ];
        for (number, reply) in replies.iter().enumerate() {
            let line = String::from_utf8(reply.line().expect("a line").concat()).expect("a text");
            let read: Reply = serde_json::from_str(&line).expect("a reply");
            assert_eq!(format!("{read:?}"), format!("{reply:?}"));
            let found = document_in(&line).map(|place| &line[place]);
            assert_eq!(found, (number == 0).then_some(r#"["a","b"]"#));
        }
        let from_before = serde_json::to_string(&replies[1]).expect("a line") + "\n";
        assert_eq!(document_in(&from_before), None);
    }
}
