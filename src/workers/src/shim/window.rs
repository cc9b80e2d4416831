//! The window that a shim was started in, such as a tmux pane: it shows what the programs write, and what is typed there
//! reaches them.
//!
//! The programs have a terminal of the shim's own, so the window may go at any time, or not take what it should show;
//! neither they nor the log ever wait for it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::termios::Termios;

use crate::sys;

/// What a window has not taken yet is left out beyond this; the log has it all.
const MOST_WAITING: usize = 256 * 1024;

/// A window, as long as it is there.
pub(super) struct Window {
    pane: Option<OwnedFd>,
    /// What it has not taken yet.
    waiting: Vec<u8>,
    /// How the programs' terminal was made: each of them finds it like that.
    modes: Termios,
    returns: Returns,
}

impl Window {
    /// Takes over the terminal of this process for programs on `terminal`.
    pub(super) fn open(terminal: &OwnedFd) -> io::Result<Self> {
        let pane = io::stdin().as_fd().try_clone_to_owned()?;
        sys::do_not_block(&pane)?;
        sys::make_raw(&pane)?;
        let modes = sys::terminal_modes(terminal)?;
        let window = Self { pane: Some(pane), waiting: Vec::new(), modes, returns: Returns::default() };
        window.pass_size_on(terminal);
        Ok(window)
    }

    /// What to poll, and for what.
    pub(super) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let pane = self.pane.as_ref()?;
        let mut flags = PollFlags::POLLIN;
        flags.set(PollFlags::POLLOUT, !self.waiting.is_empty());
        Some((pane.as_fd(), flags))
    }

    /// The programs learn how large it is.
    pub(super) fn pass_size_on(&self, terminal: &OwnedFd) {
        if let Some(size) = self.pane.as_ref().and_then(sys::window_size) {
            sys::set_window_size(terminal, size);
        }
    }

    /// A program that was killed may have left the terminal in any mode; the next one finds it as the first did.
    pub(super) fn reset(&self, terminal: &OwnedFd) {
        sys::set_terminal_modes(terminal, &self.modes);
    }

    /// Shows output, as much of it as the window takes, and returns what belongs into the log.
    pub(super) fn show(&mut self, bytes: &[u8]) -> &[u8] {
        if self.pane.is_some() {
            if self.waiting.len() + bytes.len() > MOST_WAITING {
                self.waiting.clear();
            }
            self.waiting.extend_from_slice(bytes);
            self.show_more();
        }
        self.returns.undo(bytes)
    }

    /// What of the output is still held back from the log.
    pub(super) fn last_words(&mut self) -> &'static [u8] {
        if std::mem::take(&mut self.returns.held) { b"\r" } else { b"" }
    }

    /// Goes on showing what the window did not take before.
    pub(super) fn show_more(&mut self) {
        let Some(pane) = &self.pane else { return };
        let mut shown = 0;
        while shown < self.waiting.len() {
            match nix::unistd::write(pane, &self.waiting[shown..]) {
                Ok(n) => shown += n,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(_) => return self.close(),
            }
        }
        self.waiting.drain(..shown);
    }

    /// What was typed since one last looked. A window that is gone is closed.
    pub(super) fn typed<'a>(&mut self, buffer: &'a mut [u8]) -> &'a [u8] {
        let Some(pane) = &self.pane else { return &[] };
        match nix::unistd::read(pane, buffer) {
            Ok(n) if n > 0 => &buffer[..n],
            Err(Errno::EINTR | Errno::EAGAIN) => &[],
            Ok(_) | Err(_) => {
                self.close();
                &[]
            }
        }
    }

    fn close(&mut self) {
        self.pane = None;
        self.waiting = Vec::new();
    }
}

/// Undoes what a terminal does to the ends of lines, so that a log is the same with and without one.
#[derive(Default)]
struct Returns {
    /// A carriage return that a newline may follow.
    held: bool,
    text: Vec<u8>,
}

impl Returns {
    fn undo(&mut self, bytes: &[u8]) -> &[u8] {
        self.text.clear();
        for &byte in bytes {
            if std::mem::take(&mut self.held) && byte != b'\n' {
                self.text.push(b'\r');
            }
            if byte == b'\r' {
                self.held = true;
            } else {
                self.text.push(byte);
            }
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_what_the_program_wrote_however_it_is_cut() {
        // As a terminal passes on: "a\nb\rc\r\nd\r".
        let shown = b"a\r\nb\rc\r\r\nd\r";
        for size in 1..=shown.len() {
            let mut returns = Returns::default();
            let mut log = Vec::new();
            for piece in shown.chunks(size) {
                log.extend_from_slice(returns.undo(piece));
            }
            assert_eq!((log.as_slice(), returns.held), (b"a\nb\rc\r\nd".as_slice(), true));
        }
    }
}
