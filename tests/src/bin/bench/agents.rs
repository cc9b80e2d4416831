//! What sending orders gains over looking for work every 30 seconds, in a simulation and with real processes, and how
//! soon an order is in an agent's hands.

use std::time::Duration;

use yard_tests::push::{Figures, Way, backlog, deliveries, in_processes, simulate};

use crate::table::{Table, met, say, time, times};

/// How often the seed's agents look.
const POLL: Duration = Duration::from_secs(30);
/// The seed's bars: ready to claimed, and idle share.
const CLAIMED_WITHIN: Duration = Duration::from_secs(30);
const IDLE_BELOW: f64 = 0.1;
/// Ready to delivered, with a hundred agents.
const DELIVERED_WITHIN: Duration = Duration::from_millis(100);
const WAITING: usize = 100;
const ORDERS: usize = 300;

/// Measures all tables; returns how many bars were missed.
pub(crate) fn run() -> usize {
    delivery() + simulated() + real()
}

fn delivery() -> usize {
    say(&format!("{ORDERS} orders to {WAITING} waiting processes"));
    let mut all = deliveries(WAITING, ORDERS);
    all.sort_unstable();
    let at = |percent: usize| all[(all.len() * percent).div_ceil(100).max(1) - 1];
    let mut table =
        Table::new("From ready to delivered, 100 agents waiting", &["orders", "p50", "p99", "most", "bar"]);
    let fits = at(99) < DELIVERED_WITHIN;
    let bar = format!("p99 under {} {}", time(DELIVERED_WITHIN), met(fits));
    table.row([all.len().to_string(), time(at(50)), time(at(99)), time(at(100)), bar]);
    table.print();
    usize::from(!fits)
}

/// The ways that are compared.
const WAYS: [(&str, Way); 3] = [
    ("orders (push)", Way::Push),
    ("a look every 30 s", Way::Poll(POLL)),
    ("a look when done, else every 30 s", Way::PollWhenDone(POLL)),
];

const HEADER: [&str; 10] = [
    "backlog",
    "agents get work by",
    "finished after",
    "against push",
    "idle, mean (least–most)",
    "idle although work was ready",
    "ready → claim p50 / p99",
    "claims refused",
    "claimed twice",
    "bars",
];

/// Adds the row of one way, all runs together; returns how many bars were missed.
fn row(
    table: &mut Table,
    name: &str,
    way: (&str, Way),
    runs: &[Figures],
    push: &[Figures],
    room: bool,
) -> usize {
    let finish = |runs: &[Figures]| runs.iter().map(|run| run.finish).sum::<Duration>() / runs.len() as u32;
    let shares: Vec<f64> = runs.iter().flat_map(Figures::idle_shares).collect();
    let idle = shares.iter().sum::<f64>() / shares.len() as f64;
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let most = shares.iter().copied().fold(0.0, f64::max);
    let lost = runs.iter().map(Figures::lost_share).sum::<f64>() / runs.len() as f64;
    let waits = runs.iter().flat_map(|run| run.waits.clone()).collect();
    let together = Figures { waits, ..Figures::default() };
    let refused: usize = runs.iter().map(|run| run.refused).sum();
    let doubled: usize = runs.iter().map(|run| run.doubled).sum();
    // Where there is more work than agents, beads wait for agents; where there is less, agents for beads.
    let bars = [
        room || idle < IDLE_BELOW,
        lost < IDLE_BELOW,
        !room || together.wait(99) < CLAIMED_WITHIN,
        doubled == 0 && refused == 0,
    ];
    let is_push = way.1 == Way::Push;
    table.row([
        name.to_owned(),
        way.0.to_owned(),
        time(finish(runs)),
        times(finish(runs).as_secs_f64() / finish(push).as_secs_f64()),
        format!("{:.1} % ({:.1}–{:.1})", idle * 100.0, least * 100.0, most * 100.0),
        format!("{:.1} %", lost * 100.0),
        format!("{} / {}", time(together.wait(50)), time(together.wait(99))),
        refused.to_string(),
        doubled.to_string(),
        if is_push { met(bars.iter().all(|bar| *bar)).to_owned() } else { String::new() },
    ]);
    if is_push { bars.iter().filter(|bar| !**bar).count() } else { 0 }
}

fn simulated() -> usize {
    let mut table =
        Table::new("Simulated: 20 seeded backlogs each, the real engine, a turned clock; means", &HEADER);
    let mut missed = 0;
    for (tracks, agents) in [(6, 8), (12, 8), (32, 8)] {
        let jobs = |seed| backlog(seed, tracks, 192 / tracks, Duration::from_mins(1));
        let runs = |way| -> Vec<Figures> { (0..20).map(|seed| simulate(&jobs(seed), agents, way)).collect() };
        let push = runs(Way::Push);
        let name = format!("192 beads in {tracks} tracks, {agents} agents");
        for way in WAYS {
            missed += row(&mut table, &name, way, &runs(way.1), &push, tracks < agents);
        }
    }
    table.print();
    missed
}

fn real() -> usize {
    let jobs = backlog(7, 5, 8, Duration::from_secs(3));
    say(&format!("{} beads by real processes, in three ways, which takes some minutes", jobs.len()));
    let mut table = Table::new("Real processes: one backlog, a real daemon, real time", &HEADER);
    let name = format!("{} beads in 5 tracks, 6 agents", jobs.len());
    let push = [in_processes(&jobs, 6, Way::Push)];
    let mut missed = 0;
    for way in WAYS {
        let runs = if way.1 == Way::Push { push.clone() } else { [in_processes(&jobs, 6, way.1)] };
        missed += row(&mut table, &name, way, &runs, &push, true);
    }
    table.print();
    missed
}
