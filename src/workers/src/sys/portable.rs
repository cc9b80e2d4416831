//! Any Unix: process groups, `waitpid`, a pipe that signal handlers write to. Weaker than Linux in three ways: a process
//! that leaves its group is not found, a payload does not die with its shim and is not found afterwards, and the
//! death of an adopted shim shows only when one asks.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, killpg, sigaction};
use nix::unistd::Pid;

use super::{Arrived, Launch, Reached, SpawnError, Stage, Surroundings};

/// Milliseconds of a clock that never goes back.
pub(crate) fn boot_millis() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64
}

/// Not offered here: orphans go to the first process of the system.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Whether a process lives; when it started is not told here.
pub(crate) fn process_mark(pid: u32) -> Option<String> {
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    nix::sys::signal::kill(Pid::from_raw(pid), None).ok().map(|()| String::new())
}

/// The machine, as far as its name tells it from others.
pub(crate) fn process_realm() -> String {
    nix::unistd::gethostname().map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}

/// Not offered here.
pub(crate) fn set_process_name(_name: &CStr) {}

/// Closes whatever the process that started us left open.
pub(crate) fn close_from(first: i32) {
    for fd in first..256 {
        // SAFETY: called before this process opens anything of its own at or above `first`.
        unsafe { libc::close(fd) };
    }
}

/// A file without a name that holds `text`, at its beginning.
pub(crate) fn text_file(text: &str) -> io::Result<File> {
    use std::io::{Seek as _, Write as _};
    use std::os::unix::fs::OpenOptionsExt as _;
    let name = format!("ym-stdin-{}-{}", std::process::id(), super::now().as_millis());
    let path = std::env::temp_dir().join(name);
    let mut file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

static WAKE: AtomicI32 = AtomicI32::new(-1);
static CHILD: AtomicBool = AtomicBool::new(false);
static LOOK: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);
static RESIZED: AtomicBool = AtomicBool::new(false);

/// Notes the signal and wakes the loop; both are allowed in a handler.
extern "C" fn note(signal: libc::c_int) {
    match signal {
        libc::SIGCHLD => CHILD.store(true, Ordering::Release),
        libc::SIGUSR1 => LOOK.store(true, Ordering::Release),
        libc::SIGWINCH => RESIZED.store(true, Ordering::Release),
        _ => STOP.store(true, Ordering::Release),
    }
    let saved = Errno::last();
    // SAFETY: write(2) is async-signal-safe, and the byte is a constant.
    unsafe { libc::write(WAKE.load(Ordering::Acquire), c"x".as_ptr().cast(), 1) };
    saved.set();
}

/// What a terminal may send to a shim that does not care.
const WINDOW_NOISE: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTTOU];

/// The signals of a shim, as a descriptor to poll.
#[derive(Debug)]
pub(crate) struct Signals {
    read: OwnedFd,
    _write: OwnedFd,
}

impl Signals {
    pub(crate) fn install(surroundings: Surroundings) -> io::Result<Self> {
        super::default_signals();
        let (read, write) = output_pipe()?;
        nonblocking(&write)?;
        WAKE.store(write.as_raw_fd(), Ordering::Release);
        let mut heard = vec![Signal::SIGCHLD, Signal::SIGUSR1, Signal::SIGTERM];
        heard.extend(surroundings.signals());
        let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
        for signal in heard {
            // SAFETY: `note` only does what a handler may.
            unsafe { sigaction(signal, &action) }?;
        }
        let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        // SAFETY: no code runs. `Command` gives a payload the default for SIGPIPE back.
        unsafe { sigaction(Signal::SIGPIPE, &ignore) }?;
        if surroundings == Surroundings::Window {
            for signal in WINDOW_NOISE {
                // SAFETY: no code runs, and `spawn` gives a payload the defaults back.
                unsafe { sigaction(signal, &ignore) }?;
            }
        }
        Ok(Self { read, _write: write })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    pub(crate) fn take(&self) -> Arrived {
        let mut bytes = [0; 64];
        while matches!(nix::unistd::read(&self.read, &mut bytes), Ok(64)) {}
        Arrived {
            child: CHILD.swap(false, Ordering::AcqRel),
            look: LOOK.swap(false, Ordering::AcqRel),
            stop: STOP.swap(false, Ordering::AcqRel),
            resized: RESIZED.swap(false, Ordering::AcqRel),
        }
    }
}

fn nonblocking(fd: &OwnedFd) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

/// A pipe whose reading end does not block.
pub(crate) fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    let (read, write) = (OwnedFd::from(read), OwnedFd::from(write));
    nonblocking(&read)?;
    Ok((read, write))
}

/// Starts programs.
pub(crate) struct Spawner;

impl Spawner {
    pub(crate) fn new() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "it keeps memory on Linux")]
    pub(crate) fn spawn(&mut self, launch: &Launch<'_>) -> Result<u32, SpawnError> {
        let cwd = Path::new(OsStr::from_bytes(launch.cwd.to_bytes()));
        if let Err(e) = std::fs::read_dir(cwd) {
            return Err(SpawnError { stage: Stage::Chdir, errno: errno_of(&e) });
        }
        let copy = |fd: BorrowedFd<'_>| {
            fd.try_clone_to_owned().map_err(|e| SpawnError { stage: Stage::Setup, errno: errno_of(&e) })
        };
        let mut last = Errno::ENOENT;
        for candidate in launch.candidates {
            let mut command = Command::new(OsStr::from_bytes(candidate.to_bytes()));
            let mut argv = launch.argv.iter().map(|a| OsStr::from_bytes(a.to_bytes()));
            if let Some(name) = argv.next() {
                command.arg0(name);
            }
            command.args(argv).env_clear().current_dir(cwd);
            match launch.terminal.map(|terminal| terminal.as_raw_fd()) {
                None => {
                    command.process_group(0);
                }
                // SAFETY: only calls that are allowed between fork and exec, on a descriptor that the caller keeps open.
                Some(terminal) => unsafe {
                    command.pre_exec(move || take_terminal(terminal));
                },
            }
            for entry in launch.env {
                let entry = entry.to_bytes();
                if let Some(place) = entry.iter().position(|&b| b == b'=') {
                    let (name, value) = (&entry[..place], &entry[place + 1..]);
                    command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
                }
            }
            command.stdin(copy(launch.stdin)?).stdout(copy(launch.output)?).stderr(copy(launch.output)?);
            match command.spawn() {
                Ok(child) => return Ok(child.id()),
                Err(e) => match errno_of(&e) {
                    Errno::ENOENT | Errno::ENOTDIR => {}
                    Errno::EACCES => last = Errno::EACCES,
                    Errno::EAGAIN => {
                        return Err(SpawnError { stage: Stage::Fork, errno: Errno::EAGAIN });
                    }
                    errno => {
                        return Err(SpawnError { stage: Stage::Exec, errno });
                    }
                },
            }
        }
        Err(SpawnError { stage: Stage::Exec, errno: last })
    }
}

/// Leads a new session on a terminal, with the signals that a shim ignores.
fn take_terminal(terminal: i32) -> io::Result<()> {
    super::default_signals();
    nix::unistd::setsid()?;
    // SAFETY: a descriptor and a number.
    if unsafe { libc::ioctl(terminal, libc::TIOCSCTTY.into(), 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EINVAL, Errno::from_raw)
}

/// Signals the process groups of the steps.
pub(crate) fn signal_descendants(groups: &[u32], signal: Signal) -> Reached {
    let mut reached = Reached::default();
    for &group in groups {
        match killpg(Pid::from_raw(group as i32), signal) {
            Ok(()) => reached.signalled += 1,
            Err(Errno::EPERM) => reached.forbidden += 1,
            Err(_) => {}
        }
        if signal == Signal::SIGTERM {
            // A stopped process would not see it.
            let _ = killpg(Pid::from_raw(group as i32), Signal::SIGCONT);
        }
    }
    reached
}

/// Whether no process group of a step has members any more.
pub(crate) fn tree_is_gone(groups: &[u32]) -> bool {
    groups.iter().all(|&group| killpg(Pid::from_raw(group as i32), None) == Err(Errno::ESRCH))
}

/// Other processes' environments cannot be read here.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
pub(crate) fn end_marked(_marks: &[String], _spare: &[u32]) -> io::Result<usize> {
    Ok(0)
}

/// A process by its number: the best there is.
#[derive(Debug)]
pub(crate) struct Handle {
    pid: u32,
}

impl Handle {
    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        Ok(Self { pid })
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(nix::sys::signal::kill(Pid::from_raw(self.pid as i32), signal)?)
    }

    /// Its end cannot be watched.
    #[expect(clippy::unused_self, reason = "it is a descriptor on Linux")]
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Many descriptors, watched by one thread, added and removed by any.
#[derive(Debug)]
pub(crate) struct Poller {
    watched: Mutex<Vec<(i32, u64)>>,
    wake: (OwnedFd, OwnedFd),
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { watched: Mutex::default(), wake: output_pipe()? })
    }

    fn change(&self, change: impl FnOnce(&mut Vec<(i32, u64)>)) {
        change(&mut self.watched.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let _ = nix::unistd::write(&self.wake.1, b"x");
    }

    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.change(|watched| watched.push((fd.as_raw_fd(), token)));
        Ok(())
    }

    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        self.change(|watched| watched.retain(|(raw, _)| *raw != fd.as_raw_fd()));
    }

    pub(crate) fn wait(&self, timeout: Option<u16>, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        let watched = self.watched.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let mut fds = vec![PollFd::new(self.wake.0.as_fd(), PollFlags::POLLIN)];
        // SAFETY: a descriptor removed meanwhile makes poll report it as invalid or as another one; a token without
        // news is harmless, because its owner reads without waiting.
        fds.extend(
            watched
                .iter()
                .map(|(raw, _)| PollFd::new(unsafe { BorrowedFd::borrow_raw(*raw) }, PollFlags::POLLIN)),
        );
        match poll(&mut fds, timeout.map_or(PollTimeout::NONE, PollTimeout::from)) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        if fds[0].any() == Some(true) {
            let mut bytes = [0; 256];
            while matches!(nix::unistd::read(&self.wake.0, &mut bytes), Ok(256)) {}
        }
        let news = fds[1..].iter().zip(&watched).filter(|(fd, _)| fd.any() == Some(true));
        ready.extend(news.map(|(_, (_, token))| *token));
        Ok(())
    }
}

/// No control groups here: a sweep by environment is all there is.
pub(crate) struct Groups;

#[expect(clippy::unused_self, reason = "the Linux layer keeps something here")]
impl Groups {
    pub(crate) fn new() -> Self {
        Self
    }

    /// Nothing to tidy up.
    pub(crate) fn leave(self) {}

    /// Nothing to tidy up.
    pub(crate) fn tidy(&mut self) {}

    /// Nothing to tidy up.
    pub(crate) fn clean_up(&mut self) -> bool {
        true
    }

    /// There never is a group.
    pub(crate) fn fork_apart(&mut self) -> Option<(super::Forked, std::path::PathBuf)> {
        None
    }

    /// Forks.
    pub(crate) fn fork(&mut self) -> io::Result<(super::Forked, Option<std::path::PathBuf>)> {
        Ok((super::fork()?, None))
    }
}

/// There never is a group.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
pub(crate) fn end_group(_: &Path, _: std::time::Duration) -> io::Result<()> {
    Ok(())
}
