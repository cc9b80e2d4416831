//! Attending to the shims: hears them all and passes on what they say, as fast as it can.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use yard_engine::DispatchId;

use super::Waker;
use super::jobs::Sight;
use super::settle::{self, Finding};
use super::table::{Live, MAX_IDLE, Shim, Table, Watched};
use super::verdict;
use crate::claim;
use crate::report::WorkerReport;
use crate::sys;
use crate::wire::{Filled, FromShim, Inbox};

pub(super) const LISTENER: u64 = 0;
pub(super) const WAKE: u64 = 1;

/// Why nothing ran, where no more is known.
const DIED_EARLY: &str = "its shim died before it started anything";

/// What the pool and the threads that follow dead shims share.
pub(super) struct Shared {
    pub run_dir: PathBuf,
    pub poller: sys::Poller,
    pub report: Box<dyn Fn(WorkerReport) + Send + Sync>,
    pub waker: Waker,
    table: Mutex<Table>,
}

impl Shared {
    pub(super) fn new(
        run_dir: PathBuf,
        report: Box<dyn Fn(WorkerReport) + Send + Sync>,
        waker: Waker,
    ) -> io::Result<Self> {
        Ok(Self { run_dir, poller: sys::Poller::new()?, report, waker, table: Mutex::default() })
    }

    /// The books. A panic elsewhere leaves them usable: every change is made in one piece.
    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn claim(&self, dispatch: &DispatchId) -> PathBuf {
        claim::path(&self.run_dir, dispatch)
    }

    /// As `settle`, unless the end of the dispatch has been reported already.
    pub(super) fn settle_live(self: &Arc<Self>, dispatch: DispatchId, why: String) {
        if self.table().live.contains_key(&dispatch) {
            self.settle(dispatch, why);
        }
    }

    /// Reports the end of a dispatch whose shim is gone: at once if the claim answers, else from a thread.
    pub(super) fn settle(self: &Arc<Self>, dispatch: DispatchId, why: String) {
        let path = self.claim(&dispatch);
        let report = match settle::examine(&path, &why) {
            Ok(Finding::Ended(exit)) => WorkerReport::Ended { dispatch, exit },
            Ok(Finding::StartFailed(error)) => WorkerReport::StartFailed { dispatch, error },
            Ok(Finding::Revoked) => WorkerReport::NeverRan { dispatch, why },
            Ok(Finding::Absent) => {
                self.close_books(&dispatch);
                return;
            }
            Ok(Finding::Alive(_) | Finding::Died(_)) | Err(_) => return self.bury(dispatch, why),
        };
        self.tell_end(report);
    }

    /// Reports an end, unless another thread found it out a moment before.
    pub(super) fn tell_end(&self, report: WorkerReport) {
        if self.close_books(report.dispatch()) {
            (self.report)(report);
        }
    }

    /// Follows a dead shim's dispatch in a thread of its own, because its processes may take their time.
    pub(super) fn bury(self: &Arc<Self>, dispatch: DispatchId, why: String) {
        let end = self.end_by_slurm(&dispatch);
        let spare = {
            let mut table = self.table();
            if !table.burying.insert(dispatch.clone()) {
                return;
            }
            table.spared()
        };
        let shared = Arc::clone(self);
        let buried = dispatch.clone();
        let undertaker = move || {
            match settle::bury(buried.clone(), &shared.claim(&buried), &why, &spare) {
                Some(report) => shared.tell_end(verdict::in_the_light_of(report, end)),
                None => {
                    shared.close_books(&buried);
                }
            }
            shared.waker.wake();
        };
        let thread = std::thread::Builder::new().name("ym-bury".to_owned()).spawn(undertaker);
        if thread.is_err() {
            // The safety scan will find it: no connection holds it any more.
            self.table().burying.remove(&dispatch);
        }
    }

    /// The end of a dispatch is known; `false` if it was before.
    pub(super) fn close_books(&self, dispatch: &DispatchId) -> bool {
        let mut table = self.table();
        table.burying.remove(dispatch);
        table.patience.retain(|p| p.dispatch != *dispatch);
        table.jobs.remove(dispatch);
        table.live.remove(dispatch).is_some()
    }
}

/// What to do after the books are closed again.
enum Task {
    Report(WorkerReport),
    /// A shim in a window has taken its claim, which says who it is.
    Adopt(DispatchId),
    /// One is over in some way, or is said to be.
    Settle(DispatchId, String),
}

/// One round: waits for news, then deals with all there is.
pub(super) fn attend(shared: &Arc<Shared>, listener: &UnixListener, woken: &UnixStream, patience: Duration) {
    let mut ready = Vec::new();
    let mut tasks = Vec::new();
    let patience = lose_patience(shared).map_or(patience, |next| patience.min(next));
    // Rounded up, so that a wait for a moment does not end just before it.
    let millis = u16::try_from(patience.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
    if shared.poller.wait(Some(millis), &mut ready).is_err() {
        // Nothing sensible can make it fail; do not spin if it does.
        std::thread::sleep(patience.min(Duration::from_millis(100)));
    }
    let (deaths, news): (Vec<u64>, Vec<u64>) = ready.into_iter().partition(|token| is_death(shared, *token));
    for token in news {
        match token {
            LISTENER => greet(shared, listener),
            WAKE => {
                let _ = sys::receive(woken, &mut [0; 64]);
            }
            _ => listen_to(shared, token, &mut tasks),
        }
    }
    let unclear = std::mem::take(&mut shared.table().unclear);
    if !deaths.is_empty() || !unclear.is_empty() {
        // What they said before they died counts first.
        greet(shared, listener);
        for token in visitors(shared) {
            listen_to(shared, token, &mut tasks);
        }
    }
    for token in deaths {
        listen_to(shared, token, &mut tasks);
    }
    tasks.extend(unclear.into_iter().map(|(dispatch, why)| Task::Settle(dispatch, why)));
    // What somebody said counts before anything is looked up that may say it is over.
    tasks.sort_by_key(|task| !matches!(task, Task::Report(_)));
    for task in tasks {
        match task {
            Task::Report(report) => (shared.report)(report),
            Task::Adopt(dispatch) => {
                if !shared.adopt(&dispatch, &shared.claim(&dispatch)) {
                    shared.settle_live(dispatch, DIED_EARLY.to_owned());
                }
            }
            Task::Settle(dispatch, why) => shared.settle_live(dispatch, why),
        }
    }
}

fn is_death(shared: &Shared, token: u64) -> bool {
    matches!(shared.table().watched.get(&token), Some(Watched::Adopted(..)))
}

/// Those who came to tell us something, in the order in which they came.
fn visitors(shared: &Shared) -> Vec<u64> {
    let table = shared.table();
    let visitors = table.watched.iter().filter(|(_, watched)| matches!(watched, Watched::Visitor(..)));
    let mut tokens: Vec<u64> = visitors.map(|(token, _)| *token).collect();
    tokens.sort_unstable();
    tokens
}

/// Accepts a shim that is not our child.
fn greet(shared: &Shared, listener: &UnixListener) {
    while let Ok((socket, _)) = listener.accept() {
        let mut table = shared.table();
        let token = table.token();
        if shared.poller.add(socket.as_fd(), token).is_ok() {
            table.watched.insert(token, Watched::Visitor(socket, Inbox::default()));
        }
    }
}

/// Reads what a connection has to say.
fn listen_to(shared: &Shared, token: u64, tasks: &mut Vec<Task>) {
    let mut table = shared.table();
    let ended = match table.watched.get_mut(&token) {
        None => return,
        Some(Watched::Shim(_)) => attend_shim(shared, &mut table, token, tasks),
        Some(Watched::Visitor(socket, inbox)) => {
            let mut ended = read(socket, inbox);
            let mut heard = Vec::new();
            loop {
                match inbox.next() {
                    Ok(Some(message)) => heard.push(message),
                    Ok(None) => break,
                    // No shim: whatever else it has to say would only pile up.
                    Err(_) => {
                        ended = true;
                        break;
                    }
                }
            }
            for message in heard {
                hear_visitor(shared, &mut table, message, tasks);
            }
            ended
        }
        Some(Watched::Adopted(dispatch, _)) => {
            let dispatch = dispatch.clone();
            if let Some(live) = table.live.get_mut(&dispatch) {
                live.shim = None;
            }
            tasks.push(Task::Settle(dispatch, DIED_EARLY.to_owned()));
            true
        }
    };
    if ended {
        match table.watched.remove(&token) {
            Some(Watched::Shim(Shim { socket, .. }) | Watched::Visitor(socket, _)) => {
                shared.poller.remove(socket.as_fd());
            }
            Some(Watched::Adopted(_, handle)) => {
                if let Some(fd) = handle.fd() {
                    shared.poller.remove(fd);
                }
            }
            None => {}
        }
    }
}

/// Reads until nothing is left; `true` if the connection has ended.
fn read(socket: &UnixStream, inbox: &mut Inbox) -> bool {
    // One read is nearly always all; what is left wakes us again.
    !matches!(inbox.fill(socket), Ok(Filled::More | Filled::Nothing))
}

/// Hears one of our own shims; `true` if it is gone.
fn attend_shim(shared: &Shared, table: &mut Table, token: u64, tasks: &mut Vec<Task>) -> bool {
    let Some(Watched::Shim(shim)) = table.watched.get_mut(&token) else {
        return false;
    };
    let mut ended = read(&shim.socket, &mut shim.inbox);
    loop {
        let Some(Watched::Shim(shim)) = table.watched.get_mut(&token) else {
            return false;
        };
        let message = match shim.inbox.next() {
            Ok(Some(message)) => message,
            Ok(None) => break,
            Err(_) => {
                ended = true;
                break;
            }
        };
        match message {
            FromShim::NoShim { why } => shim.last_words = Some(why),
            FromShim::Running { dispatch, pid, at } => {
                if let Some(live) = table.live.get_mut(&dispatch) {
                    live.running = Some((pid, at));
                }
                tasks.push(Task::Report(WorkerReport::Running { dispatch, pid, at }));
            }
            FromShim::Isolated { dispatch, worktree } => {
                tasks.push(Task::Report(WorkerReport::Isolated { dispatch, worktree }));
            }
            FromShim::StepDone { dispatch, step, at } => {
                tasks.push(Task::Report(WorkerReport::StepDone { dispatch, step, at }));
            }
            FromShim::Metered { dispatch, usd, tokens, session, line } => {
                tasks.push(Task::Report(WorkerReport::Metered { dispatch, usd, tokens, session, line }));
            }
            FromShim::StartFailed { dispatch, error } => {
                release(shared, table, token, &dispatch);
                tasks.push(Task::Report(WorkerReport::StartFailed { dispatch, error }));
            }
            FromShim::Ended { dispatch, exit } => {
                release(shared, table, token, &dispatch);
                tasks.push(Task::Report(WorkerReport::Ended { dispatch, exit }));
            }
            FromShim::Refused { dispatch, why } => {
                let live = table.live.get(&dispatch).copied();
                release(shared, table, token, &dispatch);
                if let Some(live) = live {
                    table.live.insert(dispatch.clone(), Live { shim: None, ..live });
                    tasks.push(Task::Settle(dispatch, why));
                }
            }
        }
    }
    if !ended {
        return false;
    }
    table.idle.retain(|&idle| idle != token);
    if let Some(Watched::Shim(shim)) = table.watched.get_mut(&token) {
        let why = shim.last_words.take().unwrap_or_else(|| DIED_EARLY.to_owned());
        for dispatch in shim.dispatch.take().into_iter().chain(shim.next.drain(..)) {
            if let Some(live) = table.live.get_mut(&dispatch) {
                live.shim = None;
            }
            tasks.push(Task::Settle(dispatch, why.clone()));
        }
    }
    true
}

/// A shim has finished a dispatch and goes on with the next, or waits for one.
fn release(shared: &Shared, table: &mut Table, token: u64, dispatch: &DispatchId) {
    table.live.remove(dispatch);
    table.patience.retain(|p| p.dispatch != *dispatch);
    let Some(Watched::Shim(shim)) = table.watched.get_mut(&token) else { return };
    if shim.dispatch.as_ref() != Some(dispatch) {
        // It was called back before its turn came.
        return;
    }
    shim.dispatch = shim.next.pop_front();
    if shim.dispatch.is_some() {
        return;
    }
    if table.idle.len() < MAX_IDLE {
        table.idle.push(token);
    } else if let Some(Watched::Shim(shim)) = table.watched.remove(&token) {
        shared.poller.remove(shim.socket.as_fd());
    }
}

/// Hears a shim that is not our child. Its word that something is over is only a hint: the claim decides.
fn hear_visitor(shared: &Shared, table: &mut Table, message: FromShim, tasks: &mut Vec<Task>) {
    match message {
        // What a job says is in its claim too, and told from there, because most of them are too far away to say it here.
        FromShim::Running { dispatch, .. }
        | FromShim::Isolated { dispatch, .. }
        | FromShim::StepDone { dispatch, .. }
        | FromShim::StartFailed { dispatch, .. }
        | FromShim::Ended { dispatch, .. }
        | FromShim::Refused { dispatch, .. }
            if table.jobs.contains_key(&dispatch) =>
        {
            table.tell_follower(Sight::News(dispatch));
        }
        FromShim::Running { dispatch, pid, at } => {
            if let Some(live) = table.live.get_mut(&dispatch) {
                live.running = Some((pid, at));
            }
            let adopted = release_window(shared, table, &dispatch).then(|| Task::Adopt(dispatch.clone()));
            tasks.push(Task::Report(WorkerReport::Running { dispatch, pid, at }));
            tasks.extend(adopted);
        }
        FromShim::Isolated { dispatch, worktree } => {
            tasks.push(Task::Report(WorkerReport::Isolated { dispatch, worktree }));
        }
        FromShim::StepDone { dispatch, step, at } => {
            tasks.push(Task::Report(WorkerReport::StepDone { dispatch, step, at }));
        }
        FromShim::Metered { dispatch, usd, tokens, session, line } => {
            tasks.push(Task::Report(WorkerReport::Metered { dispatch, usd, tokens, session, line }));
        }
        FromShim::StartFailed { dispatch, .. } | FromShim::Ended { dispatch, .. } => {
            tasks.push(Task::Settle(dispatch, "its shim says that it is over".to_owned()));
        }
        FromShim::Refused { dispatch, why } => tasks.push(Task::Settle(dispatch, why)),
        FromShim::NoShim { .. } => {}
    }
}

/// Stops watching the process that a window was opened for; `false` if the dispatch has none.
fn release_window(shared: &Shared, table: &mut Table, dispatch: &DispatchId) -> bool {
    let Some(live) = table.live.get_mut(dispatch) else { return false };
    let Some(token) = live.shim else { return false };
    match table.watched.get(&token) {
        Some(Watched::Shim(_) | Watched::Visitor(..)) => return false,
        Some(Watched::Adopted(_, handle)) => {
            if let Some(fd) = handle.fd() {
                shared.poller.remove(fd);
            }
        }
        // It speaks before we were told who it is.
        None => {}
    }
    live.shim = None;
    table.watched.remove(&token);
    true
}

/// Kills the shims that did not obey a stop request in time, and says how long to wait for the next.
fn lose_patience(shared: &Arc<Shared>) -> Option<Duration> {
    let time = Instant::now();
    let mut table = shared.table();
    if table.patience.is_empty() {
        return None;
    }
    let mut due = Vec::new();
    table.patience.retain(|p| {
        let over = p.until <= time;
        if over {
            due.push(p.dispatch.clone());
        }
        !over
    });
    let next = table.patience.iter().map(|p| p.until).min();
    drop(table);
    for dispatch in due {
        kill_shim(shared, dispatch);
    }
    next.map(|at| at.saturating_duration_since(time))
}

/// Ends a shim that hangs; its payload dies with it. The rest is found out as for any dead shim.
fn kill_shim(shared: &Arc<Shared>, dispatch: DispatchId) {
    if shared.call_job_off(&dispatch) {
        return;
    }
    let path = shared.claim(&dispatch);
    let _ = signal_shim(&path, Signal::SIGKILL);
    shared.settle_live(dispatch, "its shim did not obey a stop request".to_owned());
}

/// Signals the shim that holds a claim; `false` if none holds it. The lock is tested after the process is pinned, so
/// that a number that changed hands cannot be hit.
pub(super) fn signal_shim(path: &std::path::Path, signal: Signal) -> io::Result<bool> {
    let Some(pid) = claim::peek(path)?.and_then(|story| story.shim_here()) else {
        return Ok(false);
    };
    let Ok(handle) = sys::Handle::open(pid) else {
        return Ok(false);
    };
    if settle::is_held(path)? {
        handle.signal(signal)?;
        return Ok(true);
    }
    Ok(false)
}
