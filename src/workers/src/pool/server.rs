//! The pool's side of the fork server: started when first needed, replaced when it died.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::fence;
use crate::sys;
use crate::trouble::explain;

/// Our own program, even if its file has been replaced since it was started.
const RUNNING: &str = "/proc/self/exe";

/// How to start the fork server: a program that calls [`crate::forkserver_main`] when it gets these arguments.
#[derive(Debug, Clone)]
pub struct Helper {
    /// The program.
    pub exe: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Default for Helper {
    /// This very program with `__forkserver`, even if its file has been replaced since it was started.
    fn default() -> Self {
        let running = PathBuf::from(RUNNING);
        let exe = if running.exists() {
            running
        } else {
            std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ym"))
        };
        Self { exe, args: vec!["__forkserver".to_owned()] }
    }
}

impl Helper {
    /// The program's file, for somebody on another machine or at a later time.
    pub(super) fn lasting_exe(&self) -> io::Result<PathBuf> {
        let file = if self.exe == Path::new(RUNNING) { std::env::current_exe()? } else { self.exe.clone() };
        let file = std::path::absolute(file)?;
        if file.exists() {
            return Ok(file);
        }
        let why =
            format!("{} is gone: start the daemon anew, so that nodes can run what it runs", file.display());
        Err(io::Error::new(io::ErrorKind::NotFound, why))
    }

    /// The program, for somebody who is not our child.
    pub(super) fn reachable_exe(&self) -> io::Result<PathBuf> {
        if self.exe != Path::new(RUNNING) {
            return std::path::absolute(&self.exe);
        }
        // A command that ends right after a start leaves only its file behind; a replaced file leaves only the process.
        let file = std::env::current_exe()?;
        let process = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
        Ok(if file.exists() { file } else { process })
    }
}

/// A running fork server. Dropping it makes it leave; its shims are not touched.
#[derive(Debug)]
pub(super) struct ForkServer {
    control: Option<UnixStream>,
    child: Option<Child>,
}

impl ForkServer {
    pub(super) fn start(helper: &Helper, leader: Option<&str>) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        // No `pre_exec`: this way the standard library uses posix_spawn, which does not copy a large daemon.
        let mut command = Command::new(&helper.exe);
        match leader {
            Some(leader) => command.env(fence::VARIABLE, leader),
            None => command.env_remove(fence::VARIABLE),
        };
        let child = command
            .arg0("ym")
            .args(&helper.args)
            // A daemon may have been started from inside a dispatch; its workers are not part of that one.
            .env_remove("YM_DISPATCH")
            // Whoever started it may hold the token of a town elsewhere, which is no business of what runs here.
            .env_remove("YM_TOKEN")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| explain("the fork server cannot be started", e))?;
        Ok(Self { control: Some(control), child: Some(child) })
    }

    /// Asks for a shim at the other end of `connection`. Does not wait for it.
    pub(super) fn request(&self, connection: BorrowedFd<'_>) -> io::Result<()> {
        let control = self.control.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        sys::send_descriptor(&control.as_fd(), connection)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        self.control = None;
        if let Some(mut child) = self.child.take() {
            // It leaves by itself; somebody must take it away, and nobody should wait for it here.
            let waiting = std::thread::Builder::new().name("ym-reap".to_owned());
            let _ = waiting.spawn(move || child.wait());
        }
    }
}
