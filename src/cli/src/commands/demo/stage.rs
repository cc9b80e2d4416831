//! The demo's town and daemon. However the demo ends, by itself, by a signal or by a panic, both are gone afterwards.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use yard_client::Connection;
use yard_daemon::{TownDir, config};

use super::failed;
use crate::errors::Report;

/// How long the daemon may take to answer, and to go.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often the directory is tried to be removed.
const CLEARING: usize = 200;

/// A town that somebody serves, until this is dropped.
pub(super) struct Stage {
    town: TownDir,
    props: Arc<Mutex<Props>>,
    guard: Option<Guard>,
}

/// What must be cleared away.
#[derive(Default)]
struct Props {
    dir: Option<TempDir>,
    daemon: Option<Child>,
}

impl Stage {
    /// Makes a town with these settings and folders, and starts its daemon.
    pub(super) fn open(settings: &[(&str, String)], folders: &[&str]) -> Result<Self, Report> {
        let props: Arc<Mutex<Props>> = Arc::default();
        let guard = Guard::post(Arc::clone(&props));
        // A signal waits until everything is known that has to be cleared away.
        let built = lock(&props).build(settings, folders);
        let (town, log) = built.inspect_err(|_| clear_away(&props))?;
        let stage = Self { town, props, guard };
        stage.await_daemon().map_err(|why| {
            let said = fs::read_to_string(&log).unwrap_or_default();
            failed("the demo's daemon did not start", why).hint(said.lines().last().unwrap_or_default())
        })?;
        Ok(stage)
    }

    pub(super) fn town(&self) -> &TownDir {
        &self.town
    }

    /// Leaves the signals to somebody who minds them himself, as the console does, and who returns when one comes.
    pub(super) fn leave_signals_to_others(&mut self) {
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
    }

    fn await_daemon(&self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let why = match Connection::open(&self.town.folder()) {
                Ok(_) => return Ok(()),
                Err(error) => error.to_string(),
            };
            let gone =
                lock(&self.props).daemon.as_mut().is_none_or(|daemon| !matches!(daemon.try_wait(), Ok(None)));
            if gone || Instant::now() > until {
                return Err(why);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        clear_away(&self.props);
        // After a signal there is nothing more to say: the guard ends the process.
        while self.guard.as_ref().is_some_and(|guard| guard.alarmed.load(Ordering::SeqCst)) {
            std::thread::park();
        }
    }
}

fn start_daemon(town: &TownDir, log: &Path) -> Result<Child, Report> {
    let program = std::env::current_exe().map_err(|error| failed("cannot find ym itself", error))?;
    let mut command = Command::new(program);
    command.arg("__demo_daemon").arg(town.root());
    command.env_remove("YM_TOWN").current_dir(town.root());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(log)?);
    // A group of its own: Ctrl-C is for us, and we end the daemon in order.
    command.process_group(0);
    command.spawn().map_err(|error| failed("cannot start the demo's daemon", error))
}

/// Has this process, the demo's daemon, end with the one that started it, even if that is killed outright.
pub(crate) fn end_with_parent() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM);
}

impl Props {
    /// Makes the directory, a town in it, and has it served. Also says where the daemon's log is.
    fn build(&mut self, settings: &[(&str, String)], folders: &[&str]) -> Result<(TownDir, PathBuf), Report> {
        let dir = tempfile::Builder::new().prefix("ym-demo-").tempdir();
        let dir =
            self.dir.insert(dir.map_err(|error| failed("cannot make a directory for the demo", error))?);
        let town =
            TownDir::create(dir.path()).map_err(|error| failed("cannot make the demo's town", error))?;
        for folder in folders {
            fs::create_dir(town.root().join(folder))?;
        }
        for (key, value) in settings {
            config::set(&town.config(), key, value)?;
        }
        town.begin_journal()?;
        let log = town.folder().join("daemon.log");
        self.daemon = Some(start_daemon(&town, &log)?);
        Ok((town, log))
    }
}

fn lock(props: &Mutex<Props>) -> MutexGuard<'_, Props> {
    props.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whoever comes first clears away; whoever comes second waits for that and finds nothing left.
fn clear_away(props: &Mutex<Props>) {
    let mut props = lock(props);
    if let Some(mut daemon) = props.daemon.take() {
        let _ = kill(Pid::from_raw(daemon.id().cast_signed()), Signal::SIGTERM);
        let until = Instant::now() + PATIENCE;
        while matches!(daemon.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = daemon.kill();
                let _ = daemon.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let Some(dir) = props.dir.take().map(TempDir::keep) else { return };
    // Whoever was just asking the town something may still be writing there.
    for _ in 0..CLEARING {
        let _ = fs::remove_dir_all(&dir);
        if !dir.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A thread that waits for the signals that end a program in the foreground. Children inherit the block; a daemon
/// lifts it for itself.
struct Guard {
    signals: SigSet,
    dismissed: Arc<AtomicBool>,
    /// A signal came, and the process is about to end.
    alarmed: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Guard {
    fn post(props: Arc<Mutex<Props>>) -> Option<Self> {
        let mut signals = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            signals.add(signal);
        }
        signals.thread_block().ok()?;
        let dismissed = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&dismissed);
        let alarmed = Arc::new(AtomicBool::new(false));
        let alarm = Arc::clone(&alarmed);
        let thread = std::thread::spawn(move || {
            let Ok(signal) = signals.wait() else { return };
            if !told.load(Ordering::SeqCst) {
                alarm.store(true, Ordering::SeqCst);
                clear_away(&props);
                std::process::exit(128 + signal as i32);
            }
        });
        Some(Self { signals, dismissed, alarmed, thread })
    }

    /// Ends the watch. The signal by which the thread learns of it reaches nobody else, because everybody blocks it.
    fn dismiss(self) {
        self.dismissed.store(true, Ordering::SeqCst);
        if kill(Pid::this(), Signal::SIGHUP).is_ok() {
            let _ = self.thread.join();
        }
        let _ = self.signals.thread_unblock();
    }
}
