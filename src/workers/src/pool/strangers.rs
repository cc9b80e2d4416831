//! Claims of which the journal knows nothing. A journal that was repaired, or replaced by an older copy, has forgotten
//! starts; what they started may still run, and must have ended before their beads run again.

use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use yard_engine::DispatchId;

use super::settle::{self, Finding};
use super::{LocalPool, attend, cluster, tidy};
use crate::claim::{self, Seen};
use crate::sweep::sweep;

/// How long a shim that was killed, and what it left behind, may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

impl LocalPool {
    /// The dispatches that have a claim here and are not known.
    pub fn strangers(&self, is_known: impl Fn(&DispatchId) -> bool) -> Vec<DispatchId> {
        let claims = tidy::claims(&self.shared.run_dir);
        let named = claims.filter_map(|path| DispatchId::parse(path.file_stem()?.to_str()?).ok());
        named.filter(|dispatch| !is_known(dispatch)).collect()
    }

    /// Ends whatever runs under a claim, and sees to it that nobody starts it any more. The claim stays, so that its number
    /// is not used for something else. Answers whether anything ran.
    pub fn evict(&mut self, dispatch: &DispatchId) -> io::Result<bool> {
        const WHY: &str = "the journal does not know of it";
        let path = self.shared.claim(dispatch);
        let until = Instant::now() + PATIENCE;
        let mut is_told = !claim::is_of_cluster(&path);
        loop {
            match settle::examine(&path, WHY)? {
                Finding::Alive(_) if Instant::now() > until => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        format!("{dispatch} cannot be ended"),
                    ));
                }
                Finding::Alive(_) => {
                    attend::signal_shim(&path, Signal::SIGKILL)?;
                    if !std::mem::replace(&mut is_told, true) {
                        cluster::kill_job(&self.shared.run_dir, dispatch);
                    }
                }
                Finding::Died(story) => {
                    let spare = self.shared.table().spared();
                    sweep(dispatch, &story, &spare, PATIENCE)?;
                    if let Seen::Free(held, _) = claim::inspect(&path)? {
                        held.revoke(&path, WHY)?;
                    }
                    return Ok(true);
                }
                Finding::Ended(_) | Finding::StartFailed(_) | Finding::Revoked | Finding::Absent => {
                    return Ok(false);
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
