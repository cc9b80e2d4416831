//! Where the console finds its town: none yet, one that it serves itself, one that a daemon serves.

use yard_tests::terminal::{NARROW, Terminal, WIDE, nobody_is_left};
use yard_tests::town::{Town, is_alive, wait_until};

use super::{at_both_sizes, endless, first_row, live, server, stands, town_of, worker};

at_both_sizes!(
    without_a_town_it_offers_one_and_makes_it,
    alone_it_serves_the_town_and_starts_what_waits,
    a_daemon_that_dies_and_its_return_are_shown,
);

fn without_a_town_it_offers_one_and_makes_it(size: (u16, u16)) {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("fresh");
    std::fs::create_dir(&root).expect("a directory");
    let mut terminal = Terminal::in_directory(&root, &[], size);
    terminal.shows("There is no town here");
    terminal.shows("[i] make a town here");
    terminal.shows("[d] see a demonstration");
    terminal.press(&["i"]);
    terminal.until("a live console", |screen| first_row(screen).contains("LIVE"));
    let town = Town::found(&root);
    assert_eq!(server(&town), Some(terminal.pid()), "a shell beside it finds the same town");
    town.run(["bead", "add", "born beside", "--id", "fresh-1"]).ok();
    terminal.shows_row(&["fresh-1", "born beside", "open"]);
    terminal.press(&["q"]);
    terminal.left_with(0);
    assert_eq!(terminal.session(), [0; 0]);
    assert_eq!(town.state_of("fresh-1"), "open");
}

#[test]
fn without_a_town_it_can_be_left_and_nothing_is_made() {
    let dir = tempfile::tempdir().expect("a directory");
    for key in ["q", "x", "Ctrl-c"] {
        let mut terminal = Terminal::in_directory(dir.path(), &[], NARROW);
        terminal.shows("There is no town here");
        terminal.press(&[key]);
        terminal.left_with(0);
    }
    assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 0);
}

fn alone_it_serves_the_town_and_starts_what_waits(size: (u16, u16)) {
    let town = town_of(1);
    endless(&town, "y-first");
    endless(&town, "y-second");
    assert_eq!((server(&town), town.state_of("y-first")), (None, "queued".to_owned()));
    let mut terminal = live(&town, size);
    if size == WIDE {
        terminal.shows("serving the town");
    }
    stands(&terminal, "y-first", "running");
    stands(&terminal, "y-second", "queued");
    let status = town.json(["status"]);
    assert_eq!(status["daemon"]["pid"], terminal.pid(), "{status}");
    assert_eq!((town.state_of("y-first"), town.state_of("y-second")), ("running".into(), "queued".into()));
    terminal.press(&["q"]);
    terminal.shows("1 worker at work");
    terminal.press(&["n"]);
    terminal.hides("1 worker at work");
    assert!(!terminal.has_ended(), "it stays when told so");
    let pid = worker(&town);
    terminal.press(&["q"]);
    terminal.shows("[s] stop: drain the workers");
    terminal.press(&["s"]);
    terminal.left_with(0);
    assert!(!is_alive(pid));
    nobody_is_left(&town);
    assert_eq!(town.state_of("y-first"), "queued", "it will start again");
    assert_eq!(town.events(Some("dispatch.ended"))[0]["outcome"]["reason"], "graceful_shutdown");
}

#[test]
fn quitting_can_hand_the_town_to_a_daemon_that_outlives_the_terminal() {
    let town = town_of(2);
    endless(&town, "y-long");
    let mut terminal = live(&town, NARROW);
    stands(&terminal, "y-long", "running");
    let pid = worker(&town);
    terminal.press(&["q"]);
    terminal.shows("[d] detach to a daemon");
    terminal.press(&["d"]);
    terminal.left_with(0);
    wait_until("a daemon", || server(&town).is_some_and(|daemon| daemon != terminal.pid()));
    terminal.hang_up();
    assert_eq!(
        (worker(&town), town.state_of("y-long")),
        (pid, "running".to_owned()),
        "the same worker goes on"
    );
    endless(&town, "y-more");
    town.await_state("y-more", "running");
    town.run(["stop"]).ok();
    nobody_is_left(&town);
    assert_eq!(town.state_of("y-long"), "queued");
}

#[test]
fn quitting_can_leave_workers_running_that_the_next_console_finds() {
    let town = town_of(1);
    endless(&town, "y-long");
    endless(&town, "y-next");
    let mut terminal = live(&town, WIDE);
    stands(&terminal, "y-long", "running");
    let pid = worker(&town);
    terminal.press(&["q"]);
    terminal.shows("[l] leave them running");
    terminal.press(&["l"]);
    terminal.left_with(0);
    assert_eq!(server(&town), None);
    assert!(is_alive(pid));
    assert_eq!(worker(&town), pid);
    let mut terminal = live(&town, NARROW);
    stands(&terminal, "y-long", "running");
    assert_eq!(worker(&town), pid, "it was taken over, not started again");
    town.run(["cancel", "y-long"]).ok();
    stands(&terminal, "y-next", "running");
    terminal.press(&["Ctrl-c"]);
    terminal.shows("1 worker at work");
    terminal.press(&["s"]);
    terminal.left_with(0);
    nobody_is_left(&town);
}

#[test]
fn with_nothing_running_it_quits_without_a_question() {
    let town = town_of(1);
    let mut terminal = live(&town, NARROW);
    terminal.press(&["q"]);
    terminal.left_with(0);
    assert_eq!(terminal.session(), [0; 0]);
    nobody_is_left(&town);
}

#[test]
fn quitting_while_the_town_is_being_taken_over_leaves_nobody_behind() {
    let town = town_of(2);
    endless(&town, "y-long");
    for _ in 0..5 {
        let mut terminal = Terminal::console(&town, NARROW);
        // Before the first frame: the town is not served yet, and nothing is known to run.
        terminal.press(&["q"]);
        terminal.until("its end, or a question", |screen| {
            screen.contains("1 worker at work") || (!terminal.is_taken() && terminal.session().is_empty())
        });
        if !terminal.has_ended() {
            terminal.press(&["s"]);
        }
        terminal.left_with(0);
        nobody_is_left(&town);
        assert_eq!(town.state_of("y-long"), "queued");
    }
}

#[test]
fn beside_a_daemon_it_attaches_and_leaves_it_alone() {
    let mut town = town_of(1);
    let daemon = town.start_daemon();
    endless(&town, "y-long");
    let mut terminal = live(&town, WIDE);
    terminal.shows("daemon ok");
    stands(&terminal, "y-long", "running");
    let pid = worker(&town);
    terminal.press(&["q"]);
    terminal.left_with(0);
    assert_eq!(terminal.session(), [0; 0]);
    assert_eq!((server(&town), worker(&town)), (Some(daemon), pid));
    town.stop_daemon();
    nobody_is_left(&town);
}

#[test]
fn a_second_console_attaches_to_the_first_and_outlives_it() {
    let town = town_of(1);
    endless(&town, "y-long");
    let mut first = live(&town, NARROW);
    let mut second = live(&town, WIDE);
    second.shows("console ok");
    stands(&second, "y-long", "running");
    first.press(&["q"]);
    first.shows("1 worker at work");
    first.press(&["s"]);
    first.left_with(0);
    second.shows("DISCONNECTED");
    assert_eq!(town.state_of("y-long"), "queued");
    second.press(&["q"]);
    second.left_with(0);
    nobody_is_left(&town);
}

fn a_daemon_that_dies_and_its_return_are_shown(size: (u16, u16)) {
    let mut town = town_of(1);
    town.start_daemon();
    endless(&town, "y-long");
    let mut terminal = live(&town, size);
    stands(&terminal, "y-long", "running");
    let pid = worker(&town);
    town.kill_daemon();
    terminal.until("the loss", |screen| first_row(screen).contains("DISCONNECTED"));
    terminal.press(&["p"]);
    terminal.shows("nobody serves the town");
    // What happens meanwhile is caught up with, not lost.
    town.run(["bead", "add", "meanwhile", "--id", "y-mean"]).ok();
    town.start_daemon();
    terminal.until("the return", |screen| first_row(screen).contains("LIVE"));
    terminal.shows_row(&["y-mean", "meanwhile", "open"]);
    stands(&terminal, "y-long", "running");
    assert_eq!(worker(&town), pid, "the worker went on");
    town.run(["bead", "close", "y-mean"]).ok();
    stands(&terminal, "y-mean", "closed");
    terminal.press(&["q"]);
    terminal.left_with(0);
    town.stop_daemon();
    nobody_is_left(&town);
}

#[test]
fn a_town_without_a_daemon_gets_one_from_a_console_that_lost_it() {
    let mut town = town_of(1);
    town.start_daemon();
    let mut terminal = live(&town, NARROW);
    town.kill_daemon();
    terminal.until("the loss", |screen| first_row(screen).contains("DISCONNECTED"));
    terminal.press(&["D"]);
    terminal.until("the return", |screen| first_row(screen).contains("LIVE"));
    let daemon = server(&town).expect("a daemon");
    assert_ne!(daemon, terminal.pid());
    terminal.press(&["q"]);
    terminal.left_with(0);
    terminal.hang_up();
    assert_eq!(server(&town), Some(daemon), "it outlives the console and its terminal");
    town.run(["stop"]).ok();
    nobody_is_left(&town);
}
