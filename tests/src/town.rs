//! A throw-away town driven through the real `ym` binary, as its users would.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::postgres::PostgresServer;
use crate::slurm::Cluster;

/// How long a condition is waited for before the test fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// The Python that has the tools tests use, which `tests/run` installs.
pub fn tool_python() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    let python = target.join("test-tools/venv/bin/python");
    assert!(python.exists(), "{} is missing: tests/run installs it", python.display());
    python
}

thread_local! {
    /// Where the journals of this thread's next towns are to be, if not in files.
    static STORE: RefCell<Option<Box<dyn FnMut() -> String>>> = const { RefCell::new(None) };
}

/// Runs a test whose towns have their journals in a PostgreSQL server of its own.
pub fn on_postgres(test: impl FnOnce()) {
    let server = PostgresServer::start();
    let urls: Vec<String> = (1..100).map(|n| server.url(&format!("town_{n}"))).collect();
    let mut urls = urls.into_iter();
    STORE.set(Some(Box::new(move || urls.next().expect("fewer towns"))));
    test();
    STORE.set(None);
}

/// The program under test: `YM_BIN`, or the one built beside this test.
pub fn ym_binary() -> PathBuf {
    if let Some(path) = std::env::var_os("YM_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("the test has a path");
    let built = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST").join("ym");
    assert!(built.exists(), "build ym first: cargo build --bin ym (or set YM_BIN)");
    built
}

/// What a `ym` command did.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; 128 + n after signal n.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    /// The output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("not JSON ({e}): {} {}", self.stdout, self.stderr))
    }

    /// Fails the test unless the command succeeded.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The `code` of a JSON error.
    pub fn error_code(&self) -> String {
        assert_ne!(self.code, 0, "this should have been refused: {}", self.stdout);
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// What the towns of the whole suite stand on, if not on files and processes of this machine: `tests/run --full` says so.
fn suite_on(what: &str) -> bool {
    std::env::var_os("YM_TEST_ON").is_some_and(|on| on == what)
}

/// A throw-away town.
#[derive(Debug)]
pub struct Town {
    /// Where its jobs run, if it has any.
    cluster: Option<Cluster>,
    /// Where its journal is, if it has a server of its own.
    server: Option<PostgresServer>,
    dir: Option<TempDir>,
    root: PathBuf,
    daemon: Option<Child>,
}

impl Default for Town {
    fn default() -> Self {
        Self::new()
    }
}

impl Town {
    /// An empty town with one rig `yard`, prefix `y`, on what the suite runs on.
    pub fn new() -> Self {
        if let Some(url) = STORE.with_borrow_mut(|next| next.as_mut().map(|next| next())) {
            return Self::with_store(&url);
        }
        if suite_on("postgres") {
            let server = PostgresServer::start();
            let mut town = Self::with_store(&server.url("yard"));
            town.server = Some(server);
            return town;
        }
        let mut town = Self::here();
        if suite_on("slurm") {
            town.cluster = Some(Cluster::start());
            let config = town.root.join(".yardmaster/config.toml");
            std::fs::write(config, "[worker]\nexecutor = \"slurm\"\n").expect("the config is ours");
        }
        town
    }

    /// The same, whose journal is a file and whose workers are processes here, for tests of just these.
    pub fn here() -> Self {
        Self::made(&[])
    }

    /// The same, whose workers are processes here wherever its journal is, for tests of these or of every single event.
    pub fn local() -> Self {
        if suite_on("slurm") { Self::here() } else { Self::new() }
    }

    /// The same, whose journal is kept there.
    pub fn with_store(url: &str) -> Self {
        Self::made(&["--store", url])
    }

    fn made(options: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("ym-test-").tempdir().expect("a temporary directory");
        let root = dir.path().join("yard");
        let mut town = Self::found(&root);
        town.dir = Some(dir);
        let init = ["init", root.to_str().expect("utf-8"), "--prefix", "y"];
        town.run(init.iter().chain(options)).ok();
        town
    }

    /// The same, whose workers run by this executor; with a cluster of its own, if that needs one.
    pub fn with_executor(executor: &str) -> Self {
        match executor {
            "slurm" => Self::on_cluster(Cluster::start()),
            "local" if suite_on("slurm") => Self::new(),
            _ => Self::local().by(executor),
        }
    }

    /// The same on this cluster.
    pub fn on_cluster(cluster: Cluster) -> Self {
        let mut town = Self::local().by("slurm");
        town.cluster = Some(cluster);
        town
    }

    fn by(self, executor: &str) -> Self {
        self.set("worker.executor", executor);
        self
    }

    /// The cluster of a town that has one.
    pub fn cluster(&mut self) -> &mut Cluster {
        self.cluster.as_mut().expect("a town with the executor slurm")
    }

    /// What the tmux server of this town answers.
    pub fn tmux(&self, args: &[&str]) -> Ran {
        let mut tmux = Command::new("tmux");
        tmux.args(["-S", "tmux.sock"]).args(args).current_dir(self.root.join(".yardmaster/run"));
        ran(tmux.output().expect("tmux can be run"))
    }

    /// A town in a given empty directory.
    pub fn at(root: &Path) -> Self {
        let town = Self::found(root);
        town.run(["init", root.to_str().expect("utf-8"), "--prefix", "y"]).ok();
        town
    }

    /// A town that somebody else has made.
    pub fn found(root: &Path) -> Self {
        Self { cluster: None, server: None, root: root.to_owned(), dir: None, daemon: None }
    }

    /// The town's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A `ym` command for this town, not yet run.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(ym_binary());
        command.args(args).env("YM_TOWN", &self.root).env("USER", "tester");
        command.env_remove("YM_ACTOR").env_remove("YM_AGENT");
        command.envs(self.cluster_config().map(|config| ("SLURM_CONF", config)));
        command.current_dir(self.dir.as_ref().map_or(Path::new("/"), |d| d.path()));
        command.stdin(Stdio::null());
        command
    }

    /// Where its cluster is described, if it has one.
    pub fn cluster_config(&self) -> Option<PathBuf> {
        self.cluster.as_ref().map(Cluster::config)
    }

    /// Runs a `ym` command to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        let output = self.command(args).output().expect("ym can be run");
        ran(output)
    }

    /// Runs a `ym` command with text on standard input.
    pub fn run_with_input<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, input: &[u8]) -> Ran {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("ym can be run");
        child.stdin.take().expect("piped").write_all(input).expect("ym reads its input");
        ran(child.wait_with_output().expect("ym ends"))
    }

    /// Runs a command that must succeed, with `--json`.
    pub fn json<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Value {
        let args = args.into_iter().map(|a| a.as_ref().to_owned());
        self.run(std::iter::once("--json".into()).chain(args)).ok().json()
    }

    /// Runs a command that must be refused, with `--json`, and returns the error code.
    pub fn refused<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let args = args.into_iter().map(|a| a.as_ref().to_owned());
        self.run(std::iter::once("--json".into()).chain(args)).error_code()
    }

    /// Sets a config key.
    pub fn set(&self, key: &str, value: &str) {
        self.run(["config", "set", key, value]).ok();
    }

    /// Makes a bead that runs a shell command.
    pub fn shell_bead(&self, id: &str, script: &str) {
        self.run(["bead", "add", id, "--id", id, "--", "sh", "-c", script]).ok();
    }

    /// Where a bead stands.
    pub fn state_of(&self, id: &str) -> String {
        self.json(["why", id])["state"].as_str().unwrap_or_default().to_owned()
    }

    /// The codes of the reasons why a bead does not run.
    pub fn reasons_of(&self, id: &str) -> Vec<String> {
        let why = self.json(["why", id]);
        let reasons = why["reasons"].as_array().cloned().unwrap_or_default();
        reasons.iter().map(|r| r["code"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// All events, or those of one type.
    pub fn events(&self, kind: Option<&str>) -> Vec<Value> {
        let mut args = vec!["--json", "events"];
        if let Some(kind) = kind {
            args.extend(["--type", kind]);
        }
        let ran = self.run(args).ok();
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("an event a line")).collect()
    }

    /// Starts the daemon and waits until it serves.
    pub fn start_daemon(&mut self) -> u32 {
        self.start_daemon_with(&[])
    }

    /// The same, with more in its environment.
    pub fn start_daemon_with(&mut self, env: &[(&str, &str)]) -> u32 {
        let pid = self.begin_daemon(env);
        self.await_daemon(pid);
        pid
    }

    /// Starts a daemon that may have to stand by.
    pub fn begin_daemon(&mut self, env: &[(&str, &str)]) -> u32 {
        let mut command = self.command(["--daemon"]);
        command.envs(env.iter().copied());
        let log = std::fs::File::options().create(true).append(true).open(self.root.join("daemon.log"));
        let log = log.expect("the log can be written");
        command.stdout(log.try_clone().expect("a descriptor")).stderr(log);
        let child = command.spawn().expect("the daemon can be run");
        let pid = child.id();
        self.daemon = Some(child);
        pid
    }

    /// Waits until this process serves the town.
    pub fn await_daemon(&self, pid: u32) {
        wait_until("the daemon serves", || {
            let status = self.run(["--json", "status"]);
            status.code == 0 && status.json()["daemon"]["pid"] == pid
        });
    }

    /// The daemon's process id.
    pub fn daemon_pid(&self) -> Option<u32> {
        self.daemon.as_ref().map(Child::id)
    }

    /// `kill -9` of the daemon.
    pub fn kill_daemon(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().expect("it can be killed");
            daemon.wait().expect("it ends");
        }
    }

    /// Drains and stops the daemon.
    pub fn stop_daemon(&mut self) {
        self.run(["stop"]).ok();
        if let Some(mut daemon) = self.daemon.take() {
            let status = daemon.wait().expect("it ends");
            assert!(status.success(), "the daemon ended with {status}");
        }
    }

    /// Waits until a bead stands somewhere.
    pub fn await_state(&self, id: &str, state: &str) {
        wait_until(&format!("{id} is {state}"), || self.state_of(id) == state);
    }

    /// Process ids whose command line or environment belongs to this town, except the given ones.
    pub fn processes(&self) -> Vec<u32> {
        let town = format!("YM_TOWN={}", self.root.display()).into_bytes();
        processes().into_iter().filter(|pid| environment_has(*pid, &town)).collect()
    }
}

impl Drop for Town {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = self.command(["stop", "--timeout", "1s"]).output();
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// What a program did.
pub fn ran(output: std::process::Output) -> Ran {
    let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0));
    Ran {
        code,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Looks again and again until the condition holds; fails the test when it takes too long.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "waited too long for: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// All process ids.
pub fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a process has exactly this `NAME=value` in its environment.
pub fn environment_has(pid: u32, variable: &[u8]) -> bool {
    let text = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    text.split(|b| *b == 0).any(|v| v == variable)
}

/// The command line of a process, arguments joined by blanks.
pub fn command_line(pid: u32) -> String {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&text).replace('\0', " ").trim().to_owned()
}

/// The parent of a process.
pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Whether a process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Sends SIGKILL.
pub fn kill_nine(pid: u32) {
    let pid = nix::unistd::Pid::from_raw(pid as i32);
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
}
