//! Terminals: the one a shim was started in, and the one it makes for its programs.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::signal::Signal;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

use super::Surroundings;

impl Surroundings {
    /// What a shim hears there, besides what every shim hears.
    pub(crate) fn signals(self) -> &'static [Signal] {
        match self {
            Self::Pool => &[],
            Self::Job => &[Signal::SIGHUP, Signal::SIGINT],
            Self::Window => &[Signal::SIGWINCH],
        }
    }
}

/// How many rows and columns a terminal has.
#[derive(Clone, Copy)]
pub(crate) struct WindowSize(libc::winsize);

/// The size of a terminal; none if it is gone.
pub(crate) fn window_size(terminal: &impl AsFd) -> Option<WindowSize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: a valid descriptor and a valid place for the answer.
    let asked = unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (asked == 0).then_some(WindowSize(size))
}

/// Gives a terminal a size; the kernel tells the programs on it.
pub(crate) fn set_window_size(terminal: &impl AsFd, size: WindowSize) {
    // SAFETY: a valid descriptor and a valid size. It fails only for what is no terminal.
    unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCSWINSZ, &raw const size.0) };
}

/// A new terminal: our end, which does not block, and the programs' end.
pub(crate) fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let pty = nix::pty::openpty(None, None)?;
    for end in [&pty.master, &pty.slave] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    do_not_block(&pty.master)?;
    Ok((pty.master, pty.slave))
}

/// From now on neither reading nor writing waits.
pub(crate) fn do_not_block(fd: &impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// How a terminal treats what is typed and written.
pub(crate) fn terminal_modes(terminal: &impl AsFd) -> io::Result<Termios> {
    Ok(tcgetattr(terminal)?)
}

/// Puts a terminal's modes back.
pub(crate) fn set_terminal_modes(terminal: &impl AsFd, modes: &Termios) {
    // A terminal that is gone needs no modes.
    let _ = tcsetattr(terminal, SetArg::TCSANOW, modes);
}

/// Every key is passed on as it is, and everything written is shown as it is.
pub(crate) fn make_raw(terminal: &impl AsFd) -> io::Result<()> {
    let mut modes = tcgetattr(terminal)?;
    cfmakeraw(&mut modes);
    Ok(tcsetattr(terminal, SetArg::TCSANOW, &modes)?)
}
