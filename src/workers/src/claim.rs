//! The claim file of a dispatch: the one fence between an order and its start.
//!
//! The daemon creates it, a shim opens it (never creates it), locks it and must find it empty; then it may start.
//! Whoever gets the lock of a claim that nobody claimed may revoke it, and after that no shim ever starts it. A
//! claim that has been removed is revoked as well: a shim that opened it before checks that it still has a name.
//! The lock is held by a close-on-exec descriptor of the shim alone, so it is free exactly when the shim is gone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use yard_engine::DispatchId;

use crate::record::{Line, Story};
use crate::sys::now;

/// Where a dispatch's claim lies.
pub(crate) fn path(run_dir: &Path, dispatch: &DispatchId) -> PathBuf {
    run_dir.join(format!("{dispatch}.claim"))
}

/// The mark beside a claim whose shim is made by a cluster: it may be anywhere, and take its time.
pub(crate) fn cluster_mark(path: &Path) -> PathBuf {
    path.with_extension("slurm")
}

/// Whether the shim of a claim is made by a cluster.
pub(crate) fn is_of_cluster(path: &Path) -> bool {
    cluster_mark(path).exists()
}

/// Sees to it that a claim outlives a power cut of this machine: its shim may be on another one.
pub(crate) fn make_durable(path: &Path) -> io::Result<()> {
    open(path)?.sync_all()?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Creates an empty claim. The dispatch may start from here on.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).open(path)
}

/// Why a shim may not start a dispatch.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the claim does not exist")]
    Absent,
    #[error("another shim holds the claim")]
    Held,
    #[error("the claim was used, stopped or revoked before")]
    Used,
    #[error("the claim cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

/// A claim whose lock we hold, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    file: File,
    /// The last write may have left half a line.
    torn: bool,
    /// Other machines read it too, now or after a power cut of this one.
    shared: bool,
}

impl Held {
    /// Appends whole lines in one write.
    pub(crate) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut text = lines;
        let healed;
        if self.torn {
            healed = [b"\n", lines].concat();
            text = &healed;
        }
        let result = self.file.write_all(text);
        self.torn = result.is_err();
        if self.shared {
            self.file.sync_data()?;
        }
        result
    }

    /// From now on what is written is on disk, and for others to see, before it counts.
    pub(crate) fn share(&mut self) {
        self.shared = true;
    }

    /// Everything the file says now.
    pub(crate) fn story(&mut self) -> io::Result<Story> {
        read(&mut self.file)
    }

    /// The daemon writes into claims as well, and its line may be torn: begin the next one on a fresh line.
    pub(crate) fn heal(&mut self) {
        self.torn = true;
    }

    /// Makes sure that nobody starts this dispatch any more: by a line or, on a full disk, by removing the file.
    pub(crate) fn revoke(mut self, path: &Path, why: &str) -> io::Result<()> {
        self.heal();
        self.shared |= is_of_cluster(path);
        let mut line = Vec::new();
        Line::Revoked { why: why.to_owned(), at: now() }.encode(&mut line);
        self.append(&line).or_else(|_| std::fs::remove_file(path))
    }
}

fn read(file: &mut File) -> io::Result<Story> {
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok(Story::read(&text))
}

/// A shim's way to a claim: it holds the lock and nothing has been written, or it may not start.
pub(crate) fn take(path: &Path) -> Result<Held, Refusal> {
    let file = match open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(Refusal::Absent),
        Err(e) => return Err(e.into()),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Refusal::Held),
        Err(TryLockError::Error(e)) => return Err(e.into()),
    }
    let meta = file.metadata()?;
    if meta.nlink() == 0 || meta.len() > 0 {
        return Err(Refusal::Used);
    }
    Ok(Held { file, torn: false, shared: false })
}

/// A claim as the daemon finds it.
#[derive(Debug)]
pub(crate) enum Seen {
    /// There is none.
    Absent,
    /// A shim holds the lock.
    Locked(Story),
    /// Nobody held the lock; we do now.
    Free(Held, Story),
}

/// Looks at a claim, taking its lock if it is free.
pub(crate) fn inspect(path: &Path) -> io::Result<Seen> {
    let mut file = match open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Seen::Absent),
        Err(e) => return Err(e),
    };
    match file.try_lock() {
        Ok(()) => {
            let story = read(&mut file)?;
            Ok(Seen::Free(Held { file, torn: false, shared: false }, story))
        }
        Err(TryLockError::WouldBlock) => Ok(Seen::Locked(read(&mut file)?)),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// What the claim says, without touching its lock. `None` if there is no claim.
pub(crate) fn peek(path: &Path) -> io::Result<Option<Story>> {
    match open(path) {
        Ok(mut file) => read(&mut file).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Appends a line without holding the lock: how the daemon asks a shim to stop. On an unclaimed file it also keeps
/// any shim from starting, because the claim is no longer empty.
pub(crate) fn leave_word(path: &Path, line: &Line) -> io::Result<()> {
    let mut text = b"\n".to_vec();
    line.encode(&mut text);
    let mut file = open(path)?;
    file.write_all(&text)?;
    if is_of_cluster(path) { file.sync_data() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("gt-a@1.claim");
        (dir, path)
    }

    #[test]
    fn a_shim_never_creates_a_claim() {
        let (_dir, path) = place();
        assert!(matches!(take(&path), Err(Refusal::Absent)));
        assert!(!path.exists());
    }

    #[test]
    fn only_one_shim_gets_a_claim() {
        let (_dir, path) = place();
        create(&path).expect("created");
        let held = take(&path).expect("taken");
        assert!(matches!(take(&path), Err(Refusal::Held)));
        assert!(matches!(inspect(&path), Ok(Seen::Locked(_))));
        drop(held);
    }

    #[test]
    fn a_revoked_claim_is_never_taken() {
        let (_dir, path) = place();
        create(&path).expect("created");
        let Ok(Seen::Free(held, story)) = inspect(&path) else { panic!("the claim is free") };
        assert_eq!(story, Story::default());
        held.revoke(&path, "test").expect("revoked");
        assert!(matches!(take(&path), Err(Refusal::Used)));
    }

    #[test]
    fn a_removed_claim_is_never_taken_by_a_shim_that_had_opened_it() {
        let (_dir, path) = place();
        create(&path).expect("created");
        let other = path.with_extension("other");
        std::fs::hard_link(&path, &other).expect("linked");
        std::fs::remove_file(&path).expect("removed");
        assert!(matches!(take(&path), Err(Refusal::Absent)));
        assert!(take(&other).is_ok());
    }

    #[test]
    fn a_stop_request_keeps_an_unclaimed_dispatch_from_starting() {
        let (_dir, path) = place();
        create(&path).expect("created");
        let stop = Line::Stop { grace_ms: yard_engine::Millis(5), reason: "x".into(), at: now() };
        leave_word(&path, &stop).expect("written");
        assert!(matches!(take(&path), Err(Refusal::Used)));
        let story = peek(&path).expect("readable").expect("there");
        assert_eq!(story.stop, Some((yard_engine::Millis(5), "x".into())));
    }

    #[test]
    fn a_line_after_a_failed_write_stands_on_its_own() {
        let (_dir, path) = place();
        create(&path).expect("created").write_all(b"012345 half a li").expect("written");
        let Ok(Seen::Free(mut held, _)) = inspect(&path) else { panic!("the claim is free") };
        held.heal();
        let mut line = Vec::new();
        Line::Failed { error: "e".into(), at: now() }.encode(&mut line);
        held.append(&line).expect("appended");
        assert_eq!(held.story().expect("readable").failed.as_deref(), Some("e"));
    }
}
