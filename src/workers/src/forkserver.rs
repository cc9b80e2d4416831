//! The fork server: a small process with one thread that makes shims, so that the daemon never forks.
//!
//! It owns nothing: losing it loses nothing. Each request is a descriptor, the new shim's connection to the pool;
//! there is no answer. If no shim can be made, the connection says so and ends. Shims that have ended are waited for, so
//! that whoever asks what a daemon and its workers cost is told of all of them.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::wire::{self, FromShim};
use crate::{shim, sys};

/// The whole life of `ym __forkserver`: reads its control socket from standard input until that ends. Call it before
/// any thread is started.
pub fn forkserver_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    sys::close_from(3);
    let control = sys::adopt_control_socket()?;
    sys::set_process_name(c"ym-forkserver");
    let signals = sys::Signals::install(sys::Surroundings::Pool)?;
    sys::ignore_terminal();
    // Started by a shell's job control it may lead a session already.
    let _ = nix::unistd::setsid();
    // Keep no directory busy.
    let _ = std::env::set_current_dir("/");
    let mut groups = sys::Groups::new();
    loop {
        let mut fds =
            [PollFd::new(control.as_fd(), PollFlags::POLLIN), PollFd::new(signals.fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::NONE).is_err() {
            continue;
        }
        let (asked, signalled) = (fds[0].any() == Some(true), fds[1].any() == Some(true));
        if signalled {
            let arrived = signals.take();
            if arrived.stop {
                break;
            }
            if arrived.child {
                while let sys::Reaped::Child(..) = sys::reap() {}
                groups.tidy();
            }
        }
        if !asked {
            continue;
        }
        let Some(connection) = sys::receive_descriptor(&control)? else { break };
        let connection = UnixStream::from(connection);
        match groups.fork() {
            Ok((sys::Forked::Child, group)) => {
                drop((control, signals));
                let _ = nix::unistd::setsid();
                sys::exit_now(shim::serve(connection, group));
            }
            Ok((sys::Forked::Parent, _)) => {}
            Err(e) => {
                let mut frame = Vec::new();
                let why = format!("cannot make another process: {e}");
                wire::encode(&FromShim::NoShim { why }, &mut frame)?;
                // If even this cannot be sent, the end of the connection says enough.
                let _ = sys::transmit(&connection, &frame);
            }
        }
    }
    groups.leave();
    Ok(())
}
