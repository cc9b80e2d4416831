//! Text from outside never breaks the frame nor commands the terminal.

use serde_json::json;

use super::{at_both_sizes, live, town_of};

at_both_sizes!(hostile_titles_stay_inside_their_cells);

/// Titles that would do harm if they reached a terminal raw, or were measured wrongly.
fn titles() -> Vec<(&'static str, String)> {
    vec![
        ("y-csi", "\u{1b}[2J\u{1b}[31mred\u{1b}[?1049lend".to_owned()),
        ("y-osc", "\u{1b}]0;stolen title\u{7}\u{1b}]52;c;c3RvbGVu\u{7}tail".to_owned()),
        ("y-c1", "\u{9b}31m\u{9d}0;stolen\u{9c}c1".to_owned()),
        (
            "y-rtl",
            "\u{202e}gnp.exe \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{645}\u{631}\u{62d}\u{628}\u{627}".to_owned(),
        ),
        ("y-wide", "日本語のとても長い題名が枠を壊さないこと".to_owned()),
        ("y-comb", format!("z{}algo", "\u{301}\u{302}\u{30c}".repeat(40))),
        ("y-emoji", "👩‍👩‍👧‍👦 family 🇩🇪 flag \u{fe0f} ☎\u{fe0f} x".to_owned()),
        ("y-zero", "\u{200b}\u{200d}\u{feff}zero\u{2028}line\u{2029}para".to_owned()),
        ("y-lines", "one\r\ntwo\u{8}\u{8}three\tfour\u{0b}five".to_owned()),
        ("y-long", "long ".repeat(2_000)),
    ]
}

fn hostile_titles_stay_inside_their_cells(size: (u16, u16)) {
    let mut town = town_of(1);
    town.start_daemon();
    let lines: Vec<String> = titles()
        .iter()
        .map(|(id, title)| json!({"id": id, "name": title, "argv": ["true"]}).to_string())
        .collect();
    let added = town.run_with_input(["add", "--file", "-"], lines.join("\n").as_bytes());
    assert_eq!(added.code, 0, "{}", added.stderr);
    let mut terminal = live(&town, size);
    for (id, _) in titles() {
        terminal.shows_row(&[id]);
    }
    for view in ["1", "2", "3", "4", "5", "6", "1"] {
        terminal.press(&[view]);
        terminal.until("frames that close", frames_close);
    }
    for (id, _) in titles() {
        super::select(&terminal, id);
        for key in ["Enter", "w"] {
            terminal.press(&[key]);
            terminal.shows("Esc back");
            terminal.until("frames that close", frames_close);
            terminal.press(&["Esc"]);
            terminal.hides("Esc back");
        }
        super::unfilter(&terminal);
    }
    let asked = terminal.asked();
    assert!(asked.titles.is_empty() && asked.copies.is_empty() && asked.sizes.is_empty(), "{asked:?}");
    assert!(asked.strange.is_empty(), "{asked:?}");
    assert!(terminal.is_taken());
    terminal.press(&["q"]);
    terminal.left_with(0);
}

/// Whether every row that begins with a frame also ends with one, in the last column of the screen.
fn frames_close(screen: &str) -> bool {
    screen.lines().all(|row| {
        let (first, last) = (row.chars().next(), row.chars().next_back());
        let framed = first.is_some_and(|c| "│┌└├".contains(c));
        !framed || last.is_some_and(|c| "│┐┘┤".contains(c))
    })
}
