//! What reaches the loop from its edges, and how it answers.

use tokio::sync::mpsc;
use yard_client::{Reply, Request};
use yard_engine::{AgentName, AlertId, BeadId, DispatchId, SourceReading, WebhookFailure};
use yard_journal::JournalError;
use yard_workers::{Waker, WorkerReport};

use crate::branches::GitNews;
use crate::http::ActionOutcome;

/// Replies that may wait in a connection before its client counts as too slow.
pub(crate) const REPLY_BACKLOG: usize = 4096;

/// The same where each may be large and whoever sends can wait.
const FEW: usize = 16;

/// Something for the loop to deal with.
#[derive(Debug)]
pub(crate) enum Input {
    /// A client asks.
    Ask {
        /// What.
        request: Box<Request>,
        /// Where the answer goes.
        reply_to: ReplyTo,
    },
    /// A worker has news.
    Worker(WorkerReport),
    /// A workspace shows something new.
    Source {
        /// What it shows.
        reading: Box<SourceReading>,
        /// The number of the watch that has seen it.
        watch: u64,
    },
    /// The alert command has ended.
    AlertTold {
        /// Which alert it was told.
        id: AlertId,
        /// What went wrong.
        error: Option<String>,
    },
    /// The hook has ended.
    MessageTold {
        /// To whom the message is.
        agent: AgentName,
        /// Which message it was told.
        message: u64,
        /// What went wrong.
        error: Option<String>,
    },
    /// An action over HTTP came to an end.
    ActionAnswered {
        /// Which attempt.
        dispatch: DispatchId,
        /// What came of it.
        outcome: ActionOutcome,
    },
    /// A webhook was sent, or could not be.
    WebhookTried {
        /// Of which task.
        task: BeadId,
        /// What went wrong.
        failure: Option<WebhookFailure>,
    },
    /// Git did something, or could not.
    Git(GitNews),
    /// The process was asked to end (SIGTERM, SIGINT).
    Terminate,
    /// The lease was lost.
    LeaseLost(JournalError),
    /// Nothing new, but something to look at again.
    Nudge,
}

/// The way into the loop, from any thread: what is sent wakes it.
#[derive(Debug, Clone)]
pub(crate) struct Inputs {
    sender: std::sync::mpsc::Sender<Input>,
    /// None where nobody waits but the one who sends.
    waker: Option<Waker>,
}

impl Inputs {
    /// A way in for whoever is not the loop itself.
    pub(crate) fn new(sender: std::sync::mpsc::Sender<Input>, waker: Option<Waker>) -> Self {
        Self { sender, waker }
    }

    /// Sends; false when the loop has ended.
    pub(crate) fn send(&self, input: Input) -> bool {
        let sent = self.sender.send(input).is_ok();
        if let Some(waker) = &self.waker {
            waker.wake();
        }
        sent
    }
}

/// Where answers to one request go. A client that has gone away is not an error.
#[derive(Debug, Clone)]
pub(crate) struct ReplyTo(mpsc::Sender<Reply>);

impl ReplyTo {
    /// A place for answers, and its other end.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Reply>) {
        let (sender, receiver) = mpsc::channel(REPLY_BACKLOG);
        (Self(sender), receiver)
    }

    /// The same for items that may be large, so that few of them wait.
    pub(crate) fn for_few() -> (Self, mpsc::Receiver<Reply>) {
        let (sender, receiver) = mpsc::channel(FEW);
        (Self(sender), receiver)
    }

    /// Sends without waiting; false when the client is gone or too slow.
    pub(crate) fn send(&self, reply: Reply) -> bool {
        self.0.try_send(reply).is_ok()
    }

    /// Sends, waiting for a slow client; for threads that may block.
    pub(crate) fn send_waiting(&self, reply: Reply) -> bool {
        self.0.blocking_send(reply).is_ok()
    }

    /// Whether nobody listens any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}
