//! The one way text from outside reaches a terminal: whole escape sequences, other control characters, bidi
//! overrides and zero-width characters are taken out.

use std::fmt::{self, Write};

/// Text that may be shown. Line breaks and tabs become spaces: a value never leaves its line.
#[derive(Debug, Clone, Copy)]
pub struct Safe<'a>(pub &'a str);

impl fmt::Display for Safe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\u{1b}' => skip_escape(&mut rest),
                '\u{9b}' => skip_csi(&mut rest),
                '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
                '\n' | '\r' | '\t' => f.write_char(' ')?,
                c if c.is_control() || is_invisible(c) => {}
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(rest: &mut Rest<'_>) {
    match rest.next() {
        Some('[') => skip_csi(rest),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(rest),
        Some(c) if (' '..='/').contains(&c) => {
            while rest.next_if(|c| (' '..='/').contains(c)).is_some() {}
            rest.next();
        }
        _ => {}
    }
}

/// Parameters and intermediates, then one final byte.
fn skip_csi(rest: &mut Rest<'_>) {
    while rest.next_if(|c| (' '..='?').contains(c)).is_some() {}
    rest.next_if(|c| ('@'..='~').contains(c));
}

/// Everything up to BEL or the string terminator. A sequence that never ends swallows the rest, as a terminal would.
fn skip_string(rest: &mut Rest<'_>) {
    while let Some(c) = rest.next() {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Safe text cut to a display width, with `…` where something is missing.
pub fn safe_line(text: &str, width: usize) -> String {
    use unicode_width::UnicodeWidthChar;
    // A title may be very long; what cannot be shown need not be cleaned.
    let text: String = text.chars().take(width.saturating_mul(8).saturating_add(4096)).collect();
    let clean = Safe(&text).to_string();
    let mut out = String::new();
    let mut used = 0;
    for c in clean.chars() {
        let w = c.width().unwrap_or(0);
        if used + w > width {
            while used >= width {
                let Some(last) = out.pop() else { return out };
                used -= last.width().unwrap_or(0);
            }
            out.push('…');
            break;
        }
        out.push(c);
        used += w;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_leave_nothing_behind() {
        let cases = [
            ("plain", "plain"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]52;c;aGk=\u{1b}\\after", "after"),
            ("\u{9b}31mred", "red"),
            ("a\u{1b}(Bb", "ab"),
            ("two\nlines\r\tx", "two lines  x"),
            ("a\u{202e}b\u{200b}c\u{7f}d\u{0}", "abcd"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}]unfinished", ""),
            ("日本 ok", "日本 ok"),
        ];
        for (text, shown) in cases {
            assert_eq!(Safe(text).to_string(), shown, "{text:?}");
        }
    }

    #[test]
    fn lines_are_cut_at_their_display_width() {
        assert_eq!(safe_line("short", 10), "short");
        assert_eq!(safe_line("exactly ten", 10), "exactly t…");
        assert_eq!(safe_line("日本語テキスト", 6), "日本…");
        assert_eq!(safe_line("日本語テキスト", 5), "日本…");
        assert_eq!([safe_line("no room", 0), safe_line("no room", 1), safe_line("日", 1)], ["", "…", "…"]);
        assert_eq!(safe_line("room", usize::MAX), "room");
    }
}
