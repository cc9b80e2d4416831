//! The console in a real terminal: what a person sees, presses and is left with. What the screen says is compared with
//! what the command line says; after each end the terminal is as it was and no process of the town is left.

mod demo;
mod ends;
mod finding;
mod homes;
mod hostile;
mod sizes;
mod suspend;
mod verbs;

use yard_tests::terminal::{Terminal, has_row};
use yard_tests::town::{Town, wait_until};

/// Runs a test at both sizes that matter, each as a test of its own.
macro_rules! at_both_sizes {
    ($($name:ident),+ $(,)?) => {
        mod at_120x40 {
            $(#[test] fn $name() { super::$name(yard_tests::terminal::WIDE); })+
        }
        mod at_80x24 {
            $(#[test] fn $name() { super::$name(yard_tests::terminal::NARROW); })+
        }
    };
}
use at_both_sizes;

/// A town with so many slots, where waiting for time is short.
fn town_of(slots: u32) -> Town {
    let town = Town::new();
    town.set("scheduler.max_polecats", &slots.to_string());
    town.set("preemption.timeout", "200ms");
    town.set("preemption.min_run", "1ms");
    town
}

/// Adds a bead that works until it is ended, and asks for it.
fn endless(town: &Town, id: &str) {
    town.run(["bead", "add", id, "--id", id, "--", "sleep", "1000"]).ok();
    town.run(["sling", id]).ok();
}

/// The console on a town, live.
fn live(town: &Town, size: (u16, u16)) -> Terminal {
    let terminal = Terminal::console(town, size);
    terminal.until("a live console", |screen| first_row(screen).contains("LIVE"));
    terminal
}

fn first_row(screen: &str) -> &str {
    screen.lines().next().unwrap_or_default()
}

/// Puts the cursor on a bead: the filter shows it alone.
fn select(terminal: &Terminal, id: &str) {
    terminal.press(&["/"]);
    terminal.shows(" /");
    terminal.type_text(id);
    terminal.press(&["Enter"]);
    terminal.until(&format!("{id} under the cursor"), |screen| {
        beads(screen) == [id] && has_row(screen, &["│>", id])
    });
}

/// Takes the filter off.
fn unfilter(terminal: &Terminal) {
    terminal.press(&["Esc"]);
    terminal.until("no filter", |screen| !screen.contains(" /y-"));
}

/// The beads whose rows the yard shows, from top to bottom.
fn beads(screen: &str) -> Vec<&str> {
    rows(screen).filter_map(|row| row.split_whitespace().find(|word| word.starts_with("y-"))).collect()
}

/// The rows of the yard's table.
fn rows(screen: &str) -> impl Iterator<Item = &str> {
    let rows = screen.lines().skip_while(|row| !row.contains("BEAD")).skip(1);
    rows.take_while(|row| !row.starts_with("│──") && !row.starts_with('└'))
}

/// Waits until the yard shows a bead in this state.
fn stands(terminal: &Terminal, id: &str, state: &str) {
    terminal.until(&format!("{id} {state}"), |screen| {
        let words = |row: &str, word: &str| row.split_whitespace().any(|shown| shown == word);
        rows(screen).any(|row| words(row, id) && words(row, state))
    });
}

/// The process of the only running worker, once it has one.
fn worker(town: &Town) -> u32 {
    let pid = || town.json(["status"])["running"][0]["pid"].as_u64();
    wait_until("a worker", || pid().is_some());
    pid().expect("a pid") as u32
}

/// Who serves the town.
fn server(town: &Town) -> Option<u32> {
    let daemon = town.json(["status"])["daemon"].clone();
    daemon["running"].as_bool().unwrap_or_default().then(|| daemon["pid"].as_u64().unwrap_or_default() as u32)
}
