//! The demo: its whole story happens, a person can mend what broke, and nothing is left behind.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use yard_tests::town::{command_line, environment_has, processes, wait_until, ym_binary};

/// A demo under way.
struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    town: PathBuf,
    _room: TempDir,
}

impl Demo {
    fn start(speed: &str) -> Self {
        let room = tempfile::Builder::new().prefix("ym-test-").tempdir().expect("a temporary directory");
        let mut command = Command::new(ym_binary());
        command.args(["demo", "--headless", "--speed", speed]).env("TMPDIR", room.path());
        command.env_remove("YM_TOWN").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("ym can be run");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("a text");
        let town = first.strip_prefix("A town in ").and_then(|rest| rest.split_once(", ")).expect(&first).0;
        Self { child, lines, town: town.into(), _room: room }
    }

    fn ym(&self, args: &[&str]) -> Command {
        let mut command = Command::new(ym_binary());
        command.arg("--town").arg(&self.town).args(args).stdin(Stdio::null());
        command
    }

    /// Its end: the exit code, and the rest of what it printed.
    fn end(mut self) -> (Option<i32>, String) {
        let rest: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        let status = self.child.wait().expect("it ends");
        assert_nothing_left(&self.town);
        (status.code(), rest.join("\n"))
    }
}

fn assert_nothing_left(town: &Path) {
    assert!(!town.exists(), "{} is still there", town.display());
    let (name, variable) = (town.to_string_lossy(), format!("YM_TOWN={}", town.display()));
    wait_until("nobody is left behind", || {
        let ours =
            |pid: &u32| command_line(*pid).contains(&*name) || environment_has(*pid, variable.as_bytes());
        !processes().iter().any(ours)
    });
}

fn text<'a>(event: &'a Value, path: &str) -> &'a str {
    event.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The beads whose dispatches ended like this.
fn ended<'a>(events: &'a [Value], how: &str) -> BTreeSet<&'a str> {
    let ends = events.iter().filter(|e| e["type"] == "dispatch.ended" && text(e, "/outcome/how") == how);
    ends.filter_map(|event| Some(text(event, "/id").split_once('@')?.0)).collect()
}

#[test]
fn the_whole_story_happens() {
    let demo = Demo::start("10");
    let mut follows = demo.ym(&["--json", "events", "--follow", "--since", "0"]);
    let mut follower = follows.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("ym can be run");
    let mut log = String::new();
    let mut out = follower.stdout.take().expect("piped");
    let reader = std::thread::spawn(move || out.read_to_string(&mut log).map(|_| log));
    let (code, told) = demo.end();
    let _ = follower.wait();
    let log = reader.join().expect("it reads").expect("a text");
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("64 of 65 beads closed"), "{told}");

    let (failed, succeeded) = (ended(&events, "failed"), ended(&events, "succeeded"));
    for bead in ["api-timetable", "web-berths", "api-payment", "web-pay", "web-rivals"] {
        assert!(failed.contains(bead) && succeeded.contains(bead), "{bead} failed, and was retried");
    }
    let broke = |e: &&Value| e["type"] == "context.closed" && e["reason"] == "circuit-broken";
    assert_eq!(events.iter().filter(broke).map(|e| text(e, "/bead")).collect::<Vec<_>>(), ["web-icons"]);
    assert!(!succeeded.contains("web-icons"));
    let over = events.iter().find(|e| e["type"] == "preemption.ended").expect("a preemption");
    assert_eq!(
        (&over["victim"], &over["bead"], &over["method"]),
        (&"api-replay@1".into(), &"api-hotfix".into(), &"cooperative".into())
    );
    assert!(succeeded.contains("api-hotfix") && succeeded.contains("api-replay"), "it went on afterwards");
    let alerts: BTreeSet<&str> =
        events.iter().filter(|e| e["type"] == "alert.raised").map(|e| text(e, "/alert/kind")).collect();
    assert_eq!(alerts, BTreeSet::from(["circuit-broken", "cost-warning", "stuck"]));
    for kind in
        ["account.cooling", "context.held", "dispatch.progress", "dispatch.cost", "dispatch.checkpoint"]
    {
        assert!(events.iter().any(|e| e["type"] == kind), "{kind}");
    }
    let closed = events.iter().filter(|e| e["type"] == "bead.closed").count();
    assert_eq!(closed, 64 + 1, "all work but one, and the decision");
}

#[test]
fn a_person_mends_what_broke_while_the_story_goes_on() {
    let demo = Demo::start("8");
    let tool = demo.town.join("web/tools/fontcut");
    wait_until("the tool is there", || tool.exists());
    let status = demo.ym(&["scheduler", "retry", "web-icons"]).stdout(Stdio::null()).status();
    assert!(status.expect("ym can be run").success());
    let (code, told) = demo.end();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("65 of 65 beads closed") && told.contains("complete"), "{told}");
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let mut demo = Demo::start("1");
    let running = demo.lines.by_ref().map_while(Result::ok).find(|line| line.contains("runs"));
    assert!(running.is_some());
    let pid = Pid::from_raw(demo.child.id().cast_signed());
    kill(pid, Signal::SIGINT).expect("it can be interrupted");
    let (code, _) = demo.end();
    assert_eq!(code, Some(130));
}

#[test]
fn an_early_ctrl_c_leaves_nothing_behind() {
    let room = tempfile::Builder::new().prefix("ym-test-").tempdir().expect("a temporary directory");
    let entries = || std::fs::read_dir(room.path()).expect("a directory").count();
    let mut command = Command::new(ym_binary());
    command.args(["demo", "--headless"]).env("TMPDIR", room.path()).env_remove("YM_TOWN");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("ym can be run");
    wait_until("its directory is being made", || entries() > 0);
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it can be interrupted");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(entries(), 0);
}

#[test]
fn a_demo_that_is_killed_takes_its_daemon_along() {
    let mut demo = Demo::start("1");
    let town = demo.town.display().to_string();
    demo.child.kill().expect("it can be killed");
    demo.child.wait().expect("it ends");
    wait_until("its daemon ends", || !processes().iter().any(|pid| command_line(*pid).contains(&town)));
}
