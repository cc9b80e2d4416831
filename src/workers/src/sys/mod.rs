//! The operating system, and the only `unsafe` code of this crate.
//!
//! `linux` has what makes the promises strong: vfork-style spawning, parent-death signals, a subreaper, process
//! descriptors, `/proc`. `portable` has the same functions with what every Unix offers, so that other systems work
//! with weaker promises: processes that leave their process group are not found there.

mod terminal;
mod unix;

#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod linux;
#[cfg(not(all(target_os = "linux", not(feature = "portable-sys"))))]
mod portable;

#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(feature = "portable-sys"))))]
pub(crate) use portable::*;
pub(crate) use terminal::*;
pub(crate) use unix::*;

use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;

use nix::errno::Errno;

/// A program about to be run. Everything is prepared, so that the new process only makes system calls.
pub(crate) struct Launch<'a> {
    /// Paths to try in order: one, or the program's name in each directory of PATH.
    pub candidates: &'a [CString],
    pub argv: &'a [CString],
    pub env: &'a [CString],
    pub cwd: &'a CStr,
    pub stdin: BorrowedFd<'a>,
    /// Both standard output and standard error.
    pub output: BorrowedFd<'a>,
    /// What becomes its controlling terminal, in a session of its own.
    pub terminal: Option<BorrowedFd<'a>>,
}

/// Who hears the signals that a terminal or a batch system sends to a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surroundings {
    /// A pooled shim has no terminal.
    Pool,
    /// A job in the foreground: hang-up and interrupt mean stop.
    Job,
    /// A window that may be closed without harm, and changes its size.
    Window,
}

/// How far a failed spawn came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No process could be made.
    Fork,
    /// Its surroundings could not be set up.
    Setup,
    /// It could not enter its directory.
    Chdir,
    /// The program could not be run.
    Exec,
}

/// Why a program does not run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpawnError {
    pub stage: Stage,
    pub errno: Errno,
}

/// Signals that arrived since one last looked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrived {
    /// A child ended.
    pub child: bool,
    /// Look into the claim (SIGUSR1).
    pub look: bool,
    /// Somebody wants the shim itself to end (SIGTERM; as a job also SIGHUP and SIGINT).
    pub stop: bool,
    /// The window has another size.
    pub resized: bool,
}

/// What came of signalling a dispatch's processes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reached {
    /// Processes that got the signal.
    pub signalled: usize,
    /// Processes of another user, which we may not end.
    pub forbidden: usize,
}
