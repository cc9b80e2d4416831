//! What one leader can carry: the daemon's real loop on the real journal, with up to 10,000 simulated workers. Nothing runs
//! and no shim is made, so the figures are what the leader itself can do, wherever its workers are.
//!
//! Time is real while the loop works or waits for the disk, and is passed over while it has nothing to do. So a load is
//! offered as a town would have it, and the loop is as late as it would be.

mod crowd;

use std::sync::Arc;
use std::time::{Duration, Instant};

use yard_client::{Ask, Reply, ServerRole};
use yard_daemon::TownDir;
use yard_daemon::rehearsal::{Keeping, Rehearsal};
use yard_engine::Command;
use yard_engine::command::AddItem;
use yard_journal::Journal;
use yard_tests::town::Town;

use crate::Fallible;
use crate::effort::Effort;
use crate::report::{figure, progress, say};
use crate::stage::memory_of;
use crate::table::{Table, time};
use crate::work::Work;
use crowd::Crowd;

/// Workers that are busy at the same time.
const WORKERS: [usize; 3] = [100, 1_000, 10_000];
/// How long one of them works, from an agent's hour to a command that is over at once.
const SPANS: [Duration; 4] =
    [Duration::from_hours(1), Duration::from_mins(5), Duration::from_secs(10), Duration::from_secs(1)];
/// Beads in the town, and how many of them come to their end under observation.
const BEADS: usize = 100_000;
const ENDS: usize = 20_000;
/// A load that cannot be kept up with is broken off after so long.
const LONGEST: Duration = Duration::from_secs(40);

/// What was seen of one load.
struct Seen {
    /// Ends and events, and the processor time, real time and passed time they took.
    ends: u64,
    events: u64,
    processor: Duration,
    real: Duration,
    passed: Duration,
    /// From a worker's end to the start of the next in its place.
    late: Vec<Duration>,
    /// Of the whole process, in bytes.
    memory: u64,
}

/// Measures every load; there is no bar.
pub(crate) fn run(effort: &Effort) -> Fallible<usize> {
    let header = [
        "workers",
        "each works",
        "ends a second",
        "leader busy",
        "end to start p50",
        "p99",
        "processor per end",
        "memory",
    ];
    let title =
        format!("one leader, {} beads queued, every second one waits for another", effort.size(BEADS));
    let mut table = Table::new(&title, &header);
    for workers in WORKERS {
        for span in SPANS {
            progress(&format!("  leader: {workers} workers of {}", humantime::format_duration(span)));
            let mut seen = carry(workers, span, effort)?;
            seen.late.sort_unstable();
            let ends = seen.ends as f64;
            let rate = ends / seen.passed.as_secs_f64();
            let busy = seen.real.as_secs_f64() / seen.passed.as_secs_f64();
            table.row([
                workers.to_string(),
                humantime::format_duration(span).to_string(),
                format!("{rate:.1}"),
                format!("{:.1} %", busy * 100.0),
                time(part(&seen.late, 50)),
                time(part(&seen.late, 99)),
                format!("{:.0} µs", seen.processor.as_secs_f64() / ends * 1e6),
                format!("{:.0} MB", seen.memory as f64 / 1e6),
            ]);
            let figures = [
                ("ends", ends),
                ("events", seen.events as f64),
                ("rate", rate),
                ("busy", busy),
                ("p50_s", part(&seen.late, 50).as_secs_f64()),
                ("p99_s", part(&seen.late, 99).as_secs_f64()),
            ];
            let name = format!("{workers} × {}", humantime::format_duration(span));
            figure("leader", &name, figures.map(|(key, value)| (key.to_owned(), value)).into());
        }
    }
    table.print();
    say(
        "\nBusy is the share of time in which the loop decides or waits for its disk. Memory is that of the process that",
    );
    say(
        "measures, with its 10,000 simulated workers. What a machine needs to make and watch processes comes on top.",
    );
    Ok(0)
}

/// The value below which so many of a hundred lie, of values in order.
fn part(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or_default()
}

/// Offers one load.
fn carry(workers: usize, span: Duration, effort: &Effort) -> Fallible<Seen> {
    let beads = effort.size(BEADS).max(3 * workers);
    let town = Town::new();
    town.set("scheduler.max_polecats", &workers.to_string());
    let place = TownDir::at(town.root())?;
    let crowd = Crowd::new(workers, span);
    let journal = Journal::open(&place.journal())?;
    let keeping = Keeping { shelf: Arc::new(place.clone()), worth_a_copy: 1_000, cut_at_once: 2_000 };
    let (pool, clock, outside) = crowd.surroundings();
    let mut leader = Rehearsal::open(&place, ServerRole::Daemon, journal, pool, clock, outside, keeping)?;
    queue(&mut leader, beads, workers)?;
    // Not until all are at work: some may be done before the last begins.
    while crowd.orders() < workers as u64 {
        crowd.report(&leader);
        leader.round();
    }
    crowd.forget_delays();
    let wanted = effort.size(ENDS).min(beads - 2 * workers) as u64;
    let (first, began, work, passed) = (leader.state().seq(), Instant::now(), Work::now(), crowd.passed());
    while crowd.ended() < wanted && began.elapsed() < LONGEST {
        crowd.report(&leader);
        leader.round();
    }
    let real = began.elapsed();
    Ok(Seen {
        ends: crowd.ended(),
        events: leader.state().seq().0 - first.0,
        processor: work.elapsed(),
        real,
        passed: real + crowd.passed().saturating_sub(passed),
        late: crowd.delays(),
        memory: memory_of(std::process::id(), "VmRSS:")? * 1024,
    })
}

/// Queues beads, of which every second one waits for one that was queued two rounds of workers before.
fn queue(leader: &mut Rehearsal, beads: usize, workers: usize) -> Fallible<()> {
    let item = |number: usize| AddItem {
        argv: vec!["/bin/true".to_owned()],
        id: Some(format!("y-{number}")),
        after: number
            .checked_sub(2 * workers)
            .filter(|_| number % 2 == 1)
            .map(|before| format!("y-{before}"))
            .into_iter()
            .collect(),
        ..AddItem::default()
    };
    let command = Command::Add { items: (0..beads).map(item).collect() };
    let mut replies = leader.ask("bench", Ask::Command { command });
    leader.round();
    match replies.take() {
        Some(Reply::Error(refusal)) => Err(refusal.message.into()),
        // Whoever is added starts at once, and is answered when it runs.
        Some(Reply::Ok { .. } | Reply::Item(_)) | None => Ok(()),
    }
}
