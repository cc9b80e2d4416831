//! Where what is measured goes: to standard output as it comes, and into files when it is over. `--json` keeps every
//! figure, `--write` puts each measure's section into the page of benchmarks and leaves the other sections as they are.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::Fallible;
use crate::machine::Machine;

/// What stands above the sections.
const INTRODUCTION: &str = "# Benchmarks\n\n\
    Written by `tests/bench --write`; `tests/bench --help` says how to measure one thing alone. Compare ratios within a\n\
    section, never absolute figures of two runs. Our journal is fully durable throughout (SQLite, WAL, synchronous=FULL);\n\
    rows that say tmpfs have the town in memory, and show what the disk costs. The raw limit is bare posix_spawn with as\n\
    many tasks at a time, nothing stored (`tests/src/bin/yardstick/`), measured right before each program; ratios are\n\
    medians of these pairs. Each section says when it was measured and how busy the machine was.\n";
/// The section with all bars.
const BARS: &str = "What must hold";

/// One bar and what became of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Verdict {
    /// What is measured.
    pub(crate) measure: &'static str,
    /// The raw limit, in words.
    pub(crate) raw: String,
    /// The best peer that was found, in words.
    pub(crate) peer: String,
    /// Ours, in words.
    pub(crate) ours: String,
    /// The bar, in words.
    pub(crate) bar: &'static str,
    /// Whether it is held.
    pub(crate) held: bool,
}

/// One figure, for programs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) measure: String,
    pub(crate) program: String,
    pub(crate) figures: BTreeMap<String, f64>,
}

#[derive(Default)]
struct Section {
    title: String,
    text: String,
}

#[derive(Default)]
struct Report {
    sections: Vec<Section>,
    verdicts: Vec<Verdict>,
    figures: Vec<Figure>,
}

static REPORT: Mutex<Report> =
    Mutex::new(Report { sections: Vec::new(), verdicts: Vec::new(), figures: Vec::new() });

fn report() -> MutexGuard<'static, Report> {
    REPORT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everything said from here on belongs to this section.
pub(crate) fn section(title: &str) {
    report().sections.push(Section { title: title.to_owned(), text: String::new() });
    say(&format!("\n## {title}\n\n{}", Machine::moment()));
}

/// Prints a line, which the section keeps.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
    if let Some(section) = report().sections.last_mut() {
        section.text.push_str(line);
        section.text.push('\n');
    }
}

/// Says what is being done, to whoever waits.
pub(crate) fn progress(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Notes a bar; answers 1 if it is missed.
pub(crate) fn verdict(verdict: Verdict) -> usize {
    let missed = usize::from(!verdict.held);
    report().verdicts.push(verdict);
    missed
}

/// Notes figures.
pub(crate) fn figure(measure: &str, program: &str, figures: BTreeMap<String, f64>) {
    let figure = Figure { measure: measure.to_owned(), program: program.to_owned(), figures };
    report().figures.push(figure);
}

impl Verdict {
    fn row(&self) -> String {
        let held = if self.held { "held" } else { "MISSED" };
        format!("| {} | {} | {} | {} | {} | {held} |", self.measure, self.raw, self.peer, self.ours, self.bar)
    }
}

/// The bars of this run, as a table.
pub(crate) fn print_bars() {
    let rows: Vec<String> = report().verdicts.iter().map(Verdict::row).collect();
    if !rows.is_empty() {
        say(&format!("\n{BARS}\n\n{BAR_HEADER}\n{}", rows.join("\n")));
    }
}

const BAR_HEADER: &str =
    "| measure | raw limit | best peer found | ours | bar | |\n|---|---|---|---|---|---|";

/// Writes every figure of this run.
pub(crate) fn write_json(path: &Path) -> Fallible<()> {
    #[derive(Serialize)]
    struct Whole<'a> {
        machine: Machine,
        bars: &'a [Verdict],
        figures: &'a [Figure],
    }
    let report = report();
    let whole = Whole { machine: Machine::here(), bars: &report.verdicts, figures: &report.figures };
    Ok(std::fs::write(path, serde_json::to_string_pretty(&whole)?)?)
}

/// The page of benchmarks.
pub(crate) fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/BENCHMARKS.md")
}

/// Puts what this run measured into the page, in place of what stood there about the same.
pub(crate) fn write_page(path: &Path) -> Fallible<()> {
    let old = std::fs::read_to_string(path).unwrap_or_default();
    let report = report();
    let mut sections = sections_of(&old);
    let bars = sections.iter().find(|section| section.title == BARS).map_or("", |section| &section.text);
    let bars = merged_bars(bars, &report.verdicts);
    put(&mut sections, 0, "The machine", &Machine::here().to_string());
    put(&mut sections, 1, BARS, &bars);
    for section in &report.sections {
        let body = section.text.trim_start().split_once('\n').map_or("", |(_, body)| body);
        let end = sections.len();
        put(&mut sections, end, &section.title, body);
    }
    let sections: Vec<String> = sections
        .iter()
        .map(|section| format!("\n## {}\n\n{}\n", section.title, section.text.trim()))
        .collect();
    Ok(std::fs::write(path, format!("{INTRODUCTION}{}", sections.concat()))?)
}

fn sections_of(page: &str) -> Vec<Section> {
    let sections = page.split("\n## ").skip(1);
    let read = |text: &str| {
        let (title, text) = text.split_once('\n').unwrap_or((text, ""));
        Section { title: title.trim().to_owned(), text: text.to_owned() }
    };
    sections.map(read).collect()
}

/// Replaces a section, or puts it where it belongs.
fn put(sections: &mut Vec<Section>, place: usize, title: &str, text: &str) {
    match sections.iter_mut().find(|section| section.title == title) {
        Some(section) => text.clone_into(&mut section.text),
        None => sections
            .insert(place.min(sections.len()), Section { title: title.to_owned(), text: text.to_owned() }),
    }
}

/// The rows of a table of bars, those measured now in place of the old ones.
fn merged_bars(old: &str, verdicts: &[Verdict]) -> String {
    let measure = |row: &str| row.trim_start_matches('|').split('|').next().unwrap_or("").trim().to_owned();
    let mut rows: Vec<String> =
        old.lines().skip(2).filter(|row| row.starts_with('|')).map(str::to_owned).collect();
    for verdict in verdicts {
        match rows.iter_mut().find(|row| measure(row) == verdict.measure) {
            Some(row) => *row = verdict.row(),
            None => rows.push(verdict.row()),
        }
    }
    format!("{BAR_HEADER}\n{}", rows.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(measure: &'static str, ours: &str) -> Verdict {
        let words = String::new;
        Verdict { measure, raw: words(), peer: words(), ours: ours.to_owned(), bar: "≥ 1", held: true }
    }

    #[test]
    fn a_bar_measured_again_takes_its_old_place() {
        let old = merged_bars("", &[of("a", "1"), of("b", "2")]);
        let new = merged_bars(&old, &[of("a", "3"), of("c", "4")]);
        let ours: Vec<&str> =
            new.lines().skip(2).filter_map(|row| row.split('|').nth(4)).map(str::trim).collect();
        assert_eq!(ours, ["3", "2", "4"]);
    }
}
