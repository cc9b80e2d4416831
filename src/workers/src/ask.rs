//! Asking another program something: what it prints, what it complains about, and no waiting for one that hangs.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Runs a program and returns what it printed, or what it complained about; an error if it cannot be run.
pub(crate) fn ask(command: &mut Command, patience: Duration) -> io::Result<Result<String, String>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let answer = listen(&mut child, patience);
    if answer.is_err() {
        let _ = child.kill();
    }
    let mut complaint = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut complaint);
    }
    let well = child.wait()?.success();
    Ok(match answer {
        Ok(text) if well => Ok(text),
        Ok(_) => Err(complaint.trim().to_owned()),
        Err(error) => Err(error.to_string()),
    })
}

/// Reads everything a program prints, until it ends.
fn listen(child: &mut Child, patience: Duration) -> io::Result<String> {
    let until = Instant::now() + patience;
    let mut text = Vec::new();
    let Some(mut stdout) = child.stdout.take() else { return Ok(String::new()) };
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "its server does not answer"));
        }
        let millis = u16::try_from(left.as_millis()).unwrap_or(u16::MAX).max(1);
        let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::from(millis)).unwrap_or(0) == 0 {
            continue;
        }
        let mut piece = [0; 4096];
        match stdout.read(&mut piece)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            n => text.extend_from_slice(&piece[..n]),
        }
    }
}
