//! Text for the screen: safe, of one line, and cut to the width it has.

use chrono::{DateTime, Local, Utc};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;
use yard_client::Safe;
use yard_engine::Timestamp;

/// More of a text from outside than any screen shows.
const LONGEST: usize = 2_000;
/// Marks that may sit on one letter; more are drawn over neighbouring lines by some terminals.
const MARKS: usize = 4;

/// Text from outside, made safe for one line of the screen.
pub fn shown(text: &str) -> String {
    let cut = text.char_indices().nth(LONGEST).map_or(text, |(at, _)| &text[..at]);
    let safe = Safe(cut).to_string();
    if safe.is_ascii() {
        return safe;
    }
    safe.graphemes(true).flat_map(|grapheme| grapheme.chars().take(1 + MARKS)).collect()
}

/// Cuts to a width in cells; what was cut shows.
pub fn fit(text: &str, width: usize, ellipsis: &str) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(ellipsis.width());
    let mut used = 0;
    let mut out = String::new();
    for grapheme in text.graphemes(true) {
        let wide = grapheme.width();
        if used + wide > room {
            break;
        }
        used += wide;
        out.push_str(grapheme);
    }
    if width >= ellipsis.width() {
        out.push_str(ellipsis);
    }
    out
}

/// Cuts or fills up to exactly this width.
pub fn column(text: &str, width: usize, ellipsis: &str) -> String {
    let mut out = fit(text, width, ellipsis);
    let used = out.width();
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(used)));
    out
}

/// The same, to the right.
pub fn right(text: &str, width: usize, ellipsis: &str) -> String {
    let out = fit(text, width, ellipsis);
    let used = out.width();
    format!("{}{out}", " ".repeat(width.saturating_sub(used)))
}

/// Breaks a text into lines of at most this width, between words where that is possible.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_word_bounds() {
        if line.width() + word.width() > width && !line.trim().is_empty() {
            lines.push(line.trim_end().to_owned());
            line = String::new();
        }
        for grapheme in word.graphemes(true) {
            if line.width() + grapheme.width() > width && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            if !(line.is_empty() && grapheme == " ") {
                line.push_str(grapheme);
            }
        }
    }
    if !line.trim().is_empty() {
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// `34s`, `11m`, `2h05`, `3d`: at most four characters, five beyond a hundred days.
pub fn span(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..36_000 => format!("{}h{:02}", seconds / 3_600, seconds / 60 % 60),
        36_000..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `1m30`, `45s`: a span with its seconds, for what is about to happen.
pub fn span_exact(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}", seconds / 60, seconds % 60),
        _ => span(millis),
    }
}

/// How times are written: of the clock on the wall, or of UTC where pictures must not depend on the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// The user's.
    Local,
    /// UTC.
    Utc,
}

impl Zone {
    fn write(self, time: Timestamp, format: &str) -> String {
        let utc = DateTime::<Utc>::from_timestamp_millis(time.as_millis()).unwrap_or_default();
        match self {
            Self::Local => utc.with_timezone(&Local).format(format).to_string(),
            Self::Utc => utc.format(format).to_string(),
        }
    }

    /// `14:07:31`.
    pub fn clock(self, time: Timestamp) -> String {
        self.write(time, "%H:%M:%S")
    }

    /// `14:07`.
    pub fn minute(self, time: Timestamp) -> String {
        self.write(time, "%H:%M")
    }

    /// `Nov 16`.
    pub fn day(self, time: Timestamp) -> String {
        self.write(time, "%b %e")
    }

    /// `Mon 14:07`.
    pub fn day_and_minute(self, time: Timestamp) -> String {
        self.write(time, "%a %H:%M")
    }

    /// `14:07`, with the day if it is not today.
    pub fn minute_on(self, time: Timestamp, now: Timestamp) -> String {
        if self.write(time, "%F") == self.write(now, "%F") {
            self.minute(time)
        } else {
            self.day_and_minute(time)
        }
    }
}

/// `48 213`: digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `1 bead`, `2 beads`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_cells_and_not_by_characters() {
        assert_eq!(fit("db-migrate", 6, "…"), "db-mi…");
        assert_eq!(fit("日本語", 5, "…"), "日本…");
        assert_eq!(fit("日本語", 4, "…"), "日…");
        assert_eq!(column("日本語", 8, "…"), "日本語  ");
        assert_eq!(right("7", 3, "…"), "  7");
        assert_eq!(fit("abc", 0, "…"), "");
    }

    #[test]
    fn text_is_broken_between_words_and_within_those_that_are_too_long() {
        assert_eq!(wrapped("gt-1 is for fern, who is idle", 12), ["gt-1 is for", "fern, who is", "idle"]);
        assert_eq!(wrapped("abcdefgh ij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("日本語の", 4), ["日本", "語の"]);
        assert_eq!(wrapped("a b", 0), ["a", "b"]);
        assert!(wrapped("  ", 5).is_empty());
    }

    #[test]
    fn nothing_that_moves_the_cursor_is_left() {
        assert_eq!(shown("a\u{1b}[2Jb\r\nc\u{202e}d"), "ab  cd");
        let zalgo = format!("e{}", "\u{301}".repeat(50));
        assert_eq!(shown(&zalgo).chars().count(), 5);
        assert!(shown(&"x".repeat(10_000)).len() <= LONGEST);
    }

    #[test]
    fn spans_are_short_and_numbers_are_grouped() {
        let spans = [(5_000, "5s"), (660_000, "11m"), (7_500_000, "2h05"), (90_000_000, "25h")];
        for (millis, words) in spans {
            assert_eq!(span(millis), words);
        }
        assert_eq!(span_exact(90_000), "1m30");
        assert_eq!(grouped(48_213), "48 213");
        assert_eq!(grouped(1_000_000), "1 000 000");
    }
}
