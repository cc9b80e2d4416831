//! What sending orders gains over looking for work every 30 seconds, in a simulation and with real processes, and how
//! soon an order is in an agent's hands.

use std::time::Duration;

use yard_tests::push::{Figures, Way, backlog, deliveries, in_processes, simulate};

use crate::table::{Table, met, say, time};

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

/// Adds the rows of one backlog; returns how many bars were missed.
fn compare(table: &mut Table, name: &str, push: &Figures, poll: &Figures, crowded: bool) -> usize {
    let bars = [
        crowded || push.wait(99) < CLAIMED_WITHIN,
        push.mean_idle() < IDLE_BELOW,
        push.doubled == 0 && push.refused == 0,
        push.finish <= poll.finish,
    ];
    for (way, figures) in [("push", push), ("poll every 30 s", poll)] {
        let least = figures.idle.iter().copied().fold(f64::INFINITY, f64::min);
        let most = figures.idle.iter().copied().fold(0.0, f64::max);
        table.row([
            name.to_owned(),
            way.to_owned(),
            time(figures.finish),
            format!("{:.1} % ({:.1}–{:.1})", figures.mean_idle() * 100.0, least * 100.0, most * 100.0),
            time(figures.wait(50)),
            time(figures.wait(99)),
            figures.refused.to_string(),
            figures.doubled.to_string(),
            if way == "push" { met(bars.iter().all(|bar| *bar)).to_owned() } else { String::new() },
        ]);
    }
    bars.iter().filter(|bar| !**bar).count()
}

const HEADER: [&str; 9] = [
    "backlog",
    "agents get work by",
    "finished after",
    "idle, mean (least–most)",
    "ready → claim p50",
    "p99",
    "claims refused",
    "claimed twice",
    "bars",
];

fn simulated() -> usize {
    let mut table = Table::new("Simulated: the same backlog, the real engine, a turned clock", &HEADER);
    let mut missed = 0;
    let shapes =
        [("as many tracks as agents", 8, 8), ("half as many again", 12, 8), ("four times as many", 32, 8)];
    for (name, tracks, agents) in shapes {
        let jobs = backlog(7, tracks, 96 / tracks * 2, Duration::from_mins(1));
        let push = simulate(&jobs, agents, Way::Push);
        let poll = simulate(&jobs, agents, Way::Poll(POLL));
        let name = format!("{} beads, {name} ({agents})", jobs.len());
        // Where everybody is at work all the time, beads wait for agents and not for the dispatcher.
        missed += compare(&mut table, &name, &push, &poll, tracks > agents);
    }
    table.print();
    missed
}

fn real() -> usize {
    let jobs = backlog(7, 6, 10, Duration::from_secs(3));
    say(&format!("{} beads by real processes, sent; then looked for, which takes some minutes", jobs.len()));
    let push = in_processes(&jobs, 6, Way::Push);
    let poll = in_processes(&jobs, 6, Way::Poll(POLL));
    let mut table = Table::new("Real processes: the same backlog, a real daemon, real time", &HEADER);
    let missed =
        compare(&mut table, &format!("{} beads, 6 tracks, 6 agents", jobs.len()), &push, &poll, false);
    table.print();
    missed
}
