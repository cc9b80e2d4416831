//! The simulated workers, and a clock that passes over the time in which nothing happens.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use yard_daemon::rehearsal::{GitJob, Rehearsal, Stage, Time, Workers};
use yard_engine::agent::Process;
use yard_engine::money::Usd;
use yard_engine::settings::HttpSettings;
use yard_engine::worktree::Worktree;
use yard_engine::{
    AgentName, AlertId, BeadId, DispatchId, Millis, RigName, Settings, SourceReading, Timestamp,
};
use yard_tests::dice::Dice;
use yard_workers::{ExitCause, ExitRecord, LinePlace, Recovered, StartOrder, Waker, WorkerReport};

/// All workers, and what the loop has of them.
#[derive(Clone)]
pub(super) struct Crowd(Rc<Inner>);

struct Inner {
    workers: usize,
    span: Duration,
    clock: Rc<Clock>,
    books: RefCell<Books>,
}

/// A clock that runs with the real one, and leaps.
struct Clock {
    began: Instant,
    wall: Duration,
    leapt: Cell<Duration>,
}

impl Clock {
    fn now(&self) -> Duration {
        self.began.elapsed() + self.leapt.get()
    }
}

impl Time for Clock {
    fn instant(&self) -> Instant {
        self.began + self.now()
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_millis((self.wall + self.now()).as_millis() as i64)
    }
}

struct Books {
    dice: Dice,
    /// Orders that have come since it was last told of them.
    starting: Vec<DispatchId>,
    /// Who works, by when he will be done.
    busy: BTreeMap<(Duration, u64), DispatchId>,
    began: HashMap<DispatchId, Timestamp>,
    orders: u64,
    ended: u64,
    /// Since when places are free.
    free: VecDeque<Duration>,
    delays: Vec<Duration>,
}

impl Crowd {
    pub(super) fn new(workers: usize, span: Duration) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let clock = Clock { began: Instant::now(), wall, leapt: Cell::default() };
        let books = Books {
            dice: Dice::seeded(workers as u64),
            starting: Vec::new(),
            busy: BTreeMap::new(),
            began: HashMap::new(),
            orders: 0,
            ended: 0,
            free: VecDeque::new(),
            delays: Vec::new(),
        };
        Self(Rc::new(Inner { workers, span, clock: Rc::new(clock), books: RefCell::new(books) }))
    }

    /// What a loop is opened with.
    pub(super) fn surroundings(&self) -> (Box<dyn Workers>, Rc<dyn Time>, Box<dyn Stage>) {
        (Box::new(self.clone()), self.0.clock.clone(), Box::new(Outside))
    }

    /// Tells the loop who runs by now, and who is done.
    pub(super) fn report(&self, leader: &Rehearsal) {
        let (now, at) = (self.0.clock.now(), self.0.clock.wall());
        let mut books = self.0.books.borrow_mut();
        let books = &mut *books;
        for dispatch in books.starting.drain(..) {
            leader.worker(WorkerReport::Running { dispatch, pid: 1, at });
        }
        while let Some(first) = books.busy.first_entry().filter(|first| first.key().0 <= now) {
            let ((until, _), dispatch) = first.remove_entry();
            books.ended += 1;
            books.free.push_back(until);
            let started_at = books.began.remove(&dispatch).unwrap_or(at);
            leader.worker(WorkerReport::Ended { dispatch, exit: ended_well(started_at, at) });
        }
    }

    /// So many were ordered to start so far.
    pub(super) fn orders(&self) -> u64 {
        self.0.books.borrow().orders
    }

    pub(super) fn ended(&self) -> u64 {
        self.0.books.borrow().ended
    }

    /// What was passed over so far.
    pub(super) fn passed(&self) -> Duration {
        self.0.clock.leapt.get()
    }

    pub(super) fn delays(&self) -> Vec<Duration> {
        self.0.books.borrow().delays.clone()
    }

    /// From here on it counts.
    pub(super) fn forget_delays(&self) {
        let mut books = self.0.books.borrow_mut();
        books.ended = 0;
        books.delays.clear();
    }
}

fn ended_well(started_at: Timestamp, ended_at: Timestamp) -> ExitRecord {
    ExitRecord {
        code: Some(0),
        signal: None,
        step: Some("run".to_owned()),
        cause: ExitCause::Exit,
        started_at,
        ended_at,
        active: Some(Millis(ended_at.since(started_at).as_millis() as u64)),
        usd: Usd::default(),
        tokens: 0,
        session: None,
        worktree: None,
        unavailable: None,
        note: None,
    }
}

impl Workers for Crowd {
    /// Passes over the time until somebody is done, or until the loop wants to look by itself.
    fn attend(&mut self, patience: Duration) {
        let books = self.0.books.borrow();
        if !books.starting.is_empty() {
            return;
        }
        let now = self.0.clock.now();
        let next = books.busy.first_key_value().map(|((until, _), _)| until.saturating_sub(now));
        let leap = next.unwrap_or(patience).min(patience);
        self.0.clock.leapt.set(self.0.clock.leapt.get() + leap);
    }

    fn waker(&self) -> Option<Waker> {
        None
    }

    fn start(&mut self, order: StartOrder) -> io::Result<()> {
        let (now, at) = (self.0.clock.now(), self.0.clock.wall());
        let mut books = self.0.books.borrow_mut();
        // In the beginning everybody is somewhere in the middle of his work; later he has all of it before him, more or less.
        let first = books.orders < self.0.workers as u64;
        let share = if first { books.dice.below(1_000) } else { 500 + books.dice.below(1_000) };
        let until = now + self.0.span.mul_f64(share as f64 / 1_000.0);
        let number = books.orders;
        books.orders += 1;
        books.busy.insert((until, number), order.dispatch.clone());
        books.began.insert(order.dispatch.clone(), at);
        if let Some(since) = books.free.pop_front() {
            books.delays.push(now.saturating_sub(since));
        }
        books.starting.push(order.dispatch);
        Ok(())
    }

    fn request_stop(&mut self, _: &DispatchId, _: Millis, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn hurry(&mut self) {}

    fn request_yield(&mut self, _: &DispatchId, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn worktree(&self, _: &DispatchId) -> Option<Worktree> {
        None
    }

    fn forget(&mut self, _: &DispatchId) {}

    fn forget_all_but(&mut self, _: &BTreeSet<DispatchId>) {}

    fn recover(&mut self, dispatch: &DispatchId) -> io::Result<Recovered> {
        let began = self.0.books.borrow().began.get(dispatch).copied();
        Ok(Recovered::Adopted { running: began.map(|at| (1, at)) })
    }

    fn close_leftover_windows(&mut self) {}

    fn start_after(&mut self, _: StartOrder, _: &DispatchId, _: LinePlace) -> io::Result<()> {
        Err(io::Error::other("nobody stands in line here"))
    }

    fn call_back(&mut self, _: &DispatchId, _: &DispatchId) -> io::Result<Option<Recovered>> {
        Ok(None)
    }
}

/// Everything else: there is nothing else.
struct Outside;

impl Stage for Outside {
    fn git(&mut self, _: GitJob) {}

    fn tell_alert(&mut self, _: &AlertId) {}

    fn tell_message(&mut self, _: &AgentName, _: u64) {}

    fn wake(&mut self, _: &RigName) {}

    fn send_action(&mut self, _: &DispatchId) {}

    fn send_webhook(&mut self, _: &BeadId) {}

    fn listen(&mut self, _: &HttpSettings) -> Option<String> {
        None
    }

    fn too_busy(&mut self, _: &Settings) -> Option<String> {
        None
    }

    fn lives(&mut self, _: &Process) -> bool {
        true
    }

    fn last_output(&mut self, _: &DispatchId) -> Option<Timestamp> {
        None
    }

    fn read_workspace(&mut self, _: &RigName) -> Option<SourceReading> {
        None
    }

    fn poke(&mut self, _: Option<&str>) {}

    fn beside(&mut self, work: Box<dyn FnOnce()>) {
        work();
    }

    fn end(&mut self) {}
}
