//! What a worker is doing, seen from outside while it works, and its output across attempts.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};
use yard_tests::town::{Town, wait_until, ym_binary};

fn serve(town: &mut Town) {
    let bin = ym_binary().parent().expect("a directory").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    town.start_daemon_with(&[("PATH", &path)]);
}

fn running(town: &Town) -> Value {
    town.json(["status"])["running"][0].clone()
}

fn touch(town: &Town, name: &str) {
    std::fs::write(town.root().join(name), "").expect("a file");
}

const STEPS: &str = r#"
name = "steps"
[[steps]]
id = "work"
shell = 'echo "working"; ym worker progress "3 of 7"; while [ ! -e "$YM_TOWN/one" ]; do sleep 0.02; done'
[[steps]]
id = "check"
shell = 'printf "first\n\033[32mlooking   at it\033[0m\n\n"; while [ ! -e "$YM_TOWN/two" ]; do sleep 0.02; done'
[[steps]]
id = "tell"
shell = 'true'
"#;

#[test]
fn which_step_runs_and_what_it_wrote_last_is_seen_from_outside() {
    let mut town = Town::new();
    std::fs::write(town.root().join(".yardmaster/formulas/steps.toml"), STEPS).expect("a formula");
    serve(&mut town);
    town.run(["bead", "add", "mend", "--id", "y-a"]).ok();
    town.run(["sling", "y-a", "--no-convoy", "--formula", "steps"]).ok();
    wait_until("its words are known", || {
        let now = running(&town);
        now["progress"] == "3 of 7" && now["last_line"] == "working"
    });
    let now = running(&town);
    assert_eq!(
        (&now["step_number"], &now["steps"], &now["current_step"]),
        (&json!(1), &json!(3), &json!("work"))
    );
    let status = town.run(["status"]).ok().stdout;
    assert!(
        status.contains("step 1 of 3 · work · 3 of 7"),
        "what it says goes before what it writes: {status}"
    );
    touch(&town, "one");
    wait_until("the next step writes", || running(&town)["last_line"] == "looking at it");
    let now = running(&town);
    assert_eq!(
        (&now["step"], &now["step_number"], &now["progress"]),
        (&json!("work"), &json!(2), &Value::Null)
    );
    assert!(town.run(["status"]).ok().stdout.contains("step 2 of 3 · check · looking at it"));
    town.kill_daemon();
    serve(&mut town);
    let now = running(&town);
    assert_eq!(
        (&now["step_number"], &now["last_line"]),
        (&json!(2), &json!("looking at it")),
        "older, not wrong"
    );
    touch(&town, "two");
    town.run(["wait", "y-a"]).ok();
}

#[test]
fn a_worker_that_writes_all_the_time_makes_few_events() {
    let mut town = Town::new();
    serve(&mut town);
    town.shell_bead(
        "y-loud",
        "n=0; while [ ! -e \"$YM_TOWN/go\" ]; do n=$((n+1)); echo $n; sleep 0.01; done",
    );
    town.run(["sling", "y-loud", "--no-convoy"]).ok();
    wait_until("a line is known", || running(&town)["last_line"].is_string());
    wait_until("it has written a lot", || {
        std::fs::read_to_string(town.root().join(".yardmaster/logs/y-loud@1.log"))
            .is_ok_and(|log| log.lines().count() > 200)
    });
    touch(&town, "go");
    town.run(["wait", "y-loud"]).ok();
    let events = town.events(Some("dispatch.last_line")).len();
    assert!((1..20).contains(&events), "{events}");
}

/// Follows the output of a bead or dispatch until that is over.
fn follow(town: &Town, id: &str) -> std::process::Child {
    let mut command = town.command(["logs", "-f", id]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("ym can be run")
}

fn heard(child: std::process::Child) -> (String, String) {
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn following_a_bead_goes_on_with_its_next_attempts_until_it_is_over() {
    let mut town = Town::new();
    town.set("retry.crash.backoff", "[\"10ms\"]");
    serve(&mut town);
    let script = "echo \"attempt $YM_ATTEMPT begins\"; while [ ! -e \"$YM_TOWN/go\" ]; do sleep 0.02; done; \
        echo \"attempt $YM_ATTEMPT ends\"; [ $YM_ATTEMPT -ge 3 ]";
    town.shell_bead("y-a", script);
    town.run(["sling", "y-a", "--no-convoy"]).ok();
    wait_until("it runs", || town.state_of("y-a") == "running");
    let (all, one) = (follow(&town, "y-a"), follow(&town, "y-a@1"));
    touch(&town, "go");
    let lines = |attempt: u32| format!("attempt {attempt} begins\nattempt {attempt} ends\n");
    let (out, err) = heard(all);
    assert_eq!(out, lines(1) + &lines(2) + &lines(3));
    assert_eq!(err, "note: y-a@2 begins\nnote: y-a@3 begins\n");
    assert_eq!(heard(one), (lines(1), String::new()), "a dispatch is that one alone");
    assert_eq!(heard(follow(&town, "y-a")), (lines(3), String::new()), "it is over");
}

#[test]
fn a_log_that_is_moved_aside_loses_and_repeats_no_line() {
    let mut town = Town::new();
    town.set("worker.log_cap", "200000");
    serve(&mut town);
    // Each part is less than half of what is kept, and begins when the one before has been read.
    let script = "n=0; for part in 1 2 3 4 5 6; do while [ ! -e \"$YM_TOWN/go$part\" ]; do sleep 0.02; done; \
        while [ $n -lt $((part * 6000)) ]; do n=$((n+1)); echo \"line $n\"; done; done";
    town.shell_bead("y-long", script);
    town.run(["sling", "y-long", "--no-convoy"]).ok();
    wait_until("it runs", || town.state_of("y-long") == "running");
    let mut all = follow(&town, "y-long");
    let mut lines = BufReader::new(all.stdout.take().expect("piped")).lines();
    for part in 1..=6 {
        touch(&town, &format!("go{part}"));
        for n in (part - 1) * 6000 + 1..=part * 6000 {
            assert_eq!(lines.next().expect("a line").expect("text"), format!("line {n}"));
        }
    }
    assert!(lines.next().is_none());
    assert!(all.wait().expect("it ends").success());
    assert!(town.root().join(".yardmaster/logs/y-long@1.log.1").exists(), "it was moved aside");
}
