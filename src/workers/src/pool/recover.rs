//! After a daemon's start, and in every safety scan: what became of a dispatch.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use yard_engine::DispatchId;

use super::LocalPool;
use super::attend::Shared;
use super::settle::{self, Finding};
use super::table::{Live, Watched};
use crate::claim;
use crate::report::Recovered;
use crate::sweep::sweep;
use crate::sys;

/// How long one call of `recover` may take for what a dead shim left behind.
const SWEEP_PATIENCE: Duration = Duration::from_secs(10);
/// How long a lock may outlive its shim: a child that has not yet become its program shares it for a moment.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

impl LocalPool {
    /// Finds out what became of a dispatch that the journal calls live, after a daemon's start. Sweeps what a dead
    /// shim left behind; an error means that this is not finished and should be asked again.
    pub fn recover(&mut self, dispatch: &DispatchId) -> io::Result<Recovered> {
        let table = self.shared.table();
        match table.live.get(dispatch) {
            // Its order may still be on the way, so the claim must be left alone.
            Some(Live { shim: Some(_), running }) => {
                return Ok(Recovered::Adopted { running: *running });
            }
            // Its remains are being ended; a report follows.
            Some(Live { shim: None, running }) if table.burying.contains(dispatch) => {
                return Ok(Recovered::Adopted { running: *running });
            }
            Some(Live { shim: None, running }) if table.jobs.contains_key(dispatch) => {
                return Ok(Recovered::Adopted { running: *running });
            }
            Some(Live { shim: None, .. }) | None => {}
        }
        drop(table);
        let path = self.shared.claim(dispatch);
        if claim::is_of_cluster(&path) {
            return self.recover_job(dispatch, &path);
        }
        let begun = Instant::now();
        loop {
            let found = self.look(dispatch, &path)?;
            let over = !matches!(found, Recovered::Adopted { .. });
            if over {
                self.shared.close_books(dispatch);
            }
            if over || self.shared.adopt(dispatch, &path) || begun.elapsed() > LOCK_PATIENCE {
                return Ok(found);
            }
            // It ended between the two looks.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// As `recover`, at any time: for the safety scan.
    pub fn probe(&mut self, dispatch: &DispatchId) -> io::Result<Recovered> {
        self.recover(dispatch)
    }

    pub(super) fn look(&self, dispatch: &DispatchId, path: &Path) -> io::Result<Recovered> {
        Ok(match settle::examine(path, "no shim had taken it when the daemon looked")? {
            Finding::Alive(story) => {
                // In the books before it is watched, so that no news of its end is thrown away.
                let live = Live { shim: None, running: story.running };
                self.shared.table().live.insert(dispatch.clone(), live);
                Recovered::Adopted { running: story.running }
            }
            Finding::Ended(exit) => Recovered::Ended(exit),
            Finding::StartFailed(error) => Recovered::StartFailed(error),
            Finding::Died(story) => {
                let spare = self.shared.table().spared();
                sweep(dispatch, &story, &spare, SWEEP_PATIENCE)?;
                Recovered::Lost(settle::obituary(&story))
            }
            Finding::Revoked => Recovered::NeverRan,
            Finding::Absent => {
                settle::create_revoked(path, "it had no claim when the daemon looked")?;
                Recovered::NeverRan
            }
        })
    }
}

impl Shared {
    /// Watches the shim that holds a claim, to learn of its death. `false`: it is gone already.
    pub(super) fn adopt(&self, dispatch: &DispatchId, path: &Path) -> bool {
        let pid = claim::peek(path).ok().flatten().and_then(|story| story.shim_here());
        // It holds the lock but has not said who it is: it will be heard on `reports.sock`.
        let Some(pid) = pid else { return true };
        let handle = match sys::Handle::open(pid) {
            Ok(handle) => handle,
            // Out of descriptors or the like: it lives, but cannot be watched.
            Err(e) => return e.raw_os_error() != Some(Errno::ESRCH as i32),
        };
        // The number is its own only if the lock is still held now.
        if !settle::is_held(path).unwrap_or(true) {
            return false;
        }
        let mut table = self.table();
        let known = table.watched.values().any(|w| matches!(w, Watched::Adopted(d, _) if d == dispatch));
        let token = table.token();
        if !known && handle.fd().is_some_and(|fd| self.poller.add(fd, token).is_ok()) {
            table.watched.insert(token, Watched::Adopted(dispatch.clone(), handle));
        }
        true
    }
}
