//! Workers in tmux: attaching, detaching, lost windows, and what happens without tmux.

use serde_json::json;
use yard_tests::terminal::{NARROW, Terminal};
use yard_tests::town::{Town, is_alive, kill_nine, wait_until};

/// A bead that greets whoever types a name, and ends with 7 when it is told to go.
const GREETER: &str =
    "echo 'who is there?'; while read name; do [ \"$name\" = go ] && exit 7; echo \"hello $name\"; done";

fn served() -> Town {
    let mut town = Town::with_executor("tmux");
    town.set("scheduler.max_polecats", "3");
    town.set("retry.crash.max_attempts", "1");
    town.start_daemon();
    town
}

fn start(town: &Town, bead: &str, script: &str) {
    town.shell_bead(bead, script);
    town.run(["sling", bead, "--no-convoy"]).ok();
    wait_until("its program runs", || !town.json(["show", bead])["dispatches"][0]["pid"].is_null());
}

fn outcome(town: &Town, bead: &str) -> serde_json::Value {
    town.json(["show", bead])["dispatches"][0]["ended"]["outcome"].clone()
}

/// Leaves the window, and lets the worker go on.
fn detach(terminal: &Terminal) {
    terminal.press(&["Ctrl-b", "d"]);
}

/// Leaves the window that shows a text. tmux takes keys that follow each other at once for pasted text, so it may take more
/// than one try.
fn detach_from(terminal: &Terminal, shown: &str) {
    terminal.shows(shown);
    terminal.until("the window to be left", |screen| {
        let is_attached = screen.contains(shown);
        if is_attached {
            detach(terminal);
        }
        !is_attached
    });
}

#[test]
fn whoever_attaches_sees_the_worker_and_talks_to_it() {
    let town = served();
    start(&town, "y-a.1", GREETER);
    let attach = "\"$YM\" attach y-a.1; echo \"left with $?\"";
    let mut terminal = Terminal::script(&town, attach, NARROW);
    terminal.shows("who is there?");
    terminal.type_text("bob\r");
    detach_from(&terminal, "hello bob");
    terminal.shows("left with 0");
    terminal.left_with(0);
    assert_eq!(town.state_of("y-a.1"), "running", "it goes on");
    let mut terminal = Terminal::script(&town, attach, NARROW);
    terminal.shows("hello bob");
    terminal.type_text("go\r");
    terminal.shows("left with 0");
    terminal.left_with(0);
    town.await_state("y-a.1", "failed");
    assert_eq!(outcome(&town, "y-a.1")["code"], 7);
    assert_eq!(town.refused(["attach", "y-a.1"]), "not-running");
    let log = town.run(["logs", "y-a.1"]).ok().stdout;
    assert_eq!(log, "who is there?\nbob\nhello bob\ngo\n");
}

#[test]
fn a_reader_cannot_type() {
    let town = served();
    start(&town, "y-a", GREETER);
    let mut terminal = Terminal::script(&town, "\"$YM\" attach --read-only y-a@1", NARROW);
    terminal.shows("who is there?");
    terminal.type_text("bob\r");
    // tmux takes keys that follow at once for pasted text.
    wait_until("it leaves", || {
        detach(&terminal);
        terminal.has_ended()
    });
    assert_eq!(town.run(["logs", "y-a"]).ok().stdout, "who is there?\n");
    town.run(["kill", "y-a"]).ok();
    town.await_state("y-a", "cancelled");
}

#[test]
fn the_console_attaches_and_comes_back() {
    let town = served();
    start(&town, "y-a", GREETER);
    let mut terminal = Terminal::console(&town, NARROW);
    terminal.shows_row(&["y-a", "running"]);
    terminal.press(&["a"]);
    terminal.shows("who is there?");
    terminal.type_text("bob\r");
    detach_from(&terminal, "hello bob");
    terminal.shows_row(&["y-a", "running"]);
    let server = server_of(&town);
    kill_nine(server);
    wait_until("it is dead", || !is_alive(server));
    terminal.press(&["a"]);
    terminal.shows("the window of y-a@1 is gone");
    terminal.press(&["q"]);
    terminal.left_with(0);
    town.run(["kill", "y-a"]).ok();
    town.await_state("y-a", "cancelled");
}

fn server_of(town: &Town) -> u32 {
    town.tmux(&["display-message", "-p", "#{pid}"]).ok().stdout.trim().parse().expect("a process id")
}

#[test]
fn a_worker_outlives_tmux_and_the_daemon() {
    let mut town = served();
    let go = town.root().join("go");
    let script =
        format!("echo before; while [ ! -e '{}' ]; do sleep 0.01; done; echo after; exit 7", go.display());
    start(&town, "y-a", &script);
    start(&town, "y-b", &script);
    kill_nine(server_of(&town));
    town.kill_daemon();
    town.start_daemon();
    assert_eq!((town.state_of("y-a"), town.state_of("y-b")), ("running".into(), "running".into()));
    let refused = town.run(["attach", "y-a"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("is gone") && refused.stderr.contains("ym logs -f y-a@1"),
        "{}",
        refused.stderr
    );
    town.run(["kill", "y-b"]).ok();
    town.await_state("y-b", "cancelled");
    std::fs::write(&go, "").expect("a file");
    town.await_state("y-a", "failed");
    assert_eq!(outcome(&town, "y-a")["code"], 7);
    assert_eq!(town.run(["logs", "y-a"]).ok().stdout, "before\nafter\n");
}

#[test]
fn a_killed_program_is_told_from_a_failed_one() {
    let town = served();
    start(&town, "y-a", "echo $$; sleep 1000");
    let pid = town.json(["status"])["running"][0]["pid"].as_u64().expect("a pid");
    kill_nine(pid as u32);
    town.await_state("y-a", "failed");
    assert_eq!(outcome(&town, "y-a")["signal"], 9, "{}", outcome(&town, "y-a"));
}

#[test]
fn without_tmux_a_start_fails_and_says_what_to_do() {
    let mut town = Town::with_executor("tmux");
    town.set("scheduler.max_polecats", "1");
    town.start_daemon_with(&[("PATH", "/nonexistent")]);
    town.shell_bead("y-a", "true");
    town.run(["sling", "y-a", "--no-convoy"]).ok();
    wait_until("the start fails", || !town.events(Some("dispatch.ended")).is_empty());
    let ended = town.events(Some("dispatch.ended"))[0]["outcome"].clone();
    assert_eq!(ended["how"], "start-failed", "{ended}");
    let error = ended["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("tmux cannot be run: ") && error.ends_with("use --executor local"), "{error}");
    assert_eq!(town.json(["show", "y-a"])["context"]["dispatch_failures"], 1, "the breaker counts it");
    let doctor =
        |path: &str| town.command(["--json", "doctor"]).env("PATH", path).output().expect("ym runs").stdout;
    let says = |path: &str| String::from_utf8_lossy(&doctor(path)).into_owned();
    assert!(says("/nonexistent").contains("install tmux"), "{}", says("/nonexistent"));
    assert!(says(&std::env::var("PATH").expect("a path")).contains(r#""message":"tmux "#));
}

#[test]
fn an_executor_is_chosen_by_the_sling_the_rig_or_the_town() {
    let town = Town::new();
    town.shell_bead("y-sling", "test -t 1");
    town.shell_bead("y-rig", "test -t 1");
    town.shell_bead("y-local", "test -t 1 && exit 3; exit 0");
    town.run(["sling", "y-sling", "--executor", "tmux", "--no-convoy"]).ok();
    town.set("rig.yard.executor", "tmux");
    town.run(["sling", "y-rig", "--no-convoy"]).ok();
    town.run(["sling", "y-local", "--executor", "local", "--no-convoy"]).ok();
    town.run(["wait", "--all"]).ok();
    for (bead, executor) in [("y-sling", "tmux"), ("y-rig", "tmux"), ("y-local", "local")] {
        assert_eq!(town.json(["show", bead])["dispatches"][0]["executor"], executor);
    }
    assert_eq!(town.refused(["config", "set", "worker.executor", "tmus"]), "bad-value");
    assert_eq!(
        town.refused(["rig", "add", "other", "--prefix", "o", "--executor", "tmus"]),
        "unknown-executor"
    );
    let local = town.run(["attach", "y-local"]);
    assert!(local.code == 1 && local.stderr.contains("ym logs y-local@1"), "{}", local.stderr);
}

#[test]
fn a_local_worker_has_no_window_and_attach_says_what_to_do() {
    let town = served();
    town.shell_bead("y-a", "sleep 1000");
    town.run(["sling", "y-a", "--executor", "local", "--no-convoy"]).ok();
    town.await_state("y-a", "running");
    let refused = town.run(["attach", "y-a"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("ym logs -f y-a@1"), "{}", refused.stderr);
    town.run(["kill", "y-a"]).ok();
    town.await_state("y-a", "cancelled");
}

#[test]
fn nothing_a_bead_says_is_ever_run() {
    let town = served();
    let title = "'\"$(touch pwned)`touch pwned`;touch pwned\\ #{pid}";
    let words = ["'", "\"", "$(touch pwned)", "`touch pwned`", ";", "a\nb", "#{pid}", "--"];
    let add = ["bead", "add", title, "--id", "y-q", "--", "printf", "<%s>"];
    town.run(add.iter().chain(&words)).ok();
    town.run(["sling", "y-q", "--no-convoy"]).ok();
    town.run(["wait", "y-q"]).ok();
    let wanted = format!("<{}>", words.join("><"));
    assert_eq!(town.run(["logs", "y-q"]).ok().stdout, wanted);
    let run = town.root().join(".yardmaster/run");
    assert!([town.root(), run.as_path()].iter().all(|dir| !dir.join("pwned").exists()));
    wait_until("no session is left", || town.tmux(&["list-sessions"]).stdout.is_empty());
    assert_eq!(town.json(["show", "y-q"])["status"], json!("closed"));
}
