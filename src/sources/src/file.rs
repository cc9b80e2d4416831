//! Reading a file that others rewrite, at any moment and in any way. It is never opened for writing.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use memchr::memrchr;
use nix::fcntl::OFlag;

/// Larger files are not read.
const MAX_LEN: u64 = 4 << 30;
/// How much of a file is read at a time when it is not kept: little enough to stay near the processor.
const PIECE: usize = 256 << 10;
/// How often a file that changes under the reader is read again at once.
const TRIES: usize = 3;

/// What tells one version of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    len: u64,
    modified: (i64, i64),
}

/// What a file holds.
pub(crate) struct Contents {
    pub(crate) text: Vec<u8>,
    pub(crate) stamp: Stamp,
    /// Whether nothing changed while it was read.
    pub(crate) steady: bool,
}

/// Why a file cannot be read.
pub(crate) enum Unread {
    /// There is none.
    Missing,
    /// Something else is in the way; in words that follow the file's name.
    Because(String),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Self { inode: metadata.ino(), len: metadata.len(), modified }
    }

    /// Whether the file was last written that long ago; not if that lies in the future.
    pub(crate) fn is_older_than(&self, age: Duration) -> bool {
        let (seconds, nanos) = self.modified;
        let since_epoch =
            Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanos).unwrap_or(0));
        let modified = SystemTime::UNIX_EPOCH.checked_add(since_epoch);
        modified.and_then(|then| then.elapsed().ok()).is_some_and(|elapsed| elapsed >= age)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = self.modified;
        let modified = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        write!(f, "{}:{}:{modified}", self.inode, self.len)
    }
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A file where a directory should be: the file is not there either.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Because(format!("cannot be read: {error}")),
        }
    }
}

/// The stamp of a file that could be read.
pub(crate) fn look(path: &Path) -> Result<Stamp, Unread> {
    checked(&fs::metadata(path)?)
}

/// The whole file, as of one moment if its writers allow it.
pub(crate) fn read(path: &Path) -> Result<Contents, Unread> {
    let mut contents = read_once(path)?;
    for _ in 1..TRIES {
        if contents.steady {
            break;
        }
        contents = read_once(path)?;
    }
    Ok(contents)
}

fn read_once(path: &Path) -> Result<Contents, Unread> {
    let file = open(path)?;
    let stamp = checked(&file.metadata()?)?;
    let mut text = Vec::new();
    if text.try_reserve_exact(stamp.len as usize + 1).is_err() {
        return Err(Unread::Because("is too large for the memory".to_owned()));
    }
    file.take(MAX_LEN).read_to_end(&mut text)?;
    let steady = text.len() as u64 == stamp.len && look(path).is_ok_and(|after| after == stamp);
    Ok(Contents { text, stamp, steady })
}

/// Reads a file once, piece by piece, so that it is never in memory as a whole. `take` gets each piece, which ends with
/// the end of a line unless it is the last, and the length that the file should have. Says which version it was, and
/// whether nothing changed meanwhile.
pub(crate) fn read_in_pieces(path: &Path, mut take: impl FnMut(&[u8], u64)) -> Result<(Stamp, bool), Unread> {
    let file = open(path)?;
    let stamp = checked(&file.metadata()?)?;
    let mut file = file.take(MAX_LEN);
    let mut buffer = vec![0; PIECE];
    let (mut filled, mut read) = (0, 0);
    loop {
        if filled == buffer.len() {
            // A line that is longer than a piece.
            if buffer.try_reserve_exact(filled).is_err() {
                return Err(Unread::Because("is too large for the memory".to_owned()));
            }
            buffer.resize(2 * filled, 0);
        }
        let more = match file.read(&mut buffer[filled..]) {
            Ok(more) => more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        read += more as u64;
        if more == 0 {
            take(&buffer[..filled], stamp.len);
            break;
        }
        let newline = memrchr(b'\n', &buffer[filled..filled + more]).map(|newline| filled + newline);
        filled += more;
        if let Some(newline) = newline {
            take(&buffer[..=newline], stamp.len);
            buffer.copy_within(newline + 1..filled, 0);
            filled -= newline + 1;
        }
    }
    let steady = read == stamp.len && look(path).is_ok_and(|after| after == stamp);
    Ok((stamp, steady))
}

/// Opens without waiting, in case a pipe has taken the file's place.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)
}

fn checked(metadata: &Metadata) -> Result<Stamp, Unread> {
    if metadata.is_dir() {
        return Err(Unread::Because("is a directory, where a file of beads was expected".to_owned()));
    }
    if !metadata.is_file() {
        return Err(Unread::Because("is not a regular file".to_owned()));
    }
    if metadata.len() > MAX_LEN {
        return Err(Unread::Because("is larger than 4 GiB, too large for a file of beads".to_owned()));
    }
    Ok(Stamp::of(metadata))
}
