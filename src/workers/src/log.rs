//! The output of a dispatch: one file, created at its first byte, of which at most `cap` bytes are kept.
//!
//! When the file holds half of the cap it becomes `<log>.1`, replacing the one before, and a new one begins: so the
//! newest half is always there. Output that cannot be written (disk full) is dropped; the worker never waits for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

/// So much of the last output is kept at hand.
const TAIL: usize = 2048;

/// A size-capped log file.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    half: u64,
    file: Option<(File, u64)>,
    /// The end of what was written last.
    tail: Vec<u8>,
}

impl Log {
    /// A log that does not exist until something is written.
    pub(crate) fn new(path: PathBuf, cap: u64) -> Self {
        Self { path, half: (cap / 2).max(1), file: None, tail: Vec::new() }
    }

    /// Whether anything has been written.
    pub(crate) fn used(&self) -> bool {
        self.file.is_some()
    }

    /// The last line that says something, if it is not too long ago.
    pub(crate) fn last_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.tail);
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(ToOwned::to_owned)
    }

    /// Writes, turning the file over as often as needed.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.tail.clear();
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        // Of a piece larger than both halves only the end would remain.
        let keep = usize::try_from(self.half.saturating_mul(2)).unwrap_or(usize::MAX);
        bytes = &bytes[bytes.len().saturating_sub(keep)..];
        while !bytes.is_empty() {
            let (mut file, size) = match self.file.take() {
                Some((_, size)) if size >= self.half => {
                    std::fs::rename(&self.path, self.older())?;
                    self.open()?
                }
                Some(open) => open,
                None => self.open()?,
            };
            let room = usize::try_from(self.half.saturating_sub(size)).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            let result = file.write_all(now);
            self.file = Some((file, size + now.len() as u64));
            result?;
            bytes = later;
        }
        Ok(())
    }

    fn older(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        name.into()
    }

    fn open(&self) -> io::Result<(File, u64)> {
        let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path);
        let file = match open() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let mut private = std::fs::DirBuilder::new();
                private.recursive(true).mode(0o700);
                self.path.parent().map_or(Ok(()), |directory| private.create(directory))?;
                open()?
            }
            other => other?,
        };
        let size = file.metadata()?.len();
        Ok((file, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_exists_from_its_first_byte() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("deep/er/x.log");
        let mut log = Log::new(path.clone(), 100);
        log.write(b"").expect("written");
        assert!(!path.exists());
        log.write(b"x").expect("written");
        assert_eq!(std::fs::read(&path).expect("readable"), b"x");
    }

    #[test]
    fn the_newest_half_survives() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("x.log");
        let mut log = Log::new(path.clone(), 8);
        for piece in ["ab", "cdefg", "h", "ijk", "lmnopqrstuvwxyz0123456789", "!"] {
            log.write(piece.as_bytes()).expect("written");
            let size = std::fs::metadata(&path).expect("there").len();
            assert!(size <= 4, "{size}");
        }
        let old = std::fs::read_to_string(dir.path().join("x.log.1")).expect("readable");
        let new = std::fs::read_to_string(&path).expect("readable");
        assert!((old + &new).ends_with("6789!"), "{new}");
    }
}
