//! Staging a large file of beads, next to a bare parse and topological sort of the same file. Each measurement has a
//! process of its own, so that its peak memory is its own too, and takes one thread's processor time.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::Fallible;
use crate::bare::{self, Bare};
use crate::layered::{Detail, Layered};
use crate::ours;
use crate::report::{Verdict, progress, verdict};
use crate::table::{Table, met, say, time, times};
use crate::whole;

/// How many beads the file has unless told otherwise.
pub(crate) const SIZES: [usize; 2] = [100_000, 1_000_000];
/// How many times the bare figure ours may be.
const BAR: f64 = 1.5;
/// From here on the bar of the whole page is about it.
const LARGE: usize = 1_000_000;
/// How often each case is measured.
pub(crate) const RUNS: usize = 3;

/// What one process measures.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Case {
    /// Read, parse, sort.
    Bare,
    /// Read by a source, folded into a state, staged.
    Ours,
    /// The whole command, asked of a running daemon.
    Whole,
}

impl Case {
    fn word(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Ours => "ours",
            Self::Whole => "whole",
        }
    }
}

/// What it found.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) parts: Vec<Part>,
    /// In words.
    pub(crate) plan: String,
}

/// A part of a case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// Processor time.
    pub(crate) span: Duration,
    /// Time by the clock.
    pub(crate) wall: Duration,
    /// Memory before it, in KiB.
    pub(crate) before: u64,
    /// The most memory while it ran, in KiB.
    pub(crate) peak: u64,
}

impl Part {
    /// The memory it took, in KiB.
    fn added(&self) -> u64 {
        self.peak.saturating_sub(self.before)
    }
}

impl Measured {
    /// Measures a part.
    fn part<T>(&mut self, name: &str, work: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
        let before = memory_of(std::process::id(), "VmRSS:")?;
        // Has the kernel forget the peak so far.
        std::fs::write("/proc/self/clear_refs", "5")?;
        let (moment, began) = (Instant::now(), processor_time()?);
        let done = work()?;
        let span = processor_time()?.saturating_sub(began);
        self.parts.push(Part {
            name: name.to_owned(),
            span,
            wall: moment.elapsed(),
            before,
            peak: memory_of(std::process::id(), "VmHWM:")?,
        });
        Ok(done)
    }

    pub(crate) fn total(&self) -> Duration {
        self.parts.iter().map(|part| part.span).sum()
    }

    fn wall(&self) -> Duration {
        self.parts.iter().map(|part| part.wall).sum()
    }

    fn peak(&self) -> u64 {
        self.parts.iter().map(|part| part.peak).max().unwrap_or(0)
    }
}

/// The processor time of this process, which other programs leave alone.
fn processor_time() -> Fallible<Duration> {
    span_of(&getrusage(UsageWho::RUSAGE_SELF)?)
}

/// The processor time that was used.
pub(crate) fn span_of(usage: &Usage) -> Fallible<Duration> {
    let time = usage.user_time() + usage.system_time();
    Ok(Duration::from_micros(u64::try_from(time.num_microseconds())?))
}

/// A figure of a process's memory, in KiB.
pub(crate) fn memory_of(process: u32, figure: &str) -> Fallible<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or_else(|| format!("no {figure} in /proc/{process}/status"))?.parse()?)
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
        Case::Whole => measured = whole::measure(file)?,
    }
    say(&serde_json::to_string(&measured)?);
    Ok(())
}

/// The table as it grows.
struct Rows {
    table: Table,
    missed: usize,
}

/// A file of beads.
struct Sample {
    shape: Shape,
    bare: Measured,
    ours: Measured,
    below_an_epic: WholeSample,
}

/// A file with the same beads below an epic, without which so many could not be named, and what staging it costs.
struct WholeSample {
    shape: Shape,
    bare: Measured,
    whole: Measured,
}

/// What is in a file.
struct Shape {
    beads: usize,
    edges: usize,
    bytes: u64,
}

impl Shape {
    fn of(file: &Path, layered: Layered) -> Fallible<Self> {
        let edges = layered.by_id().iter().map(|(_, bead)| layered.edges(*bead).len()).sum();
        Ok(Self { beads: layered.beads(), edges, bytes: std::fs::metadata(file)?.len() })
    }
}

/// What a case costs.
#[derive(Clone, Copy)]
struct Cost {
    span: Duration,
    wall: Duration,
    memory: u64,
}

impl Cost {
    fn of(measured: &Measured) -> Self {
        Self { span: measured.total(), wall: measured.wall(), memory: measured.peak() }
    }
}

impl Rows {
    fn add(&mut self, sample: &Sample) {
        let Sample { shape, bare, ours, below_an_epic } = sample;
        self.row(shape, bare, "bare", parts(bare), Cost::of(bare), false);
        self.row(shape, bare, "ours, from the file", parts(ours), Cost::of(ours), true);
        if let Some(stage) = ours.parts.last() {
            let cost = Cost { span: stage.span, wall: stage.wall, memory: stage.added() };
            self.row(shape, bare, "ours, in a running town", stage.name.clone(), cost, true);
        }
        if shape.beads >= LARGE {
            let ratio = ours.total().as_secs_f64() / bare.total().as_secs_f64();
            let wall = ours.wall().as_secs_f64() / bare.wall().as_secs_f64();
            verdict(Verdict {
                measure: "1M beads / 3M edges staged from JSONL: vs bare parse + CSR Kahn",
                raw: "1.0".to_owned(),
                peer: "-".to_owned(),
                ours: format!("{} (by the clock {})", times(ratio), times(wall)),
                bar: "≤ 1.5",
                held: ratio <= BAR,
            });
        }
        let WholeSample { shape, bare, whole } = below_an_epic;
        self.row(shape, bare, "bare, below an epic", parts(bare), Cost::of(bare), false);
        let memory = whole.parts.iter().map(Part::added).sum();
        let cost = Cost { span: whole.total(), wall: whole.wall(), memory };
        self.row(shape, bare, "ours, the whole command", parts(whole), cost, true);
    }

    fn row(&mut self, shape: &Shape, bare: &Measured, case: &str, parts: String, cost: Cost, has_bar: bool) {
        let Cost { span, wall, memory } = cost;
        let ratio = span.as_secs_f64() / bare.total().as_secs_f64();
        let is_met = ratio <= BAR;
        self.missed += usize::from(has_bar && !is_met);
        self.table.row([
            shape.beads.to_string(),
            shape.edges.to_string(),
            format!("{:.1} MB", shape.bytes as f64 / 1e6),
            case.to_owned(),
            parts,
            time(span),
            time(wall),
            format!("{} MiB", memory / 1024),
            times(ratio),
            times(wall.as_secs_f64() / bare.wall().as_secs_f64()),
            times(memory as f64 / bare.peak() as f64),
            if has_bar { met(is_met) } else { "-" }.to_owned(),
        ]);
    }
}

/// Measures and prints every size; returns how many bars are missed.
pub(crate) fn run(sizes: &[usize]) -> Fallible<usize> {
    let dir = tempfile::Builder::new().prefix("ym-bench-").tempdir()?;
    let costs =
        ["time", "by the clock", "memory", "time : bare", "clock : bare", "memory : bare", "time ≤1.5×"];
    let header = [&["beads", "edges", "file", "case", "parts"][..], &costs].concat();
    let title = "staging a file: processor time of the median run; memory is the peak, or what staging adds in a running town";
    let mut rows = Rows { table: Table::new(title, &header), missed: 0 };
    let mut plans = Table::new("the plans", &["beads", "case", "plan"]);
    let mut samples = Vec::new();
    for beads in sizes.iter().copied() {
        progress(&format!("staging {beads} beads, {RUNS} runs of each case"));
        let layered = Layered::open(ours::RIG, beads);
        let file = write(&dir, layered)?;
        let shape = Shape::of(&file, layered)?;
        let (bare, ours) = (typical(Case::Bare, &file)?, typical(Case::Ours, &file)?);
        let below_an_epic = below_an_epic(&dir, layered)?;
        let sample = Sample { shape, bare, ours, below_an_epic };
        rows.add(&sample);
        let cyclic = measure(Case::Ours, &write(&dir, layered.with_a_cycle())?)?;
        let told = [
            ("bare", &sample.bare.plan),
            ("ours", &sample.ours.plan),
            ("ours, with a cycle", &cyclic.plan),
            ("ours, the whole command", &sample.below_an_epic.whole.plan),
        ];
        for (case, plan) in told {
            plans.row([beads.to_string(), case.to_owned(), plan.clone()]);
        }
        samples.push(sample);
    }
    rows.table.print();
    if samples.len() > 1 {
        growth(&samples).print();
    }
    plans.print();
    Ok(rows.missed)
}

fn below_an_epic(dir: &TempDir, layered: Layered) -> Fallible<WholeSample> {
    let layered = layered.below_an_epic();
    let file = write(dir, layered)?;
    let shape = Shape::of(&file, layered)?;
    Ok(WholeSample { shape, bare: typical(Case::Bare, &file)?, whole: measure(Case::Whole, &file)? })
}

fn parts(measured: &Measured) -> String {
    let parts: Vec<String> =
        measured.parts.iter().map(|part| format!("{} {}", part.name, time(part.span))).collect();
    parts.join(", ")
}

/// How much more each size costs than the one before.
fn growth(samples: &[Sample]) -> Table {
    let header = ["beads", "case", "more beads", "more time", "more memory"];
    let mut table = Table::new("growth: in proportion if all three are alike", &header);
    for pair in samples.windows(2) {
        let [small, large] = pair else { continue };
        let cases = [
            ("bare", &small.bare, &large.bare),
            ("ours, from the file", &small.ours, &large.ours),
            ("ours, the whole command", &small.below_an_epic.whole, &large.below_an_epic.whole),
        ];
        for (case, few, many) in cases {
            table.row([
                format!("{} → {}", small.shape.beads, large.shape.beads),
                case.to_owned(),
                times(large.shape.beads as f64 / small.shape.beads as f64),
                times(many.total().as_secs_f64() / few.total().as_secs_f64()),
                times(many.peak() as f64 / few.peak() as f64),
            ]);
        }
    }
    table
}

fn write(dir: &TempDir, layered: Layered) -> Fallible<PathBuf> {
    let path = dir.path().join("issues.jsonl");
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    if let Some(line) = layered.epic_line() {
        writeln!(writer, "{line}")?;
    }
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

/// The run of a case that took the middle of all times.
fn typical(case: Case, file: &Path) -> Fallible<Measured> {
    let runs: Fallible<Vec<Measured>> = (0..RUNS).map(|_| measure(case, file)).collect();
    let mut runs = runs?;
    runs.sort_by_key(Measured::total);
    Ok(runs.swap_remove(RUNS / 2))
}
