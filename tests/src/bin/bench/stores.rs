//! How many turns a second each kind of journal makes durable, on the same disk: a turn is one append, whatever it holds.

use std::time::{Duration, Instant};

use yard_engine::{Seq, Timestamp};
use yard_journal::{Journal, Lease, PostgresUrl, Role, Row, Store};
use yard_tests::postgres::PostgresServer;

use crate::Fallible;
use crate::effort::Effort;
use crate::report::{Verdict, verdict};
use crate::table::{Table, met, ratio};

/// Events in a turn, and the bar's name.
const TURNS: [(u64, &str); 3] = [
    (1, "PostgreSQL: turns of 1 event: rate vs SQLite"),
    (10, "PostgreSQL: turns of 10 events: rate vs SQLite"),
    (100, "PostgreSQL: turns of 100 events: rate vs SQLite"),
];
/// How long each is measured, one after the other, so often.
const SPAN: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;
/// What PostgreSQL has to reach of SQLite's rate.
const BAR: f64 = 0.5;

/// Measures and prints every size of turn; returns how many miss the bar.
pub(crate) fn run(effort: &Effort) -> Fallible<usize> {
    let folder = tempfile::tempdir()?;
    let server = PostgresServer::start_with(&[]);
    let places = [
        Store::Sqlite(folder.path().join("journal.db")),
        Store::Postgres(PostgresUrl::parse(&server.url("yard"))?),
    ];
    let mut writers = Vec::new();
    for store in &places {
        if let Store::Postgres(url) = store {
            Journal::begin_in_postgres(url)?;
        }
        let lease = Lease::try_acquire(store, Role::Daemon)?;
        let journal = lease.open_journal(store)?;
        journal.settle_in();
        writers.push((lease, journal));
    }
    let span = if effort.quick { SPAN / 10 } else { SPAN };
    let mut table = Table::new(
        "Durable turns a second, the median of three rounds that take turns",
        &["events in a turn", "SQLite", "PostgreSQL", "of SQLite's", "at least 0.5"],
    );
    let mut missed = 0;
    for (events, measure) in TURNS {
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for ((_, journal), rates) in writers.iter_mut().zip(&mut rates) {
                rates.push(rate(journal, events, span)?);
            }
        }
        let [sqlite, postgres] = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        });
        let share = postgres / sqlite;
        missed += verdict(Verdict {
            measure,
            raw: "–".to_owned(),
            peer: "our SQLite journal 1.00".to_owned(),
            ours: ratio(share),
            bar: "≥ 0.5",
            held: share >= BAR,
        });
        table.row([
            events.to_string(),
            format!("{sqlite:.0}"),
            format!("{postgres:.0}"),
            format!("{share:.2}"),
            met(share >= BAR).to_owned(),
        ]);
    }
    table.print();
    Ok(missed)
}

fn rate(journal: &mut Journal, events: u64, span: Duration) -> Fallible<f64> {
    let body = format!(r#"{{"id":"y-1","note":"{}"}}"#, "x".repeat(200));
    let began = Instant::now();
    let mut turns = 0;
    while began.elapsed() < span {
        let next = journal.last_seq().0 + 1;
        let row = |seq| Row {
            seq: Seq(seq),
            at: Timestamp::from_millis(1_700_000_000_000),
            kind: "bead.added".to_owned(),
            body: body.clone(),
        };
        journal.append(&(next..next + events).map(row).collect::<Vec<_>>())?;
        turns += 1;
    }
    Ok(f64::from(turns) / began.elapsed().as_secs_f64())
}
