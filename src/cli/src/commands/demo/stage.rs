//! The demo's town and daemon. However the demo ends, by itself or by a signal, both are gone afterwards.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use yard_client::Connection;
use yard_daemon::{TownDir, config};

use super::failed;
use super::work::RIGS;
use crate::errors::Report;

/// How long the daemon may take to answer, and to go.
const PATIENCE: Duration = Duration::from_secs(15);

/// A town that somebody serves.
pub(super) struct Stage {
    town: TownDir,
    props: Arc<Mutex<Option<Props>>>,
}

/// What must be cleared away.
struct Props {
    daemon: Child,
    dir: TempDir,
}

impl Stage {
    /// Makes the town and starts its daemon.
    pub(super) fn open(workers: u32) -> Result<Self, Report> {
        let props: Arc<Mutex<Option<Props>>> = Arc::default();
        clear_away_on_signal(Arc::clone(&props));
        let dir = tempfile::Builder::new().prefix("ym-demo-").tempdir();
        let dir = dir.map_err(|error| failed("cannot make a directory for the demo", error))?;
        let town =
            TownDir::create(dir.path()).map_err(|error| failed("cannot make the demo's town", error))?;
        for rig in RIGS {
            fs::create_dir(town.root().join(rig))?;
        }
        let settings = [
            ("scheduler.max_polecats", workers.to_string()),
            ("retry.crash.backoff", "1s".to_owned()),
            ("limits.shutdown_timeout", "1s".to_owned()),
            ("limits.kill_grace", "1s".to_owned()),
        ];
        for (key, value) in settings {
            config::set(&town.config(), key, &value)?;
        }
        let log = town.folder().join("daemon.log");
        let daemon = start_daemon(&town, &log)?;
        *props.lock().unwrap_or_else(PoisonError::into_inner) = Some(Props { daemon, dir });
        let stage = Self { town, props };
        match stage.await_daemon() {
            Ok(()) => Ok(stage),
            Err(why) => {
                let said = fs::read_to_string(&log).unwrap_or_default();
                stage.close();
                Err(failed("the demo's daemon did not start", why)
                    .hint(said.lines().last().unwrap_or_default()))
            }
        }
    }

    pub(super) fn town(&self) -> &TownDir {
        &self.town
    }

    /// Ends the daemon and removes the town.
    pub(super) fn close(&self) {
        clear_away(&self.props);
    }

    fn await_daemon(&self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let why = match Connection::open(&self.town.folder()) {
                Ok(_) => return Ok(()),
                Err(error) => error.to_string(),
            };
            let mut props = self.props.lock().unwrap_or_else(PoisonError::into_inner);
            let gone = props.as_mut().is_none_or(|props| !matches!(props.daemon.try_wait(), Ok(None)));
            if gone || Instant::now() > until {
                return Err(why);
            }
            drop(props);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn start_daemon(town: &TownDir, log: &std::path::Path) -> Result<Child, Report> {
    let program = std::env::current_exe().map_err(|error| failed("cannot find ym itself", error))?;
    let mut command = Command::new(program);
    command.arg("--town").arg(town.root()).arg("--daemon");
    command.env_remove("YM_TOWN").current_dir(town.root());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(log)?);
    // A group of its own: Ctrl-C is for us, and we end the daemon in order.
    command.process_group(0);
    command.spawn().map_err(|error| failed("cannot start the demo's daemon", error))
}

/// Whoever comes first clears away; whoever comes second waits for that and finds nothing left.
fn clear_away(props: &Mutex<Option<Props>>) {
    let mut props = props.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Props { mut daemon, dir }) = props.take() else { return };
    let pid = Pid::from_raw(daemon.id().cast_signed());
    let _ = kill(pid, Signal::SIGTERM);
    let until = Instant::now() + PATIENCE;
    while matches!(daemon.try_wait(), Ok(None)) {
        if Instant::now() > until {
            let _ = daemon.kill();
            let _ = daemon.wait();
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = dir.close();
}

/// Has a thread wait for the signals that end a program in the foreground. Children inherit the block; a daemon
/// lifts it for itself.
fn clear_away_on_signal(props: Arc<Mutex<Option<Props>>>) {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    if signals.thread_block().is_err() {
        return;
    }
    std::thread::spawn(move || {
        if let Ok(signal) = signals.wait() {
            clear_away(&props);
            std::process::exit(128 + signal as i32);
        }
    });
}
