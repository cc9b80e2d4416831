//! The delays of seed 2, section 7, next to ours.
//!
//! A native bead's close is its worker's end; a workspace's is the rename of its file. Each time runs from there, or
//! from before the command that sets things off, to the first instruction of the last worker the row waits for.

use std::time::{Duration, SystemTime};

use crate::Fallible;
use crate::starts::Started;
use crate::table::{Table, median, met, time, times};
use crate::yard::{Beads, Yard};

/// How often each row is measured unless told otherwise.
pub(crate) const ROUNDS: usize = 7;
/// How many times faster than the seed we want to be.
const BAR: f64 = 100.0;
/// Seed 2's "unlimited" for rows that need the scheduler.
const PLENTY: &str = "100";
/// No scheduler, the default.
const DIRECT: &str = "-1";

/// A delay the seed states.
struct Stated {
    row: &'static str,
    delay: &'static str,
    /// The delay, or its mean where it is a range; none if there is nothing to beat.
    seconds: Option<f64>,
}

const fn stated(row: &'static str, delay: &'static str, seconds: Option<f64>) -> Stated {
    Stated { row, delay, seconds }
}

const FEED_ONE: Stated =
    stated("convoy feeds 1 bead, room", "0-5 s + 0-3 min (mean 92.5 s)", Some(2.5 + 90.0));
const THREE_FINISH: Stated = stated("3 finish, 3 queued: all 3", "9 min", Some(540.0));
const TEN_QUEUED: Stated = stated("10 queued, unlimited room: all 10", "30 min", Some(1800.0));
const LAUNCH: Stated = stated("launch: all 8 of wave 1", "instant", None);
const CHAIN: Stated = stated("chain A→B→C→D: a step", "~5 s", Some(5.0));
const FAN_OUT_3: [Stated; 3] = [
    stated("fan-out 3: Y", "~5 s", Some(5.0)),
    stated("fan-out 3: Z", "~35 s", Some(35.0)),
    stated("fan-out 3: W", "~65 s", Some(65.0)),
];
const FAN_OUT_10_FIRST: Stated = stated("fan-out 10: the 1st", "~5 s", Some(5.0));
const FAN_OUT_10_LAST: Stated = stated("fan-out 10: all 10", "~4.5 min", Some(270.0));
const COLD: Stated = stated("cold convoy of 10, no launch: all 10", "5 min", Some(300.0));

/// The table as it grows.
struct Rows {
    table: Table,
    missed: usize,
}

impl Rows {
    fn add(&mut self, stated: &Stated, beads: Beads, samples: &[Duration]) -> Fallible<()> {
        let ours = median(samples).ok_or("a row needs at least one round")?;
        let worst = samples.iter().max().copied().unwrap_or_default();
        let factor = stated.seconds.map(|seconds| seconds / ours.as_secs_f64());
        let is_met = factor.map(|factor| factor >= BAR);
        self.missed += usize::from(is_met == Some(false));
        let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        self.table.row([
            stated.row.to_owned(),
            beads.word().to_owned(),
            stated.delay.to_owned(),
            time(ours),
            time(worst),
            or_dash(factor.map(times)),
            or_dash(is_met.map(|is_met| met(is_met).to_owned())),
        ]);
        Ok(())
    }
}

/// Measures and prints every row; returns how many miss the bar.
pub(crate) fn run(rounds: usize) -> Fallible<usize> {
    let header = ["seed 2, section 7", "beads", "seed", "ours, median", "ours, worst", "factor", "bar ≥100×"];
    let mut rows = Rows { table: Table::new("seed 2: delays until the last start", &header), missed: 0 };
    rows.add(&FEED_ONE, Beads::Native, &fan_out(Beads::Native, PLENTY, 1, rounds)?[0])?;
    rows.add(&THREE_FINISH, Beads::Native, &three_finish(rounds)?)?;
    rows.add(&TEN_QUEUED, Beads::Native, &ten_queued(rounds)?)?;
    for beads in [Beads::Native, Beads::Workspace] {
        rows.add(&LAUNCH, beads, &launch(beads, rounds)?)?;
        rows.add(&CHAIN, beads, &chain(beads, rounds)?)?;
        let starts = fan_out(beads, DIRECT, 3, rounds)?;
        for (stated, samples) in FAN_OUT_3.iter().zip(&starts) {
            rows.add(stated, beads, samples)?;
        }
        let starts = fan_out(beads, DIRECT, 10, rounds)?;
        rows.add(&FAN_OUT_10_FIRST, beads, &starts[0])?;
        rows.add(&FAN_OUT_10_LAST, beads, &starts[9])?;
        rows.add(&COLD, beads, &cold(beads, rounds)?)?;
    }
    rows.table.print();
    Ok(rows.missed)
}

/// Beads of a round that wait for nothing.
fn free(yard: &Yard, round: usize, count: usize) -> Vec<(String, Vec<String>)> {
    (0..count).map(|n| (yard.id(&format!("{round}-{n}")), Vec::new())).collect()
}

/// A command about these beads.
fn about<'a>(command: &[&'a str], tasks: &'a [(String, Vec<String>)]) -> Vec<&'a str> {
    command.iter().copied().chain(tasks.iter().map(|(id, _)| id.as_str())).collect()
}

fn last(starts: &[Started], moment: SystemTime) -> Fallible<Duration> {
    starts.last().ok_or("nothing was to start")?.since(moment)
}

/// A convoy in which X blocks all others; of each of these, in the order of their starts, the times since X closed.
fn fan_out(beads: Beads, max_polecats: &str, width: usize, rounds: usize) -> Fallible<Vec<Vec<Duration>>> {
    let mut yard = Yard::open(beads, max_polecats)?;
    let mut samples = vec![Vec::new(); width];
    for round in 0..rounds {
        let x = yard.id(&format!("{round}-x"));
        let mut tasks = free(&yard, round, width);
        for (_, needs) in &mut tasks {
            needs.push(x.clone());
        }
        tasks.insert(0, (x, Vec::new()));
        yard.add(&tasks)?;
        yard.tell(about(&["convoy", "create", "fan out"], &tasks));
        let x = yard.next_starts(1)?;
        let moment = yard.finish(x)?;
        let unblocked = yard.next_starts(width)?;
        for (samples, started) in samples.iter_mut().zip(&unblocked) {
            samples.push(started.since(moment)?);
        }
        yard.finish(unblocked)?;
        yard.come_to_rest();
    }
    Ok(samples)
}

/// A convoy of four, each waiting for the one before; every step is a sample.
fn chain(beads: Beads, rounds: usize) -> Fallible<Vec<Duration>> {
    let mut yard = Yard::open(beads, DIRECT)?;
    let mut samples = Vec::new();
    for round in 0..rounds {
        let mut tasks = free(&yard, round, 4);
        for n in 1..tasks.len() {
            let before = tasks[n - 1].0.clone();
            tasks[n].1.push(before);
        }
        yard.add(&tasks)?;
        yard.tell(about(&["convoy", "create", "chain"], &tasks));
        let mut running = yard.next_starts(1)?;
        for _ in 1..tasks.len() {
            let moment = yard.finish(running)?;
            running = yard.next_starts(1)?;
            samples.push(last(&running, moment)?);
        }
        yard.finish(running)?;
        yard.come_to_rest();
    }
    Ok(samples)
}

/// Three slots taken and three beads queued; then the three finish.
fn three_finish(rounds: usize) -> Fallible<Vec<Duration>> {
    let mut yard = Yard::open(Beads::Native, "3")?;
    let mut samples = Vec::new();
    for round in 0..rounds {
        let tasks = free(&yard, round, 6);
        yard.add(&tasks)?;
        yard.tell(about(&["sling"], &tasks));
        let running = yard.next_starts(3)?;
        let moment = yard.finish(running)?;
        let queued = yard.next_starts(3)?;
        samples.push(last(&queued, moment)?);
        yard.finish(queued)?;
        yard.come_to_rest();
    }
    Ok(samples)
}

/// Ten beads queued while dispatch is paused; then it goes on.
fn ten_queued(rounds: usize) -> Fallible<Vec<Duration>> {
    let mut yard = Yard::open(Beads::Native, PLENTY)?;
    let mut samples = Vec::new();
    for round in 0..rounds {
        let tasks = free(&yard, round, 10);
        yard.add(&tasks)?;
        yard.tell(["scheduler", "pause"]);
        yard.tell(about(&["sling"], &tasks));
        let moment = yard.tell(["scheduler", "resume"]);
        let running = yard.next_starts(10)?;
        samples.push(last(&running, moment)?);
        yard.finish(running)?;
        yard.come_to_rest();
    }
    Ok(samples)
}

/// A staged convoy of eight free beads is launched.
fn launch(beads: Beads, rounds: usize) -> Fallible<Vec<Duration>> {
    let mut yard = Yard::open(beads, DIRECT)?;
    let mut samples = Vec::new();
    for round in 0..rounds {
        let tasks = free(&yard, round, 8);
        yard.add(&tasks)?;
        let staged = yard.town.json(about(&["convoy", "stage"], &tasks));
        let convoy = staged["convoy_id"].as_str().ok_or_else(|| format!("nothing was staged: {staged}"))?;
        let moment = yard.tell(["convoy", "launch", convoy]);
        let running = yard.next_starts(8)?;
        samples.push(last(&running, moment)?);
        yard.finish(running)?;
        yard.come_to_rest();
    }
    Ok(samples)
}

/// A convoy of ten free beads is made, and nobody launches it.
fn cold(beads: Beads, rounds: usize) -> Fallible<Vec<Duration>> {
    let mut yard = Yard::open(beads, DIRECT)?;
    let mut samples = Vec::new();
    for round in 0..rounds {
        let tasks = free(&yard, round, 10);
        yard.add(&tasks)?;
        let moment = yard.tell(about(&["convoy", "create", "cold"], &tasks));
        let running = yard.next_starts(10)?;
        samples.push(last(&running, moment)?);
        yard.finish(running)?;
        yard.come_to_rest();
    }
    Ok(samples)
}
