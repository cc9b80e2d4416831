//! Ends that nobody asked for: signals, a terminal that goes away, a panic.

use nix::sys::signal::Signal;
use yard_tests::terminal::{NARROW, Terminal, WIDE, nobody_is_left};
use yard_tests::town::is_alive;

use super::{at_both_sizes, endless, live, server, stands, town_of, worker};

at_both_sizes!(a_panic_gives_the_terminal_back_and_says_what_happened);

#[test]
fn being_told_to_end_drains_the_workers_and_restores_the_terminal() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let town = town_of(1);
        endless(&town, "y-long");
        let mut terminal = live(&town, NARROW);
        stands(&terminal, "y-long", "running");
        let pid = worker(&town);
        terminal.signal(signal);
        terminal.left_with(0);
        assert!(!is_alive(pid), "{signal}");
        nobody_is_left(&town);
        assert_eq!(town.state_of("y-long"), "queued", "{signal}");
    }
}

#[test]
fn a_terminal_that_goes_away_drains_the_workers() {
    let town = town_of(1);
    endless(&town, "y-long");
    let mut terminal = live(&town, WIDE);
    stands(&terminal, "y-long", "running");
    let pid = worker(&town);
    terminal.hang_up();
    terminal.exit_code();
    assert!(!is_alive(pid));
    nobody_is_left(&town);
    assert_eq!(town.state_of("y-long"), "queued");
    assert_eq!(town.events(Some("dispatch.ended"))[0]["outcome"]["reason"], "graceful_shutdown");
}

#[test]
fn a_daemon_does_not_notice_that_an_attached_console_was_cut_off() {
    let mut town = town_of(1);
    let daemon = town.start_daemon();
    endless(&town, "y-long");
    let mut hung_up = live(&town, NARROW);
    let mut told = live(&town, WIDE);
    let mut killed = live(&town, WIDE);
    let pid = worker(&town);
    hung_up.hang_up();
    hung_up.exit_code();
    told.signal(Signal::SIGTERM);
    told.left_with(0);
    killed.signal(Signal::SIGKILL);
    assert_eq!(killed.exit_code(), 128 + 9);
    for terminal in [&hung_up, &told, &killed] {
        assert_eq!(terminal.session(), [0; 0]);
    }
    assert_eq!((server(&town), worker(&town)), (Some(daemon), pid));
    town.stop_daemon();
    nobody_is_left(&town);
}

#[test]
fn what_a_killed_console_ran_is_taken_over_by_the_next() {
    let town = town_of(1);
    endless(&town, "y-long");
    let mut terminal = live(&town, NARROW);
    stands(&terminal, "y-long", "running");
    let pid = worker(&town);
    terminal.signal(Signal::SIGKILL);
    assert_eq!(terminal.exit_code(), 128 + 9);
    let mut terminal = live(&town, NARROW);
    stands(&terminal, "y-long", "running");
    assert_eq!(worker(&town), pid);
    terminal.press(&["q"]);
    terminal.shows("1 worker at work");
    terminal.press(&["s"]);
    terminal.left_with(0);
    nobody_is_left(&town);
}

fn a_panic_gives_the_terminal_back_and_says_what_happened(size: (u16, u16)) {
    let town = town_of(1);
    endless(&town, "y-long");
    let mut terminal = Terminal::console_with(&town, size, &[("YM_PANIC_ON_KEY", "F1")]);
    stands(&terminal, "y-long", "running");
    terminal.press(&["F1"]);
    assert_ne!(terminal.exit_code(), 0);
    terminal.is_restored();
    terminal.shows("YM_PANIC_ON_KEY");
    // Line by line from the left edge: raw mode was left before it was written.
    terminal.until("a readable message", |screen| screen.lines().any(|row| row.starts_with("thread 'main'")));
    // Nothing is lost: whoever comes next finds the worker.
    let mut terminal = live(&town, size);
    stands(&terminal, "y-long", "running");
    terminal.press(&["q"]);
    terminal.shows("1 worker at work");
    terminal.press(&["s"]);
    terminal.left_with(0);
    nobody_is_left(&town);
    assert_eq!(town.state_of("y-long"), "queued");
}
