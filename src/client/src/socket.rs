//! Where a town's socket lies. A Unix socket address holds about a hundred bytes; a town may lie deeper than that,
//! so a long path is reached through an open descriptor of its directory.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Longest path that is safe as a socket address everywhere.
const SAFE_LENGTH: usize = 100;

/// A path that can be bound or connected to for as long as this value lives.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    _directory: Option<File>,
}

impl SocketPath {
    /// The socket of this name in a directory.
    pub fn new(directory: &Path, name: &str) -> io::Result<Self> {
        let plain = directory.join(name);
        if plain.as_os_str().len() <= SAFE_LENGTH {
            return Ok(Self { path: plain, _directory: None });
        }
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let directory = File::open(directory)?;
            let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()));
            Ok(Self { path, _directory: Some(directory) })
        }
        #[cfg(not(target_os = "linux"))]
        Err(io::Error::other(format!(
            "the path of the town is too long for a socket ({}): move the town to a shorter path",
            plain.display()
        )))
    }

    /// The path to bind or connect to.
    pub fn as_path(&self) -> &Path {
        &self.path
    }
}
