//! A crash at the N-th system call of each kind that changes something, for every N until nothing is left to crash in: of
//! the daemon, of a command without a daemon, of the fork server and its shims. Whatever was acknowledged survives,
//! nothing runs twice at once, everything comes to its end.

use yard_tests::town::{Town, kill_nine, wait_until};

use super::load::{Load, named};
use super::share;
use super::strace::Traced;

const KILL: &str = "signal=KILL";

/// Kinds of calls, as strace names them.
const CALLS: [&str; 8] = [
    "fsync,fdatasync",
    "pwrite64",
    "write",
    "unlink,unlinkat,rename,renameat,renameat2",
    "clone,clone3,vfork,fork",
    "sendto,sendmsg",
    "openat",
    "ftruncate,flock,mkdir,bind,chmod",
];

/// Crashes at each N, or in the daily run at some, until a run ends well.
fn crash_at_each(step: usize, mut life: impl FnMut(&str, usize) -> bool) {
    let mut crashes = 0;
    for (kind, calls) in CALLS.iter().enumerate() {
        let step = share(step, 1);
        // Other ones for each kind, so that a share is not always the first.
        let mut when = 1 + kind % step;
        while life(calls, when) {
            crashes += 1;
            when += step;
            assert!(when < 2000, "{calls}: a life does not have so many");
        }
    }
    assert!(crashes > 3, "only {crashes} crashes: does strace work?");
}

fn town() -> Town {
    let town = Town::local();
    town.set("retry.crash.backoff", r#"["0s"]"#);
    town.set("retry.crash.max_attempts", "3");
    town
}

/// Nothing is left to do, and all is as it should be.
fn settle(mut town: Town, load: &Load, what: &str) {
    town.start_daemon();
    let waited = town.run(["--json", "wait", "--all", "--timeout", "30s"]);
    assert_eq!(waited.json()["stuck"], serde_json::json!([]), "{what}: {}", waited.stderr);
    town.stop_daemon();
    load.check(&town);
    let check = town.run(["journal", "check"]);
    assert_eq!(check.code, 0, "{what}: {}", check.stdout);
}

/// Adds one bead; it counts if that was acknowledged.
fn add(town: &Town, load: &mut Load, code: i64) {
    let added = town.run(load.add_one(code));
    if added.code == 0 {
        load.acknowledged(&added.stdout, code);
    }
}

#[test]
fn the_daemon_may_crash_at_any_system_call() {
    crash_at_each(9, |calls, when| {
        let what = format!("{calls} {when}");
        let town = town();
        town.set("scheduler.max_polecats", "2");
        let mut load = Load::new(&town, 1);
        load.add_many(&town, 3, 3);
        let mut daemon = Traced::ym(&town, &["--daemon"], calls, KILL, when);
        let socket = town.root().join(".yardmaster/ym.sock");
        wait_until("the daemon to serve or to die", || daemon.ended().is_some() || socket.exists());
        if daemon.ended().is_none() {
            add(&town, &mut load, 0);
            town.run(["wait", "--all", "--timeout", "20s"]);
            town.run(["stop"]);
        }
        let (status, _) = daemon.output();
        settle(town, &load, &what);
        !status.success()
    });
}

#[test]
fn a_command_without_a_daemon_may_crash_at_any_system_call() {
    crash_at_each(7, |calls, when| {
        let town = town();
        let mut load = Load::new(&town, 1);
        let args = load.add_one(0);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (status, printed) = Traced::ym(&town, &args, calls, KILL, when).output();
        if status.success() {
            load.acknowledged(&printed, 0);
        }
        add(&town, &mut load, 5);
        town.run(["wait", "--all", "--timeout", "20s"]);
        settle(town, &load, &format!("{calls} {when}"));
        !status.success()
    });
}

#[test]
fn a_town_whose_making_crashed_can_be_made_again() {
    crash_at_each(3, |calls, when| {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("yard");
        std::fs::create_dir(&root).expect("a directory");
        let town = Town::found(&root);
        let args = ["init", root.to_str().expect("utf-8"), "--prefix", "y"];
        let (status, _) = Traced::ym(&town, &args, calls, KILL, when).output();
        let again = town.run(args);
        // It may have crashed when everything was done.
        let made = again.code == 0 || again.stderr.contains("is a town already");
        assert!(made && (again.code == 1 || !status.success()), "{calls} {when}: {}", again.stderr);
        town.shell_bead("y-1", "exit 0");
        town.run(["sling", "y-1"]).ok();
        town.run(["wait", "y-1"]).ok();
        !status.success()
    });
}

/// Crashes the fork server and its shims at each of these calls, each of them at its own `when`-th.
fn crash_fork_server_and_shims(calls: &str, first: usize) {
    let mut crashes = 0;
    for when in (first..).step_by(share(3, 1)) {
        let mut town = town();
        town.set("scheduler.max_polecats", "1");
        // Until strace has let go, every shim dies at that call.
        town.set("retry.crash.max_attempts", "8");
        town.start_daemon();
        let mut load = Load::new(&town, 1);
        add(&town, &mut load, 0);
        town.run(["wait", "--all"]).ok();
        // Shims that wait for work are not watched; the next ones are.
        named(&town, "ym-shim").into_iter().for_each(kill_nine);
        wait_until("them to die", || named(&town, "ym-shim").is_empty());
        let server = named(&town, "ym-forkserver")[0];
        let traced = Traced::join(&town, server, calls, KILL, when);
        for code in [0, 6, 0] {
            add(&town, &mut load, code);
        }
        let is_over = || {
            let status = town.json(["status"]);
            let none = |part: &str| status[part].as_array().is_none_or(Vec::is_empty);
            none("queued") && none("running")
        };
        // A strike is looked for far more often than the end, so that strace leaves before many have died.
        let mut looks = 0_u32;
        wait_until("a crash or the end", || {
            looks += 1;
            traced.struck() || (looks.is_multiple_of(50) && is_over())
        });
        let struck = traced.struck();
        traced.leave();
        town.run(["wait", "--all", "--timeout", "30s"]);
        town.stop_daemon();
        settle(town, &load, &format!("{calls} {when}"));
        if !struck {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 1, "only {crashes} crashes: does strace work?");
}

/// Only calls that their payloads do not make as well, or make once.
mod the_fork_server_and_its_shims_may_crash_at_any {
    use super::crash_fork_server_and_shims;

    #[test]
    fn write() {
        crash_fork_server_and_shims("write", 1);
    }

    #[test]
    fn message() {
        crash_fork_server_and_shims("sendto", 1);
    }

    #[test]
    fn fork() {
        crash_fork_server_and_shims("clone,clone3,vfork,fork", 1);
    }

    #[test]
    fn wait() {
        crash_fork_server_and_shims("wait4,waitid", 1);
    }

    #[test]
    fn lock() {
        crash_fork_server_and_shims("flock", 2);
    }
}
