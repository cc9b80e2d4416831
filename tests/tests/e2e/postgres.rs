//! A town whose journal is in a PostgreSQL server: leaders that die or stand still, servers that restart, other hosts, and
//! the way there and back.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;
use yard_tests::postgres::PostgresServer;
use yard_tests::ssh::Sshd;
use yard_tests::terminal::{Terminal, WIDE};
use yard_tests::town::{Ran, Town, ran, wait_until, ym_binary};

use crate::crashes::{add_load, check_load, lines};

/// A daemon, which may lead or stand by.
struct Daemon(Child);

impl Daemon {
    fn start(town: &Town) -> Self {
        let mut command = town.command(["--daemon"]);
        let log = fs::File::options().create(true).append(true).open(town.root().join("daemon.log"));
        let log = log.expect("the log can be written");
        command.stdout(Stdio::null()).stderr(log);
        Self(command.spawn().expect("the daemon can be run"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid() as i32), signal).expect("it is there");
    }

    /// Waits for its end and gives its exit code.
    fn end(&mut self) -> Option<i32> {
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn log(town: &Town) -> String {
    fs::read_to_string(town.root().join("daemon.log")).unwrap_or_default()
}

fn town_on(server: &PostgresServer) -> Town {
    Town::with_store(&server.url("yard"))
}

fn serves(town: &Town, daemon: &Daemon) -> bool {
    let pid = format!("pid={}", daemon.pid());
    log(town).lines().any(|line| line.contains(" serving ") && line.ends_with(&pid))
}

fn rounds() -> usize {
    if std::env::var_os("YM_TEST_FULL").is_some() { 50 } else { 3 }
}

#[test]
fn a_standby_takes_over_from_a_leader_that_died_or_stood_still_and_no_bead_is_lost_or_run_twice() {
    let server = PostgresServer::start();
    let town = town_on(&server);
    let rounds = rounds();
    let beads = 60 * rounds;
    town.set("scheduler.max_polecats", "4");
    town.set("retry.crash.max_attempts", "1");
    add_load(&town, beads);
    let ended = town.root().join("ended");
    let mut leader = Daemon::start(&town);
    wait_until("the first daemon serves", || serves(&town, &leader));
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let mut standby = Daemon::start(&town);
        wait_until("the second stands by", || {
            log(&town).contains(&format!("(pid {}) serves the town", leader.pid()))
        });
        wait_until("some beads end", || lines(&ended).len() >= (round + 1) * beads / (rounds + 2));
        let since = Instant::now();
        let stands_still = round % 2 == 0;
        leader.send(if stands_still { Signal::SIGSTOP } else { Signal::SIGKILL });
        wait_until("the standby serves", || serves(&town, &standby));
        slowest = slowest.max(since.elapsed());
        if stands_still {
            let before = lines(&ended).len();
            wait_until("work goes on", || lines(&ended).len() > before || lines(&ended).len() == beads);
            leader.send(Signal::SIGCONT);
            assert_eq!(leader.end(), Some(1), "it finds itself replaced: {}", log(&town));
            assert!(log(&town).contains("the town is no longer ours"));
        }
        std::mem::swap(&mut leader, &mut standby);
    }
    let _ = writeln!(std::io::stderr(), "{rounds} takeovers, the slowest after {slowest:?}");
    let waited = town.run(["--json", "wait", "--all"]);
    assert_eq!(waited.code, 1, "some beads fail by design: {}", waited.stderr);
    assert_eq!(waited.json()["stuck"], json!([]));
    town.run(["stop"]).ok();
    assert_eq!(leader.end(), Some(0));
    check_load(&town, beads);
    assert_eq!(town.json(["journal", "check"])["sound"], true);
}

#[test]
fn a_leader_outlives_restarts_of_the_server_under_load() {
    let mut server = PostgresServer::start();
    let town = town_on(&server);
    let (beads, restarts) = if std::env::var_os("YM_TEST_FULL").is_some() { (400, 20) } else { (80, 2) };
    town.set("scheduler.max_polecats", "4");
    town.set("retry.crash.max_attempts", "1");
    add_load(&town, beads);
    let ended = town.root().join("ended");
    let mut leader = Daemon::start(&town);
    for restart in 1..=restarts {
        wait_until("some beads end", || lines(&ended).len() >= restart * beads / (restarts + 2));
        server.crash_and_restart();
    }
    let waited = town.run(["--json", "wait", "--all"]);
    assert_eq!(waited.json()["stuck"], json!([]), "{}", log(&town));
    town.run(["stop"]).ok();
    assert_eq!(leader.end(), Some(0), "it served all the time: {}", log(&town));
    check_load(&town, beads);
}

#[test]
fn a_standby_takes_over_at_once_when_the_leader_leaves() {
    let server = PostgresServer::start();
    let town = town_on(&server);
    let mut leader = Daemon::start(&town);
    wait_until("it serves", || serves(&town, &leader));
    let standby = Daemon::start(&town);
    wait_until("the second stands by", || log(&town).contains("standing by"));
    town.run(["add", "--name", "first", "--", "true"]).ok();
    town.run(["wait", "--all"]).ok();
    leader.send(Signal::SIGTERM);
    assert_eq!(leader.end(), Some(0));
    wait_until("the standby serves", || serves(&town, &standby));
    town.await_daemon(standby.pid());
    town.run(["add", "--name", "second", "--", "true"]).ok();
    town.run(["wait", "--all"]).ok();
    assert_eq!(town.events(Some("bead.closed")).len(), 2);
    town.run(["stop"]).ok();
}

#[test]
fn commands_work_without_a_daemon() {
    let server = PostgresServer::start();
    let town = town_on(&server);
    assert!(!town.root().join(".yardmaster/journal.db").exists());
    town.run(["add", "--name", "one", "--", "true"]).ok();
    town.run(["wait", "--all"]).ok();
    assert_eq!(town.events(Some("bead.closed")).len(), 1);
    let report = town.json(["doctor"]);
    let of = |name: &str| {
        report["checks"].as_array().and_then(|all| all.iter().find(|it| it["name"] == name).cloned())
    };
    let store = of("store").expect("it looks at the store");
    // The test's server may forget what a power cut takes, and the doctor says so.
    assert!(
        store["message"].as_str().is_some_and(|it| it.starts_with("PostgreSQL ") && it.contains("fsync off")),
        "{store}"
    );
    assert_eq!(of("journal").expect("it looks at the journal")["status"], "ok");
    let refused = town.run(["--json", "config", "set", "store", "sqlite"]);
    assert_eq!(refused.error_code(), "store-empty");
}

#[test]
fn a_town_moves_to_a_database_and_back_and_never_begins_anew() {
    let server = PostgresServer::start();
    let url = server.url("moved");
    let mut town = Town::new();
    town.run(["add", "--name", "one", "--", "true"]).ok();
    town.run(["wait", "--all"]).ok();
    assert_eq!(town.refused(["config", "set", "store", &url]), "store-empty");
    town.start_daemon();
    assert_eq!(town.refused(["journal", "copy", &url]), "served");
    assert_eq!(town.refused(["config", "set", "store", &url]), "served");
    town.stop_daemon();
    let before = town.events(None);
    town.run(["journal", "copy", &url]).ok();
    town.run(["config", "set", "store", &url]).ok();
    assert_eq!(town.events(None), before);
    town.start_daemon();
    town.run(["add", "--name", "two", "--", "true"]).ok();
    town.run(["wait", "--all"]).ok();
    town.stop_daemon();
    let there = town.events(None);
    assert_ne!(town.run(["--json", "journal", "copy", &url]).code, 0, "what is there is not written over");
    town.run(["journal", "copy", "sqlite"]).ok();
    town.run(["config", "set", "store", "sqlite"]).ok();
    assert_eq!(town.events(None), there);
    assert_eq!(town.json(["journal", "check"])["sound"], true);
    town.run(["add", "--name", "three", "--", "true"]).ok();
    let third = town.run(["config", "set", "store", &url]);
    assert_ne!(third.code, 0, "the database holds less by now: {}", third.stdout);
}

/// How a command is run as if on a host of another name.
fn elsewhere() -> Vec<&'static str> {
    let user = if nix::unistd::geteuid().is_root() { &[][..] } else { &["--user", "--map-current-user"] };
    let script = ["--uts", "sh", "-c", "hostname another-host && exec \"$@\"", "sh"];
    ["unshare"].iter().chain(user).chain(&script).copied().collect()
}

/// Runs a command of `ym` there, with this way to other hosts.
fn on_another_host(town: &Town, ssh: &[(&str, String)], args: &[&str]) -> Ran {
    let words = elsewhere();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(ym_binary()).args(args).envs(ssh.iter().cloned());
    command.env("YM_TOWN", town.root()).env("USER", "tester").stdin(Stdio::null());
    ran(command.output().expect("unshare can be run"))
}

/// What another host has of a town whose journal is in a database: its config.
fn copy_of_config(town: &Town) -> (TempDir, Town) {
    let copy = tempfile::tempdir().expect("a directory");
    let folder = copy.path().join(".yardmaster");
    fs::create_dir(&folder).expect("a folder");
    fs::copy(town.root().join(".yardmaster/config.toml"), folder.join("config.toml")).expect("a copy");
    let there = Town::found(copy.path());
    (copy, there)
}

#[test]
fn a_command_on_another_host_reads_and_is_told_who_serves_if_it_does_not_get_there() {
    let server = PostgresServer::start();
    let town = town_on(&server);
    let mut leader = Daemon::start(&town);
    wait_until("it serves", || serves(&town, &leader));
    town.run(["bead", "add", "something", "--id", "y-1"]).ok();
    let (_copy, there) = copy_of_config(&town);
    let no_way = [("YM_SSH", "ssh -F none -o ProxyCommand=false".to_owned())];
    let seen = on_another_host(&there, &no_way, &["--json", "status"]).ok().json();
    assert_eq!(seen["daemon"]["pid"], leader.pid());
    let shown = on_another_host(&there, &no_way, &["--json", "show", "y-1"]).ok().json();
    assert_eq!(shown["id"], "y-1");
    for asks in [&["bead", "add", "more"][..], &["wait", "--all"], &["add", "--", "true"]] {
        let refused = on_another_host(&there, &no_way, &[&["--json"], asks].concat());
        assert_eq!(refused.error_code(), "served-elsewhere", "{asks:?}");
    }
    let refused = on_another_host(&there, &no_way, &["--json", "bead", "add", "more"]);
    let error = refused.json()["error"].clone();
    let host = nix::unistd::gethostname().expect("a name").to_string_lossy().into_owned();
    let hint = error["hint"].as_str().unwrap_or_default();
    assert!(error["message"].as_str().is_some_and(|it| it.contains(&host)), "{error}");
    assert!(hint.contains(&format!("ssh {host} ym --town {}", shown_path(town.root()))), "{error}");
    town.run(["stop"]).ok();
    assert_eq!(leader.end(), Some(0));
}

#[test]
fn commands_and_consoles_on_another_host_reach_the_leader() {
    let server = PostgresServer::start();
    let (town, sshd) = (town_on(&server), Sshd::start());
    town.set("retry.crash.max_attempts", "1");
    let mut leader = Daemon::start(&town);
    wait_until("it serves", || serves(&town, &leader));
    let (_copy, there) = copy_of_config(&town);
    let way = sshd.environment_for_every_host();
    let ask = |args: &[&str]| on_another_host(&there, &way, args).ok();
    let add = ["add", "-q", "--id", "y-far", "--", "sh", "-c", "echo written; exit 3"];
    assert_eq!(ask(&add).stdout, "y-far\n");
    let waited = on_another_host(&there, &way, &["--json", "wait", "y-far"]);
    assert_eq!((waited.code, &waited.json()["failed"]), (1, &json!(["y-far"])), "{waited:?}");
    assert_eq!(ask(&["logs", "y-far"]).stdout, "written\n");
    assert_eq!(town.state_of("y-far"), "failed");
    ask(&["config", "set", "scheduler.max_polecats", "7"]);
    assert_eq!(town.run(["config", "get", "scheduler.max_polecats"]).ok().stdout, "7\n");
    let words: Vec<String> = elsewhere().into_iter().map(|word| format!("'{word}'")).collect();
    let env = way.each_ref().map(|(name, value)| format!("{name}='{value}'")).join(" ");
    let script = format!("YM_TOWN= {env} exec {} \"$YM\" --town {}", words.join(" "), there.root().display());
    let mut console = Terminal::script(&there, &script, WIDE);
    console.until("a live console", |screen| screen.lines().next().unwrap_or_default().contains("LIVE"));
    console.shows("y-far");
    town.run(["bead", "add", "seen at once", "--id", "y-new"]).ok();
    console.shows("y-new");
    console.press(&["q"]);
    console.left_with(0);
    ask(&["stop"]);
    assert_eq!(leader.end(), Some(0));
    assert_eq!(there.run(["--json", "status"]).ok().json()["daemon"]["running"], false);
}

#[test]
fn whoever_has_only_the_config_looks_and_never_takes_running_work_for_lost() {
    let server = PostgresServer::start();
    let town = town_on(&server);
    let mut leader = Daemon::start(&town);
    wait_until("it serves", || serves(&town, &leader));
    let go = town.root().join("go");
    let script = format!("while [ ! -e '{}' ]; do sleep 0.02; done", go.display());
    town.run(["add", "--id", "y-runs", "--", "sh", "-c", &script]).ok();
    town.await_state("y-runs", "running");
    let (_copy, there) = copy_of_config(&town);
    let no_way = [("YM_SSH", "ssh -F none -o ProxyCommand=false".to_owned())];
    leader.send(Signal::SIGKILL);
    leader.end();
    // Until its heartbeat has run out, and for long after.
    wait_until("nobody leads", || {
        let seen = on_another_host(&there, &no_way, &["--json", "status"]).ok();
        assert_eq!(seen.json()["running"][0]["id"], "y-runs", "{seen:?}");
        seen.stderr.contains("nobody serves the town, and it was last led by")
    });
    let refused = on_another_host(&there, &no_way, &["--json", "bead", "add", "more"]);
    assert!(refused.code == 1 && refused.stdout.contains("ym doctor --give-up-workers"), "{refused:?}");
    let daemon = on_another_host(&there, &no_way, &["--daemon"]);
    assert!(daemon.code == 1 && daemon.stderr.contains("started by another process"), "{daemon:?}");
    assert!(on_another_host(&there, &no_way, &["doctor", "--fix"]).stdout.contains("FAIL home"));
    fs::write(go, "").expect("a file");
    let mut next = Daemon::start(&town);
    town.await_state("y-runs", "closed");
    assert_eq!(town.events(Some("dispatch.started")).len(), 1, "it ran once");
    town.run(["stop"]).ok();
    assert_eq!(next.end(), Some(0));
}

#[test]
fn a_place_that_is_gone_for_good_can_be_given_up() {
    let server = PostgresServer::start();
    let town = town_on(&server);
    let mut leader = Daemon::start(&town);
    wait_until("it serves", || serves(&town, &leader));
    town.set("retry.crash.backoff", r#"["0s"]"#);
    town.run(["add", "--id", "y-runs", "--", "sh", "-c", "[ $YM_ATTEMPT = 2 ] || sleep 1000"]).ok();
    town.await_state("y-runs", "running");
    let worker = town.json(["status"])["running"][0]["pid"].as_u64().expect("a pid") as u32;
    leader.send(Signal::SIGKILL);
    leader.end();
    let (_copy, there) = copy_of_config(&town);
    for folder in ["run", "logs", "formulas"] {
        fs::create_dir(there.root().join(".yardmaster").join(folder)).expect("a folder");
    }
    wait_until("the heartbeat has run out", || {
        there.run(["doctor", "--give-up-workers"]).stdout.contains("given up: their beads")
    });
    let mut next = Daemon::start(&there);
    town.await_state("y-runs", "closed");
    assert_eq!(town.events(Some("dispatch.started")).len(), 2, "it was tried again");
    kill(Pid::from_raw(worker as i32), Signal::SIGKILL).expect("what was given up is still there");
    there.run(["stop"]).ok();
    assert_eq!(next.end(), Some(0));
}

#[test]
fn a_schema_that_is_gone_or_another_towns_is_refused_and_harms_no_worker() {
    let server = PostgresServer::start();
    let (town, other) = (town_on(&server), Town::with_store(&server.url("other")));
    let mut leader = Daemon::start(&town);
    wait_until("it serves", || serves(&town, &leader));
    town.run(["add", "--id", "y-runs", "--", "sleep", "1000"]).ok();
    town.await_state("y-runs", "running");
    let worker = town.json(["status"])["running"][0]["pid"].as_u64().expect("a pid") as u32;
    leader.send(Signal::SIGKILL);
    leader.end();
    let config = town.root().join(".yardmaster/config.toml");
    let right = fs::read_to_string(&config).expect("a config");
    for (schema, why) in [("yardd", "there is no journal"), ("other", "another town")] {
        fs::write(&config, right.replace("schema=yard", &format!("schema={schema}"))).expect("written");
        for command in [&["status"][..], &["add", "--", "true"], &["--daemon"]] {
            let refused = town.run(command);
            assert!(refused.code == 1 && format!("{refused:?}").contains(why), "{command:?}: {refused:?}");
        }
    }
    assert_eq!(other.events(Some("bead.added")).len(), 0);
    fs::write(&config, right).expect("written");
    let mut next = Daemon::start(&town);
    wait_until("it serves", || serves(&town, &next));
    assert_eq!(town.state_of("y-runs"), "running");
    assert!(yard_tests::town::is_alive(worker));
    town.run(["kill", "y-runs"]).ok();
    town.run(["stop"]).ok();
    assert_eq!(next.end(), Some(0));
}

fn shown_path(path: &Path) -> String {
    path.canonicalize().expect("it is there").to_string_lossy().into_owned()
}

#[test]
fn a_password_is_neither_shown_nor_taken_into_the_config() {
    let town = Town::new();
    let address = "postgres://ann:s3cret@localhost/yards?schema=shop";
    let refused = town.run(["config", "set", "store", address]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains(".pgpass"), "{}", refused.stderr);
    let config = town.root().join(".yardmaster/config.toml");
    fs::write(&config, format!("store = \"{address}\"\n")).expect("written");
    for args in [
        &["config", "get", "store"][..],
        &["config", "list"],
        &["status"],
        &["doctor"],
        &["--json", "journal", "check"],
    ] {
        let Ran { stdout, stderr, .. } = town.run(args);
        assert!(!format!("{stdout}{stderr}").contains("s3cret"), "{args:?}: {stdout}{stderr}");
    }
}
