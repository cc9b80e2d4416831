//! What only a worker in a tmux window has: a terminal, keys, and a window that may go.

use yard_workers::{Helper, Recovered, Surface, WorkerReport};

use crate::yard::{Yard, alive, eventually, id, kill, parent};

const UNTIL_GO: &str = "echo before; while [ ! -e go ]; do sleep 0.01; done; echo after; exit 7";

fn go(yard: &Yard) {
    std::fs::write(yard.file("go"), "").expect("written");
}

fn sessions(yard: &Yard) -> String {
    yard.tmux(&["list-sessions", "-F", "#{session_name}"])
}

fn server_of(yard: &Yard) -> u32 {
    yard.tmux(&["display-message", "-p", "#{pid}"]).trim().parse().expect("a process id")
}

pub(crate) fn a_session_is_there_as_long_as_its_worker() {
    let mut yard = Yard::new();
    yard.start("gt-a.b_c@1", &[UNTIL_GO]);
    let pid = yard.running("gt-a.b_c@1");
    assert_eq!(sessions(&yard), "gt-a_2eb_5fc@1\n");
    let pane: u32 = yard.tmux(&["list-panes", "-F", "#{pane_pid}"]).trim().parse().expect("a process id");
    let shim = parent(pid);
    // Where there are control groups the shim is a child of what runs there.
    assert!([shim, parent(shim)].contains(&pane), "the shim runs in it");
    go(&yard);
    assert_eq!(yard.ended("gt-a.b_c@1").code, Some(7));
    eventually("the session is gone", || sessions(&yard).is_empty());
    assert!(!yard.run.join("gt-a.b_c@1.spec").exists() && !yard.run.join("gt-a.b_c@1.env").exists());
}

pub(crate) fn a_program_has_a_terminal_that_is_not_tmuxs() {
    let mut yard = Yard::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && : > /dev/tty && tty && stty size && echo $TERM && echo ${TMUX:-none}";
    yard.start("gt-a@1", &[script]);
    assert_eq!(yard.ended("gt-a@1").code, Some(0), "{}", yard.log("gt-a@1"));
    let log = yard.log("gt-a@1");
    assert!(log.starts_with("/dev/pts/") && log.ends_with("\n50 200\nscreen-256color\nnone\n"), "{log}");
}

pub(crate) fn text_given_to_a_step_is_its_input_also_on_a_terminal() {
    let mut yard = Yard::new();
    let mut spec = yard.spec("gt-a@1", &["test -t 0 && exit 3; test -t 1 || exit 4; cat"]);
    spec.steps[0].stdin = Some("text".into());
    yard.start_spec("gt-a@1", spec);
    assert_eq!(yard.ended("gt-a@1").code, Some(0));
    assert_eq!(yard.log("gt-a@1"), "text");
}

pub(crate) fn a_window_shows_what_the_log_has_and_takes_keys() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["echo who; read name; echo \"hello $name\"; trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done"]);
    yard.running("gt-a@1");
    let screen = || yard.tmux(&["capture-pane", "-p", "-t", "=gt-a@1:"]);
    eventually("it asks", || screen().starts_with("who\n"));
    yard.tmux(&["send-keys", "-t", "=gt-a@1:", "bob", "Enter"]);
    eventually("it answers", || screen().starts_with("who\nbob\nhello bob\nready\n"));
    assert_eq!(yard.log("gt-a@1"), "who\nbob\nhello bob\nready\n");
    yard.tmux(&["send-keys", "-t", "=gt-a@1:", "C-c"]);
    assert_eq!(yard.ended("gt-a@1").code, Some(9));
}

pub(crate) fn a_program_learns_how_large_its_window_is() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done"]);
    yard.running("gt-a@1");
    eventually("ready", || yard.log("gt-a@1").contains("ready"));
    yard.tmux(&["resize-window", "-t", "=gt-a@1:", "-x", "91", "-y", "37"]);
    assert_eq!(yard.ended("gt-a@1").code, Some(0));
    assert_eq!(yard.log("gt-a@1"), "ready\n37 91\n");
}

pub(crate) fn a_killed_tmux_server_takes_only_the_window_along() {
    let mut yard = Yard::new();
    for dispatch in ["gt-a@1", "gt-b@1"] {
        yard.start(dispatch, &[UNTIL_GO, "echo second; exit 6"]);
        yard.running(dispatch);
    }
    kill(server_of(&yard), "KILL");
    // Its successor is made for whoever comes next.
    yard.start("gt-c@1", &[UNTIL_GO]);
    yard.running("gt-c@1");
    eventually("a new server", || sessions(&yard) == "gt-c@1\n");
    go(&yard);
    for dispatch in ["gt-a@1", "gt-b@1", "gt-c@1"] {
        assert_eq!(yard.ended(dispatch).code, Some(7));
        assert_eq!(yard.log(dispatch), "before\nafter\n");
    }
}

pub(crate) fn a_closed_window_harms_nobody() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &[UNTIL_GO]);
    let pid = yard.running("gt-a@1");
    yard.tmux(&["kill-session", "-t", "=gt-a@1"]);
    eventually("the window is gone", || sessions(&yard).is_empty());
    assert!(alive(pid));
    yard.pool().request_stop(&id("gt-a@1"), yard_engine::Millis(100), "enough").expect("asked");
    let exit = yard.ended("gt-a@1");
    assert_eq!(exit.note.as_deref(), Some("enough"));
    assert!(!alive(pid));
}

pub(crate) fn a_shim_that_hangs_without_its_window_is_killed_after_the_grace() {
    let mut yard = Yard::new();
    yard.start("gt-a@1", &["exec sleep 600"]);
    let pid = yard.running("gt-a@1");
    // tmux lets a stopped program go on, and so does the end of its terminal.
    let server = server_of(&yard);
    kill(server, "KILL");
    eventually("it is dead", || !alive(server));
    kill(parent(pid), "STOP");
    yard.pool().request_stop(&id("gt-a@1"), yard_engine::Millis(100), "test").expect("asked");
    let report = yard.last("gt-a@1");
    assert!(matches!(report, WorkerReport::Lost { .. }), "{report:?}");
    assert!(!alive(pid));
}

pub(crate) fn a_window_that_is_not_served_holds_nobody_up() {
    let mut yard = Yard::new();
    let script = "echo begun; while [ ! -e go ]; do sleep 0.01; done; i=0; \
                  while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done";
    yard.start("gt-a@1", &[script]);
    yard.running("gt-a@1");
    let server = server_of(&yard);
    kill(server, "STOP");
    go(&yard);
    let exit = yard.ended("gt-a@1");
    kill(server, "CONT");
    assert_eq!(exit.code, Some(0));
    let log = yard.log("gt-a@1");
    assert!(log.lines().count() == 20001 && log.ends_with("line 19999\n"));
}

pub(crate) fn a_shim_that_never_claims_is_noticed_at_once() {
    let mut yard = Yard::closed();
    // It ends without taking anything.
    yard.open_with(Helper { exe: "/bin/false".into(), args: Vec::new() });
    yard.start("gt-a@1", &["touch never"]);
    let report = yard.last("gt-a@1");
    assert!(matches!(report, WorkerReport::NeverRan { .. }), "{report:?}");
    assert!(std::fs::read_to_string(yard.claim("gt-a@1")).expect("a claim").contains("revoked"));
    assert!(!yard.file("never").exists());
}

pub(crate) fn a_start_that_is_on_its_way_is_left_alone() {
    let mut yard = Yard::new();
    for n in 1..=20 {
        let dispatch = format!("gt-a@{n}");
        yard.start(&dispatch, &["exit 5"]);
        // The safety scan may look at any moment, and must not revoke it.
        for _ in 0..20 {
            let found = yard.pool().probe(&id(&dispatch)).expect("found out");
            assert_ne!(found, Recovered::NeverRan);
        }
        assert_eq!(yard.ended(&dispatch).code, Some(5));
    }
}

pub(crate) fn the_environment_is_ours_whoever_started_the_server() {
    let mut yard = Yard::new();
    // A server of an earlier daemon, which had another environment.
    let mut earlier = std::process::Command::new("tmux");
    earlier.args(["-S", "tmux.sock", "-f", "/dev/null", "new-session", "-d", "-s", "earlier", "sleep 600"]);
    let started = earlier.env("LEAK", "theirs").env("HOME", "/theirs").current_dir(&yard.run).status();
    assert!(started.expect("tmux runs").success());
    yard.start("gt-a@1", &["echo \"$LEAK|$HOME|$YM_DISPATCH|$PATH\""]);
    assert_eq!(yard.ended("gt-a@1").code, Some(0));
    let own = |name: &str| std::env::var(name).unwrap_or_default();
    assert_eq!(yard.log("gt-a@1"), format!("|{}|gt-a@1|{}\n", own("HOME"), own("PATH")));
}

pub(crate) fn words_reach_the_program_as_they_are() {
    let mut yard = Yard::new();
    let words = [
        "'",
        "\"",
        "$(touch pwned)",
        "`touch pwned`",
        "; touch pwned",
        ";",
        "a\nb",
        "#{pid}",
        "%1",
        "\\",
        "ä",
    ];
    let mut spec = yard.spec("gt-a@1", &[""]);
    spec.steps[0].argv = ["printf", "<%s>"].iter().chain(&words).map(|word| (*word).to_owned()).collect();
    yard.start_spec("gt-a@1", spec);
    assert_eq!(yard.ended("gt-a@1").code, Some(0));
    let wanted = format!("<{}>", words.join("><"));
    assert_eq!(yard.log("gt-a@1"), wanted);
    assert!(!yard.file("pwned").exists() && !yard.run.join("pwned").exists());
}

pub(crate) fn windows_of_what_may_not_run_are_closed() {
    let mut yard = Yard::new();
    for name in ["gt-revoked@1", "gt-absent@1", "gt-fresh@1", "mine"] {
        yard.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", name, "sleep 600"]);
    }
    std::fs::write(yard.claim("gt-revoked@1"), "").expect("written");
    std::fs::write(yard.claim("gt-fresh@1"), "").expect("written");
    assert_eq!(yard.pool().recover(&id("gt-revoked@1")).expect("found out"), Recovered::NeverRan);
    yard.pool().close_leftover_windows();
    eventually("they are closed", || sessions(&yard) == "gt-fresh@1\nmine\n");
    assert_eq!(crate::yard::surface(), Surface::Tmux);
}
