//! Disks that fill up under the run folder and the logs, and one that turns read-only: workers and work outlast it, and
//! nothing counts against a bead. (A full disk under the journal: `disk_full.rs`.)

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use yard_tests::town::{Town, wait_until};

use super::strace::Traced;
use crate::disk_full::{SmallDisk, where_mounting_is_allowed};

fn town() -> Town {
    let town = Town::here();
    town.set("scheduler.max_polecats", "2");
    town.set("scheduler.max_dispatch_failures", "1");
    town.set("retry.crash.max_attempts", "1");
    town
}

fn none_counts(town: &Town) {
    assert_eq!(town.events(Some("context.start_failed")), Vec::<Value>::new());
}

fn add(town: &Town, script: &str) -> String {
    town.run(["-q", "add", "--", "sh", "-c", script]).ok().stdout.trim().to_owned()
}

/// Waits until a start was put off, and says why.
fn put_off(town: &Town) -> String {
    let mut why = String::new();
    wait_until("a start to be put off", || {
        let rested = town.events(Some("context.rested"));
        rested.last().and_then(|it| it["why"].as_str()).unwrap_or_default().clone_into(&mut why);
        !why.is_empty()
    });
    why
}

fn run_folder_full(options: &str, fill: impl FnOnce(&SmallDisk), empty: impl FnOnce(&Town)) {
    let mut town = town();
    let disk = SmallDisk::at(&town.root().join(".yardmaster/run"), options);
    town.start_daemon();
    let first = add(&town, "exit 0");
    town.await_state(&first, "closed");
    fill(&disk);
    let second = add(&town, "exit 0");
    let why = put_off(&town);
    assert!(why.to_lowercase().contains("space"), "{why}");
    assert_eq!(town.state_of(&second), "queued");
    empty(&town);
    town.await_state(&second, "closed");
    none_counts(&town);
    town.stop_daemon();
}

#[test]
fn a_full_run_folder_only_puts_work_off() {
    where_mounting_is_allowed("faults::disks::a_full_run_folder_only_puts_work_off", || {
        let empty = |town: &Town| {
            std::fs::remove_file(town.root().join(".yardmaster/run/ballast")).expect("it is there");
        };
        run_folder_full("size=64k,mode=700", |disk| drop(disk.fill()), empty);
    });
}

#[test]
fn a_run_folder_without_room_for_another_file_only_puts_work_off() {
    where_mounting_is_allowed(
        "faults::disks::a_run_folder_without_room_for_another_file_only_puts_work_off",
        || {
            let fill = |disk: &SmallDisk| {
                for n in 0.. {
                    if std::fs::write(disk.path().join(format!("file-{n}")), "").is_err() {
                        break;
                    }
                }
            };
            let empty = |town: &Town| {
                std::fs::remove_file(town.root().join(".yardmaster/run/file-0")).expect("it is there");
            };
            run_folder_full("nr_inodes=20,mode=700", fill, empty);
        },
    );
}

#[test]
fn full_logs_cost_output_and_nothing_else() {
    where_mounting_is_allowed("faults::disks::full_logs_cost_output_and_nothing_else", || {
        let mut town = town();
        let disk = SmallDisk::at(&town.root().join(".yardmaster/logs"), "size=64k,mode=700");
        town.start_daemon();
        disk.fill();
        let bead = add(&town, "seq 100000; exit 0");
        town.await_state(&bead, "closed");
        none_counts(&town);
        town.stop_daemon();
    });
}

#[test]
fn a_worker_that_ends_on_a_full_disk_is_not_forgotten() {
    where_mounting_is_allowed("faults::disks::a_worker_that_ends_on_a_full_disk_is_not_forgotten", || {
        let mut town = town();
        let disk = SmallDisk::at(&town.root().join(".yardmaster/run"), "size=64k,mode=700");
        town.start_daemon();
        let go = town.root().join("go");
        let bead = add(&town, &format!("while [ ! -e '{}' ]; do sleep 0.02; done; exit 9", go.display()));
        wait_until("it to run", || !town.json(["status"])["running"][0]["pid"].is_null());
        let ballast = disk.fill();
        std::fs::write(&go, "").expect("a file");
        // It may be told over its connection at once; its record has to wait.
        std::fs::remove_file(ballast).expect("it is there");
        town.await_state(&bead, "failed");
        let ended = town.events(Some("dispatch.ended"));
        assert_eq!((ended.len(), ended[0]["outcome"]["code"].as_i64()), (1, Some(9)), "{ended:?}");
        town.stop_daemon();
    });
}

/// A directory whose file system refuses new files until this is dropped. What is open stays writable.
struct ReadOnly<'a>(&'a Path);

impl<'a> ReadOnly<'a> {
    fn make(path: &'a Path) -> Self {
        for args in [["--bind", "-o", "rw"], ["-o", "remount,bind,ro", "-n"]] {
            let mut mount = Command::new("mount");
            mount.args(args).arg(path);
            if args[0] == "--bind" {
                mount.arg(path);
            }
            assert!(mount.status().is_ok_and(|it| it.success()), "it can be mounted {args:?}");
        }
        Self(path)
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l"]).arg(self.0).status();
    }
}

#[test]
fn a_town_that_turned_read_only_can_be_looked_at() {
    where_mounting_is_allowed("faults::disks::a_town_that_turned_read_only_can_be_looked_at", || {
        let town = town();
        town.shell_bead("y-a", "exit 0");
        let read_only = ReadOnly::make(town.root());
        assert_eq!(town.state_of("y-a"), "open");
        let refused = town.run(["--json", "bead", "add", "late", "--id", "y-late"]);
        assert_eq!(refused.code, 1, "{}", refused.stdout);
        assert!(refused.stdout.to_lowercase().contains("read-only"), "{}", refused.stdout);
        drop(read_only);
        town.run(["bead", "add", "late", "--id", "y-late"]).ok();
    });
}

#[test]
fn a_run_folder_that_turns_read_only_only_puts_work_off() {
    where_mounting_is_allowed("faults::disks::a_run_folder_that_turns_read_only_only_puts_work_off", || {
        let mut town = town();
        town.start_daemon();
        let run = town.root().join(".yardmaster/run");
        let read_only = ReadOnly::make(&run);
        let bead = add(&town, "exit 0");
        let why = put_off(&town);
        assert!(why.to_lowercase().contains("read-only"), "{why}");
        drop(read_only);
        town.await_state(&bead, "closed");
        none_counts(&town);
        town.stop_daemon();
    });
}

/// As after a disk has failed under a running daemon: everything it writes is refused, then it is mounted again.
#[test]
fn a_journal_that_turns_read_only_is_waited_out() {
    let mut town = town();
    let daemon = town.start_daemon();
    let go = town.root().join("go");
    let bead = add(&town, &format!("while [ ! -e '{}' ]; do sleep 0.02; done; exit 0", go.display()));
    wait_until("it to run", || !town.json(["status"])["running"][0]["pid"].is_null());
    let traced = Traced::join(&town, daemon, "pwrite64,ftruncate", "error=EROFS", "1+");
    let refused = town.run(["--json", "bead", "add", "late", "--id", "y-late"]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(refused.stdout.to_lowercase().contains("read-only"), "{}", refused.stdout);
    let alerts = town.json(["status"])["alerts"].to_string();
    assert!(alerts.contains("read-only"), "{alerts}");
    std::fs::write(&go, "").expect("a file");
    assert_eq!(town.run(["--json", "why", "y-late"]).code, 1, "nothing half-happened");
    traced.leave();
    town.await_state(&bead, "closed");
    town.run(["bead", "add", "late", "--id", "y-late"]).ok();
    none_counts(&town);
    town.stop_daemon();
    assert_eq!(town.run(["journal", "check"]).code, 0);
}
