//! Columns: as wide as what stands in them, the last one cut so that a line fits.

use std::io;

use unicode_width::UnicodeWidthStr;
use yard_client::safe_line;

use super::wrap::wrap;
use crate::output::{Out, Tone};

/// No column but the last gets wider than this.
const WIDEST: usize = 40;

/// Rows under headings. Cells must be safe already, except that the last one of a row is cut.
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    indent: usize,
    wraps: bool,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self {
            headings: headings.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
            indent: 0,
            wraps: false,
        }
    }

    /// Rows without headings, set in a little.
    pub(crate) fn plain() -> Self {
        Self { headings: Vec::new(), rows: Vec::new(), indent: 2, wraps: false }
    }

    /// Rows whose last column goes on below instead of being cut.
    pub(crate) fn wrapping() -> Self {
        Self { wraps: true, ..Self::plain() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints headings and rows; nothing at all if there are no rows.
    pub(crate) fn print(&self, out: &mut Out) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let widths = self.widths();
        if self.headings.iter().any(|heading| !heading.is_empty()) {
            let line = self.lines(&self.headings, &widths, out.width()).concat();
            let line = out.paint(Tone::Dim, &line);
            out.line(line)?;
        }
        for row in &self.rows {
            for line in self.lines(row, &widths, out.width()) {
                out.line(line)?;
            }
        }
        Ok(())
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().chain([&self.headings]).map(Vec::len).max().unwrap_or(0);
        let width_of = |column: usize| {
            let cells = self.rows.iter().chain([&self.headings]).filter_map(|row| row.get(column));
            cells.map(|cell| shown_width(cell)).max().unwrap_or(0).min(WIDEST)
        };
        (0..columns).map(width_of).collect()
    }

    /// Every row as it would be printed within this width.
    #[cfg(test)]
    pub(super) fn shown(&self, width: usize) -> Vec<String> {
        let widths = self.widths();
        self.rows.iter().flat_map(|row| self.lines(row, &widths, width)).collect()
    }

    /// A row; more than one line only if it wraps.
    fn lines(&self, row: &[String], widths: &[usize], width: usize) -> Vec<String> {
        let Some((last, cells)) = row.split_last() else { return vec![String::new()] };
        let mut head = " ".repeat(self.indent);
        for (cell, column) in cells.iter().zip(widths) {
            let cell = fit(cell, *column);
            let pad = (column + 2).saturating_sub(shown_width(&cell));
            head.push_str(&cell);
            head.push_str(&" ".repeat(pad));
        }
        let used = self.indent + widths.iter().take(cells.len()).map(|column| column + 2).sum::<usize>();
        let room = width.saturating_sub(used).max(10);
        let texts = if self.wraps { wrap(last, room) } else { vec![fit(last, room)] };
        let below = " ".repeat(used);
        let line = |(n, text): (usize, String)| {
            let line = if n == 0 { format!("{head}{text}") } else { format!("{below}{text}") };
            line.trim_end().to_owned()
        };
        texts.into_iter().enumerate().map(line).collect()
    }
}

/// Cuts a cell. Coloured ones are short words of our own and stay whole.
fn fit(cell: &str, room: usize) -> String {
    if coloured(cell).is_some() { cell.to_owned() } else { safe_line(cell, room) }
}

/// Columns a cell takes up, our own colours not counted.
fn shown_width(cell: &str) -> usize {
    coloured(cell).unwrap_or(cell).width()
}

/// The word in a cell that we coloured ourselves: one colour, a plain word, and its end. Whatever else begins with an
/// escape came from outside.
fn coloured(cell: &str) -> Option<&str> {
    let (codes, rest) = cell.strip_prefix("\u{1b}[")?.split_once('m')?;
    let word = rest.strip_suffix("\u{1b}[0m")?;
    let ours = codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';')
        && word.len() <= 24
        && word.chars().all(|letter| letter.is_alphanumeric() || " -:%✓✗●".contains(letter));
    ours.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_whatever_stands_in_them() {
        let mut table = Table::new(&["ID", "TITLE"]);
        table.row(vec!["gt-abc".to_owned(), "x".repeat(500)]);
        table.row(vec!["日本語".to_owned(), "two\nlines".to_owned()]);
        let widths = [6, 80];
        for row in &table.rows {
            let line = table.lines(row, &widths, 80).concat();
            assert!(line.width() <= 80 && !line.contains('\n'), "{line}");
        }
        assert_eq!(shown_width("\u{1b}[31mFAIL\u{1b}[0m"), 4);
        for hostile in ["\u{1b}]0;evil\u{7}x", "\u{1b}[2J", "\u{1b}[31mx\u{1b}]0;y\u{7}\u{1b}[0m"] {
            assert!(!fit(hostile, 80).contains(['\u{1b}', '\u{7}']), "{hostile:?}");
        }
    }
}
