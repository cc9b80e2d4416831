//! Starting shims in tmux windows. tmux takes its time, so a thread does it, one after another; the pool goes on.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use yard_engine::DispatchId;

use super::attend::Shared;
use super::settle::{self, Finding};
use super::table::{Live, Watched};
use super::{LocalPool, spec_path, write_private};
use crate::claim;
use crate::fence;
use crate::record::Story;
use crate::report::WorkerReport;
use crate::shim::environment_file;
use crate::spec::RunSpec;
use crate::{sys, tmux};

/// How long a pool that ends waits for shims on their way.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// An order whose window is still to be opened.
pub(super) struct Opening {
    dispatch: DispatchId,
    /// What its shim will be watched as.
    token: u64,
    argv: Vec<OsString>,
}

/// The thread that opens windows. Dropping it waits for what it was given.
pub(super) struct Opener {
    openings: Option<Sender<Opening>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.openings = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}

impl LocalPool {
    /// Has an order carried out by a shim in a window of its own. The order and its environment lie beside the claim.
    pub(super) fn open_window(
        &mut self,
        dispatch: &DispatchId,
        claim: &Path,
        spec: &RunSpec,
    ) -> io::Result<()> {
        let order = spec_path(claim);
        write_private(&environment_file(&order), &environment(self.leader.as_deref()))?;
        write_private(&order, &serde_json::to_vec(spec)?)?;
        let program = self.helper.reachable_exe()?;
        let argv = vec![
            program.into_os_string(),
            "__shim".into(),
            self.shared.run_dir.clone().into_os_string(),
            dispatch.to_string().into(),
            order.into_os_string(),
        ];
        let openings = self.openings()?;
        let token = {
            let mut table = self.shared.table();
            let token = table.token();
            table.live.insert(dispatch.clone(), Live { shim: Some(token), running: None });
            token
        };
        let opening = Opening { dispatch: dispatch.clone(), token, argv };
        openings.send(opening).map_err(|_| {
            self.shared.close_books(dispatch);
            io::Error::other("the thread that opens windows is gone")
        })
    }

    /// The way to the thread that opens windows, which is started when first needed.
    fn openings(&mut self) -> io::Result<Sender<Opening>> {
        if let Some(Opener { openings: Some(openings), .. }) = &self.opener {
            return Ok(openings.clone());
        }
        let (openings, orders) = mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("ym-tmux".to_owned());
        let thread = thread.spawn(move || open_all(&shared, &orders))?;
        self.opener = Some(Opener { openings: Some(openings.clone()), thread: Some(thread) });
        Ok(openings)
    }

    /// Closes the windows of dispatches that are over or may not start, which a former daemon may have left: their shims
    /// leave by themselves, unless they hang.
    pub fn close_leftover_windows(&self) {
        let run_dir = self.shared.run_dir.clone();
        let close = move || {
            for dispatch in tmux::sessions(&run_dir) {
                if is_over(&claim::path(&run_dir, &dispatch)) {
                    tmux::close(&run_dir, &dispatch);
                }
            }
        };
        // Whatever is left is only clutter.
        let _ = std::thread::Builder::new().name("ym-tmux".to_owned()).spawn(close);
    }
}

/// Whether a claim says that nothing runs under it. Its lock is left alone: a shim that is about to take it must get it.
pub(super) fn is_over(claim: &Path) -> bool {
    match claim::peek(claim) {
        Ok(None) => true,
        Ok(Some(story)) => story.exit.is_some() || story.failed.is_some() || story.revoked,
        Err(_) => false,
    }
}

/// What the fork server's shims have: the daemon's environment, but for its own place in a dispatch.
pub(super) fn environment(leader: Option<&str>) -> Vec<u8> {
    let mut block = Vec::new();
    let own = std::env::vars_os().filter(|(name, _)| name != "YM_DISPATCH" && name != fence::VARIABLE);
    let leader = leader.map(|leader| (fence::VARIABLE.into(), leader.into()));
    for (name, value) in own.chain(leader) {
        block.extend_from_slice(name.as_bytes());
        block.push(b'=');
        block.extend_from_slice(value.as_bytes());
        block.push(0);
    }
    block
}

/// The life of the thread. It ends with the pool, when every shim it started has taken its claim: whoever opens the next
/// pool revokes what nobody has taken.
fn open_all(shared: &Arc<Shared>, openings: &Receiver<Opening>) {
    let mut on_their_way: Vec<(PathBuf, u32)> = Vec::new();
    while let Ok(Opening { dispatch, token, argv }) = openings.recv() {
        on_their_way.retain(is_on_its_way);
        match tmux::start(&shared.run_dir, &dispatch, &argv) {
            Ok(pid) => {
                on_their_way.push((shared.claim(&dispatch), pid));
                watch(shared, dispatch, token, pid);
            }
            Err(why) => give_up(shared, dispatch, why),
        }
    }
    let until = Instant::now() + LAST_PATIENCE;
    while !on_their_way.is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
        on_their_way.retain(is_on_its_way);
    }
}

/// Whether a shim lives that has not taken its claim yet.
fn is_on_its_way((claim, pid): &(PathBuf, u32)) -> bool {
    matches!(claim::peek(claim), Ok(Some(story)) if story == Story::default())
        && sys::process_mark(*pid).is_some()
}

/// Watches the shim in a new window, to learn of its death at any moment. Before it takes its claim that is all we know.
fn watch(shared: &Arc<Shared>, dispatch: DispatchId, token: u64, pid: u32) {
    let gone = match sys::Handle::open(pid) {
        Ok(handle) => {
            let mut table = shared.table();
            let Some(live) = table.live.get_mut(&dispatch).filter(|live| live.shim == Some(token)) else {
                // It is over already.
                return;
            };
            if handle.fd().is_some_and(|fd| shared.poller.add(fd, token).is_ok()) {
                table.watched.insert(token, Watched::Adopted(dispatch, handle));
            } else {
                // It lives but cannot be watched: the safety scan asks its claim.
                live.shim = None;
            }
            return;
        }
        Err(error) => error.raw_os_error() == Some(Errno::ESRCH as i32),
    };
    let mut table = shared.table();
    if let Some(live) = table.live.get_mut(&dispatch) {
        live.shim = None;
    }
    if gone {
        table.unclear.push((dispatch, "its window closed before it started anything".to_owned()));
        drop(table);
        shared.waker.wake();
    }
}

/// There is no window, as far as tmux says; the claim has the last word.
fn give_up(shared: &Arc<Shared>, dispatch: DispatchId, error: String) {
    match shared.table().live.get_mut(&dispatch) {
        Some(live) => live.shim = None,
        None => return,
    }
    let path = shared.claim(&dispatch);
    match settle::examine(&path, &error) {
        Ok(Finding::Revoked) => {
            shared.tell_end(WorkerReport::StartFailed { dispatch, error });
        }
        // Its server died under it, and it works on.
        Ok(Finding::Alive(_)) if shared.adopt(&dispatch, &path) => {}
        _ => shared.settle_live(dispatch, error),
    }
    shared.waker.wake();
}
