//! Breaking long text into lines: what explains something is shown whole, not cut.

use std::io;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use yard_client::Safe;

use crate::output::Out;

/// At most so much of one text; the rest is in the JSON document.
const LONGEST: usize = 2000;

/// Safe text in lines of at most this width, broken between words where that is possible.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(10);
    let clean = Safe(&text.chars().take(LONGEST).collect::<String>()).to_string();
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in clean.split_whitespace() {
        if used > 0 && used + 1 + word.width() > width {
            lines.push(String::new());
            used = 0;
        }
        if used > 0 {
            push(&mut lines, ' ');
            used += 1;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > width {
                lines.push(String::new());
                used = 0;
            }
            push(&mut lines, c);
            used += wide;
        }
    }
    lines
}

fn push(lines: &mut [String], c: char) {
    if let Some(line) = lines.last_mut() {
        line.push(c);
    }
}

/// Prints a mark and a text; further lines stand under its first.
pub(super) fn marked(out: &mut Out, indent: usize, mark: &str, text: &str) -> io::Result<()> {
    let space = " ".repeat(indent);
    for (n, line) in wrap(text, out.width().saturating_sub(indent + 2)).iter().enumerate() {
        let mark = if n == 0 { mark } else { " " };
        out.line(format!("{space}{mark} {line}"))?;
    }
    Ok(())
}

/// A text behind a few words of our own; further lines stand under its first.
pub(super) fn hanging(lead: &str, text: &str, width: usize) -> Vec<String> {
    let below = " ".repeat(lead.width());
    let lines = wrap(text, width.saturating_sub(lead.width())).into_iter().enumerate();
    lines.map(|(n, line)| format!("{}{line}", if n == 0 { lead } else { &below })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_inside_words_that_are_too_long() {
        assert_eq!(wrap("one two three four", 10), ["one two", "three four"]);
        assert_eq!(wrap("x\u{1b}[31m\ny", 10), ["x y"]);
        assert_eq!(wrap("abcdefghijklmno p", 10), ["abcdefghij", "klmno p"]);
        assert_eq!(wrap("", 10), [""]);
    }
}
