//! After a shim's death: ending what it left behind.
//!
//! The kernel killed the payload with its shim; what the payload started lives on. It is found in the shim's control
//! group, where there is one, and by its environment: every process of a dispatch inherits `YM_DISPATCH` and
//! `YM_TOWN`. Without control groups a process that clears its environment escapes.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use yard_engine::DispatchId;

use crate::record::Story;
use crate::sys;

/// How many looks in a row must find nothing: a process that forks while one looks can be missed once.
const CLEAN_LOOKS: u32 = 2;

/// Kills every process of the dispatch until none is left; an error if some survive `patience`.
pub(crate) fn sweep(
    dispatch: &DispatchId,
    story: &Story,
    spare: &[u32],
    patience: Duration,
) -> io::Result<()> {
    if let Some(group) = &story.group {
        sys::end_group(Path::new(group), patience)?;
    }
    let mut marks = vec![format!("YM_DISPATCH={dispatch}")];
    marks.extend(story.town.as_ref().map(|town| format!("YM_TOWN={town}")));
    let deadline = Instant::now() + patience;
    let mut clean = 0;
    while clean < CLEAN_LOOKS {
        let found = sys::end_marked(&marks, spare)?;
        clean = if found == 0 { clean + 1 } else { 0 };
        if found > 0 && Instant::now() >= deadline {
            let text = format!("{found} processes of {dispatch} cannot be ended");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        // A process needs a moment to die, and one that is just replacing its program shows no environment.
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
