//! What both system layers share.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::cmsg_space;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recv, recvmsg, send, sendmsg};
use nix::unistd::ForkResult;
use yard_engine::Timestamp;

/// A broken connection is an error here, never a signal.
#[cfg(target_os = "linux")]
const QUIET: MsgFlags = MsgFlags::MSG_NOSIGNAL.union(MsgFlags::MSG_DONTWAIT);
#[cfg(not(target_os = "linux"))]
const QUIET: MsgFlags = MsgFlags::MSG_DONTWAIT;

#[cfg(target_os = "linux")]
const CLOEXEC: MsgFlags = MsgFlags::MSG_CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOEXEC: MsgFlags = MsgFlags::empty();

/// The wall clock.
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::from_millis(since.map_or(0, |d| d.as_millis() as i64))
}

/// Which side of a fork this is.
pub(crate) enum Forked {
    Parent,
    Child,
}

/// Forks. Only for a process with one thread, which the fork server is.
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: the caller has one thread, so the child may allocate and use locks like its parent.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { .. } => Ok(Forked::Parent),
        ForkResult::Child => Ok(Forked::Child),
    }
}

/// Ends the process at once: a forked child must not run what its parent registered for its exit.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any number and does not return.
    unsafe { libc::_exit(code) }
}

/// Sends without waiting.
pub(crate) fn transmit(socket: &impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(socket.as_fd().as_raw_fd(), bytes, QUIET)?)
}

/// Receives without waiting; 0 is the end.
pub(crate) fn receive(socket: &impl AsFd, bytes: &mut [u8]) -> io::Result<usize> {
    Ok(recv(socket.as_fd().as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT)?)
}

/// Hands a descriptor to the process at the other end.
pub(crate) fn send_descriptor(socket: &impl AsFd, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let raw = [descriptor.as_raw_fd()];
    let message = [ControlMessage::ScmRights(&raw)];
    sendmsg::<()>(socket.as_fd().as_raw_fd(), &[IoSlice::new(b"s")], &message, QUIET, None)?;
    Ok(())
}

/// Waits for a descriptor; `None` at the end of the connection.
pub(crate) fn receive_descriptor(socket: &impl AsFd) -> io::Result<Option<OwnedFd>> {
    loop {
        let mut byte = [0];
        let mut space = cmsg_space!([i32; 1]);
        let mut parts = [IoSliceMut::new(&mut byte)];
        let message = recvmsg::<()>(socket.as_fd().as_raw_fd(), &mut parts, Some(&mut space), CLOEXEC);
        let message = match message {
            Err(nix::errno::Errno::EINTR) => continue,
            other => other?,
        };
        if message.bytes == 0 {
            return Ok(None);
        }
        for part in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(raw) = part
                && let Some(&raw) = raw.first()
            {
                // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
                return Ok(Some(unsafe { OwnedFd::from_raw_fd(raw) }));
            }
        }
        // The table of descriptors is full: this one is lost, and its sender sees its connection end.
    }
}

/// Moves the control socket from standard input to a private descriptor and leaves an empty standard input.
pub(crate) fn adopt_control_socket() -> io::Result<UnixStream> {
    let control = io::stdin().as_fd().try_clone_to_owned()?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    // SAFETY: descriptor 0 is standard input, which nothing in this process reads.
    if unsafe { libc::dup2(null.as_raw_fd(), 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(UnixStream::from(control))
}

/// Sets what a signal does, for signals without a handler of ours.
fn dispose(signal: Signal, handler: SigHandler) {
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: the handlers passed here are SIG_DFL and SIG_IGN, which run no code. It fails only for signals that
    // cannot be changed, and those need not be.
    let _ = unsafe { sigaction(signal, &action) };
}

/// From now on this process outlives Ctrl-C, hang-ups and whoever does not listen any more.
pub(crate) fn ignore_terminal() {
    for signal in [Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGPIPE] {
        dispose(signal, SigHandler::SigIgn);
    }
}

/// The same, and its dead children vanish by themselves.
pub(crate) fn ignore_terminal_and_children() {
    ignore_terminal();
    dispose(Signal::SIGCHLD, SigHandler::SigIgn);
}

/// Gives every signal its default meaning, as a payload expects it.
pub(crate) fn default_signals() {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL runs no code. It fails for numbers that are no signals or cannot be changed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// Waits until every child has ended. They vanish by themselves (see `ignore_terminal_and_children`).
pub(crate) fn outlive_children() {
    while nix::sys::wait::wait() != Err(nix::errno::Errno::ECHILD) {}
}

/// What asking for ended children found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaped {
    /// This one had ended.
    Child(u32, Outcome),
    /// All that are left are alive.
    AllAlive,
    /// There are no children.
    Nobody,
}

/// Takes away one ended child, without waiting. (Not nix's `waitpid`, which loses children ended by real-time signals.)
pub(crate) fn reap() -> Reaped {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a valid place for the result.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
            0 => return Reaped::AllAlive,
            pid if pid > 0 => {
                let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
                let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
                return Reaped::Child(pid as u32, Outcome { code, signal });
            }
            _ if nix::errno::Errno::last() == nix::errno::Errno::EINTR => {}
            _ => return Reaped::Nobody,
        }
    }
}
