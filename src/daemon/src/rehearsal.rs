//! The real loop on a stage: for simulations and tests, which bring the workers, the clocks and everything else around
//! it, and turn the loop one round at a time. Nothing here is used by a daemon.
//!
//! A rehearsal that is dropped has crashed: nothing more is written than what the journal had been told. How what was
//! ordered from the [`Stage`] and the [`Workers`] went is told by the methods that take news.

use std::rc::Rc;

use tokio::sync::mpsc::Receiver;
use yard_client::{Ask, Reply, Request, ServerRole};
use yard_engine::{AgentName, AlertId, BeadId, DispatchId, SourceReading, State, WebhookFailure};
use yard_journal::Journal;
use yard_workers::WorkerReport;

pub use crate::branches::{GitJob, GitNews, Offer};
pub use crate::clock::Time;
use crate::core::{Core, OpenError};
use crate::input::{Input, ReplyTo};
pub use crate::shelf::{Keeping, Shelf};
use crate::store::Store;
use crate::surroundings::Surroundings;
pub use crate::surroundings::{Stage, Workers};
use crate::town::TownDir;

/// The loop, turned by hand.
pub struct Rehearsal {
    core: Core,
}

/// The answers to one request, as they come.
pub struct Replies(Receiver<Reply>);

impl Replies {
    /// The next answer, if there is one by now.
    pub fn take(&mut self) -> Option<Reply> {
        self.0.try_recv().ok()
    }
}

impl Rehearsal {
    /// Takes a town over, as a daemon would after it has the lease.
    pub fn open(
        town: &TownDir,
        role: ServerRole,
        journal: Journal,
        pool: Box<dyn Workers>,
        time: Rc<dyn Time>,
        stage: Box<dyn Stage>,
        keeping: Keeping,
    ) -> Result<Self, OpenError> {
        let store = Store::load(journal)?;
        let around = Surroundings { pool, time, stage: Some(stage), keeping };
        let core = Core::open_among(town.clone(), role, store, std::sync::mpsc::channel(), around)?;
        Ok(Self { core })
    }

    /// The state as the loop has it now.
    pub fn state(&self) -> &State {
        self.core.state()
    }

    /// Why the journal takes no writes at present, if so.
    pub fn read_only(&self) -> Option<&str> {
        self.core.read_only()
    }

    /// One round of the loop: it waits, takes what there is, decides, commits, acts, answers. False when it has come to
    /// its end.
    pub fn round(&mut self) -> bool {
        self.core.round(&mut |_| false)
    }

    /// Takes a checkpoint now, as the loop does after very many changes.
    pub fn checkpoint(&mut self) {
        self.core.checkpoint_now();
    }

    /// Leaves in good order, after the last round.
    pub fn leave(mut self) {
        self.core.leave();
    }

    /// Somebody asks.
    pub fn ask(&self, actor: &str, ask: Ask) -> Replies {
        let (reply_to, replies) = ReplyTo::for_few();
        let request = Box::new(Request { actor: actor.to_owned(), ask });
        self.give(Input::Ask { request, reply_to });
        Replies(replies)
    }

    /// A worker has news.
    pub fn worker(&self, report: WorkerReport) {
        self.give(Input::Worker(report));
    }

    /// A workspace shows something to whoever watches it now.
    pub fn source(&self, reading: SourceReading) {
        let watch = self.core.watch_of(&reading.rig);
        self.give(Input::Source { reading: Box::new(reading), watch });
    }

    /// Git did something.
    pub fn git(&self, news: GitNews) {
        self.give(Input::Git(news));
    }

    /// The alert command has ended.
    pub fn alert_told(&self, id: AlertId, error: Option<String>) {
        self.give(Input::AlertTold { id, error });
    }

    /// The hook has ended.
    pub fn message_told(&self, agent: AgentName, message: u64, error: Option<String>) {
        self.give(Input::MessageTold { agent, message, error });
    }

    /// An action was answered.
    pub fn action_answered(&self, dispatch: DispatchId, outcome: Result<serde_json::Value, String>) {
        self.give(Input::ActionAnswered { dispatch, outcome });
    }

    /// A webhook was sent, or could not be.
    pub fn webhook_tried(&self, task: BeadId, failure: Option<WebhookFailure>) {
        self.give(Input::WebhookTried { task, failure });
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.give(Input::Terminate);
    }

    fn give(&self, input: Input) {
        // A rehearsal's loop lives as long as this value.
        let _ = self.core.inputs().send(input);
    }
}
