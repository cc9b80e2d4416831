//! The shim: the truth about a worker, wherever it runs.
//!
//! It takes a dispatch's claim, runs its steps, enforces its limits even when the daemon is dead, ends everything the
//! dispatch started, writes the exit record, releases the lock, and only then tells the daemon. A pooled shim then
//! waits for its next order; it has no children at that moment.

mod isolate;
mod link;
mod meter;
mod program;
mod run;
mod said;
mod watch;
mod window;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use yard_engine::DispatchId;

use crate::sys::{Forked, Surroundings};
use crate::wire::{self, FromShim, SpecSource, ToShim};
use crate::{claim, sys};
use link::Link;
pub(crate) use link::REPORTS;
pub(crate) use meter::Meter;
use program::Inherited;
use run::Verdict;
use window::Window;

/// The exit code of a standalone shim that may not start its dispatch.
const REFUSED: u8 = 75;

/// What a shim keeps from one dispatch to the next.
struct Shim {
    signals: sys::Signals,
    spawner: sys::Spawner,
    /// Where we read what payloads write, and where they write: a pipe or a terminal.
    output: (OwnedFd, OwnedFd),
    /// Where a person may look at it.
    window: Option<Window>,
    null: File,
    inherited: Inherited,
    link: Link,
    /// The control group it was born into, which everything it starts stays in.
    group: Option<PathBuf>,
    /// Where its number means something, if whoever asked may be elsewhere: claims are shared then.
    realm: Option<String>,
    /// Lines for the claim that wait to be written together.
    lines: Vec<u8>,
    /// Orders that came while another dispatch ran.
    waiting: VecDeque<ToShim>,
    /// Frames for the daemon that wait to be sent together.
    frames: Vec<u8>,
    buffer: Vec<u8>,
}

impl Shim {
    fn new(link: Link, group: Option<PathBuf>, surroundings: Surroundings) -> io::Result<Self> {
        sys::set_process_name(c"ym-shim");
        sys::become_subreaper()?;
        let signals = sys::Signals::install(surroundings)?;
        let (output, window) = match surroundings {
            Surroundings::Pool | Surroundings::Job => (sys::output_pipe()?, None),
            Surroundings::Window => {
                let terminal = sys::open_terminal()?;
                let window = Window::open(&terminal.1)?;
                (terminal, Some(window))
            }
        };
        Ok(Self {
            signals,
            spawner: sys::Spawner::new(),
            output,
            window,
            null: File::open("/dev/null")?,
            inherited: Inherited::from_process(),
            link,
            group,
            realm: (surroundings == Surroundings::Job).then(sys::process_realm),
            lines: Vec::new(),
            waiting: VecDeque::new(),
            frames: Vec::new(),
            buffer: vec![0; 64 * 1024],
        })
    }

    /// Waits for the pool. `false`: it is gone, or we are told to go.
    fn idle(&mut self) -> bool {
        let Some(socket) = self.link.socket() else {
            return false;
        };
        let mut fds = [
            PollFd::new(socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.signals.fd(), PollFlags::POLLIN),
        ];
        if poll(&mut fds, PollTimeout::NONE).is_err() {
            return true;
        }
        let signalled = fds[1].any() == Some(true);
        if signalled && self.signals.take().stop {
            return false;
        }
        self.link.fill();
        true
    }
}

/// The life of a pooled shim; returns its exit code when it is no longer needed.
pub(crate) fn serve(connection: UnixStream, group: Option<PathBuf>) -> i32 {
    let spare = connection.try_clone();
    let mut shim = match Shim::new(Link::to_pool(connection), group, Surroundings::Pool) {
        Ok(shim) => shim,
        Err(e) => {
            let mut frame = Vec::new();
            let why = format!("a shim cannot be set up: {e}");
            if let (Ok(spare), Ok(())) = (spare, wire::encode(&FromShim::NoShim { why }, &mut frame)) {
                let _ = sys::transmit(&spare, &frame);
            }
            return 1;
        }
    };
    drop(spare);
    loop {
        while let Some(message) = shim.waiting.pop_front().or_else(|| shim.link.next()) {
            match message {
                ToShim::Start { dispatch, claim, spec } => {
                    match run::perform(&mut shim, dispatch, &claim, *spec) {
                        Verdict::Done | Verdict::Refused => {}
                        Verdict::NotReusable => return 0,
                    }
                }
                // For a dispatch that is over: too late.
                ToShim::Stop { .. } | ToShim::Yield { .. } => {}
            }
        }
        if !shim.idle() {
            return 0;
        }
    }
}

/// The life of `ym __shim`: runs one dispatch in the foreground, in a window such as a tmux pane or as a job such as
/// Slurm's. The environment of its programs is the one beside the order, if there is one, because whoever starts it may
/// have been started long ago by somebody else. Exits 0 when the dispatch ran and its record is written (whatever the
/// payload's code), 75 when it may not run.
pub fn shim_main(run_dir: &Path, dispatch: &DispatchId, spec_file: &Path) -> ExitCode {
    let paths = std::path::absolute(run_dir).and_then(|dir| Ok((dir, std::path::absolute(spec_file)?)));
    let Ok((run_dir, spec_file)) = paths else {
        return ExitCode::FAILURE;
    };
    let in_a_window = io::stdin().is_terminal() && io::stdout().is_terminal();
    let surroundings = if in_a_window { Surroundings::Window } else { Surroundings::Job };
    let mut group = None;
    if in_a_window {
        sys::ignore_terminal_and_children();
        let mut groups = sys::Groups::new();
        match groups.fork_apart() {
            // Born into a group of its own, as a pooled shim is.
            Some((Forked::Child, own)) => group = Some(own),
            Some((Forked::Parent, _)) => return keep_window_open(groups),
            None => {}
        }
    }
    let Ok(mut shim) = Shim::new(Link::none(), group, surroundings) else {
        return ExitCode::FAILURE;
    };
    if let Ok(environment) = std::fs::read(environment_file(&spec_file)) {
        shim.inherited = Inherited::from_block(&environment);
        shim.inherited.set_own(|name| match surroundings {
            Surroundings::Window => name == b"TERM",
            Surroundings::Job => is_of_job(name),
            Surroundings::Pool => false,
        });
    }
    let claim = claim::path(&run_dir, dispatch);
    match run::perform(&mut shim, dispatch.clone(), &claim, SpecSource::File(spec_file)) {
        Verdict::Done | Verdict::NotReusable => ExitCode::SUCCESS,
        Verdict::Refused => ExitCode::from(REFUSED),
    }
}

/// Whether a variable tells a job what is its own on its node.
fn is_of_job(name: &[u8]) -> bool {
    const OTHERS: [&[u8]; 5] = [
        b"CUDA_VISIBLE_DEVICES",
        b"GPU_DEVICE_ORDINAL",
        b"ROCR_VISIBLE_DEVICES",
        b"TMPDIR",
        b"ZE_AFFINITY_MASK",
    ];
    name.starts_with(b"SLURM") || OTHERS.contains(&name)
}

/// What is left of the process that a window was opened for: the window closes when it ends.
fn keep_window_open(mut groups: sys::Groups) -> ExitCode {
    sys::set_process_name(c"ym-window");
    sys::outlive_children();
    groups.clean_up();
    ExitCode::SUCCESS
}

/// Where the environment of an order lies: `NAME=value` entries, each ended by NUL.
pub(crate) fn environment_file(spec_file: &Path) -> PathBuf {
    spec_file.with_extension("env")
}
