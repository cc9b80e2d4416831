//! Faults at exact system calls, injected by strace.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use yard_tests::town::{Town, wait_until, ym_binary};

/// A process that strace watches, or strace itself where it joined one that ran already.
pub(super) struct Traced {
    child: Child,
    trace: PathBuf,
}

/// `inject=CALLS:WHAT:when=N`, as strace wants it.
fn options(calls: &str, what: &str, when: impl Display) -> [String; 4] {
    let inject = format!("inject={calls}:{what}:when={when}");
    ["-e".to_owned(), format!("trace={calls}"), "-e".to_owned(), inject]
}

fn strace(town: &Town, calls: &str, what: &str, when: impl Display) -> (Command, PathBuf) {
    let trace = town.root().join("strace.txt");
    let _ = std::fs::remove_file(&trace);
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-o"]).arg(&trace).args(options(calls, what, when));
    strace.env("YM_TOWN", town.root()).env("USER", "tester").env_remove("YM_ACTOR").current_dir("/");
    strace.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    (strace, trace)
}

impl Traced {
    /// Runs a `ym` command whose main thread meets a fault at the `when`-th of these calls.
    pub(super) fn ym(town: &Town, args: &[&str], calls: &str, what: &str, when: impl Display) -> Self {
        let (mut strace, trace) = strace(town, calls, what, when);
        let log = std::fs::File::options().create(true).append(true).open(town.root().join("daemon.log"));
        strace.stderr(log.expect("a log"));
        let child = strace.arg(ym_binary()).args(args).spawn();
        Self { child: child.expect("strace can be run: tests/run installs it"), trace }
    }

    /// Joins a process and whatever it forks; each of them meets the fault at its own `when`-th call.
    pub(super) fn join(town: &Town, pid: u32, calls: &str, what: &str, when: impl Display) -> Self {
        let (mut strace, trace) = strace(town, calls, what, when);
        let child = strace.args(["-f", "-p", &pid.to_string()]).spawn();
        let traced = Self { child: child.expect("strace can be run: tests/run installs it"), trace };
        wait_until("strace to join", || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
        });
        traced
    }

    /// Whether it has ended, and how.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }

    /// Waits for its end; answers what it printed too.
    pub(super) fn output(self) -> (ExitStatus, String) {
        let output = self.child.wait_with_output().expect("it ends");
        (output.status, String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Lets go of everybody it joined. By SIGKILL, after which the system does: asked to leave, strace waits for each process
    /// to stop, one after the other, and so for ever for one that waits itself, in its vfork, for a child that strace has
    /// stopped already.
    pub(super) fn leave(mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it ends");
    }

    /// Whether the fault was met.
    pub(super) fn struck(&self) -> bool {
        struck(&self.trace)
    }

    pub(super) fn trace(&self) -> PathBuf {
        self.trace.clone()
    }
}

/// Whether a trace says that something was injected or killed.
pub(super) fn struck(trace: &std::path::Path) -> bool {
    let text = std::fs::read_to_string(trace).unwrap_or_default();
    text.contains("(INJECTED)") || text.contains("killed by SIGKILL")
}
