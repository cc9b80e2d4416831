//! How soon something starts: all that one end lets go, and the next in a slot that has become free.

use crate::Fallible;
use crate::contest::{Better, Contest, Entry, best_peers, ours};
use crate::effort::Effort;
use crate::pass::Case;
use crate::report::{Verdict, verdict};
use crate::table::{Table, ratio};

/// How many wait for the blocker, with a slot for each.
const FAN: usize = 100;
/// How many short tasks there are, and slots.
const SHORT: usize = 400;
const SLOTS: usize = 2;

/// The bars.
const FAN_BAR: f64 = 1.4;
const P50_BAR: f64 = 1.8;
const P99_BAR: f64 = 3.0;

/// A blocker ends; answers how many bars are missed.
pub(crate) fn fan_out(effort: &Effort) -> Fallible<usize> {
    let contest = Contest {
        name: "fan-out",
        case: Case::FanOut,
        tasks: FAN,
        slots: FAN,
        dependencies: 1,
        has_raw: true,
    };
    let entries = contest.hold(effort)?;
    let title = "fan-out of 100: from the blocker's end to the starts it allows";
    print(title, &entries, [("first_ms", "1st start"), ("last_ms", "100th start")]);
    Ok(bar("fan-out of 100: 100th start vs raw", &entries, "last_ms", FAN_BAR, "≤ 1.4"))
}

/// A slot becomes free; answers how many bars are missed.
pub(crate) fn refill(effort: &Effort) -> Fallible<usize> {
    let contest = Contest {
        name: "refill",
        case: Case::Refill,
        tasks: effort.size(SHORT),
        slots: SLOTS,
        dependencies: 0,
        has_raw: true,
    };
    let entries = contest.hold(effort)?;
    let title = "a free slot: from the end of a task of 10 ms to the start of the next, 2 slots";
    print(title, &entries, [("p50_ms", "p50"), ("p99_ms", "p99")]);
    Ok(bar("idle slot refilled: p50 vs raw", &entries, "p50_ms", P50_BAR, "≤ 1.8")
        + bar("idle slot refilled: p99 vs raw", &entries, "p99_ms", P99_BAR, "≤ 3"))
}

fn bar(measure: &'static str, entries: &[Entry], figure: &str, limit: f64, words: &'static str) -> usize {
    let reached = ours(entries).and_then(|entry| entry.ratio(figure));
    verdict(Verdict {
        measure,
        raw: "1.0".to_owned(),
        peer: best_peers(entries, Better::Less, |entry| entry.ratio(figure), ratio),
        ours: reached.map_or("failed".to_owned(), ratio),
        bar: words,
        held: reached.is_some_and(|reached| reached <= limit),
    })
}

fn print(title: &str, entries: &[Entry], figures: [(&str, &str); 2]) {
    let [(_, first), (_, second)] = figures;
    let header = ["program", "keeps", first, "raw", ": raw", second, "raw", ": raw"];
    let mut table = Table::new(title, &header);
    for entry in entries {
        let name = entry.trouble.as_ref().map_or(entry.program.name().to_owned(), |trouble| {
            format!("{} ({trouble})", entry.program.name())
        });
        let ms = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2} ms"));
        let mut cells = vec![name, entry.program.keeps().to_owned()];
        for (figure, _) in figures {
            cells.extend([ms(entry.median(figure)), ms(entry.raw(figure))]);
            cells.push(entry.ratio(figure).map_or("-".to_owned(), ratio));
        }
        table.row(cells);
    }
    table.print();
}
