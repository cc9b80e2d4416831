//! Staging a large file of beads, next to a bare parse and topological sort of the same file. Each measurement has a
//! process of its own, so that its peak memory is its own too.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::Fallible;
use crate::bare::{self, Bare};
use crate::layered::{Detail, Layered};
use crate::ours;
use crate::table::{Table, median, met, say, time, times};

/// How many beads the file has unless told otherwise.
pub(crate) const SIZES: [usize; 2] = [100_000, 1_000_000];
/// How many times the bare figure ours may be.
const BAR: f64 = 2.0;
/// How often each case is measured.
const RUNS: usize = 5;

/// What one process measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Case {
    /// Read, parse, sort.
    Bare,
    /// Read by a source, folded into a state, staged.
    Ours,
}

impl Case {
    fn word(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Ours => "ours",
        }
    }
}

/// What it found.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Measured {
    /// Each part in order, with how long it took and the peak memory in KiB after it.
    parts: Vec<(String, Duration, u64)>,
    /// In words.
    plan: String,
}

impl Measured {
    /// Measures a part.
    fn part<T>(&mut self, name: &str, work: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
        let began = Instant::now();
        let done = work()?;
        self.parts.push((name.to_owned(), began.elapsed(), peak_memory()?));
        Ok(done)
    }
}

/// The median run of a case at a size.
struct Typical {
    parts: Vec<(String, Duration)>,
    total: Duration,
    peak: u64,
    plan: String,
}

/// Measures one case in this process and prints it for the one that started it.
pub(crate) fn case(case: Case, file: &Path) -> Fallible<()> {
    let mut measured = Measured::default();
    match case {
        Case::Bare => {
            let text = measured.part("read", || bare::read(file))?;
            let beads = measured.part("parse", || Bare::parse(&text))?;
            let waves = measured.part("sort", || Ok(beads.waves()))?;
            measured.plan = format!("{} waves", waves.len());
        }
        Case::Ours => {
            let mut source = ours::source(file)?;
            let reading = measured.part("read", || source.read().ok_or("the file shows nothing".into()))?;
            if let Some(trouble) = &reading.trouble {
                return Err(trouble.clone().into());
            }
            let state = measured.part("fold", || ours::fold(file, &reading))?;
            drop(reading);
            let input = ours::everything(&state);
            let plan = measured.part("stage", || Ok(state.stage_plan(&input)))?;
            measured.plan = ours::describe(&state, &plan)?;
        }
    }
    say(&serde_json::to_string(&measured)?);
    Ok(())
}

/// Measures and prints every size; returns how many bars are missed.
pub(crate) fn run(sizes: &[usize]) -> Fallible<usize> {
    let dir = tempfile::Builder::new().prefix("ym-bench-").tempdir()?;
    let header = [
        "beads",
        "edges",
        "file",
        "case",
        "parts",
        "time",
        "peak memory",
        "time : bare",
        "memory : bare",
        "bar ≤2×",
    ];
    let mut table = Table::new("staging a file: median of each part, and of the whole", &header);
    let mut cycles = Table::new("staging the same with one cycle planted", &["beads", "plan"]);
    let mut all: BTreeMap<(usize, Case), Typical> = BTreeMap::new();
    let mut missed = 0;
    for beads in sizes.iter().copied() {
        let layered = Layered::open(ours::RIG, beads);
        let file = write(&dir, layered)?;
        let size = std::fs::metadata(&file)?.len();
        let bare = typical(Case::Bare, &file)?;
        let ours = typical(Case::Ours, &file)?;
        let edges: usize = (0..beads).map(|bead| layered.blockers(bead).len()).sum();
        let mut row = |name: &str, typical: &Typical, parts: String, span: Duration, has_bar: bool| {
            let ratio = span.as_secs_f64() / bare.total.as_secs_f64();
            let is_met = ratio <= BAR;
            missed += usize::from(has_bar && !is_met);
            table.row([
                beads.to_string(),
                edges.to_string(),
                format!("{:.1} MB", size as f64 / 1e6),
                name.to_owned(),
                parts,
                time(span),
                format!("{} MiB", typical.peak / 1024),
                times(ratio),
                times(typical.peak as f64 / bare.peak as f64),
                if has_bar { met(is_met) } else { "-" }.to_owned(),
            ]);
        };
        row("bare", &bare, parts(&bare), bare.total, false);
        row("ours, from the file", &ours, parts(&ours), ours.total, true);
        let stage = ours.parts.last().map(|(_, span)| *span).unwrap_or_default();
        row("ours, in a running town", &ours, "stage".to_owned(), stage, true);
        all.insert((beads, Case::Bare), bare);
        all.insert((beads, Case::Ours), ours);
        std::fs::remove_file(file)?;
        let file = write(&dir, layered.with_a_cycle())?;
        cycles.row([beads.to_string(), measure(Case::Ours, &file)?.plan]);
        std::fs::remove_file(file)?;
    }
    table.print();
    growth(sizes, &all).print();
    for ((beads, case), typical) in &all {
        say(&format!("plan of {beads}, {}: {}", case.word(), typical.plan));
    }
    cycles.print();
    Ok(missed)
}

fn parts(typical: &Typical) -> String {
    let parts: Vec<String> =
        typical.parts.iter().map(|(name, span)| format!("{name} {}", time(*span))).collect();
    parts.join(", ")
}

/// How much more each size costs than the one before.
fn growth(sizes: &[usize], all: &BTreeMap<(usize, Case), Typical>) -> Table {
    let mut table =
        Table::new("growth: proportional means all three alike", &["case", "beads", "time", "peak memory"]);
    for pair in sizes.windows(2) {
        for case in [Case::Bare, Case::Ours] {
            if let (Some(small), Some(large)) = (all.get(&(pair[0], case)), all.get(&(pair[1], case))) {
                table.row([
                    case.word().to_owned(),
                    times(pair[1] as f64 / pair[0] as f64),
                    times(large.total.as_secs_f64() / small.total.as_secs_f64()),
                    times(large.peak as f64 / small.peak as f64),
                ]);
            }
        }
    }
    table
}

fn write(dir: &TempDir, layered: Layered) -> Fallible<PathBuf> {
    let path = dir.path().join("issues.jsonl");
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    for (_, bead) in layered.by_id() {
        writeln!(writer, "{}", layered.line(bead, Detail::Short))?;
    }
    writer.into_inner()?.sync_all()?;
    Ok(path)
}

/// Measures a case once, in a process of its own.
fn measure(case: Case, file: &Path) -> Fallible<Measured> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["stage-case", case.word()]).arg(file).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(
            format!("{} failed: {text}{}", case.word(), String::from_utf8_lossy(&output.stderr)).into()
        );
    }
    Ok(serde_json::from_str(&text)?)
}

fn typical(case: Case, file: &Path) -> Fallible<Typical> {
    let runs: Fallible<Vec<Measured>> = (0..RUNS).map(|_| measure(case, file)).collect();
    let runs = runs?;
    let middle = |of: &dyn Fn(&Measured) -> Duration| median(&runs.iter().map(of).collect::<Vec<_>>());
    let names = runs.first().map(|run| run.parts.iter().map(|part| part.0.clone())).into_iter().flatten();
    let part = |(number, name): (usize, String)| Some((name, middle(&|run| run.parts[number].1)?));
    let peaks: Vec<u64> = runs.iter().filter_map(|run| Some(run.parts.last()?.2)).collect();
    Ok(Typical {
        parts: names.enumerate().filter_map(part).collect(),
        total: middle(&|run| run.parts.iter().map(|part| part.1).sum()).unwrap_or_default(),
        peak: median(&peaks).unwrap_or_default(),
        plan: runs.last().map(|run| run.plan.clone()).unwrap_or_default(),
    })
}

/// The most memory this process has had, in KiB.
fn peak_memory() -> Fallible<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number =
        line.and_then(|line| line.split_whitespace().next()).ok_or("no VmHWM in /proc/self/status")?;
    Ok(number.parse()?)
}
