//! Starting a program the way posix_spawn does: a child that borrows our memory and its own stack until it has
//! replaced itself, so that the cost does not depend on our size.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::AsRawFd as _;
use std::ptr;

use nix::errno::Errno;

use crate::sys::{Launch, SpawnError, Stage};

/// Room for the child's few calls. Reused: only one child at a time is between its birth and its program.
const STACK: usize = 64 * 1024;

/// Starts programs.
pub(crate) struct Spawner {
    stack: Vec<u128>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    candidates: Vec<*const c_char>,
}

/// What parent and child share while the child has no program of its own.
struct Call {
    candidates: *const *const c_char,
    argv: *const *const c_char,
    env: *const *const c_char,
    cwd: *const c_char,
    stdin: c_int,
    output: c_int,
    /// -1 for none.
    terminal: c_int,
    parent: libc::pid_t,
    stage: c_int,
    errno: c_int,
}

const SETUP: c_int = 1;
const CHDIR: c_int = 2;
const EXEC: c_int = 3;

impl Spawner {
    pub(crate) fn new() -> Self {
        Self {
            stack: vec![0; STACK / size_of::<u128>()],
            argv: Vec::new(),
            env: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// Runs a program in its own process group (on a terminal in its own session), with default signals, to be killed when this process dies.
    pub(crate) fn spawn(&mut self, launch: &Launch<'_>) -> Result<u32, SpawnError> {
        point_at(&mut self.argv, launch.argv);
        point_at(&mut self.env, launch.env);
        point_at(&mut self.candidates, launch.candidates);
        let mut call = Call {
            candidates: self.candidates.as_ptr(),
            argv: self.argv.as_ptr(),
            env: self.env.as_ptr(),
            cwd: launch.cwd.as_ptr(),
            stdin: launch.stdin.as_raw_fd(),
            output: launch.output.as_raw_fd(),
            terminal: launch.terminal.map_or(-1, |terminal| terminal.as_raw_fd()),
            parent: nix::unistd::getpid().as_raw(),
            stage: 0,
            errno: 0,
        };
        let top = self.stack.as_mut_ptr_range().end;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child runs `child` on a stack of its own, which nobody else uses, and CLONE_VFORK suspends us
        // until it has called execve or _exit; so `call` and all it points to outlive the child's use of them. All
        // signals with an effect are blocked in this process, so that no handler can run on the child's side.
        let pid = unsafe { libc::clone(child, top.cast(), flags, (&raw mut call).cast::<c_void>()) };
        if pid < 0 {
            return Err(SpawnError { stage: Stage::Fork, errno: Errno::last() });
        }
        // SAFETY: plain reads of our own variable; volatile, because the child has written to it.
        let (stage, errno) =
            unsafe { (ptr::read_volatile(&raw const call.stage), ptr::read_volatile(&raw const call.errno)) };
        let stage = match stage {
            SETUP => Stage::Setup,
            CHDIR => Stage::Chdir,
            EXEC => Stage::Exec,
            _ => return Ok(pid as u32),
        };
        // It never became a program: take it away.
        while nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None) == Err(Errno::EINTR) {}
        Err(SpawnError { stage, errno: Errno::from_raw(errno) })
    }
}

/// A C array of strings, ended by null.
fn point_at(array: &mut Vec<*const c_char>, strings: &[CString]) {
    array.clear();
    array.extend(strings.iter().map(|s| s.as_ptr()));
    array.push(ptr::null());
}

/// The child's side: system calls only, no allocation, no panic. Does not return.
extern "C" fn child(argument: *mut c_void) -> c_int {
    let call = argument.cast::<Call>();
    // SAFETY: `call` is valid and ours alone until we exec or exit (see `spawn`); every function called here is
    // async-signal-safe and gets pointers that the parent prepared.
    unsafe {
        let fail = |stage: c_int, errno: c_int| -> ! {
            ptr::write_volatile(&raw mut (*call).errno, errno);
            ptr::write_volatile(&raw mut (*call).stage, stage);
            libc::_exit(127)
        };
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            fail(SETUP, *libc::__errno_location());
        }
        // The parent may have died before the line above took effect.
        if libc::getppid() != (*call).parent {
            libc::_exit(127);
        }
        let apart = if (*call).terminal < 0 {
            libc::setpgid(0, 0) == 0
        } else {
            libc::setsid() >= 0 && libc::ioctl((*call).terminal, libc::TIOCSCTTY, 0) == 0
        };
        if !apart
            || libc::dup2((*call).stdin, 0) < 0
            || libc::dup2((*call).output, 1) < 0
            || libc::dup2((*call).output, 2) < 0
        {
            fail(SETUP, *libc::__errno_location());
        }
        if libc::chdir((*call).cwd) != 0 {
            fail(CHDIR, *libc::__errno_location());
        }
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
        // As execvp does: a place where it is forbidden counts only if it is found nowhere else.
        let mut errno = libc::ENOENT;
        let mut candidate = (*call).candidates;
        while !(*candidate).is_null() {
            libc::execve(*candidate, (*call).argv, (*call).env);
            match *libc::__errno_location() {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => errno = libc::EACCES,
                other => fail(EXEC, other),
            }
            candidate = candidate.add(1);
        }
        fail(EXEC, errno)
    }
}
