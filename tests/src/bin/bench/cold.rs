//! What the user of a command line waits for: one task handed over, and a long queue shown, each by a process that has
//! just been started.

use crate::Fallible;
use crate::contest::{Better, Contest, Entry, best_peers, ours};
use crate::effort::Effort;
use crate::machine::commit_span;
use crate::pass::{Case, home_of};
use crate::report::{Verdict, say, verdict};
use crate::table::{Table, ratio};

/// How many are queued when the queue is shown; the bar is about the first.
const QUEUES: [usize; 2] = [10_000, 100_000];
/// `/bin/true`, so many times, and one commit of the disk: what a submission may take.
const SUBMIT_BAR: f64 = 4.0;
/// What showing ten thousand may take, in milliseconds.
const STATUS_BAR: f64 = 10.0;

fn ms(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2} ms"))
}

fn name(entry: &Entry) -> String {
    let name = entry.program.name();
    entry.trouble.as_ref().map_or(name.to_owned(), |trouble| format!("{name} ({trouble})"))
}

/// What showing the queue takes, unless the program cannot hold so many.
fn whole_queue(entry: &Entry, tasks: usize) -> Option<f64> {
    entry.median("queued").filter(|queued| *queued as usize >= tasks).and(entry.median("p50_ms"))
}

/// One task handed over; answers how many bars are missed.
pub(crate) fn submit(effort: &Effort) -> Fallible<usize> {
    let contest =
        Contest { name: "submit", case: Case::Submit, tasks: 1, slots: 2, dependencies: 0, has_raw: false };
    let entries = contest.hold(effort)?;
    let header =
        ["program", "keeps", "median", "worst", "/bin/true", ": true", "one commit", "(without it) : true"];
    let mut table = Table::new("one task handed over by a cold command, while it runs at once", &header);
    let parts = |entry: &Entry| -> Option<(f64, f64, f64)> {
        let commit = commit_span(&home_of(entry.program)).ok()?.as_secs_f64() * 1e3;
        Some((entry.median("p50_ms")?, entry.median("true_ms")?, commit))
    };
    let mut reached = None;
    for entry in &entries {
        let parts = parts(entry);
        table.row([
            name(entry),
            entry.program.keeps().to_owned(),
            ms(entry.median("p50_ms")),
            ms(entry.median("worst_ms")),
            ms(entry.median("true_ms")),
            parts.map_or("-".to_owned(), |(own, bare, _)| ratio(own / bare)),
            ms(parts.map(|(_, _, commit)| commit)),
            parts.map_or("-".to_owned(), |(own, bare, commit)| ratio((own - commit) / bare)),
        ]);
        if ours(&entries).is_some_and(|ours| ours.program == entry.program) {
            reached = parts;
        }
    }
    table.print();
    say(
        "\nMedians of 60 calls, each next to one of /bin/true. One commit is a block overwritten and synced.",
    );
    Ok(verdict(Verdict {
        measure: "one durable `ym add`, cold: vs /bin/true",
        raw: "1.0".to_owned(),
        peer: best_peers(
            &entries,
            Better::Less,
            |entry| Some(entry.median("p50_ms")? / entry.median("true_ms")?),
            ratio,
        ),
        ours: reached.map_or("failed".to_owned(), |(own, bare, commit)| {
            format!("{} = {} + one commit ({commit:.2} ms)", ratio(own / bare), ratio((own - commit) / bare))
        }),
        bar: "≤ 4 + one fsync",
        held: reached.is_some_and(|(own, bare, commit)| own <= SUBMIT_BAR * bare + commit),
    }))
}

/// A long queue shown; answers how many bars are missed.
pub(crate) fn status(effort: &Effort) -> Fallible<usize> {
    let mut missed = 0;
    for queued in QUEUES {
        let contest = Contest {
            name: "status",
            case: Case::Status,
            tasks: effort.size(queued),
            slots: 2,
            dependencies: 0,
            has_raw: false,
        };
        let entries = contest.hold(effort)?;
        let mut table = Table::new(
            &format!("{} queued tasks shown by a cold command, as text", contest.tasks),
            &["program", "queued", "median", "worst", "/bin/true"],
        );
        for entry in &entries {
            table.row([
                name(entry),
                entry.median("queued").map_or("-".to_owned(), |queued| format!("{queued:.0}")),
                ms(entry.median("p50_ms")),
                ms(entry.median("worst_ms")),
                ms(entry.median("true_ms")),
            ]);
        }
        table.print();
        if queued == QUEUES[0] {
            let reached = ours(&entries).and_then(|entry| entry.median("p50_ms"));
            let words = |value| format!("{value:.1} ms");
            missed += verdict(Verdict {
                measure: "`ym scheduler status` with 10,000 queued",
                raw: "-".to_owned(),
                peer: best_peers(&entries, Better::Less, |entry| whole_queue(entry, contest.tasks), words),
                ours: reached.map_or("failed".to_owned(), words),
                bar: "≤ 10 ms",
                held: reached.is_some_and(|reached| reached <= STATUS_BAR),
            });
        }
    }
    Ok(missed)
}
