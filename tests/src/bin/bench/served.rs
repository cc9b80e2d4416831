//! A daemon over a town that lies ready: when it serves, what it weighs, and its end. Asked over its socket, because a
//! command that prints a hundred thousand beads would be measured with it.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use yard_client::{Ask, Connection, Request};
use yard_tests::town::{Town, kill_nine};

use crate::Fallible;
use crate::stage::memory_of;

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(1);
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_mins(5);
/// Memory that has not changed for so long is settled.
const SETTLED: Duration = Duration::from_secs(3);

/// A running daemon. Everything of its town ends with it.
pub(crate) struct Daemon {
    town: Town,
    child: Child,
    /// How long it took from its start until it served.
    pub(crate) opened: Duration,
}

impl Daemon {
    /// Starts one and waits until it says that it runs.
    pub(crate) fn start(root: &Path) -> Fallible<Self> {
        let town = Town::found(root);
        let log = std::fs::File::options().create(true).append(true).open(root.join("daemon.log"))?;
        let began = Instant::now();
        let child =
            town.command(["--daemon"]).stdout(log.try_clone()?).stderr(log).stdin(Stdio::null()).spawn()?;
        let mut daemon = Self { town, child, opened: Duration::ZERO };
        while daemon.opened < PATIENCE {
            let running = daemon.ask(Ask::Status { summary: true });
            daemon.opened = began.elapsed();
            if running.is_ok_and(|status| status["daemon"]["running"] == true) {
                return Ok(daemon);
            }
            if let Some(status) = daemon.child.try_wait()? {
                return Err(
                    format!("the daemon ended with {status}; see {}/daemon.log", root.display()).into()
                );
            }
            thread::sleep(LOOK);
        }
        Err("the daemon never ran".into())
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The town's directory.
    pub(crate) fn root(&self) -> &Path {
        self.town.root()
    }

    /// The town's folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.root().join(".yardmaster")
    }

    /// What it answers.
    pub(crate) fn ask(&self, ask: Ask) -> Fallible<Value> {
        let mut connection = Connection::open(&self.folder())?;
        let request = Request { actor: "bench".to_owned(), ask };
        let answer = connection.ask(&request, |_| true)?.map_err(|refusal| refusal.message)?;
        Ok(serde_json::from_str(answer.0.get())?)
    }

    /// Resident memory in KiB, once it has settled.
    pub(crate) fn settled_memory(&self) -> Fallible<u64> {
        let until = Instant::now() + PATIENCE;
        let mut before = 0;
        while Instant::now() < until {
            let now = memory_of(self.pid(), "VmRSS:")?;
            if now == before {
                return Ok(now);
            }
            before = now;
            thread::sleep(SETTLED);
        }
        Err("its memory never settled".into())
    }

    /// Resident memory of everything else in the town, in KiB: fork server and shims, what they share counted once each.
    pub(crate) fn helpers_memory(&self) -> Fallible<u64> {
        let others = self.town.processes().into_iter().filter(|pid| *pid != self.pid());
        others.map(proportional).sum()
    }
}

/// The memory of a process in KiB, of what it shares only its part; nothing if it has just ended.
fn proportional(pid: u32) -> Fallible<u64> {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { return Ok(0) };
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    Ok(line.and_then(|line| line.split_whitespace().next()).map_or(Ok(0), str::parse)?)
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.town.processes().into_iter().filter(|pid| *pid != std::process::id()).for_each(kill_nine);
    }
}
