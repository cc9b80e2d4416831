//! The demonstration in a terminal: its story, the part a person plays in it, and that nothing is left behind.

use std::path::Path;

use tempfile::TempDir;
use yard_tests::terminal::{NARROW, Terminal, WIDE};
use yard_tests::town::{command_line, processes, wait_until};

use super::{at_both_sizes, first_row};

at_both_sizes!(the_demo_opens_the_console_and_can_be_left);

/// Where a demo puts its town.
fn room() -> TempDir {
    tempfile::Builder::new().prefix("ym-test-").tempdir().expect("a temporary directory")
}

fn is_live(screen: &str) -> bool {
    first_row(screen).contains("LIVE")
}

/// Waits until the town is gone, and everybody who worked in it.
fn nothing_is_left(room: &Path) {
    wait_until("the town to be gone", || std::fs::read_dir(room).expect("a directory").count() == 0);
    let name = room.to_string_lossy();
    let ours = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let town = format!("YM_TOWN={name}");
        command_line(*pid).contains(&*name)
            || environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(town.as_bytes()))
    };
    wait_until("nobody is left behind", || !processes().iter().any(ours));
}

fn the_demo_opens_the_console_and_can_be_left(size: (u16, u16)) {
    let room = room();
    let mut terminal = Terminal::in_directory(room.path(), &["demo", "--speed", "4"], size);
    terminal.until("a live console", is_live);
    terminal.shows("running");
    terminal.press(&["2"]);
    terminal
        .until("its convoy", |screen| first_row(screen).contains("convoys ▸") && screen.contains("hq-cv-"));
    terminal.press(&["q"]);
    terminal.left_with(0);
    nothing_is_left(room.path());
}

#[test]
fn what_breaks_in_the_demo_is_found_and_retried_by_a_person() {
    let room = room();
    let mut terminal = Terminal::in_directory(room.path(), &["demo", "--speed", "10"], WIDE);
    terminal.until("a live console", is_live);
    terminal.press(&["5"]);
    terminal.shows_row(&["BROKEN", "web-icons"]);
    let tool = || {
        let town = std::fs::read_dir(room.path()).expect("a directory").flatten().next();
        town.is_some_and(|town| town.path().join("web/tools/fontcut").exists())
    };
    wait_until("its tool to be there", tool);
    terminal.press(&["/"]);
    terminal.shows(" /");
    terminal.type_text("web-icons");
    terminal.press(&["Enter"]);
    terminal.shows_row(&["│>", "web-icons"]);
    terminal.press(&["r"]);
    terminal.press(&["1"]);
    terminal.shows_row(&["web-icons", "closed"]);
    terminal.press(&["q"]);
    terminal.left_with(0);
    nothing_is_left(room.path());
}

#[test]
fn where_there_is_no_town_d_shows_the_demo() {
    let room = room();
    let mut terminal = Terminal::in_directory(room.path(), &[], NARROW);
    terminal.shows("[d] see a demonstration");
    terminal.press(&["d"]);
    terminal.until("a live console", is_live);
    terminal.press(&["q"]);
    terminal.left_with(0);
    nothing_is_left(room.path());
}

#[test]
fn a_demo_whose_terminal_goes_away_leaves_nothing_behind() {
    let room = room();
    let mut terminal = Terminal::in_directory(room.path(), &["demo", "--speed", "4"], NARROW);
    terminal.until("a live console", is_live);
    terminal.shows("running");
    terminal.hang_up();
    terminal.exit_code();
    nothing_is_left(room.path());
}
