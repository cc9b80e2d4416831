//! How often a disk can commit: one block overwritten and synced, again and again.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Fallible;

/// What a database's smallest commit writes.
const BLOCK: [u8; 4096] = [b'y'; 4096];

/// Commits a second, over so many seconds.
pub(crate) fn rate(path: &Path, seconds: f64) -> Fallible<f64> {
    let file = File::create(path)?;
    file.write_all_at(&BLOCK, 0)?;
    file.sync_all()?;
    let (began, span) = (Instant::now(), Duration::from_secs_f64(seconds));
    let mut commits = 0_u32;
    while began.elapsed() < span {
        file.write_all_at(&BLOCK, 0)?;
        file.sync_data()?;
        commits += 1;
    }
    let rate = f64::from(commits) / began.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(rate)
}
