//! The one loop: drain inputs → decide → append everything in one durable transaction → only then perform
//! effects, answer and publish. Whatever it says has happened is on disk.

mod agents;
mod alerts;
mod asks;
mod branches;
mod edits;
mod line;
mod past;
mod slow;
mod sources;
mod tasks;
mod upkeep;
mod workers;
mod worktrees;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use yard_client::{Ask, Reply, ServerRole};
use yard_engine::plan::Scope;
use yard_engine::{AlertId, BeadId, DispatchId, Seq, State, Timestamp};
use yard_journal::Lease;
use yard_workers::{LocalPool, WorkerReport};

use self::agents::{MailWaiter, MessageKey};
use self::alerts::Telling;
use self::line::Pace;
use self::past::Beginning;
use self::slow::SlowPass;
pub(crate) use self::sources::{Sources, any_news};
use crate::branches::{GitHand, GitNews};
use crate::clock::{Clock, RealTime};
use crate::eventlog::Published;
use crate::http::HttpEdge;
use crate::input::{Input, Inputs, ReplyTo};
use crate::memory;
use crate::shelf::Keeping;
use crate::stamp::FileStamp;
use crate::standby::Followed;
use crate::starts::{PendingStarts, Promise};
use crate::store::{Store, StoreError};
use crate::surroundings::{Stage, Surroundings, Workers};
use crate::town::TownDir;
use crate::waiting::{WaitFor, Waiters};

/// Inputs taken in one turn; more wait for the next commit.
const LARGEST_TURN: usize = 4096;
/// How long news that nobody waits for may ride along with the next commit.
const LAZY: Duration = Duration::from_millis(5);
/// How often the config file and the host are looked at.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// Beads the safety scan looks at in one turn: about a millisecond's worth.
const SCAN_SLICE: usize = 500;
/// Idle shims that are kept although nothing waits for them.
const SHIMS_KEPT: usize = 4;
/// Events after which memory is given back once there is nothing to do.
const BUSY: u64 = 1_000;
/// Events after which so much lies scattered that the state is made anew, once there is nothing to do.
const SCATTERED: u64 = 10_000;
/// A busy time is over when nothing has come for so long.
const QUIET: Duration = Duration::from_millis(250);
/// Extra time for a drain after its grace, for the shims to write their records.
const DRAIN_SLACK: Duration = Duration::from_secs(2);

/// A drain in progress.
struct Drain {
    until: Instant,
    leave_running: bool,
    reply_to: Vec<ReplyTo>,
}

/// The loop's own things.
pub(crate) struct Core {
    town: TownDir,
    sender: Sender<Input>,
    received: Receiver<Input>,
    store: Store,
    pool: Box<dyn Workers>,
    clock: Clock,
    /// What stands in for the world outside; none in real life.
    stage: Option<Box<dyn Stage>>,
    /// The time of this turn; everything decided in it happens then.
    now: Timestamp,
    role: ServerRole,
    starts: PendingStarts,
    waiters: Waiters,
    published: Arc<Published>,
    telling: Telling<AlertId>,
    /// Messages to agents that are being told to the hook.
    mailing: Telling<MessageKey>,
    mail_waiters: Vec<MailWaiter>,
    http: HttpEdge,
    git: GitHand,
    /// What git would say of what it was not even asked, for the next turn.
    own_news: Vec<GitNews>,
    /// When branches are looked at next that somebody else is to merge; none while that is under way.
    next_offers: Option<Instant>,
    /// Actions that are to be sent once it is on disk that they are.
    to_send: Vec<DispatchId>,
    sources: Sources,
    /// Passes that a spawn delay stretches.
    slow: Vec<SlowPass>,
    /// Stop requests that could not be passed on, for the next safety scan.
    unasked: BTreeSet<DispatchId>,
    pace: Pace,
    /// The steps of dispatches that are being started, if there are several.
    steps: BTreeMap<DispatchId, Vec<String>>,
    /// This command runs inside a worker, whose end takes everything it started along.
    inside_worker: bool,
    /// Reports of our own making, for the next turn.
    own_reports: Vec<WorkerReport>,
    drain: Option<Drain>,
    /// The lease was lost: this loop has nothing more to say.
    is_over: bool,
    /// The journal takes no writes at present; reports are read again from the claims when it does.
    read_only: Option<String>,
    config_seen: Option<FileStamp>,
    next_look: Instant,
    next_scan: Instant,
    /// Where the safety scan goes on, while one is under way.
    scanning: Option<ScanFrom>,
    beginning: Beginning,
    /// When something last came in.
    last_news: Instant,
    /// How far the log was when memory was last given back; none when the state has just been made.
    rested: Option<Seq>,
    /// How far it was when lists were last closed up.
    closed_up: Option<Seq>,
    /// How far the log was when the state was last made of it.
    laid_out: Seq,
}

/// The bead after which the safety scan goes on; none at its beginning.
struct ScanFrom(Option<BeadId>);

/// What a turn will answer once it is durable.
enum Owed {
    Reply(ReplyTo, Reply),
    Promise(ReplyTo, Promise),
    Read(ReplyTo, Ask),
    Wait(ReplyTo, WaitFor),
}

impl Core {
    /// Takes over a town whose lease we hold: reads the config, recovers what ran, closes what is stale.
    pub(crate) fn open(
        town: TownDir,
        role: ServerRole,
        lease: &Lease,
        followed: Option<Followed>,
    ) -> Result<Self, OpenError> {
        if town.make_private().unwrap_or(false) {
            tracing::warn!(folder = %town.folder().display(), "others could look into the town; now only its owner can");
        }
        if role.dispatches_by_itself() {
            memory::keep_little();
        }
        let mut store = Store::open(&town, lease, followed)?;
        let (sender, received) = mpsc::channel();
        let reports = sender.clone();
        // The pool listens before any lock is tried, so that no shim's last word is missed.
        let mut pool =
            LocalPool::open(&town.run(), Box::new(move |report| drop(reports.send(Input::Worker(report)))))
                .map_err(OpenError::Pool)?;
        if let Some(leader) = lease.leader() {
            store.confirm()?;
            pool.lead_as(&leader).map_err(OpenError::Pool)?;
        }
        let (time, keeping) = (Rc::new(RealTime), Keeping::of(&town));
        let around = Surroundings { pool: Box::new(pool), time, stage: None, keeping };
        Self::open_among(town, role, store, (sender, received), around)
    }

    /// The same among given surroundings, with a store that is open.
    pub(crate) fn open_among(
        town: TownDir,
        role: ServerRole,
        store: Store,
        (sender, received): (Sender<Input>, Receiver<Input>),
        around: Surroundings,
    ) -> Result<Self, OpenError> {
        let Surroundings { pool, time, stage, keeping } = around;
        let mut clock = Clock::starting_after(store.state().clock(), time);
        let started = clock.instant();
        let inputs = Inputs::new(sender.clone(), pool.waker());
        let http = HttpEdge::new(town.clone(), role, inputs.clone());
        let mut core = Self {
            town,
            sender,
            received,
            store,
            pool,
            now: clock.now(),
            clock,
            stage,
            role,
            starts: PendingStarts::default(),
            waiters: Waiters::default(),
            published: Arc::new(Published::default()),
            telling: Telling::default(),
            mailing: Telling::default(),
            mail_waiters: Vec::new(),
            git: GitHand::new(inputs),
            http,
            own_news: Vec::new(),
            next_offers: Some(started),
            to_send: Vec::new(),
            sources: Sources::default(),
            slow: Vec::new(),
            unasked: BTreeSet::new(),
            pace: Pace::default(),
            steps: BTreeMap::new(),
            inside_worker: role == ServerRole::Command && std::env::var_os("YM_DISPATCH").is_some(),
            own_reports: Vec::new(),
            drain: None,
            is_over: false,
            read_only: None,
            config_seen: None,
            next_look: started,
            next_scan: started,
            scanning: None,
            beginning: Beginning::kept(keeping),
            last_news: started,
            rested: None,
            closed_up: None,
            laid_out: Seq(0),
        };
        core.laid_out = core.store.state().seq();
        core.read_config();
        core.next_scan = core.clock.instant_after(core.store.state().settings().safety_scan.duration());
        // What follows takes claims away that the journal does not speak of, so it must be the journal of today.
        core.store.confirm()?;
        core.evict_strangers().map_err(OpenError::Stranger)?;
        core.forget_what_is_over();
        // Who is next may be closed in its workspace by now, and must not begin then.
        core.call_back_all();
        // Before workers are asked: a bead that was closed meanwhile needs no second try.
        core.follow_sources();
        core.recover();
        core.store.decide(core.now, |tx| {
            tx.close_stale_contexts();
        });
        match core.store.commit() {
            Ok(events) => {
                core.perform(&events);
                core.recover_merges();
            }
            Err(error) if role == ServerRole::Command => return Err(error.into()),
            Err(error) => core.lost_the_disk(&error),
        }
        core.serve_http();
        if role.dispatches_by_itself() {
            core.store.settle_in();
        }
        Ok(core)
    }

    /// The way in for clients and signals.
    pub(crate) fn inputs(&self) -> Inputs {
        Inputs::new(self.sender.clone(), self.pool.waker())
    }

    /// Runs until there is nothing more to do: a drain is over, or `may_leave`, which is told whether answers are still
    /// owed, says so after a turn.
    pub(crate) fn run(&mut self, mut may_leave: impl FnMut(bool) -> bool) {
        if self.dispatches() {
            self.turn(Vec::new());
        }
        while self.round(&mut may_leave) {}
        self.leave();
    }

    /// Waits for something to do and does it; false when there is nothing more.
    pub(crate) fn round(&mut self, may_leave: &mut impl FnMut(bool) -> bool) -> bool {
        if self.is_over {
            return false;
        }
        let batch = self.gather();
        let idle = batch.is_empty();
        self.turn(batch);
        if self.is_over {
            return false;
        }
        let owes = !(self.starts.is_empty() && self.slow.is_empty() && self.waiters.is_empty());
        // Who leaves in the middle of an alert would have it told twice.
        if self.drain_is_over() || (may_leave(owes) && self.telling.is_idle() && self.mailing.is_idle()) {
            return false;
        }
        if let Err(error) = self.store.checkpoint_if_due(idle) {
            self.lost_the_disk(&error);
        }
        if self.store.take_anew() {
            self.laid_out = self.store.state().seq();
            (self.rested, self.closed_up) = (None, None);
        }
        if !idle {
            self.last_news = self.clock.instant();
        } else if self.clock.instant() >= self.last_news + QUIET {
            self.rest();
        }
        true
    }

    /// After a busy time, or when a town was just taken over: gives back the memory that only that needed.
    fn rest(&mut self) {
        if !self.was_busy() {
            return;
        }
        let now = Some(self.store.state().seq());
        self.rested = now;
        if self.is_scattered() && self.read_anew() {
            return;
        }
        // Closing up takes as long as there are things in the lists, however little has happened.
        let worth_it = self.events_since(self.closed_up) >= self.store.state().things_to_tidy() as u64 / 8;
        if worth_it {
            self.closed_up = now;
        }
        self.store.rest(worth_it);
    }

    /// Whether much has happened since this last gave memory back.
    fn was_busy(&self) -> bool {
        self.role.dispatches_by_itself() && self.events_since(self.rested) >= BUSY
    }

    /// How many events there were since then; very many since the state was made.
    fn events_since(&self, then: Option<Seq>) -> u64 {
        then.map_or(u64::MAX, |then| self.store.state().seq().0.saturating_sub(then.0))
    }

    /// Whether much of what is in memory came or went since the state was last made of the log.
    fn is_scattered(&self) -> bool {
        let much = SCATTERED.max(self.store.state().things_to_tidy() as u64 / 4);
        self.events_since(Some(self.laid_out)) >= much
    }

    /// Has the state made anew; false if that cannot be.
    fn read_anew(&mut self) -> bool {
        let inputs = self.inputs();
        // A rehearsal has one thread, and its state lies where it lies.
        self.stage.is_none()
            && self.store.read_anew(&self.town, move || {
                inputs.send(Input::Nudge);
            })
    }

    /// Takes a checkpoint, due or not.
    pub(crate) fn checkpoint_now(&mut self) {
        if let Err(error) = self.store.checkpoint_now() {
            self.lost_the_disk(&error);
        }
    }

    /// The state, with everything decided so far.
    pub(crate) fn state(&self) -> &State {
        self.store.state()
    }

    /// Why the journal takes no writes at present, if so.
    pub(crate) fn read_only(&self) -> Option<&str> {
        self.read_only.as_deref()
    }

    /// Waits for something to do, then takes all there is. News nobody waits for may linger a moment, so that it
    /// shares the next commit.
    fn gather(&mut self) -> Vec<Input> {
        let mut batch = self.take_inputs();
        if batch.is_empty() {
            self.pool.stand_by(self.starts_to_expect());
            self.pool.attend(self.time_to_sleep());
            batch = self.take_inputs();
        }
        let patience = self.clock.instant() + LAZY;
        while !batch.is_empty() && batch.iter().all(|input| self.can_linger(input)) {
            let left = patience.saturating_duration_since(self.clock.instant());
            if left.is_zero() {
                break;
            }
            self.pool.attend(left);
            batch.extend(self.take_inputs());
        }
        batch
    }

    fn take_inputs(&self) -> Vec<Input> {
        self.received.try_iter().take(LARGEST_TURN).collect()
    }

    fn can_linger(&self, input: &Input) -> bool {
        match input {
            Input::Worker(
                WorkerReport::Running { dispatch, .. }
                | WorkerReport::StepDone { dispatch, .. }
                | WorkerReport::Isolated { dispatch, .. }
                | WorkerReport::Metered { dispatch, .. },
            ) => !self.starts.awaits(dispatch),
            Input::Worker(_)
            | Input::Source { .. }
            | Input::AlertTold { .. }
            | Input::MessageTold { .. }
            | Input::ActionAnswered { .. }
            | Input::WebhookTried { .. }
            | Input::Git(_)
            | Input::Ask { .. }
            | Input::Terminate
            | Input::LeaseLost(_)
            | Input::Nudge => false,
        }
    }

    fn time_to_sleep(&self) -> Duration {
        let has_own_news = !self.own_reports.is_empty() || !self.own_news.is_empty();
        if has_own_news || !self.to_send.is_empty() || self.scanning.is_some() || self.is_cutting() {
            return Duration::ZERO;
        }
        let mut until = self.next_look;
        for timeout in [self.waiters.next_timeout(), self.next_mail_timeout()].into_iter().flatten() {
            until = until.min(timeout);
        }
        if self.was_busy() {
            until = until.min(self.last_news + QUIET);
        }
        if let Some(drain) = &self.drain {
            // Past its time a drain only waits for the shims' last words.
            let over =
                if drain.until > self.clock.instant() { drain.until } else { drain.until + DRAIN_SLACK };
            until = until.min(over);
        }
        let sleep = until.saturating_duration_since(self.clock.instant());
        let preemption = self.store.state().next_preemption().filter(|_| self.dispatches());
        let others = self.next_spawn().into_iter().chain(preemption).chain(self.next_webhook());
        let due = self.store.state().next_due().into_iter().chain(others).min();
        match due {
            Some(due) => sleep.min(self.clock.until(due) + Duration::from_millis(1)),
            None => sleep,
        }
    }

    /// When a spawn delay lets the next start be made, if one waits for that.
    fn next_spawn(&self) -> Option<Timestamp> {
        let state = self.store.state();
        let waits = !self.slow.is_empty() || (self.dispatches() && state.ready_count() > 0);
        // Once that time has come, only other news can change anything.
        state.next_spawn_at().filter(|t| waits && *t > self.now)
    }

    fn dispatches(&self) -> bool {
        self.role.dispatches_by_itself() && self.drain.is_none() && self.read_only.is_none()
    }

    /// One turn: decide everything, commit once, then act and answer.
    fn turn(&mut self, batch: Vec<Input>) {
        self.now = self.clock.now();
        let mut owed = Vec::new();
        if self.read_only.is_some() {
            self.try_the_disk_again();
        }
        if batch.iter().any(Self::disturbs_line) {
            self.call_back_all();
        }
        // Before anything is decided: a dispatch without a claim must be one that lost it, not one of this turn.
        self.look_around();
        for report in std::mem::take(&mut self.own_reports) {
            self.take_report(&report);
        }
        for news in std::mem::take(&mut self.own_news) {
            self.take_git_news(news);
        }
        self.note_actions();
        if batch.iter().any(|input| matches!(input, Input::Ask { .. })) {
            // Who has just changed the config and asks for something means the new one.
            self.follow_config();
            // Whoever is late is told so, also when nobody has looked at the clock since.
            self.listen_for_agents();
            self.store.decide(self.now, |tx| {
                tx.mind_agents();
            });
        }
        for input in batch {
            self.take(input, &mut owed);
        }
        let now = self.now;
        self.listen_for_output();
        self.listen_for_agents();
        self.end_actions_past_the_drain();
        self.store.decide(now, |tx| {
            tx.tick();
        });
        self.go_on_slowly(&mut owed);
        if self.line_is_disturbed() {
            self.call_back_all();
        }
        self.call_back_stuck();
        if self.dispatches() {
            self.store.decide(now, |tx| {
                tx.pass(Scope::Everything, None);
                tx.preempt();
                tx.begin_merges();
            });
            self.line_up();
            self.look_at_offers(false);
        }
        self.hand_out_mail(&mut owed);
        self.settle_alerts_nobody_hears();
        match self.store.commit() {
            Ok(events) => {
                self.perform(&events);
                self.settle(&events, owed);
                self.tell_alerts();
                self.tell_messages();
                self.send_webhooks();
            }
            Err(error) => {
                self.lost_the_disk(&error);
                self.refuse(owed, &error);
            }
        }
    }

    fn take(&mut self, input: Input, owed: &mut Vec<Owed>) {
        match input {
            Input::Ask { request, reply_to } => self.take_ask(*request, reply_to, owed),
            Input::Worker(report) => self.take_report(&report),
            Input::Source { reading, watch } => self.take_watched(&reading, watch),
            Input::AlertTold { id, error } => self.alert_told(&id, error),
            Input::MessageTold { agent, message, error } => self.message_told(agent, message, error),
            Input::ActionAnswered { dispatch, outcome } => self.action_answered(&dispatch, outcome),
            Input::WebhookTried { task, failure } => self.webhook_tried(&task, failure),
            Input::Git(news) => self.take_git_news(news),
            Input::Terminate => {
                let timeout = self.store.state().settings().shutdown_timeout.duration();
                self.start_drain(timeout, false, None);
            }
            Input::LeaseLost(error) => self.lost_the_disk(&error.into()),
            Input::Nudge => {}
        }
    }
}

/// Why a town could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The journal.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The workers' report socket.
    #[error("cannot listen for workers: {0}")]
    Pool(std::io::Error),
    /// Something runs of which the journal knows nothing.
    #[error("a worker that the journal does not know of cannot be ended: {0}; end it, then start again")]
    Stranger(std::io::Error),
}
