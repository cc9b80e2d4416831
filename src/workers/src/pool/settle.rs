//! What a claim says about a dispatch, and making that final.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use yard_engine::DispatchId;

use crate::claim::{self, Seen};
use crate::record::{ExitRecord, Line, Story};
use crate::report::WorkerReport;
use crate::sweep::sweep;
use crate::sys::now;

/// The state of a dispatch, as proved by its claim.
#[derive(Debug)]
pub(super) enum Finding {
    /// A shim holds the lock.
    Alive(Story),
    /// It ran and ended.
    Ended(ExitRecord),
    /// Its first program could not be run.
    StartFailed(String),
    /// Its shim died; its processes must be swept before this may be said aloud.
    Died(Story),
    /// It is revoked.
    Revoked,
    /// There is no claim: it was forgotten, or never made.
    Absent,
}

/// One look at a time: it takes the lock for a moment, which another of our threads must not mistake for a shim's.
static LOOKING: Mutex<()> = Mutex::new(());

/// Whether a shim holds the claim now.
pub(super) fn is_held(path: &Path) -> io::Result<bool> {
    let _one = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(matches!(claim::inspect(path)?, Seen::Locked(_)))
}

/// Looks at a claim. One that nobody took is revoked on the spot, so that the answer stays true.
pub(super) fn examine(path: &Path, why: &str) -> io::Result<Finding> {
    let _one = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(match claim::inspect(path)? {
        Seen::Absent => Finding::Absent,
        Seen::Locked(story) => Finding::Alive(story),
        Seen::Free(held, story) => {
            if let Some(exit) = story.exit {
                Finding::Ended(exit)
            } else if let Some(error) = story.failed {
                Finding::StartFailed(error)
            } else if story.revoked {
                Finding::Revoked
            } else if story.shim.is_some() {
                Finding::Died(story)
            } else {
                held.revoke(path, why)?;
                Finding::Revoked
            }
        }
    })
}

/// Creates a claim that is revoked from the beginning.
pub(super) fn create_revoked(path: &Path, why: &str) -> io::Result<()> {
    let file = claim::create(path)?;
    let mut text = Vec::new();
    Line::Revoked { why: why.to_owned(), at: now() }.encode(&mut text);
    if io::Write::write_all(&mut &file, &text).is_err() {
        // No room for the line: without a file no shim can start either.
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// How a dead shim is described, with what was asked of it last.
pub(super) fn obituary(story: &Story) -> String {
    match (&story.stop, &story.running) {
        (Some((_, reason)), _) => format!("its shim died while it was being stopped ({reason})"),
        (None, Some((pid, _))) => format!("its shim died while process {pid} ran"),
        (None, None) => "its shim died before its program ran".to_owned(),
    }
}

/// Follows a dispatch whose shim is gone until it can be reported. Takes as long as it takes: for its own thread.
pub(super) fn bury(dispatch: DispatchId, path: &Path, why: &str, spare: &[u32]) -> Option<WorkerReport> {
    let mut wait = Duration::from_millis(1);
    loop {
        match examine(path, why) {
            Ok(Finding::Ended(exit)) => return Some(WorkerReport::Ended { dispatch, exit }),
            Ok(Finding::StartFailed(error)) => {
                return Some(WorkerReport::StartFailed { dispatch, error });
            }
            Ok(Finding::Revoked) => {
                return Some(WorkerReport::NeverRan { dispatch, why: why.to_owned() });
            }
            Ok(Finding::Absent) => return None,
            Ok(Finding::Died(story)) => {
                if sweep(&dispatch, &story, spare, Duration::from_secs(10)).is_ok() {
                    return Some(WorkerReport::Lost { dispatch, why: obituary(&story) });
                }
            }
            // A dying process closes its connection a moment before its lock.
            Ok(Finding::Alive(_)) | Err(_) => {}
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(Duration::from_secs(1));
    }
}
