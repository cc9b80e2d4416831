//! The executors that make processes: orders go to pooled shims, into windows or to a cluster, and the daemon is told what
//! became of them.
//!
//! Promises: an order starts at most once; each order handed over gets a final report, from this pool or by
//! [`LocalPool::recover`] of a later one; nothing is called lost before a sweep found nothing of it alive.
//! [`LocalPool::start`] does not wait: it makes a file and writes to a socket, or tells a thread that opens windows or
//! submits jobs.

mod attend;
mod cluster;
mod jobs;
mod recover;
mod server;
mod settle;
mod strangers;
mod table;
mod tidy;
mod verdict;
mod window;

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use yard_engine::worktree::Worktree;
use yard_engine::{DispatchId, Millis};

use crate::claim;
use crate::fence;
use crate::record::Line;
use crate::report::{Recovered, WorkerReport};
use crate::shim::REPORTS;
use crate::socket::socket_address;
use crate::spec::{RunSpec, StartOrder, Surface};
use crate::sys::{self, now};
use crate::trouble::explain;
use crate::wire::{self, FromShim, Inbox, SpecSource, ToShim};
use attend::{LISTENER, Shared, WAKE};
use cluster::Cluster;
use server::ForkServer;
pub use server::Helper;
use settle::Finding;
use table::{Live, MAX_IDLE, Shim, Watched};
use window::Opener;

/// What a shim may need beyond the grace of a stop request before it counts as hanging.
const SHIM_PATIENCE: Duration = Duration::from_secs(2);

/// The same while the daemon stops.
const HURRIED_PATIENCE: Duration = Duration::from_millis(200);

/// Where beads run on this machine. Dropping it leaves busy shims at work and lets idle ones go.
pub struct LocalPool {
    shared: Arc<Shared>,
    helper: Helper,
    server: Option<ForkServer>,
    /// Whose orders these are, where one leader may replace another.
    leader: Option<String>,
    listener: UnixListener,
    woken: UnixStream,
    waker: Waker,
    frame: Vec<u8>,
    /// Dispatches whose orders went to their shims without a file, which therefore need not be looked for.
    inline: HashSet<DispatchId>,
    shim_patience: Duration,
    /// The thread that opens windows.
    opener: Option<Opener>,
    /// The threads that deal with a cluster.
    cluster: Option<Cluster>,
}

/// Where a dispatch stands in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinePlace {
    /// Behind one that was started.
    First,
    /// Behind one that is in line itself.
    Second,
}

/// Ends a wait of [`LocalPool::attend`] early, from any thread.
#[derive(Debug, Clone)]
pub struct Waker(Arc<UnixStream>);

impl Waker {
    /// Makes the current, or else the next, wait return.
    pub fn wake(&self) {
        // A full socket has not been read yet: whoever waits will be woken by what is in it.
        let _ = sys::transmit(&self.0, b"x");
    }
}

impl LocalPool {
    /// Opens the pool of a town, making its directory if need be. Listens on `reports.sock` at once, so that no shim's
    /// last word is missed by a `recover` that follows; the fork server is started when first needed. `report` is called
    /// by [`LocalPool::attend`], and by a thread of its own for a dispatch whose shim died; it should only pass the
    /// report on.
    pub fn open(run_dir: &Path, report: Box<dyn Fn(WorkerReport) + Send + Sync>) -> io::Result<Self> {
        Self::open_with_helper(run_dir, Helper::default(), report)
    }

    /// As `open`, with another program as the fork server.
    pub fn open_with_helper(
        run_dir: &Path,
        helper: Helper,
        report: Box<dyn Fn(WorkerReport) + Send + Sync>,
    ) -> io::Result<Self> {
        let run_dir = std::path::absolute(run_dir)?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&run_dir)?;
        let listener = socket_address(&run_dir, REPORTS)?.listen()?;
        listener.set_nonblocking(true)?;
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let waker = Waker(Arc::new(wake));
        let shared = Arc::new(Shared::new(run_dir, report, waker.clone())?);
        shared.poller.add(listener.as_fd(), LISTENER)?;
        shared.poller.add(woken.as_fd(), WAKE)?;
        Ok(Self {
            shared,
            helper,
            server: None,
            leader: None,
            listener,
            woken,
            waker,
            frame: Vec::new(),
            inline: HashSet::new(),
            shim_patience: SHIM_PATIENCE,
            opener: None,
            cluster: None,
        })
    }

    /// Has only the orders of this pool carried out from now on, whoever had the town before and may still be at work.
    /// To be called before anything is recovered or started.
    pub fn lead_as(&mut self, leader: &str) -> io::Result<()> {
        fence::raise(&self.shared.run_dir, leader)?;
        self.leader = Some(leader.to_owned());
        Ok(())
    }

    /// Waits for news of workers, not longer than this, and passes on what there is. The thread that owns the pool
    /// waits here, so that a worker's end reaches it without a detour through another thread.
    pub fn attend(&mut self, patience: Duration) {
        attend::attend(&self.shared, &self.listener, &self.woken, patience);
    }

    /// A handle by which other threads end a wait.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Starts a dispatch whose start is durable. An error means that it was not handed over, and that its claim is
    /// revoked or gone: it will never start. Only `AlreadyExists` says that this dispatch was started before: `probe`
    /// tells what became of it.
    pub fn start(&mut self, order: StartOrder) -> io::Result<()> {
        let StartOrder { dispatch, mut spec, surface } = order;
        spec.log = std::path::absolute(&spec.log)?;
        spec.cwd = std::path::absolute(&spec.cwd)?;
        let path = self.shared.claim(&dispatch);
        claim::create(&path).map_err(|e| explain(&format!("the claim of {dispatch} cannot be made"), e))?;
        let handed = match surface {
            Surface::None => self.encode(&dispatch, &path, spec).and_then(|()| self.hand_over(&dispatch)),
            Surface::Tmux => self.open_window(&dispatch, &path, &spec),
            Surface::Slurm(request) => self.submit(&dispatch, &path, &spec, request),
        };
        if handed.is_err() {
            self.revoke_unsent(&dispatch, &path)?;
        }
        handed
    }

    /// Gives a dispatch that is lined up to the shim that has another, to be begun when that has ended; if it has ended
    /// already, to any, unless that one was in line itself. An error means that it was not handed over and will never start.
    pub fn start_after(&mut self, order: StartOrder, after: &DispatchId, place: LinePlace) -> io::Result<()> {
        let busy = match self.shared.table().live.get(after) {
            None if place == LinePlace::First => None,
            // It may be out of the books because it never ran: that says nothing about the slot.
            None => return Err(io::Error::new(io::ErrorKind::NotConnected, "that one is in line no longer")),
            Some(Live { shim: Some(token), .. }) => Some(*token),
            Some(Live { shim: None, .. }) => {
                return Err(io::Error::new(io::ErrorKind::NotConnected, "that one is not ours"));
            }
        };
        let Some(token) = busy else { return self.start(order) };
        let StartOrder { dispatch, mut spec, surface: _ } = order;
        spec.log = std::path::absolute(&spec.log)?;
        spec.cwd = std::path::absolute(&spec.cwd)?;
        let path = self.shared.claim(&dispatch);
        claim::create(&path)?;
        let handed = self.encode(&dispatch, &path, spec).and_then(|()| self.hand_to(token, &dispatch, after));
        if handed.is_err() {
            self.revoke_unsent(&dispatch, &path)?;
        }
        handed
    }

    /// Sends `self.frame` to a shim that is busy.
    fn hand_to(&mut self, token: u64, dispatch: &DispatchId, after: &DispatchId) -> io::Result<()> {
        let mut table = self.shared.table();
        let Some(Watched::Shim(shim)) = table.watched.get_mut(&token) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if shim.next.back().or(shim.dispatch.as_ref()) != Some(after) {
            return Err(io::Error::other("somebody else is next there"));
        }
        if sys::transmit(&shim.socket, &self.frame)? != self.frame.len() {
            return Err(io::Error::new(io::ErrorKind::WriteZero, "the order was cut off"));
        }
        shim.next.push_back(dispatch.clone());
        table.live.insert(dispatch.clone(), Live { shim: Some(token), running: None });
        Ok(())
    }

    /// Takes a dispatch out of the line behind another. If a shim has taken it already, the other has ended, and this says
    /// how.
    pub fn call_back(&mut self, dispatch: &DispatchId, after: &DispatchId) -> io::Result<Option<Recovered>> {
        let path = self.shared.claim(dispatch);
        match settle::examine(&path, "it was called back")? {
            Finding::Revoked | Finding::Absent => {}
            Finding::Alive(_) | Finding::Ended(_) | Finding::StartFailed(_) | Finding::Died(_) => {
                return self.look(after, &self.shared.claim(after)).map(Some);
            }
        }
        let mut table = self.shared.table();
        let token = table.live.remove(dispatch).and_then(|live| live.shim);
        if let Some(Watched::Shim(shim)) = token.and_then(|token| table.watched.get_mut(&token)) {
            shim.next.retain(|next| next != dispatch);
        }
        drop(table);
        self.forget(dispatch);
        Ok(None)
    }

    /// Makes sure that an order that nobody got whole is never acted upon. Nobody can hold the lock; removing the file is
    /// a revocation as well.
    fn revoke_unsent(&mut self, dispatch: &DispatchId, path: &Path) -> io::Result<()> {
        if settle::examine(path, "it was not handed over").is_err() {
            std::fs::remove_file(path)?;
        }
        if !self.inline.remove(dispatch) {
            tidy::remove_order(path);
        }
        Ok(())
    }

    /// Puts the order into `self.frame`; a large one goes into a file beside the claim.
    fn encode(&mut self, dispatch: &DispatchId, path: &Path, spec: RunSpec) -> io::Result<()> {
        let message = |spec| ToShim::Start {
            dispatch: dispatch.clone(),
            claim: path.to_path_buf(),
            spec: Box::new(spec),
        };
        let start = message(SpecSource::Inline(spec));
        self.frame.clear();
        wire::encode(&start, &mut self.frame)?;
        if self.frame.len() <= wire::INLINE_LIMIT {
            self.inline.insert(dispatch.clone());
            return Ok(());
        }
        let ToShim::Start { spec, .. } = start else {
            return Ok(());
        };
        let SpecSource::Inline(spec) = *spec else {
            return Ok(());
        };
        let file = spec_path(path);
        write_private(&file, &serde_json::to_vec(&spec)?)?;
        self.frame.clear();
        wire::encode(&message(SpecSource::File(file)), &mut self.frame)
    }

    /// Sends `self.frame` to an idle shim, or to one that is yet to be made.
    fn hand_over(&mut self, dispatch: &DispatchId) -> io::Result<()> {
        let mut table = self.shared.table();
        while let Some(token) = table.idle.pop() {
            let Some(Watched::Shim(shim)) = table.watched.get_mut(&token) else {
                continue;
            };
            if sys::transmit(&shim.socket, &self.frame).is_ok_and(|n| n == self.frame.len()) {
                shim.dispatch = Some(dispatch.clone());
                table.live.insert(dispatch.clone(), Live { shim: Some(token), running: None });
                return Ok(());
            }
            // It is gone, or got half a frame, which it will never act upon.
            if let Some(Watched::Shim(shim)) = table.watched.remove(&token) {
                self.shared.poller.remove(shim.socket.as_fd());
            }
        }
        drop(table);
        let socket = self.new_shim()?;
        let mut table = self.shared.table();
        let token = table.token();
        self.shared.poller.add(socket.as_fd(), token)?;
        // The last thing that can fail: after it the order is on its way.
        let sent = sys::transmit(&socket, &self.frame).map_err(|e| match last_words(&socket) {
            Some(why) => explain(&why, e),
            None => explain("its shim died before it got the order", e),
        })?;
        if sent != self.frame.len() {
            return Err(io::Error::new(io::ErrorKind::WriteZero, "the order was cut off"));
        }
        table.watched.insert(token, Watched::Shim(Shim::new(socket, Some(dispatch.clone()))));
        table.live.insert(dispatch.clone(), Live { shim: Some(token), running: None });
        Ok(())
    }

    /// Sees to it that so many shims stand by, as far as that is sensible: whoever is about to start many at once need not
    /// wait for them to be made.
    pub fn stand_by(&mut self, wanted: usize) {
        let idle = self.shared.table().idle.len();
        for _ in idle..wanted.min(MAX_IDLE) {
            // Without one it is made when it is needed, and what is wrong then is said.
            let Ok(socket) = self.new_shim() else { return };
            let mut table = self.shared.table();
            let token = table.token();
            if self.shared.poller.add(socket.as_fd(), token).is_err() {
                return;
            }
            table.watched.insert(token, Watched::Shim(Shim::new(socket, None)));
            table.idle.push(token);
        }
    }

    /// Lets idle shims go, down to so many; those that were idle longest first.
    pub fn stand_down(&mut self, wanted: usize) {
        let mut table = self.shared.table();
        let surplus = table.idle.len().saturating_sub(wanted);
        for token in table.idle.drain(..surplus).collect::<Vec<_>>() {
            if let Some(Watched::Shim(shim)) = table.watched.remove(&token) {
                self.shared.poller.remove(shim.socket.as_fd());
            }
        }
    }

    /// Asks the fork server for a shim, starting the server if there is none. The connection works at once, because
    /// what is sent waits for the shim.
    fn new_shim(&mut self) -> io::Result<UnixStream> {
        for fresh in [false, true] {
            if fresh || self.server.is_none() {
                self.server = None;
                let server = ForkServer::start(&self.helper, self.leader.as_deref())?;
                self.shared.table().server = server.pid();
                self.server = Some(server);
            }
            let (ours, theirs) = UnixStream::pair()?;
            match self.server.as_ref().map(|server| server.request(theirs.as_fd())) {
                Some(Ok(())) => return Ok(ours),
                Some(Err(e)) if fresh => return Err(e),
                // It died since it was last asked.
                Some(Err(_)) | None => {}
            }
        }
        Err(io::Error::other("the fork server cannot be reached"))
    }

    /// Asks a dispatch to stop: SIGTERM to its tree, SIGKILL after `grace`. The end is reported as usual. A shim
    /// that does not obey is killed itself soon after the grace.
    pub fn request_stop(&mut self, dispatch: &DispatchId, grace: Millis, reason: &str) -> io::Result<()> {
        let path = self.shared.claim(dispatch);
        let line = Line::Stop { grace_ms: grace, reason: reason.to_owned(), at: now() };
        claim::leave_word(&path, &line)?;
        if claim::is_of_cluster(&path) {
            return self.stop_job(dispatch, &path, grace, reason);
        }
        let message = ToShim::Stop { dispatch: dispatch.clone(), grace, reason: reason.to_owned() };
        self.frame.clear();
        wire::encode(&message, &mut self.frame)?;
        let mut table = self.shared.table();
        table.be_patient(dispatch, Instant::now() + grace.duration() + self.shim_patience);
        let told =
            table.shim_of(dispatch).is_some_and(|shim| sys::transmit(&shim.socket, &self.frame).is_ok());
        drop(table);
        if !told && !attend::signal_shim(&path, Signal::SIGUSR1)? {
            let unknown = Live { shim: None, running: None };
            self.shared.table().live.entry(dispatch.clone()).or_insert(unknown);
            self.shared.settle(dispatch.clone(), reason.to_owned());
        }
        Ok(())
    }

    /// From now on shims that do not obey a stop request are killed soon after its grace: somebody waits for all of them.
    pub fn hurry(&mut self) {
        self.shim_patience = HURRIED_PATIENCE;
    }

    /// Asks a dispatch to give way between two steps, or takes that back. One that has ended, or whose shim is gone, is
    /// left to its report.
    pub fn request_yield(&mut self, dispatch: &DispatchId, wanted: bool) -> io::Result<()> {
        let path = self.shared.claim(dispatch);
        if claim::is_of_cluster(&path) {
            return self.ask_job_to_yield(dispatch, &path, wanted);
        }
        match claim::leave_word(&path, &Line::Yield { wanted, at: now() }) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        }
        let message = ToShim::Yield { dispatch: dispatch.clone(), wanted };
        self.frame.clear();
        wire::encode(&message, &mut self.frame)?;
        let mut table = self.shared.table();
        let told =
            table.shim_of(dispatch).is_some_and(|shim| sys::transmit(&shim.socket, &self.frame).is_ok());
        drop(table);
        if !told {
            attend::signal_shim(&path, Signal::SIGUSR1)?;
        }
        Ok(())
    }

    /// The steps a dispatch has finished, from its claim: where a successor may resume. Empty once it is forgotten.
    pub fn finished_steps(&self, dispatch: &DispatchId) -> io::Result<Vec<String>> {
        let story = claim::peek(&self.shared.claim(dispatch))?;
        Ok(story.map(|story| story.steps).unwrap_or_default())
    }

    /// The worktree a dispatch works in, from its claim.
    pub fn worktree(&self, dispatch: &DispatchId) -> Option<Worktree> {
        claim::peek(&self.shared.claim(dispatch)).ok().flatten()?.worktree
    }

    /// Removes the claim of a dispatch whose end is durable in the journal.
    pub fn forget(&mut self, dispatch: &DispatchId) {
        let claim = self.shared.claim(dispatch);
        if self.inline.remove(dispatch) { tidy::remove_claim(&claim) } else { tidy::remove(&claim) }
    }

    /// Removes the claims of all other dispatches: those a former daemon had no time to forget. Whatever still holds its
    /// claim keeps it.
    pub fn forget_all_but(&mut self, live: &BTreeSet<DispatchId>) {
        let is_live = |name: &str| DispatchId::parse(name).is_ok_and(|id| live.contains(&id));
        for claim in tidy::leftovers(&self.shared.run_dir, is_live) {
            tidy::remove(&claim);
        }
    }
}

impl Drop for LocalPool {
    fn drop(&mut self) {
        // A thread that follows a dead shim may outlive us; the connections must not, or idle shims would stay.
        let mut table = self.shared.table();
        table.watched.clear();
        table.idle.clear();
    }
}

/// Why there is no shim at the other end, if the fork server said so.
fn last_words(socket: &UnixStream) -> Option<String> {
    let mut inbox = Inbox::default();
    inbox.fill(socket).ok()?;
    match inbox.next() {
        Ok(Some(FromShim::NoShim { why })) => Some(why),
        Ok(_) | Err(_) => None,
    }
}

/// Where a large order waits for its shim.
fn spec_path(claim: &Path) -> PathBuf {
    claim.with_extension("spec")
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_can_move_to_the_thread_that_uses_it() {
        fn sendable<T: Send>() {}
        sendable::<LocalPool>();
    }
}
