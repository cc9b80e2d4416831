//! Giving the terminal away for a while, and coming back: Ctrl-z, a shell, a redraw.

use yard_tests::terminal::{NARROW, Terminal, nobody_is_left};
use yard_tests::town::{command_line, parent_of, processes, wait_until};

use super::{at_both_sizes, endless, first_row, live, stands, town_of};

at_both_sizes!(ctrl_z_gives_the_terminal_back_and_fg_returns);

/// A shell with job control, as a person's: the console is its foreground job, and comes back when Enter is pressed.
const SHELL: &str = "set -m; \"$YM\"; echo 'now in the shell'; read _; fg; echo \"left with $?\"";

fn ctrl_z_gives_the_terminal_back_and_fg_returns(size: (u16, u16)) {
    let mut town = town_of(2);
    town.start_daemon();
    let mut terminal = Terminal::script(&town, SHELL, size);
    terminal.until("a live console", |screen| first_row(screen).contains("LIVE"));
    let console = console_of(terminal.pid());
    terminal.press(&["Ctrl-z"]);
    wait_until("it to stop", || state(console) == Some('T'));
    terminal.is_restored();
    terminal.shows("now in the shell");
    endless(&town, "y-while");
    town.await_state("y-while", "running");
    terminal.press(&["Enter"]);
    wait_until("it to go on", || state(console) != Some('T'));
    terminal.until("the console again", |screen| first_row(screen).contains("LIVE"));
    stands(&terminal, "y-while", "running");
    assert!(terminal.is_taken());
    terminal.press(&["q"]);
    terminal.shows("left with 0");
    terminal.left_with(0);
}

#[test]
fn ctrl_z_without_a_shell_to_go_to_changes_nothing() {
    let town = town_of(1);
    let mut terminal = live(&town, NARROW);
    terminal.press(&["Ctrl-z"]);
    terminal.press(&["5"]);
    terminal.until("the problems", |screen| first_row(screen).contains("problems ▸"));
    terminal.press(&["q"]);
    terminal.left_with(0);
}

#[test]
fn a_shell_in_the_directory_of_a_bead_and_back() {
    let town = town_of(1);
    town.run(["bead", "add", "one", "--id", "y-1"]).ok();
    let mut terminal = live(&town, NARROW);
    stands(&terminal, "y-1", "open");
    terminal.press(&["S"]);
    terminal.until("a shell", |_| !terminal.is_taken());
    terminal.is_restored();
    terminal.type_text("pwd; touch been-here; exit\r");
    terminal.until("the console again", |screen| first_row(screen).contains("LIVE"));
    assert!(terminal.is_taken());
    assert!(town.root().join("been-here").exists(), "it stood in the rig's directory");
    stands(&terminal, "y-1", "open");
    terminal.press(&["q"]);
    terminal.left_with(0);
    nobody_is_left(&town);
}

#[test]
fn a_redraw_mends_what_others_wrote_on_the_screen() {
    let town = town_of(1);
    let mut terminal = live(&town, NARROW);
    // As a background job of the same shell does.
    terminal.scribble("\x1b[2J\x1b[5;5Hgarbage of somebody else");
    terminal.shows("garbage");
    terminal.press(&["Ctrl-l"]);
    terminal.hides("garbage");
    terminal.until("the whole frame", |screen| first_row(screen).contains("LIVE") && screen.contains("BEAD"));
    terminal.press(&["q"]);
    terminal.left_with(0);
}

/// The console that a shell started.
fn console_of(shell: u32) -> u32 {
    let child = || {
        let mut all = processes().into_iter();
        all.find(|pid| parent_of(*pid) == Some(shell) && command_line(*pid).ends_with("/ym"))
    };
    wait_until("the shell's console", || child().is_some());
    child().expect("a process")
}

/// The state of a process: `R`, `S`, `T` when it is stopped.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}
