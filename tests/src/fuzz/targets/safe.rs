//! Text for terminals: nothing that commands one is left, on one line, within its width.

use unicode_width::UnicodeWidthStr;
use yard_client::{Safe, safe_line};
use yard_ui::text;

pub(super) const WORDS: &[&str] = &[
    "\u{1b}[31m",
    "\u{1b}]0;t\u{7}",
    "\u{1b}]52;c;aGk=\u{1b}\\",
    "\u{1b}P",
    "\u{1b}(B",
    "\u{9b}2J",
    "\u{9d}0;x\u{9c}",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{feff}",
    "\u{e0001}",
    "日本",
    "👩‍👩‍👧",
    "e\u{301}",
    "\u{85}",
    "\u{2028}",
    "\u{7f}",
];

fn is_harmless(text: &str) -> bool {
    let bidi = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    !text
        .chars()
        .any(|c| c.is_control() || bidi(c) || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{feff}'))
}

pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let shown = Safe(&text).to_string();
    assert!(is_harmless(&shown), "{shown:?}");
    assert_eq!(Safe(&shown).to_string(), shown, "safe text stays as it is");
    let number = super::number(input);
    let clean = text::shown(&text);
    assert!(is_harmless(&clean), "{clean:?}");
    for width in [0, 1, 2, number % 120, 1 << 20] {
        let line = safe_line(&text, width);
        assert!(is_harmless(&line) && line.width() <= width, "{line:?} in {width}");
        for ellipsis in ["…", "..."] {
            let fits = [
                text::fit(&clean, width, ellipsis),
                text::column(&clean, width.min(500), ellipsis),
                text::right(&clean, width.min(500), ellipsis),
            ];
            for (nth, line) in fits.iter().enumerate() {
                assert!(is_harmless(line), "{nth}: {line:?} in {width}");
                assert!(line.width() <= width, "{nth}: {line:?} in {width}");
            }
        }
        for line in text::wrapped(&clean, width) {
            assert!(is_harmless(&line), "{line:?}");
        }
    }
}
