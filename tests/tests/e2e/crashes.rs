//! `kill -9` of the daemon, the fork server and shims under load: nothing lost, nothing twice at once, no exit code
//! forgotten.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use yard_tests::dice::Dice;
use yard_tests::town::{Town, command_line, is_alive, kill_nine, parent_of, processes, wait_until};

by_every_executor!(
    kill_nine_of_the_daemon_loses_and_doubles_nothing,
    a_killed_shim_takes_its_worker_with_it_and_the_bead_is_retried,
    workers_outlive_the_daemon_and_are_adopted,
    exits_while_nobody_serves_are_taken_in_later,
);

pub(crate) fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Adds beads that note their run, complain if another run of theirs is under way, and exit with a code of their own.
pub(crate) fn add_load(town: &Town, beads: usize) {
    let script = r#"mkdir "$0/lock-$YM_BEAD" || echo "$YM_DISPATCH" >> "$0/double"
echo "$YM_DISPATCH" >> "$0/started"; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done
echo "$YM_DISPATCH" >> "$0/ended"; rmdir "$0/lock-$YM_BEAD"; exit "$1""#;
    let root = town.root().to_str().expect("utf-8");
    let items: Vec<String> = (0..beads)
        .map(|i| {
            let argv = json!(["sh", "-c", script, root, exit_code(i).to_string()]);
            json!({"id": format!("y-{i}"), "argv": argv}).to_string()
        })
        .collect();
    town.run_with_input(["add", "--file", "-"], items.join("\n").as_bytes()).ok();
}

fn exit_code(bead: usize) -> i64 {
    if bead.is_multiple_of(7) { (bead % 50) as i64 + 3 } else { 0 }
}

/// Every bead ran to its end exactly once and its exit code is known.
pub(crate) fn check_load(town: &Town, beads: usize) {
    assert_eq!(lines(&town.root().join("double")), Vec::<String>::new(), "ran twice at once");
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for dispatch in lines(&town.root().join("ended")) {
        let (bead, _) = dispatch.split_once('@').expect("a dispatch id");
        *runs.entry(bead.to_owned()).or_default() += 1;
    }
    let mut outcomes: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for event in town.events(Some("dispatch.ended")) {
        let id = event["id"].as_str().expect("an id").split_once('@').expect("a dispatch id").0.to_owned();
        outcomes.entry(id).or_default().push(event["outcome"].clone());
    }
    for i in 0..beads {
        let id = format!("y-{i}");
        assert_eq!(runs.get(&id), Some(&1), "{id} ran to its end exactly once");
        let ends = &outcomes[&id];
        let ran: Vec<&Value> = ends.iter().filter(|o| o["how"] != "never-ran").collect();
        assert_eq!(ran.len(), 1, "{id} has one real outcome: {ends:?}");
        match exit_code(i) {
            0 => assert_eq!(ran[0]["how"], "succeeded", "{id}"),
            code => assert_eq!(ran[0]["code"], code, "{id}: {ends:?}"),
        }
    }
}

fn fork_server_of(daemon: u32) -> Option<u32> {
    processes()
        .into_iter()
        .find(|pid| parent_of(*pid) == Some(daemon) && command_line(*pid).contains("__forkserver"))
}

fn survive_kills(executor: &str, kill_fork_server: bool) {
    let (beads, kills) = match (executor, std::env::var_os("YM_TEST_FULL").is_some()) {
        // A job takes as long as a hundred processes.
        ("slurm", false) => (30, 5),
        ("slurm", true) => (200, 40),
        (_, false) => (500, 20),
        (_, true) => (2000, 60),
    };
    let mut dice = Dice::new();
    let mut town = Town::with_executor(executor);
    town.set("scheduler.max_polecats", "4");
    town.set("retry.crash.max_attempts", "1");
    add_load(&town, beads);
    let ended = town.root().join("ended");
    for kill in 0..kills {
        let daemon = town.start_daemon();
        let target = kill * beads / (kills + 2) + dice.below(beads as u64 / kills as u64) as usize;
        wait_until("some beads to end", || lines(&ended).len() >= target);
        for _ in 0..dice.below(4) {
            // Other moments of the cycle than the one just after an end.
            std::hint::black_box(lines(&ended));
        }
        if kill_fork_server && let Some(server) = fork_server_of(daemon) {
            kill_nine(server);
            if dice.below(2) == 0 {
                // Sometimes the daemon lives on and must start another one.
                let before = lines(&ended).len();
                wait_until("work to go on", || lines(&ended).len() > before.min(beads - 1));
            }
        }
        town.kill_daemon();
    }
    town.start_daemon();
    let waited = town.run(["--json", "wait", "--all"]);
    assert_eq!(waited.code, 1, "some beads fail by design: {}", waited.stderr);
    assert_eq!(waited.json()["stuck"], json!([]));
    town.stop_daemon();
    check_load(&town, beads);
}

fn kill_nine_of_the_daemon_loses_and_doubles_nothing(executor: &str) {
    survive_kills(executor, false);
}

#[test]
fn kill_nine_of_the_fork_server_loses_and_doubles_nothing() {
    survive_kills("local", true);
}

fn a_killed_shim_takes_its_worker_with_it_and_the_bead_is_retried(executor: &str) {
    let mut town = Town::with_executor(executor);
    town.set("scheduler.max_polecats", "1");
    town.set("retry.crash.backoff", r#"["0s"]"#);
    town.start_daemon();
    let flag = town.root().join("second");
    let script = format!("[ -e '{0}' ] && exit 0; touch '{0}'; sleep 1000 & sleep 1000", flag.display());
    town.run(["add", "--name", "victim", "--", "sh", "-c", &script]).ok();
    wait_until("the worker to run", || {
        flag.exists() && !town.json(["status"])["running"][0]["pid"].is_null()
    });
    let running = town.json(["status"])["running"][0].clone();
    let worker = running["pid"].as_u64().expect("a pid") as u32;
    let bead = running["id"].as_str().expect("an id").to_owned();
    wait_until("its children to run", || {
        processes().into_iter().filter(|p| parent_of(*p) == Some(worker)).count() == 2
    });
    let children: Vec<u32> = processes().into_iter().filter(|p| parent_of(*p) == Some(worker)).collect();
    kill_nine(parent_of(worker).expect("its shim"));
    town.await_state(&bead, "closed");
    for pid in children.into_iter().chain([worker]) {
        assert!(!is_alive(pid), "{} outlived its shim", command_line(pid));
    }
    let lost = town.events(Some("dispatch.ended"));
    assert_eq!(lost[0]["outcome"]["how"], "lost", "{lost:?}");
    assert_eq!(lost[1]["outcome"]["how"], "succeeded");
    let why = town.run(["why", &bead]).ok().stdout;
    assert!(why.contains("lost"), "it says so: {why}");
}

fn workers_outlive_the_daemon_and_are_adopted(executor: &str) {
    let mut town = Town::with_executor(executor);
    town.set("scheduler.max_polecats", "1");
    town.start_daemon();
    let go = town.root().join("go");
    let script = format!("while [ ! -e '{}' ]; do sleep 0.01; done; exit 7", go.display());
    town.set("retry.crash.max_attempts", "1");
    let id = town.run(["-q", "add", "--", "sh", "-c", &script]).ok().stdout.trim().to_owned();
    wait_until("its program runs", || !town.json(["status"])["running"][0]["pid"].is_null());
    town.kill_daemon();
    assert_eq!(town.state_of(&id), "running", "without a daemon it still runs");
    town.start_daemon();
    assert_eq!(town.state_of(&id), "running", "adopted");
    std::fs::write(&go, "").expect("a file");
    town.await_state(&id, "failed");
    let ended = town.events(Some("dispatch.ended"));
    assert_eq!((ended.len(), &ended[0]["outcome"]["code"]), (1, &json!(7)));
}

fn exits_while_nobody_serves_are_taken_in_later(executor: &str) {
    let town = Town::with_executor(executor);
    town.shell_bead("y-quick", "exit 0");
    town.run(["sling", "y-quick"]).ok();
    while town.run(["wait", "y-quick"]).code != 0 {
        // A cluster whose controller does not answer puts a start off, and nobody is there who would try again.
        assert_eq!((executor, town.state_of("y-quick").as_str()), ("slurm", "queued"));
        town.run(["scheduler", "run"]).ok();
    }
    assert_eq!(town.state_of("y-quick"), "closed");
}
