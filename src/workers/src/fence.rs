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
    write_durably(&beside, leader.as_bytes())?;
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

/// Makes an order of an earlier leader one of this leader, who follows it from now on. Variables lie in that file as a
/// process has them.
pub(crate) fn take_over_order(environment: &Path, leader: &str) -> io::Result<()> {
    let block = match fs::read(environment) {
        Ok(block) => block,
        // Nothing was handed over yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let name = format!("{VARIABLE}=").into_bytes();
    let mut own: Vec<u8> = Vec::new();
    for entry in block.split_inclusive(|byte| *byte == 0).filter(|entry| !entry.starts_with(&name)) {
        own.extend_from_slice(entry);
    }
    own.extend_from_slice(&name);
    own.extend_from_slice(leader.as_bytes());
    own.push(0);
    let beside = environment.with_extension(format!("env.{}", std::process::id()));
    write_durably(&beside, &own)?;
    fs::rename(&beside, environment)
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut open = OpenOptions::new();
    let mut file = open.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_waits_becomes_the_next_leaders() {
        let run = tempfile::tempdir().expect("a directory");
        let order = run.path().join("y-a@1.env");
        take_over_order(&order, "second").expect("there is none yet");
        assert!(!order.exists());
        fs::write(&order, b"A=1\0YM_LEADER=first\0B=\0").expect("written");
        take_over_order(&order, "second").expect("taken over");
        assert_eq!(fs::read(&order).expect("readable"), b"A=1\0B=\0YM_LEADER=second\0");
        assert_eq!(fs::read_dir(run.path()).expect("readable").count(), 1, "nothing is left beside it");
    }

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
