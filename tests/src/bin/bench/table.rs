//! Tables on standard output, and the words for times, ratios and bars in them.

use std::time::Duration;

pub(crate) use crate::report::say;

/// Prints how busy the machine is: other programs share it, and figures are only as good as that.
pub(crate) fn load(when: &str) {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let loads: Vec<&str> = text.split_whitespace().take(3).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    say(&format!("load {when}: {} on {cores} cores", loads.join(" ")));
}

/// A table that is printed as a whole.
pub(crate) struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: &str, header: &[&str]) -> Self {
        Self { title: title.to_owned(), rows: vec![header.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints it as Markdown, with columns aligned.
    pub(crate) fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        say(&format!("\n{}\n", self.title));
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, w)| format!("{cell:<w$}")).collect();
            say(&format!("| {} |", cells.join(" | ")));
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
                say(&format!("|-{}-|", rules.join("-|-")));
            }
        }
    }
}

/// A duration with three digits: `7.31 ms`, `92.5 s`.
pub(crate) fn time(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    if seconds < 1.0 {
        format!("{} ms", three_digits(seconds * 1e3))
    } else {
        format!("{} s", three_digits(seconds))
    }
}

fn three_digits(number: f64) -> String {
    let decimals = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    format!("{number:.decimals$}")
}

/// A ratio: `1.84×`, `12,345×`.
pub(crate) fn times(ratio: f64) -> String {
    if ratio < 1000.0 {
        return format!("{}×", three_digits(ratio));
    }
    let thousands = ratio as u64 / 1000;
    format!("{thousands},{:03}×", ratio as u64 % 1000)
}

/// A ratio as a bare number: `0.57`, `12.3`.
pub(crate) fn ratio(ratio: f64) -> String {
    three_digits(ratio)
}

/// Whether a bar is met, in words.
pub(crate) fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

/// The middle of the samples; of an even number the later of the two.
pub(crate) fn median<T: Copy + Ord>(samples: &[T]) -> Option<T> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}
