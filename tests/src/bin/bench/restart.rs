//! How long a daemon takes to come back over a long log and a long queue: until it serves, and until the first worker of
//! the queue has started.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use yard_tests::town::Town;

use crate::Fallible;
use crate::contest::middle;
use crate::effort::Effort;
use crate::graph::{stamp, stamps};
use crate::past::Past;
use crate::report::{Verdict, progress, say, verdict};
use crate::served::Daemon;
use crate::table::{Table, time};

/// Events in the log, and beads that wait.
const EVENTS: usize = 1_000_000;
const LIVE: usize = 100_000;
/// What it may take.
const BAR: Duration = Duration::from_secs(2);
/// How long the first worker is waited for.
const PATIENCE: Duration = Duration::from_mins(2);

/// Measures it; answers how many bars are missed.
pub(crate) fn run(effort: &Effort) -> Fallible<usize> {
    let (events, live) = (effort.size(EVENTS), effort.size(LIVE));
    let town = Town::new();
    town.set("scheduler.max_polecats", "2");
    let log = town.root().join("stamps");
    let made = Instant::now();
    let mut past = Past::of(town.root())?;
    let idle = ["/bin/true".to_owned()];
    // A waiting bead has two events.
    past.run_until((events - 2 * live) as u64, &idle)?;
    past.queue(live, &stamp(&log, "first", 0)?)?;
    let events = past.events();
    past.close()?;
    progress(&format!("  {events} events with {live} live beads made in {}", time(made.elapsed())));
    let (mut serves, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..effort.passes.max(if effort.quick { 1 } else { 3 }) {
        let copy = tempfile::Builder::new().prefix("ym-restart-").tempdir()?;
        let root = copy.path().join("yard");
        copy_town(town.root(), &root)?;
        let _ = std::fs::remove_file(&log);
        let moment = SystemTime::now();
        let daemon = Daemon::start(&root)?;
        serves.push(daemon.opened.as_secs_f64());
        starts.push(first_start(&log, moment)?.as_secs_f64());
        drop(daemon);
    }
    let span =
        |samples: &[f64]| middle(samples.iter().copied()).map(Duration::from_secs_f64).unwrap_or_default();
    let worst = |samples: &[f64]| Duration::from_secs_f64(samples.iter().copied().fold(0.0, f64::max));
    let (served, started) = (span(&serves), span(&starts));
    let title = format!("restart with {events} events and {live} live beads, after a crash");
    let mut table = Table::new(&title, &["from exec to", "median", "worst"]);
    table.row(["it serves (`daemon.running`)".to_owned(), time(served), time(worst(&serves))]);
    table.row(["the first worker runs".to_owned(), time(started), time(worst(&starts))]);
    table.print();
    say("\nThe log was made by the engine and the journal without a daemon, checkpointed as a daemon would.");
    Ok(verdict(Verdict {
        measure: "restart with 1,000,000 events and 100,000 live beads",
        raw: "-".to_owned(),
        peer: "-".to_owned(),
        ours: format!("{} (first worker {})", time(served), time(started)),
        bar: "≤ 2 s",
        held: served <= BAR && started <= BAR,
    }))
}

/// A town copied with everything in it.
fn copy_town(from: &Path, to: &Path) -> Fallible<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    if status.success() { Ok(()) } else { Err(format!("cp: {status}").into()) }
}

/// When the first worker's first instruction ran, after a moment.
fn first_start(log: &Path, moment: SystemTime) -> Fallible<Duration> {
    let until = Instant::now() + PATIENCE;
    let moment = moment.duration_since(SystemTime::UNIX_EPOCH)?;
    while Instant::now() < until {
        if let Some(first) = stamps(log).ok().and_then(|stamps| stamps.iter().map(|stamp| stamp.began).min())
        {
            return Ok(Duration::from_nanos(first).saturating_sub(moment));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err("no worker ever ran".into())
}
