//! Running a tracker's own tool: with an end, whatever the tool does, and without believing more of its output than
//! fits into memory.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How often a running tool is looked after when it prints nothing.
const TICK: Duration = Duration::from_millis(50);
/// How long a killed tool may take to die before it is left alone.
const MOURNING: Duration = Duration::from_secs(1);
/// As much of the complaints as is kept.
const MAX_COMPLAINTS: usize = 4096;

/// How much a tool may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) time: Duration,
    pub(crate) output: usize,
}

/// What a tool did that ended by itself.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    /// The end of what it wrote to standard error.
    pub(crate) complaints: Vec<u8>,
}

/// Why there is no output.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It could not be started or listened to.
    Broken(io::Error),
    /// It took too long.
    TimedOut,
    /// It printed too much.
    TooMuch,
    /// It was told to stop.
    Stopped,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// Runs a program in a process group of its own, which is killed if it does not end in time or `stop` is set.
pub(crate) fn run(argv: &[String], dir: &Path, limits: Limits, stop: &AtomicBool) -> Result<Ended, Failure> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(Failure::Broken(io::Error::other("the command is empty")));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let ended = listen(&mut child, limits, stop);
    if ended.is_err() {
        end(&mut child);
    }
    ended
}

fn listen(child: &mut Child, limits: Limits, stop: &AtomicBool) -> Result<Ended, Failure> {
    let deadline = Instant::now() + limits.time;
    let mut stdout = child.stdout.take();
    let mut stderr = child.stderr.take();
    stdout.iter().try_for_each(never_wait)?;
    stderr.iter().try_for_each(never_wait)?;
    let (mut output, mut complaints) = (Vec::new(), Vec::new());
    let mut status = None;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Stopped);
        }
        if Instant::now() >= deadline {
            return Err(Failure::TimedOut);
        }
        let heard = wait_for_either(stdout.as_ref(), stderr.as_ref())?;
        drain(&mut stdout, &mut output)?;
        drain(&mut stderr, &mut complaints)?;
        if output.len() > limits.output {
            return Err(Failure::TooMuch);
        }
        complaints.drain(..complaints.len().saturating_sub(MAX_COMPLAINTS));
        // It has ended, and what it printed is all here, even if something it left behind still holds the pipes.
        if let Some(status) = status
            && (!heard || (stdout.is_none() && stderr.is_none()))
        {
            return Ok(Ended { status, output, complaints });
        }
        status = child.try_wait()?;
    }
}

fn never_wait(pipe: &impl AsFd) -> io::Result<()> {
    fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Waits for output, at most a tick; says whether there may be some.
fn wait_for_either(stdout: Option<&ChildStdout>, stderr: Option<&ChildStderr>) -> io::Result<bool> {
    let pipes = stdout.map(AsFd::as_fd).into_iter().chain(stderr.map(AsFd::as_fd));
    let mut pipes: Vec<PollFd<'_>> = pipes.map(|pipe| PollFd::new(pipe, PollFlags::POLLIN)).collect();
    // Without pipes only the end of the process is awaited, and that is near.
    let tick = if pipes.is_empty() { TICK / 10 } else { TICK };
    let timeout = PollTimeout::try_from(tick).unwrap_or(PollTimeout::ZERO);
    match poll(&mut pipes, timeout) {
        Ok(ready) => Ok(ready > 0),
        Err(nix::errno::Errno::EINTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Takes a piece of what is there; at its end the pipe is dropped.
fn drain(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) -> io::Result<()> {
    let Some(open) = pipe else { return Ok(()) };
    let mut piece = [0; 16 * 1024];
    match open.read(&mut piece) {
        Ok(0) => *pipe = None,
        Ok(n) => into.extend_from_slice(&piece[..n]),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Kills the whole group. The process has not been waited for, so that its number still is its own.
fn end(child: &mut Child) {
    // An error means that nobody is left.
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    let patience = Instant::now() + MOURNING;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < patience {
        thread::sleep(TICK / 10);
    }
}
