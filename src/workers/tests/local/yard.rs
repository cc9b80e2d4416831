//! What the tests stand on: a pool in a temporary directory, and orders in one line.

use std::io::{IoSlice, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use yard_engine::{DispatchId, Millis};
use yard_workers::{
    ExitRecord, Helper, LocalPool, RunSpec, StartOrder, StepSpec, Surface, WorkerReport, shim_main,
};

/// Nothing here takes this long; a test that waits so long has failed.
const DEADLINE: Duration = Duration::from_secs(30);

/// Whether the tests that run now have their workers in tmux.
static IN_TMUX: AtomicBool = AtomicBool::new(false);

pub(crate) fn run_on(surface: Surface) {
    IN_TMUX.store(surface == Surface::Tmux, Ordering::Relaxed);
}

pub(crate) fn surface() -> Surface {
    if IN_TMUX.load(Ordering::Relaxed) { Surface::Tmux } else { Surface::None }
}

pub(crate) fn id(text: &str) -> DispatchId {
    DispatchId::parse(text).expect("a dispatch id")
}

/// Waits until something is true.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < DEADLINE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process runs (one that only waits to be reaped does not).
pub(crate) fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

/// The process a process is a child of.
pub(crate) fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let rest = stat.rsplit(')').next().expect("fields");
    rest.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a parent")
}

pub(crate) fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).status();
    assert!(status.expect("kill runs").success(), "kill -{signal} {pid}");
}

fn helper() -> Helper {
    let exe = std::env::current_exe().expect("this program");
    Helper { exe, args: vec!["__forkserver".into()] }
}

pub(crate) struct Yard {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) run: PathBuf,
    pool: Option<LocalPool>,
    reports: Receiver<WorkerReport>,
    seen: Vec<WorkerReport>,
}

impl Yard {
    pub(crate) fn new() -> Self {
        Self::with_run_dir("run")
    }

    pub(crate) fn with_run_dir(name: &str) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let run = dir.path().join(name);
        std::fs::create_dir_all(&run).expect("created");
        let mut yard = Self { dir, run, pool: None, reports: mpsc::channel().1, seen: Vec::new() };
        yard.open();
        yard
    }

    /// A directory without a pool: for a daemon in another process.
    pub(crate) fn closed() -> Self {
        let mut yard = Self::new();
        yard.close();
        yard
    }

    pub(crate) fn open(&mut self) {
        self.open_with(helper());
    }

    pub(crate) fn open_with(&mut self, helper: Helper) {
        let (send, reports) = mpsc::channel();
        let report = Box::new(move |report| drop(send.send(report)));
        self.pool = Some(LocalPool::open_with_helper(&self.run, helper, report).expect("a pool"));
        self.reports = reports;
        self.seen.clear();
    }

    pub(crate) fn close(&mut self) {
        self.pool = None;
    }

    pub(crate) fn pool(&mut self) -> &mut LocalPool {
        self.pool.as_mut().expect("an open pool")
    }

    pub(crate) fn claim(&self, dispatch: &str) -> PathBuf {
        self.run.join(format!("{dispatch}.claim"))
    }

    pub(crate) fn log(&self, dispatch: &str) -> String {
        let bytes = std::fs::read(self.dir.path().join(format!("{dispatch}.log"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A file in the directory where payloads run.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn number_in(&self, name: &str) -> u32 {
        let path = self.file(name);
        let read = || std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        eventually(name, || read().is_some());
        read().expect("a number")
    }

    /// A spec whose steps are shell scripts.
    pub(crate) fn spec(&self, dispatch: &str, scripts: &[&str]) -> RunSpec {
        let step = |(n, script): (usize, &&str)| StepSpec {
            id: format!("s{}", n + 1),
            argv: vec!["sh".into(), "-c".into(), (*script).into()],
            stdin: None,
            timeout: None,
            agent: None,
            tail: 0,
        };
        RunSpec {
            steps: scripts.iter().enumerate().map(step).collect(),
            cwd: self.dir.path().to_path_buf(),
            env: vec![
                ("YM_DISPATCH".into(), dispatch.into()),
                ("YM_TOWN".into(), self.dir.path().display().to_string()),
            ],
            log: self.dir.path().join(format!("{dispatch}.log")),
            log_cap: 1 << 20,
            kill_grace: Millis(300),
            hard_cap: None,
            first_step: 0,
            worktree: None,
            session: None,
        }
    }

    pub(crate) fn start_spec(&mut self, dispatch: &str, spec: RunSpec) {
        let order = StartOrder { dispatch: id(dispatch), spec, surface: surface() };
        self.pool().start(order).expect("handed over");
    }

    pub(crate) fn start(&mut self, dispatch: &str, scripts: &[&str]) {
        let spec = self.spec(dispatch, scripts);
        self.start_spec(dispatch, spec);
    }

    /// The next report that fits; others are kept.
    #[track_caller]
    pub(crate) fn report(&mut self, mut fits: impl FnMut(&WorkerReport) -> bool) -> WorkerReport {
        if let Some(place) = self.seen.iter().position(&mut fits) {
            return self.seen.remove(place);
        }
        let until = Instant::now() + DEADLINE;
        loop {
            match self.reports.try_recv() {
                Ok(report) if fits(&report) => return report,
                Ok(report) => self.seen.push(report),
                Err(_) => {
                    assert!(Instant::now() < until, "the report never came; got {:?}", self.seen);
                    self.pool().attend(Duration::from_secs(1));
                }
            }
        }
    }

    #[track_caller]
    pub(crate) fn running(&mut self, dispatch: &str) -> u32 {
        let wanted = id(dispatch);
        match self.report(|r| matches!(r, WorkerReport::Running { dispatch, .. } if *dispatch == wanted)) {
            WorkerReport::Running { pid, .. } => pid,
            other => panic!("{other:?}"),
        }
    }

    /// The final report of a dispatch.
    #[track_caller]
    pub(crate) fn last(&mut self, dispatch: &str) -> WorkerReport {
        let wanted = id(dispatch);
        self.report(|r| {
            r.dispatch() == &wanted
                && !matches!(r, WorkerReport::Running { .. } | WorkerReport::StepDone { .. })
        })
    }

    #[track_caller]
    pub(crate) fn ended(&mut self, dispatch: &str) -> ExitRecord {
        match self.last(dispatch) {
            WorkerReport::Ended { exit, .. } => exit,
            other => panic!("{other:?}"),
        }
    }

    /// Reports that have arrived and were not asked for.
    pub(crate) fn rest(&mut self) -> Vec<WorkerReport> {
        self.seen.extend(self.reports.try_iter());
        std::mem::take(&mut self.seen)
    }

    /// Writes an order where a standalone shim or a mortal daemon finds it.
    pub(crate) fn order_file(&self, name: &str, spec: &RunSpec) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, serde_json::to_vec(spec).expect("JSON")).expect("written");
        path
    }

    /// A daemon in its own process that starts these orders and then waits to be killed.
    pub(crate) fn daemon(&self, orders: &[(&str, RunSpec)]) -> Child {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg(if surface() == Surface::Tmux { "__tmux_daemon" } else { "__daemon" }).arg(&self.run);
        for (dispatch, spec) in orders {
            command.arg(dispatch).arg(self.order_file(&format!("{dispatch}.order"), spec));
        }
        command.stdin(Stdio::null()).spawn().expect("a daemon")
    }

    /// What the town's tmux server answers.
    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        let output = command.args(["-S", "tmux.sock"]).args(args).current_dir(&self.run).output();
        String::from_utf8_lossy(&output.expect("tmux runs").stdout).into_owned()
    }

    pub(crate) fn shim(&self, dispatch: &str, spec: &Path) -> Option<i32> {
        Command::new(std::env::current_exe().expect("this program"))
            .arg("__shim")
            .args([&self.run, Path::new(dispatch), spec])
            .status()
            .expect("a shim")
            .code()
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        self.close();
        if surface() == Surface::Tmux {
            let _ = self.tmux(&["kill-server"]);
        }
    }
}

/// `__shim RUN_DIR DISPATCH SPEC_FILE`
pub(crate) fn standalone_shim(args: &[String]) -> ExitCode {
    shim_main(Path::new(&args[0]), &id(&args[1]), Path::new(&args[2]))
}

/// `__daemon RUN_DIR [DISPATCH SPEC_FILE]…`: starts everything, then waits to be killed.
pub(crate) fn mortal_daemon(args: &[String]) -> ExitCode {
    let helper = Helper { exe: "/proc/self/exe".into(), args: vec!["__forkserver".into()] };
    let mut pool =
        LocalPool::open_with_helper(Path::new(&args[0]), helper, Box::new(|_| {})).expect("a pool");
    for order in args[1..].chunks(2) {
        let text = std::fs::read(&order[1]).expect("an order");
        let spec = serde_json::from_slice(&text).expect("a spec");
        pool.start(StartOrder { dispatch: id(&order[0]), spec, surface: surface() }).expect("handed over");
    }
    loop {
        pool.attend(DEADLINE);
    }
}

/// A pooled shim without a pool: the test says what it likes.
pub(crate) struct RawShim {
    socket: UnixStream,
    server: Child,
    control: Option<UnixStream>,
}

impl RawShim {
    pub(crate) fn new() -> Self {
        let (control, theirs) = UnixStream::pair().expect("sockets");
        let Helper { exe, args } = helper();
        let server = Command::new(exe).args(args).stdin(OwnedFd::from(theirs)).spawn();
        let (socket, theirs) = UnixStream::pair().expect("sockets");
        let descriptors = [theirs.as_raw_fd()];
        let message = [ControlMessage::ScmRights(&descriptors)];
        let parts = [IoSlice::new(b"s")];
        sendmsg::<()>(control.as_raw_fd(), &parts, &message, MsgFlags::empty(), None).expect("sent");
        Self { socket, server: server.expect("a fork server"), control: Some(control) }
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.socket.write_all(&(text.len() as u32).to_le_bytes()).expect("sent");
        self.socket.write_all(text.as_bytes()).expect("sent");
    }
}

impl Drop for RawShim {
    fn drop(&mut self) {
        self.control = None;
        self.server.wait().expect("it leaves by itself");
    }
}
