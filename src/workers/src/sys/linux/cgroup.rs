//! A control group per shim, where we may make one: everything a worker starts stays in it, whatever it does to its
//! session or environment, so that after the death of its shim all of it can be ended at once, and proved gone.
//!
//! Groups lie below the fork server's own: `ym-<pid>/<n>`. A shim is born into its group (moving a process later would
//! stall the whole machine for a moment). Without permission, or with an old kernel, there are no groups, and the
//! sweep by environment is all.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::Forked;

/// The mark of our groups.
const PREFIX: &str = "ym-";

/// How long an ending fork server waits for idle shims to leave their groups.
const LEAVE: Duration = Duration::from_millis(500);

/// The flag of `clone3`; it does not fit the type that `libc` gives such flags.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Where a fork server makes the groups of its shims.
#[derive(Debug)]
pub(crate) struct Groups {
    home: Option<PathBuf>,
    made: u64,
}

impl Groups {
    /// Looks whether groups can be made here, and removes what dead fork servers left.
    pub(crate) fn new() -> Self {
        let home = own_group().and_then(|own| {
            remove_leftovers(&own);
            let home = own.join(format!("{PREFIX}{}", std::process::id()));
            fs::create_dir(&home).ok()?;
            Some(home)
        });
        Self { home, made: 0 }
    }

    /// Forks; the child lives in a group of its own if that is possible, and knows which.
    pub(crate) fn fork(&mut self) -> io::Result<(Forked, Option<PathBuf>)> {
        if let Some(group) = self.make() {
            if let Ok(forked) = File::open(&group).and_then(|dir| fork_into(&dir)) {
                return Ok((forked, Some(group)));
            }
            // An old kernel, or a rule against it: do without from now on.
            self.clean_up();
            self.home = None;
        }
        Ok((super::super::fork()?, None))
    }

    /// Forks only if the child can live in a group of its own.
    pub(crate) fn fork_apart(&mut self) -> Option<(Forked, PathBuf)> {
        let group = self.make()?;
        let forked = File::open(&group).and_then(|dir| fork_into(&dir));
        if forked.is_err() {
            self.clean_up();
        }
        Some((forked.ok()?, group))
    }

    /// A new group.
    fn make(&mut self) -> Option<PathBuf> {
        let home = self.home.as_ref()?;
        self.made += 1;
        let group = home.join(self.made.to_string());
        fs::create_dir(&group).ok()?;
        Some(group)
    }

    /// Removes the groups of children that have ended.
    pub(crate) fn tidy(&mut self) {
        self.home.iter().for_each(|home| remove_empty(home));
    }

    /// Removes what can be removed; true when nothing is left.
    pub(crate) fn clean_up(&mut self) -> bool {
        let Some(home) = &self.home else { return true };
        remove_empty(home);
        let gone = fs::remove_dir(home).is_ok();
        if gone {
            self.home = None;
        }
        gone
    }

    /// Tidies up at the end: idle shims are leaving at the same time. Groups of busy ones stay for the next fork server
    /// to remove.
    pub(crate) fn leave(mut self) {
        let deadline = Instant::now() + LEAVE;
        while !self.clean_up() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The directory of this process's own group.
fn own_group() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
    let mount = mounts.into_iter().find(|mount| mount.join("cgroup.procs").exists())?;
    Some(mount.join(path))
}

/// Removes groups without members; the kernel keeps the others.
fn remove_empty(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn remove_leftovers(own: &Path) {
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            remove_empty(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Forks into a group. Only for a process with one thread.
fn fork_into(group: &File) -> io::Result<Forked> {
    // SAFETY: all-zero is a valid value of this plain structure of numbers.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = libc::SIGCHLD as u64;
    args.cgroup = group.as_raw_fd() as u64;
    // SAFETY: without CLONE_VM and with no stack given this is a fork; the caller has one thread, so the child may
    // allocate and use locks like its parent.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) } {
        0 => Ok(Forked::Child),
        pid if pid > 0 => Ok(Forked::Parent),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends everything in a dead shim's group and removes it; an error if some survive `patience`. A group that does not
/// exist had no members: it could not have been removed otherwise.
pub(crate) fn end_group(group: &Path, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    let is_ours = group.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    if !is_ours.is_some_and(|name| name.starts_with(PREFIX)) {
        return Ok(());
    }
    loop {
        match fs::remove_dir(group) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => {}
        }
        if fs::write(group.join("cgroup.kill"), "1").is_err() {
            // Kernels before 5.14.
            let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            for pid in members.lines().filter_map(|line| line.parse().ok()) {
                let _ = nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(pid),
                    nix::sys::signal::Signal::SIGKILL,
                );
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
