//! What a daemon weighs: alone, and for each bead that waits or is closed. The weight of a bead is the slope between two
//! sizes, so that what the daemon weighs anyway does not count.

use std::fmt::Write as _;

use yard_engine::bead::BeadEntry;
use yard_engine::context::Context;
use yard_engine::dispatch::Dispatch;
use yard_tests::town::Town;

use crate::Fallible;
use crate::effort::Effort;
use crate::past::Past;
use crate::report::{Verdict, progress, say, verdict};
use crate::served::Daemon;
use crate::table::Table;

/// The two sizes.
const FEW: usize = 20_000;
const MANY: usize = 100_000;
/// The two sizes where beads really run, which takes a minute.
const FEW_RUN: usize = 5_000;
const MANY_RUN: usize = 20_000;

/// The bars: KiB of an idle daemon, bytes of a closed and of a live bead.
const IDLE_BAR: u64 = 25 * 1000 * 1000 / 1024;
const CLOSED_BAR: f64 = 400.0;
const LIVE_BAR: f64 = 1000.0;

/// How beads come into a daemon.
#[derive(Clone, Copy)]
enum Way {
    /// Queued by a command, while it runs.
    Queued,
    /// Queued before it started.
    QueuedBefore,
    /// Run to their end, while it runs.
    Run,
    /// Run to their end before it started.
    RunBefore,
}

/// Measures all; answers how many bars are missed.
pub(crate) fn run(effort: &Effort) -> Fallible<usize> {
    let (idle, helpers) = idle()?;
    let sizes = (effort.size(FEW), effort.size(MANY));
    let run_sizes = (effort.size(FEW_RUN), effort.size(MANY_RUN));
    let rows = [
        ("a live bead, queued while it runs", Way::Queued, sizes),
        ("a live bead, after a restart", Way::QueuedBefore, sizes),
        ("a closed bead, run while it runs", Way::Run, run_sizes),
        ("a closed bead, after a restart", Way::RunBefore, sizes),
    ];
    let mut table = Table::new("resident memory of the daemon", &["what", "sizes", "memory", "per bead"]);
    table.row(["idle, in a fresh town".to_owned(), "0".to_owned(), mb(idle), "-".to_owned()]);
    table.row([
        "its fork server, what it shares in part".to_owned(),
        "-".to_owned(),
        mb(helpers),
        "-".to_owned(),
    ]);
    let mut slopes = Vec::new();
    for (what, way, (few, many)) in rows {
        progress(&format!("  memory: {what}"));
        let (small, large) = (weigh(way, few)?, weigh(way, many)?);
        let slope = (large as f64 - small as f64) * 1024.0 / (many - few) as f64;
        table.row([
            what.to_owned(),
            format!("{few}, {many}"),
            format!("{}, {}", mb(small), mb(large)),
            format!("{slope:.0} B"),
        ]);
        slopes.push(slope);
    }
    table.print();
    say(&format!(
        "\nOne record takes, without what it points to: bead {} B, context {} B, dispatch {} B.",
        size_of::<BeadEntry>(),
        size_of::<Context>(),
        size_of::<Dispatch>()
    ));
    say(
        "\nVmRSS, read when it has not changed for three seconds; nothing is trimmed from outside. MB are 10⁶ bytes.",
    );
    let [live, live_again, closed, closed_again] = slopes[..] else { return Err("a row is missing".into()) };
    let (live, closed) = (live.max(live_again), closed.max(closed_again));
    let bars = [
        (
            "resident memory, idle",
            "HyperQueue 33 MB (not measured here)",
            mb(idle),
            "≤ 25 MB",
            idle <= IDLE_BAR,
        ),
        ("memory per closed bead", "-", format!("{closed:.0} B"), "≤ 400 B", closed <= CLOSED_BAR),
        ("memory per live bead", "-", format!("{live:.0} B"), "≤ 1 kB", live <= LIVE_BAR),
    ];
    let judged = bars.into_iter().map(|(measure, peer, ours, bar, held)| {
        verdict(Verdict { measure, raw: "-".to_owned(), peer: peer.to_owned(), ours, bar, held })
    });
    Ok(judged.sum())
}

fn mb(kib: u64) -> String {
    format!("{:.1} MB", kib as f64 * 1024.0 / 1e6)
}

/// A daemon that has nothing to do, and what belongs to it.
fn idle() -> Fallible<(u64, u64)> {
    let town = Town::new();
    let daemon = Daemon::start(town.root())?;
    Ok((daemon.settled_memory()?, daemon.helpers_memory()?))
}

/// A daemon with so many beads.
fn weigh(way: Way, beads: usize) -> Fallible<u64> {
    let town = Town::new();
    town.set("scheduler.max_polecats", "4");
    let argv = ["/bin/true".to_owned()];
    match way {
        Way::Queued | Way::Run => {
            let daemon = Daemon::start(town.root())?;
            town.run(["scheduler", "pause"]).ok();
            let mut text = String::new();
            for _ in 0..beads {
                writeln!(text, "{}", serde_json::json!({ "argv": argv }))?;
            }
            let file = town.root().join("tasks.jsonl");
            std::fs::write(&file, text)?;
            town.run(["-q", "add", "--file", &file.display().to_string()]).ok();
            if matches!(way, Way::Run) {
                town.run(["scheduler", "resume"]).ok();
                town.run(["-q", "wait", "--all"]).ok();
            }
            daemon.settled_memory()
        }
        Way::QueuedBefore => {
            town.run(["scheduler", "pause"]).ok();
            let mut past = Past::of(town.root())?;
            past.queue(beads, &argv)?;
            past.close()?;
            Daemon::start(town.root())?.settled_memory()
        }
        Way::RunBefore => {
            let mut past = Past::of(town.root())?;
            past.run(beads, &argv)?;
            past.close()?;
            Daemon::start(town.root())?.settled_memory()
        }
    }
}
