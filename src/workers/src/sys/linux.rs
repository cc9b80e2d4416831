//! Linux: everything the promises rest on.

mod cgroup;
mod procfs;
mod spawn;

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::time::{ClockId, clock_gettime};

use super::{Arrived, Surroundings};
pub(crate) use cgroup::{Groups, end_group};
pub(crate) use procfs::{end_marked, signal_descendants, tree_is_gone};
pub(crate) use spawn::Spawner;

/// Milliseconds since boot, time asleep included: what timeouts are measured with.
pub(crate) fn boot_millis() -> u64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map_or(0, |t| t.tv_sec() as u64 * 1000 + t.tv_nsec() as u64 / 1_000_000)
}

/// Orphans of our descendants become our children, so that none escapes.
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// What tells a live process from a later one with the same number: when it started, in ticks since boot.
pub(crate) fn process_mark(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything; after it come state, parent and so on, and the start as the 20th.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?;
    (!matches!(state, "Z" | "X")).then(|| started.to_owned())
}

/// What tells this machine, since it was started, and this view of its processes from others: only there does a process's
/// number mean the same.
pub(crate) fn process_realm() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let view = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), view.display())
}

/// The name shown by `ps` and `top`.
pub(crate) fn set_process_name(name: &CStr) {
    let _ = nix::sys::prctl::set_name(name);
}

/// Closes every descriptor from `first` on: whatever the process that started us left open.
pub(crate) fn close_from(first: i32) {
    // SAFETY: called before this process opens anything of its own at or above `first`.
    unsafe { libc::syscall(libc::SYS_close_range, first as libc::c_uint, libc::c_uint::MAX, 0) };
}

/// A file without a name that holds `text`, at its beginning: standard input that never blocks its writer.
pub(crate) fn text_file(text: &str) -> io::Result<File> {
    use std::io::{Seek as _, Write as _};
    let mut file = File::from(memfd_create(c"ym-stdin", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// The signals of a shim, as a descriptor to poll. All others are blocked as well, so that none ends the shim by
/// accident; a payload gets them all back.
#[derive(Debug)]
pub(crate) struct Signals {
    fd: SignalFd,
}

impl Signals {
    /// Takes over this process's signals.
    pub(crate) fn install(surroundings: Surroundings) -> io::Result<Self> {
        super::default_signals();
        let mut heard = SigSet::empty();
        for signal in [Signal::SIGCHLD, Signal::SIGUSR1, Signal::SIGTERM] {
            heard.add(signal);
        }
        for &signal in surroundings.signals() {
            heard.add(signal);
        }
        let mut blocked = SigSet::all();
        for signal in [
            Signal::SIGSEGV,
            Signal::SIGBUS,
            Signal::SIGFPE,
            Signal::SIGILL,
            Signal::SIGABRT,
            Signal::SIGTRAP,
            Signal::SIGSYS,
        ] {
            blocked.remove(signal);
        }
        blocked.thread_set_mask()?;
        Ok(Self { fd: SignalFd::with_flags(&heard, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)? })
    }

    /// Readable when something arrived.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The next signal. One a call: the descriptor stays readable while there are more.
    pub(crate) fn take(&self) -> Arrived {
        let mut arrived = Arrived::default();
        if let Ok(Some(info)) = self.fd.read_signal() {
            match i32::try_from(info.ssi_signo).map(Signal::try_from) {
                Ok(Ok(Signal::SIGCHLD)) => arrived.child = true,
                Ok(Ok(Signal::SIGUSR1)) => arrived.look = true,
                Ok(Ok(Signal::SIGWINCH)) => arrived.resized = true,
                _ => arrived.stop = true,
            }
        }
        arrived
    }
}

/// A process that cannot be mistaken for another one with the same number.
#[derive(Debug)]
pub(crate) struct Handle {
    fd: OwnedFd,
}

impl Handle {
    /// The process that has this number now. The caller must check afterwards that it is the one it means.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        // SAFETY: pidfd_open takes two numbers and returns a new descriptor (close-on-exec) or -1.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made it for us.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd as i32) } })
    }

    /// Signals that very process.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        // SAFETY: a valid descriptor, a signal number, no siginfo, no flags.
        let result = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.fd.as_raw_fd(),
                signal as libc::c_int,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Readable when the process has ended.
    #[expect(clippy::unnecessary_wraps, reason = "other systems have no such descriptor")]
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }
}

/// Many descriptors, watched by one thread, added and removed by any.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: Epoll,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)? })
    }

    /// Watches for input and for the end of the connection.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, token))?)
    }

    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = self.epoll.delete(fd);
    }

    /// Waits for news, for at most so many milliseconds, and puts the tokens into `ready`.
    pub(crate) fn wait(&self, timeout: Option<u16>, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        let mut events = [EpollEvent::empty(); 64];
        let timeout = timeout.map_or(EpollTimeout::NONE, EpollTimeout::from);
        match self.epoll.wait(&mut events, timeout) {
            Ok(n) => ready.extend(events[..n].iter().map(EpollEvent::data)),
            Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(())
    }
}

/// A pipe whose reading end does not block.
pub(crate) fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&read, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((read, write))
}
