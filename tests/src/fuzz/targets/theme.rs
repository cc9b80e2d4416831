//! Themes of the console, which are files.

use yard_ui::theme::Theme;

pub(super) const WORDS: &[&str] = &[
    "red = '#ff0000'\n",
    "bold",
    "[roles]\n",
    "fg = 'red'\n",
    "bg = '#12'\n",
    "#zzzzzz",
    "#日",
    "running = ",
];

pub(super) fn run(input: &[u8]) {
    let _ = Theme::parse("fuzz", &String::from_utf8_lossy(input));
}
