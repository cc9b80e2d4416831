//! The whole command: `ym convoy stage EPIC --json` asked of a running daemon that has read the file. What it costs is
//! the processor time of both, until the daemon rests again, and the memory both need for it.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::ClockId;
use nix::unistd::Pid;
use serde::Deserialize;
use serde::de::IgnoredAny;
use yard_tests::town::Town;

use crate::Fallible;
use crate::export::Export;
use crate::layered::Layered;
use crate::ours::RIG;
use crate::stage::{Measured, Part, RUNS, memory_of, span_of};

/// A daemon that used no processor time for this long rests. Longer than a file must stay unchanged to be looked at for
/// the last time.
const REST: Duration = Duration::from_millis(1500);

/// Stages everything in the file several times, each time as if it were the first; the run in the middle counts.
pub(crate) fn measure(file: &Path) -> Fallible<Measured> {
    let yard = Served::start(file)?;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let (measured, convoy) = yard.stage()?;
        runs.push(measured);
        yard.town.run(["convoy", "close", &convoy, "--force"]).ok();
    }
    runs.sort_by_key(Measured::total);
    Ok(runs.swap_remove(RUNS / 2))
}

/// A town whose daemon has read the file.
struct Served {
    town: Town,
    daemon: u32,
}

impl Served {
    fn start(file: &Path) -> Fallible<Self> {
        let mut town = Town::new();
        // It would look at every bead while we measure something else.
        town.set("scheduler.safety_scan", "1h");
        let workspace = Export::create(&town.root().join(RIG))?;
        std::fs::copy(file, workspace.dir().join(".beads/issues.jsonl"))?;
        let daemon = town.start_daemon();
        let dir = workspace.dir().display().to_string();
        town.run(["rig", "add", RIG, "--prefix", RIG, "--path", &dir]).ok();
        Ok(Self { town, daemon })
    }

    /// Stages the epic once it is quiet; says which convoy that made.
    fn stage(&self) -> Fallible<(Measured, String)> {
        let before = self.at_rest()?;
        let memory_before = memory_of(self.daemon, "VmRSS:")?;
        // Has the kernel forget the peaks so far: the daemon's, and ours, which every child begins with.
        std::fs::write(format!("/proc/{}/clear_refs", self.daemon), "5")?;
        std::fs::write("/proc/self/clear_refs", "5")?;
        let client_before = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let mut command = self.town.command(["--json", "convoy", "stage", &Layered::epic(RIG)]);
        let moment = Instant::now();
        let output = command.stderr(Stdio::inherit()).output()?;
        let wall = moment.elapsed();
        let client = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let daemon = self.at_rest()?;
        let told: Told = serde_json::from_slice(&output.stdout)?;
        let mut measured = Measured { plan: told.describe(), ..Measured::default() };
        let convoy = told.convoy_id.ok_or("the epic cannot be staged")?;
        measured.parts.push(Part {
            name: "client".to_owned(),
            span: span_of(&client)?.saturating_sub(span_of(&client_before)?),
            wall,
            before: 0,
            peak: u64::try_from(client.max_rss())?,
        });
        measured.parts.push(Part {
            name: "daemon".to_owned(),
            span: daemon.saturating_sub(before),
            // The client waits for it.
            wall: Duration::ZERO,
            before: memory_before,
            peak: memory_of(self.daemon, "VmHWM:")?,
        });
        Ok((measured, convoy))
    }

    /// Waits until the daemon has nothing to do; its processor time so far.
    fn at_rest(&self) -> Fallible<Duration> {
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(self.daemon)?))?;
        let mut before = Duration::from(clock.now()?);
        loop {
            thread::sleep(REST);
            let now = Duration::from(clock.now()?);
            // Idling costs a little too.
            if now.saturating_sub(before) < REST / 1000 {
                return Ok(now);
            }
            before = now;
        }
    }
}

/// What counts of the answer. The rest would take ten times the memory of what is measured.
#[derive(Deserialize)]
struct Told {
    status: String,
    convoy_id: Option<String>,
    waves: Vec<IgnoredAny>,
    errors: Vec<IgnoredAny>,
}

impl Told {
    fn describe(&self) -> String {
        format!("{}, {} waves, {} errors", self.status, self.waves.len(), self.errors.len())
    }
}
