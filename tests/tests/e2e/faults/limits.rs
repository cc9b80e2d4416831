//! Too few descriptors or processes: the daemon says so, tries again, counts nothing against the beads, and all of them
//! come to their end.

use std::process::{Child, Command};

use serde_json::json;
use yard_tests::town::{Town, wait_until, ym_binary};

use super::load::Load;

/// More workers at once than the limits below allow.
const CROWD: usize = 40;

/// A daemon in a shell that limits it first.
fn limited_daemon(town: &Town, shell: &str) -> Child {
    let log = std::fs::File::create(town.root().join("daemon.log")).expect("a log");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell} exec \"$0\" --daemon")]).arg(ym_binary());
    command.env("YM_TOWN", town.root()).env("USER", "tester").current_dir("/");
    command.stdout(log.try_clone().expect("a descriptor")).stderr(log);
    command.spawn().expect("sh can be run")
}

fn crowd(town: &Town) -> Load {
    town.set("scheduler.max_polecats", &CROWD.to_string());
    town.set("scheduler.max_dispatch_failures", "1");
    town.set("retry.crash.max_attempts", "1");
    let mut load = Load::new(town, 300);
    load.add_many(town, CROWD + CROWD / 2, 10);
    load
}

fn outlast(town: &Town, load: &Load, mut daemon: Child) {
    wait_until("the daemon to serve", || town.run(["--json", "status"]).json()["daemon"]["running"] == true);
    let waited = town.run(["--json", "wait", "--all"]);
    assert_eq!(waited.json()["stuck"], json!([]), "{}", waited.stderr);
    town.run(["stop"]).ok();
    assert!(daemon.wait().expect("it ends").success());
    assert_eq!(load.check(town), 0);
    assert_eq!(town.events(Some("context.start_failed")), Vec::<serde_json::Value>::new(), "none counts");
    let put_off = town.events(Some("dispatch.ended"));
    let put_off: Vec<_> = put_off.iter().filter(|it| it["outcome"]["how"] == "never-ran").collect();
    assert!(!put_off.is_empty(), "the limit was never met");
    let why = put_off[0]["outcome"]["why"].as_str().expect("a reason").to_lowercase();
    assert!(why.contains("too many") || why.contains("temporarily") || why.contains("process"), "{why}");
}

#[test]
fn too_few_descriptors_only_put_work_off() {
    let town = Town::local();
    let load = crowd(&town);
    let daemon = limited_daemon(&town, "ulimit -n 48;");
    outlast(&town, &load, daemon);
}

/// A limit of processes, by a control group where one can be made.
#[test]
fn too_few_processes_only_put_work_off() {
    let town = Town::local();
    let load = crowd(&town);
    let group = std::path::Path::new("/sys/fs/cgroup/pids").join(format!("ym-test-{}", std::process::id()));
    if std::fs::create_dir(&group).is_ok() {
        std::fs::write(group.join("pids.max"), "40").expect("a limit");
        let join = format!("echo $$ > '{}/cgroup.procs';", group.display());
        outlast(&town, &load, limited_daemon(&town, &join));
        wait_until("the group to be empty", || std::fs::remove_dir(&group).is_ok());
        return;
    }
    // The limit of a user, of which root has none.
    assert!(!nix::unistd::geteuid().is_root(), "root needs /sys/fs/cgroup/pids to be limited");
    let mine = "ulimit -u $(($(ps -L --no-headers -u $(id -u) | wc -l) + 30));";
    outlast(&town, &load, limited_daemon(&town, mine));
}
