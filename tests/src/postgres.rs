//! A real PostgreSQL server of a test's own: its data, its socket and its port are nobody else's, and it ends with the test.
//!
//! The crates that test the journal alone include this file too, so it knows nothing of towns.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};
use tempfile::TempDir;

/// How long the server may take to do something.
const PATIENCE: Duration = Duration::from_mins(1);

/// The name of the superuser of every test server.
const OWNER: &str = "yard";

/// A server that is running, or can be started again.
#[derive(Debug)]
pub struct PostgresServer {
    dir: TempDir,
    port: u16,
    settings: Vec<String>,
    postmaster: Option<Child>,
}

impl PostgresServer {
    /// A server with an empty database. It may forget what a power cut would take, which tests of processes never notice.
    pub fn start() -> Self {
        Self::start_with(&["fsync=off", "full_page_writes=off"])
    }

    /// The same with these settings instead.
    pub fn start_with(settings: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("ym-pg-").tempdir().expect("a temporary directory");
        // The server is another user where tests are root's.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let socket = dir.path().join("s");
        fs::create_dir(&socket).expect("a directory");
        copy_tree(&template(), &dir.path().join("data"));
        give_away(dir.path());
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("it can be opened");
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut server = Self { dir, port: free_port(), settings, postmaster: None };
        server.go();
        server
    }

    /// The address of a schema in it, by its Unix socket.
    pub fn url(&self, schema: &str) -> String {
        let socket = self.dir.path().join("s");
        let socket = socket.to_str().expect("utf-8").replace('/', "%2F");
        format!("postgres://{OWNER}@/postgres?host={socket}&port={}&schema={schema}", self.port)
    }

    /// The same by the loopback network.
    pub fn loopback_url(&self, schema: &str) -> String {
        format!("postgres://{OWNER}@127.0.0.1:{}/postgres?schema={schema}", self.port)
    }

    /// Ends it at once, as a crash would, and starts it again.
    pub fn crash_and_restart(&mut self) {
        self.end(Signal::SIGQUIT);
        self.go();
    }

    /// Ends it; sessions are cut off.
    pub fn stop(&mut self) {
        self.end(Signal::SIGINT);
    }

    /// Starts it again.
    pub fn go(&mut self) {
        let log = fs::File::options().create(true).append(true).open(self.dir.path().join("log"));
        let log = log.expect("the log can be written");
        let mut command = as_server_user(&binaries().join("postgres"));
        command.arg("-D").arg(self.dir.path().join("data")).arg("-k").arg(self.dir.path().join("s"));
        command.args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        for setting in
            ["shared_buffers=16MB", "max_connections=60", "jit=off", "max_wal_senders=0", "wal_level=minimal"]
        {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
        self.postmaster = Some(command.spawn().expect("the server can be run"));
        let until = Instant::now() + PATIENCE;
        while !self.is_ready() {
            let ended = self.postmaster.as_mut().and_then(|it| it.try_wait().ok().flatten());
            assert!(ended.is_none() && Instant::now() < until, "no server: {}", self.log());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// What the server has said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Says so itself, in the file that names its process.
    fn is_ready(&self) -> bool {
        let status = fs::read_to_string(self.dir.path().join("data/postmaster.pid")).unwrap_or_default();
        let pid = self.postmaster.as_ref().map(|it| it.id().to_string());
        status.lines().next().map(str::to_owned) == pid
            && status.lines().nth(7).is_some_and(|it| it.starts_with("ready"))
    }

    fn end(&mut self, signal: Signal) {
        let Some(mut postmaster) = self.postmaster.take() else { return };
        let _ = kill(Pid::from_raw(postmaster.id() as i32), signal);
        let until = Instant::now() + PATIENCE;
        while matches!(postmaster.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = postmaster.kill();
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end(Signal::SIGQUIT);
    }
}

/// Where the server's programs are: Debian keeps them out of the path.
pub fn binaries() -> PathBuf {
    let versions =
        fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|it| it.path().join("bin"));
    let mut found: Vec<PathBuf> = versions.filter(|bin| bin.join("initdb").exists()).collect();
    found.sort_by_key(|bin| {
        bin.to_string_lossy().bytes().filter(u8::is_ascii_digit).fold(0, |n, d| n * 10 + u32::from(d - b'0'))
    });
    found.pop().unwrap_or_else(|| {
        let said = Command::new("pg_config")
            .arg("--bindir")
            .output()
            .expect("PostgreSQL is installed: see tests/run");
        String::from_utf8_lossy(&said.stdout).trim().into()
    })
}

/// The server refuses to be root, so root's tests run it as somebody else. It ends with the thread that started it.
fn as_server_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    if let Some(user) = server_user() {
        command.args(["--reuid", &user.uid.to_string(), "--regid", &user.gid.to_string(), "--clear-groups"]);
    }
    command.arg("--").arg(program).env("LC_ALL", "C").current_dir("/");
    command
}

fn server_user() -> Option<User> {
    let by_name = |name| User::from_name(name).ok().flatten();
    geteuid()
        .is_root()
        .then(|| by_name("postgres").or_else(|| by_name("nobody")).expect("a user who is not root"))
}

fn give_away(path: &Path) {
    if let Some(user) = server_user() {
        let owner = format!("{}:{}", user.uid, user.gid);
        let given = Command::new("chown").args(["-R", &owner]).arg(path).status();
        assert!(given.expect("chown can be run").success());
    }
}

fn copy_tree(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp can be run").success());
}

/// A fresh data directory, made once and kept beside what cargo builds.
fn template() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let target = test.ancestors().nth(3).expect("target/PROFILE/deps/TEST").to_owned();
    let version =
        binaries().parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let kept = target.join("test-tools").join(format!("postgres-{version}-{}", geteuid()));
    // A link's target may have been made by somebody else.
    if kept.symlink_metadata().is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw()) {
        return kept;
    }
    let fresh = tempfile::Builder::new().prefix("ym-pg-template-").tempdir().expect("a temporary directory");
    fs::set_permissions(fresh.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    give_away(fresh.path());
    let data = fresh.path().join("data");
    let mut initdb = as_server_user(&binaries().join("initdb"));
    initdb
        .args(["-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1", "-D"])
        .arg(&data);
    let made = initdb.output().expect("initdb can be run");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::create_dir_all(kept.parent().expect("a folder")).expect("it can be made");
    let own = kept.with_extension(std::process::id().to_string());
    let _ = fs::remove_dir_all(&own);
    let copied = Command::new("cp").arg("-r").arg(&data).arg(&own).status();
    assert!(copied.expect("cp can be run").success());
    // Another test may have been faster, which is as good.
    if fs::rename(&own, &kept).is_err() {
        let _ = fs::remove_dir_all(&own);
    }
    kept
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it has an address").port()
}
