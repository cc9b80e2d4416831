//! From the rename of a workspace's file to the first instruction of the workers it unblocks, in a file of which only
//! one line has changed.

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::Fallible;
use crate::layered::{Detail, Layered};
use crate::table::{Table, median, met, time};
use crate::yard::{Beads, Yard};
use yard_engine::Timestamp;
use yard_tests::workspace::bead;

/// How many beads the file has unless told otherwise.
pub(crate) const SIZES: [usize; 2] = [1_000, 50_000];
/// How often each pace is measured.
const ROUNDS: usize = 15;
/// How many beads each rename unblocks.
const WIDTH: usize = 3;
/// Longer than a file must stay unchanged to be looked at for the last time.
const QUIET: Duration = Duration::from_millis(1500);

/// How renames follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// After a while in which nothing happened.
    Alone,
    /// As soon as the one before has had its effect and the file can be written.
    InARow,
}

impl Pace {
    fn word(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::InARow => "in a row",
        }
    }
}

/// The times after the rename.
#[derive(Default)]
struct Samples {
    /// When the daemon decided on the close, before it was durable; by its own clock, which lags up to 2 ms.
    decided: Vec<Duration>,
    /// Each worker.
    any: Vec<Duration>,
    /// The last of each trio.
    last: Vec<Duration>,
}

/// The bar at a size, as the issue states it.
fn bar(beads: usize) -> Duration {
    Duration::from_millis(if beads <= 1_000 { 50 } else { 500 })
}

/// Measures and prints every size; returns how many miss their bar.
pub(crate) fn run(sizes: &[usize]) -> Fallible<usize> {
    let header = [
        "beads",
        "file",
        "renames",
        "close decided, median",
        "worker, median",
        "last of 3, median",
        "worker, max",
        "bar",
    ];
    let mut table =
        Table::new("rename of the workspace's file → first instruction of the unblocked workers", &header);
    let mut missed = 0;
    for beads in sizes {
        let mut yard = yard_of(*beads)?;
        for pace in [Pace::Alone, Pace::InARow] {
            let samples = measure(&mut yard, pace)?;
            let typical = median(&samples.any).unwrap_or_default();
            let verdict = match pace {
                Pace::Alone => {
                    let is_met = typical < bar(*beads);
                    missed += usize::from(!is_met);
                    format!("median < {}: {}", time(bar(*beads)), met(is_met))
                }
                Pace::InARow => "-".to_owned(),
            };
            table.row([
                beads.to_string(),
                format!("{:.1} MB", yard.file_bytes() as f64 / 1e6),
                format!("{ROUNDS}, {}", pace.word()),
                time(median(&samples.decided).unwrap_or_default()),
                time(typical),
                time(median(&samples.last).unwrap_or_default()),
                time(samples.any.iter().max().copied().unwrap_or_default()),
                verdict,
            ]);
        }
    }
    table.print();
    Ok(missed)
}

fn blocker(pace: Pace, round: usize) -> String {
    format!("shop-{}-{round}", if pace == Pace::Alone { "alone" } else { "row" })
}

/// A town over a workspace in which every round's trio waits in a convoy.
fn yard_of(beads: usize) -> Fallible<Yard> {
    let rounds: Vec<String> = [Pace::Alone, Pace::InARow]
        .into_iter()
        .flat_map(|pace| (0..ROUNDS).map(move |r| blocker(pace, r)))
        .collect();
    let trio = |blocker: &str| (0..WIDTH).map(|n| format!("{blocker}-{n}")).collect::<Vec<_>>();
    let others = Layered::worked_on("shop", beads.saturating_sub(rounds.len() * (WIDTH + 1)));
    let yard = Yard::with(Beads::Workspace, "-1", |export| {
        for (id, number) in others.by_id() {
            export.put(&id, others.line(number, Detail::Full));
        }
        for blocker in &rounds {
            export.put(blocker, bead(blocker, "task", &[]).to_string());
            for id in trio(blocker) {
                export.put(&id, bead(&id, "task", &[(blocker, "blocks")]).to_string());
            }
        }
    })?;
    let tracked: Vec<String> = rounds.iter().flat_map(|blocker| trio(blocker)).collect();
    yard.tell(["convoy", "create", "trios"].into_iter().chain(tracked.iter().map(String::as_str)));
    Ok(yard)
}

fn measure(yard: &mut Yard, pace: Pace) -> Fallible<Samples> {
    let mut samples = Samples::default();
    let mut renamed = HashMap::new();
    for round in 0..ROUNDS {
        if pace == Pace::Alone {
            thread::sleep(QUIET);
        }
        let blocker = blocker(pace, round);
        let moment = yard.close(&blocker)?;
        renamed.insert(blocker, moment);
        let times: Result<Vec<_>, _> =
            yard.next_starts(WIDTH)?.iter().map(|start| start.since(moment)).collect();
        let times = times?;
        samples.last.extend(times.last());
        samples.any.extend(times);
    }
    for event in yard.town.events(Some("bead.closed")) {
        let closed = event["id"].as_str().and_then(|id| renamed.get(id));
        if let (Some(moment), Some(at)) = (closed, event["at"].as_str()) {
            let at = Timestamp::parse_rfc3339(at)?.as_millis();
            let at = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at)?);
            // The daemon cuts its clock to milliseconds, which can put a time before the rename.
            samples.decided.push(at.duration_since(*moment).unwrap_or_default());
        }
    }
    Ok(samples)
}
