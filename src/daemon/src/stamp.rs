//! Whether a file changed since it was last read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells one version of a file from another; absent files have a stamp too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp(Option<(u64, u64, i64, i64)>);

impl FileStamp {
    /// The stamp of a file as it is now.
    pub(crate) fn of(path: &Path) -> Self {
        let stamp = |m: std::fs::Metadata| (m.ino(), m.len(), m.mtime(), m.mtime_nsec());
        Self(std::fs::metadata(path).ok().map(stamp))
    }
}
