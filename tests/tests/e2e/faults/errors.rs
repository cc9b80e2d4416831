//! System calls that fail: the disk cannot store, is full, or nothing more can be made. The first ends the process, the
//! others are waited out; none counts against a bead.

use serde_json::json;
use yard_tests::town::{Town, kill_nine, wait_until};

use super::load::{Load, named};
use super::share;
use super::strace::{Traced, struck};

fn town() -> (Town, Load) {
    let town = Town::here();
    town.set("scheduler.max_polecats", "2");
    town.set("retry.crash.max_attempts", "1");
    // A failure to start that counts gives the bead up.
    town.set("scheduler.max_dispatch_failures", "1");
    let mut load = Load::new(&town, 1);
    load.add_many(&town, 3, 3);
    (town, load)
}

/// A daemon's life in which the `when`-th such call fails. Answers whether it met the fault, and whether it ended well.
fn life(calls: &str, error: &str, when: usize) -> (bool, bool) {
    let what = format!("{error} at {calls} {when}");
    let (mut town, mut load) = town();
    let mut daemon = Traced::ym(&town, &["--daemon"], calls, &format!("error={error}"), when);
    let trace = daemon.trace();
    let socket = town.root().join(".yardmaster/ym.sock");
    wait_until("the daemon to serve or to end", || daemon.ended().is_some() || socket.exists());
    if daemon.ended().is_none() {
        for code in [0, 4] {
            let added = town.run(load.add_one(code));
            if added.code == 0 {
                load.acknowledged(&added.stdout, code);
            }
        }
        town.run(["wait", "--all", "--timeout", "20s"]);
        town.run(["stop"]);
    }
    let (status, _) = daemon.output();
    let met = struck(&trace);
    town.start_daemon();
    let waited = town.run(["--json", "wait", "--all", "--timeout", "30s"]);
    assert_eq!(waited.json()["stuck"], json!([]), "{what}: {}", waited.stderr);
    town.stop_daemon();
    load.check(&town);
    assert_eq!(town.run(["journal", "check"]).code, 0, "{what}");
    (met, status.success())
}

/// Until a life no longer meets the fault. Answers in how many lives it did.
fn each(calls: &str, error: &str, step: usize, mut check: impl FnMut(usize, bool)) -> usize {
    for (count, when) in (1..).step_by(share(step, 1)).enumerate() {
        let (met, well) = life(calls, error, when);
        if !met {
            return count;
        }
        check(when, well);
    }
    unreachable!("a life has so many calls only")
}

#[test]
fn a_disk_that_cannot_store_ends_the_daemon_and_a_restart_recovers() {
    // The last ones are those of closing, when the process ends anyway and the log keeps everything.
    let (mut ended, mut closes) = (0, false);
    each("fdatasync,fsync", "EIO", 3, |when, well| {
        closes |= well;
        ended += usize::from(!well);
        assert_eq!(well, closes, "sync {when} failed unnoticed");
    });
    assert!(ended > 1, "{ended}");
}

#[test]
fn a_full_disk_at_any_write_is_waited_out() {
    // Not `write`: among others it wakes threads, which no disk keeps from happening. `disks.rs` has the claims and logs.
    for (calls, step) in [("pwrite64", 9), ("ftruncate", 2)] {
        let met = each(calls, "ENOSPC", step, |when, well| assert!(well, "{calls} {when} ended the daemon"));
        assert!(met > 0, "{calls}");
    }
}

#[test]
fn too_few_descriptors_and_processes_never_count_against_a_bead() {
    for (calls, error, step) in [
        ("openat", "EMFILE", 17),
        ("socketpair", "EMFILE", 1),
        ("clone,clone3,vfork,fork", "EAGAIN", 2),
        ("clone,clone3,vfork,fork", "ENOMEM", 3),
    ] {
        // While it starts it may give up; then it says why and ends, and the next start works.
        each(calls, error, step, |_, _| {});
    }
}

#[test]
fn a_fork_server_that_cannot_fork_is_asked_again() {
    for error in ["EAGAIN", "ENOMEM"] {
        let (mut town, load) = town();
        town.start_daemon();
        town.run(["wait", "--all", "--timeout", "20s"]);
        load.check(&town);
        named(&town, "ym-shim").into_iter().for_each(kill_nine);
        wait_until("them to die", || named(&town, "ym-shim").is_empty());
        let server = named(&town, "ym-forkserver")[0];
        let calls = "clone,clone3,vfork,fork";
        let traced = Traced::join(&town, server, calls, &format!("error={error}"), 1);
        let id = town.run(load.add_one(0)).ok().stdout.trim().to_owned();
        wait_until("the fault", || traced.struck());
        let events = || town.events(Some("dispatch.ended"));
        wait_until("it to be told", || events().iter().any(|it| it["outcome"]["how"] == "never-ran"));
        town.await_state(&id, "closed");
        assert_eq!(town.events(Some("context.start_failed")), Vec::<serde_json::Value>::new());
        traced.leave();
        town.stop_daemon();
    }
}
