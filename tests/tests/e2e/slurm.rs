//! Workers on a real cluster: what they are given and leave behind, calling them off, a killed daemon, a killed
//! controller, and Slurm that refuses, is silent or is not there.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use yard_tests::slurm::Cluster;
use yard_tests::town::{Town, is_alive, parent_of, wait_until};

fn served() -> Town {
    let mut town = Town::with_executor("slurm");
    town.set("scheduler.max_polecats", "8");
    town.set("retry.crash.max_attempts", "1");
    town.start_daemon();
    town
}

fn sling(town: &Town, bead: &str, script: &str) {
    town.shell_bead(bead, script);
    town.run(["sling", bead, "--no-convoy"]).ok();
}

/// Waits until its program runs, and returns its process.
fn running(town: &Town, bead: &str) -> u32 {
    wait_until("its program runs", || !town.json(["show", bead])["dispatches"][0]["pid"].is_null());
    let pid = town.json(["show", bead])["dispatches"][0]["pid"].as_u64();
    pid.and_then(|pid| u32::try_from(pid).ok()).expect("a process id")
}

fn outcomes(town: &Town, bead: &str) -> Vec<Value> {
    let dispatches = town.json(["show", bead])["dispatches"].as_array().cloned().unwrap_or_default();
    dispatches.into_iter().map(|it| it["ended"]["outcome"].clone()).collect()
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A directory with a program of this name, which goes before all others in the daemon's PATH.
fn stand_in(town: &Town, name: &str, script: &str) -> String {
    let dir = town.root().join("stand-ins");
    std::fs::create_dir_all(&dir).expect("a directory");
    let path = dir.join(name);
    std::fs::write(&path, script).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    format!("{}:{}", dir.display(), std::env::var("PATH").expect("a path"))
}

#[test]
fn a_job_runs_what_it_is_told_and_its_exit_code_log_and_secrets_stay_ours() {
    let mut town = Town::with_executor("slurm");
    town.set("scheduler.max_polecats", "4");
    town.set("retry.crash.max_attempts", "1");
    town.start_daemon_with(&[("CANARY", "canary-4711"), ("SLURM_JOB_ID", "not mine")]);
    sling(&town, "y-code", "echo out; echo err >&2; exit 7");
    sling(&town, "y-signal", "kill -9 $$");
    sling(
        &town,
        "y-env",
        "echo \"$CANARY $YM_DISPATCH $SLURM_JOB_NAME\"; test \"$SLURM_JOB_ID\" != 'not mine'",
    );
    let words = ["'", "\"", "$(touch pwned)", "`touch pwned`", ";", "a\nb", "--", "-n", "*"];
    let add = ["bead", "add", "'$(touch pwned)`touch pwned`", "--id", "y-words", "--", "printf", "<%s>"];
    town.run(add.iter().chain(&words)).ok();
    town.run(["sling", "y-words", "--no-convoy"]).ok();
    town.await_state("y-code", "failed");
    assert_eq!(outcomes(&town, "y-code")[0]["code"], 7);
    assert_eq!(town.run(["logs", "y-code"]).ok().stdout, "out\nerr\n");
    town.await_state("y-signal", "failed");
    assert_eq!(outcomes(&town, "y-signal")[0]["signal"], 9);
    town.await_state("y-env", "closed");
    let log = town.run(["logs", "y-env"]).ok().stdout;
    assert!(log.starts_with("canary-4711 y-env@1 ym-") && log.trim_end().ends_with("-y-env@1"), "{log}");
    town.await_state("y-words", "closed");
    assert_eq!(town.run(["logs", "y-words"]).ok().stdout, format!("<{}>", words.join("><")));
    let refused = town.run(["attach", "y-words"]);
    assert!(refused.stderr.contains("ym logs y-words@1"), "{}", refused.stderr);
    assert!(!town.root().join("pwned").exists() && !Path::new("/pwned").exists());
    let kept = town.cluster().directory().to_owned();
    let found = std::process::Command::new("grep").args(["-rl", "canary-4711"]).arg(kept).output();
    let found = found.expect("grep runs").stdout;
    assert_eq!(String::from_utf8_lossy(&found), "", "Slurm keeps nothing of our environment");
}

#[test]
fn a_formula_and_the_config_say_what_a_job_asks_for() {
    let mut town = served();
    let formula = town.root().join(".yardmaster/formulas/big.toml");
    let text =
        "[slurm]\ncpus = 3\ntime_limit = '90s'\n[[steps]]\nshell = 'echo \"cpus $SLURM_CPUS_PER_TASK\"'\n";
    std::fs::write(&formula, text).expect("a file");
    town.set("executor.slurm.partition", "main");
    town.set("executor.slurm.memory", "64MiB");
    town.set("executor.slurm.cpus", "2");
    town.run(["bead", "add", "big", "--id", "y-big"]).ok();
    town.run(["sling", "y-big", "--formula", "big", "--no-convoy"]).ok();
    sling(&town, "y-small", "echo \"cpus $SLURM_CPUS_PER_TASK\"");
    for (bead, cpus) in [("y-big", 3), ("y-small", 2)] {
        town.await_state(bead, "closed");
        assert_eq!(town.run(["logs", bead]).ok().stdout, format!("cpus {cpus}\n"));
    }
    let jobs = town.cluster().run("squeue", &["-h", "-t", "all", "-o", "%j %C %m %P %l"]).ok().stdout;
    let of = |id: &str| {
        jobs.lines().find_map(|line| line.split_once(&format!("-{id} "))).expect("a job").1.to_owned()
    };
    assert_eq!(
        (of("y-big@1").as_str(), of("y-small@1").rsplit_once(' ').expect("a time").0),
        ("3 64M main 2:00", "2 64M main")
    );
    for (key, value) in [("partition", "a b"), ("gres", "gpu;reboot"), ("cpus", "0")] {
        assert_eq!(town.refused(["config", "set", &format!("executor.slurm.{key}"), value]), "bad-value");
    }
    std::fs::write(&formula, text.replace("cpus = 3", "partition = '-x'")).expect("a file");
    town.run(["bead", "add", "bad", "--id", "y-bad"]).ok();
    let refused = town.run(["sling", "y-bad", "--formula", "big", "--no-convoy"]);
    assert!(refused.code == 1 && format!("{refused:?}").contains("slurm.partition"), "{refused:?}");
}

#[test]
fn what_runs_and_what_waits_in_slurm_can_be_called_off() {
    let mut town = served();
    town.set("limits.kill_grace", "500ms");
    sling(&town, "y-stubborn", "trap '' TERM; sleep 1000 & sleep 1000; sleep 1000");
    sling(&town, "y-polite", "trap 'echo bye; exit 3' TERM; while :; do sleep 0.01; done");
    let workers = [running(&town, "y-stubborn"), running(&town, "y-polite")];
    for bead in ["y-stubborn", "y-polite"] {
        town.run(["cancel", bead]).ok();
        town.await_state(bead, "cancelled");
    }
    assert!(workers.iter().all(|pid| !is_alive(*pid)));
    // Its shell may have something to say about its own child.
    assert!(town.run(["logs", "y-polite"]).ok().stdout.ends_with("bye\n"));
    town.cluster().hold_all();
    sling(&town, "y-waits", "touch ran");
    wait_until("Slurm has it", || town.cluster().states_of("y-waits@1") == ["PENDING"]);
    assert_eq!(town.state_of("y-waits"), "running", "it has its slot");
    town.run(["cancel", "y-waits"]).ok();
    town.await_state("y-waits", "cancelled");
    wait_until("Slurm has it no longer", || town.cluster().states_of("y-waits@1") == ["CANCELLED"]);
    town.cluster().let_go();
    sling(&town, "y-after", "true");
    town.await_state("y-after", "closed");
    assert!(!town.root().join("ran").exists());
}

#[test]
fn a_job_on_another_host_is_called_off_by_the_controller_and_without_one() {
    let mut town = Town::on_cluster(Cluster::start_apart());
    town.start_daemon();
    for bead in ["y-a", "y-b"] {
        sling(&town, bead, "trap 'echo bye; exit 3' TERM; while :; do sleep 0.01; done");
        running(&town, bead);
    }
    town.run(["cancel", "y-a"]).ok();
    town.await_state("y-a", "cancelled");
    town.cluster().kill_controller();
    town.run(["cancel", "y-b"]).ok();
    town.await_state("y-b", "cancelled");
    for bead in ["y-a", "y-b"] {
        assert!(town.run(["logs", bead]).ok().stdout.ends_with("bye\n"), "{bead} was asked");
    }
}

#[test]
fn who_waits_in_slurm_makes_way_for_urgent_work() {
    let mut town = served();
    town.set("scheduler.max_polecats", "1");
    town.set("preemption.min_run", "0s");
    // So many processors are free, but not on one node.
    town.set("executor.slurm.cpus", "8");
    let config = town.cluster().config();
    let foreign = "sbatch -N 2 -n 2 --ntasks-per-node=1 -o /dev/null --wrap 'sleep 1000'";
    let foreign = std::process::Command::new("sh").args(["-c", foreign]).env("SLURM_CONF", config).output();
    assert!(foreign.expect("sh runs").status.success());
    wait_until("it runs", || town.cluster().jobs().iter().any(|(state, _)| state == "RUNNING"));
    town.shell_bead("y-low", "true");
    town.run(["sling", "y-low", "--priority", "1", "--no-convoy"]).ok();
    wait_until("Slurm has it", || town.cluster().states_of("y-low@1") == ["PENDING"]);
    town.shell_bead("y-urgent", "true");
    town.run(["sling", "y-urgent", "--priority", "100", "--no-convoy"]).ok();
    wait_until("Slurm has it no longer", || town.cluster().states_of("y-low@1") == ["CANCELLED"]);
    wait_until("Slurm has the other", || town.cluster().states_of("y-urgent@1") == ["PENDING"]);
    assert_eq!(town.state_of("y-low"), "queued");
    town.cluster().run("scancel", &["--name", "wrap"]).ok();
    for bead in ["y-urgent", "y-low"] {
        town.await_state(bead, "closed");
    }
    let ends = outcomes(&town, "y-low");
    assert_eq!((&ends[0]["how"], &ends[1]["how"]), (&json!("never-ran"), &json!("succeeded")), "{ends:?}");
    let ran = town.events(Some("dispatch.running"));
    let ran: Vec<&Value> = ran.iter().map(|event| &event["id"]).collect();
    assert_eq!(ran, ["y-urgent@1", "y-low@2"], "the more urgent first");
}

#[test]
fn nothing_more_is_submitted_than_the_partition_has_processors_for() {
    let mut town = served();
    let go = town.root().join("go");
    let script = format!("while [ ! -e '{}' ]; do sleep 0.01; done", go.display());
    sling(&town, "y-a", &script);
    let room =
        |town: &Town| town.events(Some("scheduler.cluster_room")).last().map(|event| event["jobs"].clone());
    wait_until("the room is known", || room(&town) == Some(json!(16)));
    let config = town.cluster().config();
    let foreign = "sbatch -n 15 -o /dev/null --wrap 'sleep 1000'";
    let foreign = std::process::Command::new("sh").args(["-c", foreign]).env("SLURM_CONF", config).output();
    assert!(foreign.expect("sh runs").status.success());
    wait_until("somebody else has the rest", || room(&town) == Some(json!(1)));
    sling(&town, "y-b", "true");
    let why = town.json(["why", "y-b"])["reasons"][0].clone();
    assert_eq!((&why["code"], &why["limit"]), (&json!("capacity"), &json!("slurm")), "{why}");
    assert_eq!(town.cluster().states_of("y-b@1"), Vec::<String>::new());
    town.cluster().run("scancel", &["--name", "wrap"]).ok();
    town.await_state("y-b", "closed");
    std::fs::write(go, "").expect("a file");
    town.await_state("y-a", "closed");
}

/// A job is asked to give way while its first step runs, and goes on with its second when it has its turn again.
fn preempted_between_its_steps(town: &Town) {
    town.set("scheduler.max_polecats", "1");
    town.set("preemption.min_run", "0s");
    let formula = town.root().join(".yardmaster/formulas/steps.toml");
    let go = town.root().join("go");
    let text = format!(
        "[[steps]]\nid = 'one'\nshell = 'echo one; while [ ! -e \"{}\" ]; do sleep 0.01; done'\n[[steps]]\nid = 'two'\nshell = 'echo two'\n",
        go.display()
    );
    std::fs::write(formula, text).expect("a file");
    town.run(["bead", "add", "long", "--id", "y-long"]).ok();
    town.run(["sling", "y-long", "--formula", "steps", "--no-convoy"]).ok();
    running(town, "y-long");
    town.shell_bead("y-urgent", "true");
    town.run(["sling", "y-urgent", "--priority", "100", "--no-convoy"]).ok();
    let claim = town.root().join(".yardmaster/run/y-long@1.claim");
    wait_until("it is asked", || lines(&claim).iter().any(|line| line.contains("yield")));
    std::fs::write(&go, "").expect("a file");
    town.await_state("y-urgent", "closed");
    town.await_state("y-long", "closed");
    let mut ends = outcomes(town, "y-long");
    // A controller that is slow to answer makes it try again.
    ends.retain(|end| end["how"] != "never-ran");
    assert_eq!((ends.len(), &ends[0]["reason"]), (2, &json!("cooperative_preemption")), "{ends:?}");
    let second = town.run(["logs", "y-long"]).ok().stdout;
    assert_eq!(second, "two\n", "it goes on where it was");
}

#[test]
fn a_preempted_job_goes_on_after_its_last_finished_step() {
    preempted_between_its_steps(&served());
}

#[test]
fn a_job_gives_way_between_its_steps_although_the_signal_never_comes() {
    let mut town = Town::with_executor("slurm");
    town.set("retry.crash.max_attempts", "1");
    let path = stand_in(&town, "scancel", "#!/bin/sh\nexit 0\n");
    town.start_daemon_with(&[("PATH", &path)]);
    preempted_between_its_steps(&town);
}

// Where leaders replace each other a job must find out that its new one stands by its order.
also_on_postgres!(a_job_that_waits_in_slurm_is_adopted_by_the_next_daemon);

#[test]
fn a_job_that_waits_in_slurm_is_adopted_by_the_next_daemon() {
    let mut town = served();
    town.cluster().hold_all();
    sling(&town, "y-a", "exit 7");
    wait_until("Slurm has it", || town.cluster().states_of("y-a@1") == ["PENDING"]);
    town.kill_daemon();
    town.start_daemon();
    town.cluster().let_go();
    town.await_state("y-a", "failed");
    let ends = outcomes(&town, "y-a");
    assert_eq!((ends.len(), &ends[0]["code"]), (1, &json!(7)), "{ends:?}");
}

/// Kills each daemon right after Slurm has taken its first job, before it can know that.
const TREACHEROUS: &str = "#!/bin/sh
PATH=${PATH#*:} sbatch \"$@\"; code=$?
if mkdir \"$(dirname \"$0\")/was-$PPID\" 2> /dev/null; then kill -9 $PPID; fi
exit $code
";

#[test]
fn a_daemon_killed_between_submitting_and_knowing_it_loses_and_doubles_nothing() {
    let kills = if std::env::var_os("YM_TEST_FULL").is_some() { 50 } else { 5 };
    let mut town = Town::with_executor("slurm");
    town.set("scheduler.max_polecats", "1");
    let path = stand_in(&town, "sbatch", TREACHEROUS);
    let beads = kills + 3;
    let items = (0..beads).map(|n| {
        let script = "echo $YM_BEAD >> started; sleep 0.05; echo $YM_BEAD >> ended";
        json!({"id": format!("y-{n}"), "argv": ["sh", "-c", script]}).to_string()
    });
    town.run_with_input(["add", "--file", "-"], items.collect::<Vec<_>>().join("\n").as_bytes()).ok();
    for _ in 0..kills {
        let mut daemon = town.command(["--daemon"]);
        let mut daemon = daemon.env("PATH", &path).spawn().expect("the daemon can be run");
        wait_until("it is killed", || daemon.try_wait().expect("its state").is_some());
    }
    town.start_daemon();
    let waited = town.run(["--json", "wait", "--all"]);
    assert_eq!(waited.code, 0, "{waited:?}");
    for what in ["started", "ended"] {
        let mut ran = lines(&town.root().join(what));
        ran.sort_unstable();
        let mut all: Vec<String> = (0..beads).map(|n| format!("y-{n}")).collect();
        all.sort_unstable();
        assert_eq!(ran, all, "each has {what} once");
    }
}

#[test]
fn a_controller_that_forgets_jobs_makes_nothing_lost_or_doubled() {
    let mut town = served();
    town.set("scheduler.max_polecats", "6");
    let script = "mkdir \"lock-$YM_BEAD\" || echo $YM_BEAD >> double\necho $YM_BEAD >> started\nsleep 0.2\nrmdir \"lock-$YM_BEAD\"; echo $YM_BEAD >> ended";
    let beads = 12;
    let add = |from: usize| {
        let items = (from..from + 6)
            .map(|n| json!({"id": format!("y-{n}"), "argv": ["sh", "-c", script]}).to_string());
        town.run_with_input(["add", "--file", "-"], items.collect::<Vec<_>>().join("\n").as_bytes()).ok();
    };
    add(0);
    wait_until("something runs", || !lines(&town.root().join("started")).is_empty());
    add(6);
    let known = |town: &mut Town| town.cluster().jobs().len();
    let before = known(&mut town);
    wait_until("it takes more", || known(&mut town) > before);
    // It writes down what it has taken seconds later.
    town.cluster().kill_controller();
    town.cluster().start_controller();
    let waited = town.run(["--json", "wait", "--all", "--timeout", "5m"]);
    let (started, ended) = (lines(&town.root().join("started")), lines(&town.root().join("ended")));
    assert_eq!(lines(&town.root().join("double")), Vec::<String>::new(), "never two at once");
    for n in 0..beads {
        let id = format!("y-{n}");
        let ran = started.iter().filter(|it| **it == id).count();
        let began = |it: &&Value| it["how"] != "never-ran" && it["how"] != "start-failed";
        let ends = outcomes(&town, &id).iter().filter(began).count();
        assert_eq!(ran, ends, "{id}: every start has its own end: {:?}", outcomes(&town, &id));
    }
    // A controller that has forgotten a job has its nodes kill it: that counts as a crash, which is not tried again here.
    let failed = waited.json()["failed"].as_array().map_or(0, Vec::len);
    assert_eq!(waited.json()["stuck"], json!([]));
    assert_eq!(ended.len() + failed, beads, "{waited:?}");
}

#[test]
fn what_slurm_refuses_is_a_failed_start_in_its_words() {
    let mut town = served();
    town.set("scheduler.max_dispatch_failures", "2");
    town.set("executor.slurm.partition", "nowhere");
    sling(&town, "y-a", "true");
    town.await_state("y-a", "circuit-broken");
    let error = outcomes(&town, "y-a")[0]["error"].clone();
    let error = error.as_str().unwrap_or_default();
    assert!(error.contains("Slurm refuses the job") && error.to_lowercase().contains("partition"), "{error}");
    assert_eq!(town.cluster().jobs(), []);
}

#[test]
fn a_silent_controller_is_waited_for_and_nothing_is_counted() {
    let mut town = served();
    let go = town.root().join("go");
    sling(&town, "y-runs", &format!("while [ ! -e '{}' ]; do sleep 0.01; done", go.display()));
    let worker = running(&town, "y-runs");
    town.cluster().kill_controller();
    sling(&town, "y-waits", "true");
    wait_until("it is tried again", || outcomes(&town, "y-waits").iter().any(|it| it["how"] == "never-ran"));
    assert!(is_alive(worker), "what runs is left alone");
    std::fs::write(go, "").expect("a file");
    town.await_state("y-runs", "closed");
    town.cluster().start_controller();
    town.await_state("y-waits", "closed");
    assert_eq!(town.json(["show", "y-waits"])["context"]["dispatch_failures"], 0);
}

#[test]
fn what_slurm_ends_by_itself_is_told_by_its_name() {
    let mut town = served();
    sling(&town, "y-a", "sleep 1000");
    let worker = running(&town, "y-a");
    let name = town.cluster().jobs()[0].1.clone();
    town.cluster().run("scancel", &["--name", &name]).ok();
    town.await_state("y-a", "failed");
    let message = outcomes(&town, "y-a")[0]["message"].clone();
    assert!(message.as_str().unwrap_or_default().contains("its Slurm job was cancelled"), "{message}");
    assert!(!is_alive(worker));
    town.set("retry.crash.max_attempts", "2");
    town.set("retry.crash.backoff", r#"["0s"]"#);
    sling(&town, "y-b", "[ $YM_ATTEMPT = 2 ] && exit 0; sleep 1000");
    let worker = running(&town, "y-b");
    let node = ["update", "nodename=n1,n2", "state=down", "reason=test"];
    let shim = parent_of(worker).expect("its shim");
    town.cluster().run("scontrol", &node).ok();
    wait_until("its shim is gone", || !is_alive(shim));
    // One that has come back by itself cannot be resumed.
    town.cluster().run("scontrol", &["update", "nodename=n1,n2", "state=resume"]);
    town.await_state("y-b", "closed");
    let ends = outcomes(&town, "y-b");
    assert_eq!(ends[0]["category"], "yielded", "it burns no budget: {ends:?}");
    assert!(ends[0]["message"].as_str().unwrap_or_default().contains("node failed"), "{ends:?}");
    town.set("scheduler.max_dispatch_failures", "1");
    town.cluster().hold_all();
    sling(&town, "y-c", "true");
    wait_until("Slurm has it", || town.cluster().states_of("y-c@1") == ["PENDING"]);
    town.cluster().run("scancel", &["--state", "PENDING"]).ok();
    town.await_state("y-c", "circuit-broken");
    let error = outcomes(&town, "y-c")[0]["error"].clone();
    assert_eq!(error, "its Slurm job was cancelled before it began");
}

#[test]
fn without_slurm_a_start_fails_and_says_what_to_do() {
    let mut town = Town::new();
    town.set("worker.executor", "slurm");
    town.set("scheduler.max_polecats", "1");
    town.start_daemon_with(&[("PATH", "/nonexistent")]);
    sling(&town, "y-a", "true");
    wait_until("the start fails", || !town.events(Some("dispatch.ended")).is_empty());
    let ended = town.events(Some("dispatch.ended"))[0]["outcome"].clone();
    assert_eq!(ended["how"], "start-failed", "{ended}");
    let error = ended["error"].as_str().unwrap_or_default();
    assert!(
        error.starts_with("sbatch cannot be run: ") && error.ends_with("use --executor local"),
        "{error}"
    );
    let doctor =
        |path: &str| town.command(["--json", "doctor"]).env("PATH", path).output().expect("ym runs").stdout;
    let says = |path: &str| String::from_utf8_lossy(&doctor(path)).into_owned();
    assert!(says("/nonexistent").contains("install Slurm's client"), "{}", says("/nonexistent"));
    let path = std::env::var("PATH").expect("a path");
    assert!(says(&path).contains("no controller answers"), "{}", says(&path));
}

#[test]
fn a_cluster_is_looked_at_by_the_doctor_and_a_strange_path_harms_nobody() {
    let mut town = served();
    let doctor = town.json(["doctor"]).to_string();
    assert!(doctor.contains("slurm-wlm") && doctor.contains("UP"), "{doctor}");
    let config = town.cluster().config();
    let outer = tempfile::tempdir().expect("a temporary directory");
    let strange = Town::at(&outer.path().join("a 'b $(touch pwned) \"c"));
    let run = |args: &[&str]| {
        let output = strange.command(args).env("SLURM_CONF", &config).output().expect("ym runs");
        assert!(output.status.success(), "{output:?}");
    };
    run(&["bead", "add", "a", "--id", "y-a", "--", "sh", "-c", "echo here > out"]);
    run(&["sling", "y-a", "--executor", "slurm", "--no-convoy"]);
    run(&["wait", "y-a"]);
    let out: PathBuf = strange.root().join("out");
    assert_eq!(lines(&out), ["here"]);
    assert!(!Path::new("/pwned").exists() && !outer.path().join("pwned").exists());
}
