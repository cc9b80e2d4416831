//! Whose orders count, where one leader may take over from another that only stands still.
//!
//! A leader that was replaced may go on in the middle of a start that it had made durable, long after that start was
//! revoked and its claim cleared away. So a leader of such a town leaves its name in the run folder before it looks at any
//! claim, and a shim looks at it after it has locked a claim: either the new leader finds the lock, or the shim the name.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// By which variable shims know who had them made.
pub(crate) const VARIABLE: &str = "YM_LEADER";

/// The file in the run folder.
const FILE: &str = "leader";

/// From now on only the orders of this leader are carried out.
pub(crate) fn raise(run_dir: &Path, leader: &str) -> io::Result<()> {
    let beside = run_dir.join(format!("{FILE}.{}", std::process::id()));
    let mut open = OpenOptions::new();
    let mut file = open.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(leader.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, run_dir.join(FILE))
}

/// Whether the leader that had a shim made still is the one. A shim of a town that only has one asks nobody.
pub(crate) fn is_down_for(run_dir: &Path, leader: Option<&[u8]>) -> io::Result<bool> {
    let Some(leader) = leader else { return Ok(true) };
    match fs::read(run_dir.join(FILE)) {
        Ok(present) => Ok(present == leader),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_leaders_orders_count() {
        let run = tempfile::tempdir().expect("a directory");
        let counts = |leader: &str| is_down_for(run.path(), Some(leader.as_bytes())).expect("readable");
        assert!(counts("first"), "nobody has raised it yet");
        raise(run.path(), "first").expect("written");
        assert!(counts("first"));
        raise(run.path(), "second").expect("written");
        assert!(!counts("first") && counts("second"));
        assert!(is_down_for(run.path(), None).expect("readable"), "not of such a town");
    }
}
