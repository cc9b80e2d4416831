//! How many tasks a second, and what each costs the processor: tasks that wait for nothing, and layers of tasks that wait
//! for each other.

use crate::Fallible;
use crate::contest::{Better, Contest, Entry, best_peers, ours};
use crate::effort::Effort;
use crate::pass::Case;
use crate::report::{Verdict, say, verdict};
use crate::table::{Table, ratio};

/// How many tasks wait for nothing.
const BULK: usize = 5_000;
/// Slots of the bulk measure; the bars are about the first.
const SLOTS: [usize; 2] = [2, 8];
/// Small and large graphs, of which the bar is about the small one.
const DAG: usize = 1_000;
const LARGE_DAG: usize = 100_000;
/// Slots of the graphs.
const DAG_SLOTS: usize = 8;
/// The large graph takes a program minutes: so many seconds at most, and one pass.
const LARGE_TIMEOUT: u64 = 1_200;

/// The bars.
const RATE_BAR: f64 = 0.55;
const PROCESSOR_BAR: f64 = 1.6;
const DAG_BAR: f64 = 0.75;

/// Tasks that wait for nothing; answers how many bars are missed.
pub(crate) fn bulk(effort: &Effort) -> Fallible<usize> {
    let mut missed = 0;
    for slots in SLOTS {
        let tasks = effort.size(BULK);
        let contest =
            Contest { name: "bulk", case: Case::Bulk, tasks, slots, dependencies: 0, has_raw: true };
        let entries = contest.hold(effort)?;
        print(&format!("{tasks} × /bin/true, {slots} slots"), &entries);
        if slots == SLOTS[0] {
            let rate = |entry: &Entry| entry.ratio("rate");
            missed += bar("bulk, 2 slots: rate vs raw", &entries, rate, Better::More, RATE_BAR, "≥ 0.55");
            let cost = |entry: &Entry| entry.ratio("cpu_us");
            let measure = "bulk, 2 slots: processor time per task vs raw";
            missed += bar(measure, &entries, cost, Better::Less, PROCESSOR_BAR, "≤ 1.6");
        }
    }
    Ok(missed)
}

/// Layers of a hundred; answers how many bars are missed.
pub(crate) fn dag(effort: &Effort) -> Fallible<usize> {
    let contest = Contest {
        name: "dag",
        case: Case::Dag,
        tasks: DAG,
        slots: DAG_SLOTS,
        dependencies: 2,
        has_raw: true,
    };
    let entries = contest.hold(effort)?;
    print("10 layers × 100, each task waits for two, 8 slots", &entries);
    let rate = |entry: &Entry| entry.ratio("rate");
    let missed = bar("DAG 10 × 100, 8 slots: rate vs raw", &entries, rate, Better::More, DAG_BAR, "≥ 0.75");
    let large = Contest { name: "large dag", tasks: effort.size(LARGE_DAG), ..contest };
    let effort = Effort { passes: 1, timeout: effort.timeout.max(LARGE_TIMEOUT), ..effort.clone() };
    let entries = large.hold(&effort)?;
    print(&format!("{} layers × 100, the same otherwise, one pass", large.tasks / 100), &entries);
    Ok(missed)
}

fn bar(
    measure: &'static str,
    entries: &[Entry],
    key: impl Fn(&Entry) -> Option<f64>,
    better: Better,
    limit: f64,
    words: &'static str,
) -> usize {
    let reached = ours(entries).and_then(&key);
    let held = reached.is_some_and(|reached| match better {
        Better::More => reached >= limit,
        Better::Less => reached <= limit,
    });
    verdict(Verdict {
        measure,
        raw: "1.00".to_owned(),
        peer: best_peers(entries, better, key, ratio),
        ours: reached.map_or("failed".to_owned(), ratio),
        bar: words,
        held,
    })
}

fn print(title: &str, entries: &[Entry]) {
    let rates = ["tasks/s", "raw/s", ": raw", "taking in", "drain/s"];
    let costs = ["processor µs/task", "raw", ": raw"];
    let header = [&["program", "keeps", "tasks"][..], &rates, &costs].concat();
    let mut table = Table::new(title, &header);
    for entry in entries {
        let cell = |value: Option<f64>, words: fn(f64) -> String| value.map_or("-".to_owned(), words);
        let whole: fn(f64) -> String = |value| format!("{value:.0}");
        let name = entry.trouble.as_ref().map_or(entry.program.name().to_owned(), |trouble| {
            format!("{} ({trouble})", entry.program.name())
        });
        table.row([
            name,
            entry.program.keeps().to_owned(),
            entry.tasks.to_string(),
            cell(entry.median("rate"), whole),
            cell(entry.raw("rate"), whole),
            cell(entry.ratio("rate"), ratio),
            cell(entry.median("submit_s"), |value| format!("{:.1} ms", value * 1e3)),
            cell(entry.median("drain_rate"), whole),
            cell(entry.median("cpu_us"), whole),
            cell(entry.raw("cpu_us"), whole),
            cell(entry.ratio("cpu_us"), ratio),
        ]);
    }
    table.print();
    if let Some(entry) = ours(entries) {
        say(&format!(
            "\nProcessor time is that of everything a program started, its servers included, from their start to their \
             end, by {}.",
            entry.counted()
        ));
    }
}
