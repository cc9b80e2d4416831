//! A full disk: commands fail with a clear message, nothing is half-written, work resumes when space returns.

use std::path::{Path, PathBuf};
use std::process::Command;

use yard_tests::town::{Town, is_alive, wait_until};

/// Runs a test where it may mount: as root, or else again in a user namespace of its own.
pub(crate) fn where_mounting_is_allowed(test: &str, body: impl FnOnce()) {
    const INSIDE: &str = "YM_TEST_IN_NAMESPACE";
    if nix::unistd::geteuid().is_root() {
        return body();
    }
    assert!(std::env::var_os(INSIDE).is_none(), "not root inside a user namespace either");
    let this = std::env::current_exe().expect("the test has a path");
    let again = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(this)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare (util-linux) can be run");
    assert!(again.success(), "run tests/run as root, or allow user namespaces");
}

/// A small file system of its own.
pub(crate) struct SmallDisk {
    path: PathBuf,
    /// Removed after it.
    dir: Option<tempfile::TempDir>,
}

impl SmallDisk {
    fn new(size: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("disk");
        std::fs::create_dir(&path).expect("a directory");
        let mut disk = Self::at(&path, &format!("size={size}"));
        disk.dir = Some(dir);
        disk
    }

    /// In place of this directory, with these options of tmpfs.
    pub(crate) fn at(path: &Path, options: &str) -> Self {
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).status();
        assert!(mount.is_ok_and(|s| s.success()), "a small tmpfs can be mounted");
        Self { path: path.to_owned(), dir: None }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Fills the disk to the last byte.
    pub(crate) fn fill(&self) -> PathBuf {
        let ballast = self.path.join("ballast");
        let mut file = std::fs::File::create(&ballast).expect("a file");
        let mut block = vec![0_u8; 64 * 1024];
        while !block.is_empty() {
            if std::io::Write::write_all(&mut file, &block).is_err() {
                block.truncate(block.len() / 2);
            }
        }
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// Fills the disk completely: also the space that a failed attempt gave back.
fn add_until_refused(town: &Town) -> String {
    for _ in 0..2000 {
        let ran = town.run(["--json", "bead", "add", &"long title ".repeat(300), "--", "true"]);
        if ran.code != 0 {
            return ran.stdout;
        }
    }
    panic!("the disk never filled up");
}

fn bead_count(town: &Town) -> usize {
    town.json(["bead", "list"])["beads"].as_array().expect("a list").len()
}

fn survives(with_daemon: bool) {
    let disk = SmallDisk::new("2m");
    let mut town = Town::at(&disk.path.join("yard"));
    town.set("scheduler.max_polecats", "1");
    if with_daemon {
        town.start_daemon();
    }
    let ballast: &Path = &disk.fill();
    let error = add_until_refused(&town);
    assert!(error.contains("space"), "{error}");
    let before = bead_count(&town);
    let again = town.run(["bead", "add", &"x".repeat(3000), "--", "true"]);
    assert_eq!(again.code, 1, "still full");
    assert_eq!(bead_count(&town), before, "nothing half-written");
    std::fs::remove_file(ballast).expect("it is there");
    wait_until("space to be noticed", || {
        town.run(["bead", "add", "after", "--id", "y-after", "--", "true"]).code == 0
    });
    town.run(["sling", "y-after"]).ok();
    if with_daemon {
        town.await_state("y-after", "closed");
    } else {
        town.run(["scheduler", "run"]).ok();
        town.run(["wait", "y-after"]).ok();
    }
    assert_eq!(bead_count(&town), before, "the one that was added is closed");
}

#[test]
fn commands_survive_a_full_disk_without_a_daemon() {
    where_mounting_is_allowed("disk_full::commands_survive_a_full_disk_without_a_daemon", || survives(false));
}

/// Whether a shim has this claim, which is so until it has noted the end of its worker.
fn is_held(claim: &Path) -> bool {
    let opened = std::fs::File::open(claim);
    opened.is_ok_and(|claim| matches!(claim.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Nobody waits for ever, and nobody is told that it is over.
fn waits_end() {
    let disk = SmallDisk::new("6m");
    let mut town = Town::at(&disk.path.join("yard"));
    town.set("scheduler.max_polecats", "2");
    town.start_daemon();
    town.run(["add", "--id", "y-done", "--", "true"]).ok();
    town.await_state("y-done", "closed");
    town.run(["add", "--id", "y-long", "--", "sleep", "1000"]).ok();
    town.await_state("y-long", "running");
    let ballast = disk.fill();
    add_until_refused(&town);
    assert_eq!(town.run(["wait", "y-done", "--timeout", "20s"]).code, 0, "it has ended, and that is on disk");
    for what in [["y-long"].as_slice(), &["--all"]] {
        let waited = town.run(["--json", "wait", "--timeout", "1s"].iter().chain(what));
        assert_eq!(
            (waited.code, &waited.json()["timed_out"]),
            (1, &true.into()),
            "{what:?}: {}",
            waited.stdout
        );
    }
    let worker = town.json(["status"])["running"][0]["pid"].as_u64().expect("a pid") as u32;
    let stopped = town.run(["stop", "--timeout", "1s"]).ok();
    // Whether the last bytes of the disk were enough to record the end of it is another matter.
    let goes_on = is_held(&town.root().join(".yardmaster/run/y-long@1.claim"));
    assert_eq!(stopped.stdout.contains("1 worker goes on"), goes_on, "{}", stopped.stdout);
    assert!(goes_on || !is_alive(worker), "{}", stopped.stdout);
    town.kill_daemon();
    std::fs::remove_file(ballast).expect("it is there");
    town.start_daemon();
    town.await_state("y-long", "running");
    town.run(["kill", "y-long"]).ok();
    town.await_state("y-long", "cancelled");
}

#[test]
fn on_a_full_disk_nobody_waits_for_ever_and_stopping_says_what_goes_on() {
    let test = "disk_full::on_a_full_disk_nobody_waits_for_ever_and_stopping_says_what_goes_on";
    where_mounting_is_allowed(test, waits_end);
}

#[test]
fn the_daemon_survives_a_full_disk() {
    where_mounting_is_allowed("disk_full::the_daemon_survives_a_full_disk", || survives(true));
}
