//! A task that notes when its first instruction ran and when its last.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::Fallible;

/// Nanoseconds since 1970; nothing before.
pub(crate) fn now() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// Sleeps, then appends `LABEL began ended` in one write.
pub(crate) fn stamp(log: &Path, label: &str, began: u128, micros: u64) -> Fallible<()> {
    let mut log = OpenOptions::new().append(true).create(true).open(log)?;
    if micros > 0 {
        thread::sleep(Duration::from_micros(micros));
    }
    let line = format!("{label} {began} {}\n", now());
    Ok(log.write_all(line.as_bytes())?)
}
