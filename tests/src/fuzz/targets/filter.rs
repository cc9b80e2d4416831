//! The console's filter language: what is read and written again means the same.

use yard_ui::filter::Filter;

pub(super) const WORDS: &[&str] = &[
    "rig:",
    "state:blocked",
    "!label:y",
    "wave:3..5",
    "prio:P0..P2",
    "~^gt-[12]$",
    "~(",
    "~(a+)+$",
    "\"lint web\"",
    "why:capacity",
    "convoy:",
    "id:",
    "title:",
    "type:",
    "!",
    "!!",
    "~",
    ":",
    "..",
    "~\\p{L}{1000}",
    "~(?i)",
];

pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(filter) = Filter::parse(&text) else { return };
    let again = Filter::parse(filter.text()).expect("what was read can be read again");
    assert_eq!(format!("{again:?}"), format!("{filter:?}"));
    for shown in ["", "gt-1 lint web", "Über", &text] {
        assert_eq!(filter.lets_text_through(shown), again.lets_text_through(shown));
    }
}
