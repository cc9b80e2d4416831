//! Every way a dispatch can end, with real processes: preempted, drained, over a limit, out of money, by its own word.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use yard_tests::town::{Town, is_alive, wait_until, ym_binary};

by_both_executors!(
    a_formula_gives_way_between_two_steps_and_goes_on_after_the_last,
    a_worker_sees_at_its_checkpoint_that_it_should_yield,
    a_worker_that_does_not_listen_is_asked_twice_and_ended,
    a_shim_of_a_daemon_that_was_killed_hears_the_next_one,
    whatever_a_worker_does_it_is_ended_and_nothing_leaks,
    a_drain_brings_everything_back_at_its_place_and_its_step,
    a_drain_does_not_wait_for_a_shim_that_was_stopped,
    a_drain_shortens_the_time_of_what_is_ending_already,
    a_worker_past_its_hard_cap_has_failed_and_retry_gives_it_a_fresh_one,
);

/// A town with these slots, quick preemption, and `ym` in its workers' PATH.
fn town(slots: u32) -> Town {
    town_by("local", slots)
}

fn town_by(executor: &str, slots: u32) -> Town {
    let town = Town::with_executor(executor);
    town.set("scheduler.max_polecats", &slots.to_string());
    town.set("preemption.min_run", "0s");
    town.set("preemption.timeout", "100ms");
    town.set("limits.kill_grace", "200ms");
    town
}

fn serve(town: &mut Town) {
    let ym = ym_binary();
    let bin = ym.parent().expect("a directory").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    town.start_daemon_with(&[("PATH", &path)]);
}

fn formula(town: &Town, name: &str, text: &str) {
    let path = town.root().join(format!(".yardmaster/formulas/{name}.toml"));
    std::fs::write(path, text).expect("a formula");
}

fn file(town: &Town, name: &str) -> PathBuf {
    town.root().join(name)
}

fn text(town: &Town, name: &str) -> String {
    std::fs::read_to_string(file(town, name)).unwrap_or_default()
}

fn sling(town: &Town, bead: &str, args: &[&str]) {
    town.run([&["sling", bead, "--no-convoy"], args].concat()).ok();
}

fn dispatches(town: &Town, bead: &str) -> Vec<Value> {
    town.json(["show", bead])["dispatches"].as_array().cloned().unwrap_or_default()
}

/// The reason of the end of a bead's nth dispatch.
fn ended_for(town: &Town, bead: &str, nth: usize) -> Value {
    dispatches(town, bead)[nth]["ended"]["outcome"]["reason"].clone()
}

fn alert_kinds(town: &Town) -> Vec<String> {
    let alerts = town.json(["alerts"])["alerts"].as_array().cloned().unwrap_or_default();
    alerts.iter().map(|alert| alert["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

const STEPS: &str = r#"
name = "steps"
[[steps]]
id = "one"
shell = 'echo "one after=$YM_RESUME_AFTER" >> "$YM_TOWN/story"'
[[steps]]
id = "two"
shell = 'echo "two after=$YM_RESUME_AFTER" >> "$YM_TOWN/story"; ym worker checkpoint "in two" >> "$YM_TOWN/story"; while [ ! -e "$YM_TOWN/go" ]; do sleep 0.02; done'
[[steps]]
id = "three"
shell = 'echo "three after=$YM_RESUME_AFTER note=$YM_CHECKPOINT" >> "$YM_TOWN/story"'
"#;

// Preemption.

fn a_formula_gives_way_between_two_steps_and_goes_on_after_the_last(executor: &str) {
    let mut town = town_by(executor, 1);
    town.set("preemption.timeout", "1h");
    serve(&mut town);
    formula(&town, "steps", STEPS);
    town.run(["bead", "add", "low", "--id", "y-low"]).ok();
    town.shell_bead("y-urgent", "echo urgent >> \"$YM_TOWN/story\"");
    sling(&town, "y-low", &["--formula", "steps", "--priority", "10"]);
    wait_until("its second step", || text(&town, "story").contains("continue"));
    sling(&town, "y-urgent", &["--priority", "90"]);
    wait_until("it is asked", || !town.events(Some("preemption.requested")).is_empty());
    assert_eq!(town.json(["status"])["running"][0]["yielding_to"], "y-urgent");
    std::fs::write(file(&town, "go"), "").expect("a file");
    town.run(["wait", "--all"]).ok();
    assert_eq!(
        text(&town, "story"),
        "one after=\ntwo after=\ncontinue\nurgent\nthree after=two note=in two\n"
    );
    assert_eq!(ended_for(&town, "y-low", 0), "cooperative_preemption");
    let ended = &town.events(Some("preemption.ended"))[0];
    assert_eq!((&ended["method"], &ended["victim"]), (&json!("cooperative"), &json!("y-low@1")));
}

fn a_worker_sees_at_its_checkpoint_that_it_should_yield(executor: &str) {
    let mut town = town_by(executor, 1);
    town.set("preemption.timeout", "1h");
    serve(&mut town);
    let script = "while :; do case $(ym worker checkpoint \"round $YM_ATTEMPT\") in \
                  yield) exit 75 ;; continue) [ -n \"$YM_CHECKPOINT\" ] && exit 0 ;; esac; sleep 0.02; done";
    town.shell_bead("y-low", script);
    town.shell_bead("y-urgent", "true");
    sling(&town, "y-low", &["--priority", "10"]);
    wait_until("a checkpoint", || !town.events(Some("dispatch.checkpoint")).is_empty());
    sling(&town, "y-urgent", &["--priority", "90"]);
    town.run(["wait", "--all"]).ok();
    assert_eq!(ended_for(&town, "y-low", 0), "cooperative_preemption");
    let show = town.json(["show", "y-low"]);
    assert_eq!((&show["status"], &show["context"]["crashes"]), (&json!("closed"), &json!(0)));
}

fn a_worker_that_does_not_listen_is_asked_twice_and_ended(executor: &str) {
    let mut town = town_by(executor, 1);
    serve(&mut town);
    town.shell_bead("y-low", "trap '' TERM; [ $YM_ATTEMPT -gt 1 ] && exit 0; sleep 1000; sleep 1000");
    town.shell_bead("y-urgent", "true");
    sling(&town, "y-low", &["--priority", "10"]);
    town.await_state("y-low", "running");
    sling(&town, "y-urgent", &["--priority", "90"]);
    town.run(["wait", "--all"]).ok();
    assert_eq!(ended_for(&town, "y-low", 0), "preemption_timeout");
    let rounds: Vec<Value> = town
        .events(Some("preemption.requested"))
        .iter()
        .map(|event| event["cycle"]["round"].clone())
        .collect();
    assert_eq!(rounds, [json!(1), json!(2)]);
    let order: Vec<Value> =
        town.events(Some("dispatch.started")).iter().map(|event| event["dispatch"]["id"].clone()).collect();
    assert_eq!(order, ["y-low@1", "y-urgent@1", "y-low@2"]);
}

fn a_shim_of_a_daemon_that_was_killed_hears_the_next_one(executor: &str) {
    let mut town = town_by(executor, 1);
    town.set("preemption.timeout", "1h");
    serve(&mut town);
    formula(&town, "steps", STEPS);
    town.run(["bead", "add", "low", "--id", "y-low"]).ok();
    town.shell_bead("y-urgent", "true");
    sling(&town, "y-low", &["--formula", "steps", "--priority", "10"]);
    wait_until("its second step", || text(&town, "story").contains("continue"));
    town.kill_daemon();
    serve(&mut town);
    sling(&town, "y-urgent", &["--priority", "90"]);
    wait_until("it is asked", || !town.events(Some("preemption.requested")).is_empty());
    town.kill_daemon();
    serve(&mut town);
    std::fs::write(file(&town, "go"), "").expect("a file");
    town.run(["wait", "--all"]).ok();
    assert_eq!(ended_for(&town, "y-low", 0), "cooperative_preemption");
    assert_eq!(text(&town, "story").matches("one after").count(), 1, "{}", text(&town, "story"));
}

#[test]
fn preempting_by_hand_says_what_it_does_or_why_not() {
    let mut town = town(1);
    town.set("preemption.timeout", "1h");
    serve(&mut town);
    town.shell_bead("y-a", "while [ ! -e \"$YM_TOWN/go\" ]; do sleep 0.02; done");
    town.shell_bead("y-b", "true");
    sling(&town, "y-a", &["--priority", "90"]);
    town.await_state("y-a", "running");
    assert_eq!(town.refused(["preempt", "y-a"]), "nothing-waits");
    assert_eq!(town.refused(["preempt", "y-b"]), "not-running");
    assert_eq!(town.refused(["preempt", "y-none"]), "unknown-bead");
    sling(&town, "y-b", &["--priority", "10"]);
    let said = town.run(["preempt", "y-a", "--for", "y-b"]).ok().stdout;
    assert!(said.contains("y-a@1 is asked to give way to y-b"), "{said}");
    assert_eq!(town.refused(["preempt", "y-a"]), "preemption-under-way");
    std::fs::write(file(&town, "go"), "").expect("a file");
    town.run(["wait", "--all"]).ok();
}

// Ending processes.

/// How many descriptors a process has.
fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

fn whatever_a_worker_does_it_is_ended_and_nothing_leaks(executor: &str) {
    let mut town = town_by(executor, 1);
    town.set("worker.log_cap", "256KiB");
    serve(&mut town);
    let daemon = town.daemon_pid().expect("it runs");
    let own_pid = "echo $$ >> \"$YM_TOWN/pids\"";
    let workers = [
        ("y-deaf", format!("trap '' TERM INT HUP; {own_pid}; while :; do sleep 1; done")),
        (
            "y-far",
            format!(
                "(setsid sh -c '{own_pid}; trap \"\" TERM; while :; do sleep 1; done' &) ; {own_pid}; sleep 1000"
            ),
        ),
        ("y-still", format!("{own_pid}; kill -STOP $$; sleep 1000")),
        ("y-loud", format!("{own_pid}; exec yes 'much ado about nothing'")),
    ];
    let mut open = 0;
    for round in 1..=2 {
        for (bead, script) in &workers {
            let bead = format!("{bead}{round}");
            std::fs::write(file(&town, "pids"), "").expect("a file");
            town.shell_bead(&bead, script);
            sling(&town, &bead, &[]);
            let wanted = if bead.starts_with("y-far") { 2 } else { 1 };
            let pids =
                || -> Vec<u32> { text(&town, "pids").lines().filter_map(|line| line.parse().ok()).collect() };
            wait_until("its processes", || pids().len() == wanted);
            if bead.starts_with("y-loud") {
                let log = file(&town, &format!(".yardmaster/logs/{bead}@1.log.1"));
                wait_until("it has written more than is kept", || log.exists());
            }
            town.run(["cancel", &bead]).ok();
            town.await_state(&bead, "cancelled");
            for pid in pids() {
                assert!(!is_alive(pid), "{bead}: {pid} is still there");
            }
            let next = format!("{bead}-next");
            town.shell_bead(&next, "true");
            sling(&town, &next, &[]);
            town.run(["wait", &next]).ok();
        }
        if round == 1 {
            open = descriptors(daemon);
        }
    }
    let kept: u64 = ["y-loud1@1.log", "y-loud1@1.log.1"]
        .iter()
        .filter_map(|name| std::fs::metadata(file(&town, &format!(".yardmaster/logs/{name}"))).ok())
        .map(|log| log.len())
        .sum();
    assert!(kept <= 256 * 1024, "{kept} bytes are kept");
    wait_until("no descriptor is left open", || descriptors(daemon) <= open);
}

// Drain.

fn a_drain_brings_everything_back_at_its_place_and_its_step(executor: &str) {
    let mut town = town_by(executor, 5);
    town.set("limits.kill_grace", "1h");
    serve(&mut town);
    let stubborn = r#"
name = "stubborn"
[[steps]]
id = "one"
shell = 'true'
[[steps]]
id = "two"
shell = 'trap "" TERM; echo "$YM_BEAD after=$YM_RESUME_AFTER" >> "$YM_TOWN/story"; echo $$ >> "$YM_TOWN/pids"; while [ ! -e "$YM_TOWN/go" ]; do sleep 0.02; done'
"#;
    formula(&town, "stubborn", stubborn);
    let beads = ["y-e", "y-c", "y-a", "y-d", "y-b"];
    for bead in beads {
        town.run(["bead", "add", bead, "--id", bead]).ok();
        sling(&town, bead, &["--formula", "stubborn"]);
    }
    wait_until("all five", || text(&town, "pids").lines().count() == 5);
    town.run(["stop", "--timeout", "300ms"]).ok();
    for pid in text(&town, "pids").lines().filter_map(|line| line.parse().ok()) {
        assert!(!is_alive(pid), "{pid} is still there");
    }
    for bead in beads {
        assert_eq!(
            (town.state_of(bead), ended_for(&town, bead, 0)),
            ("queued".into(), json!("graceful_shutdown"))
        );
        let context = &town.json(["show", bead])["context"];
        assert_eq!((&context["crashes"], &context["resume"]["after"]), (&json!(0), &json!("one")));
    }
    std::fs::write(file(&town, "go"), "").expect("a file");
    serve(&mut town);
    town.run(["wait", "--all"]).ok();
    let started: Vec<String> = town.events(Some("dispatch.started"))[5..]
        .iter()
        .map(|event| event["dispatch"]["id"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(started, beads.map(|bead| format!("{bead}@2")), "in the same order");
    assert_eq!(text(&town, "story").matches("after=one").count(), 5, "{}", text(&town, "story"));
}

fn a_drain_does_not_wait_for_a_shim_that_was_stopped(executor: &str) {
    let mut town = town_by(executor, 2);
    serve(&mut town);
    let script =
        "trap '' TERM; echo $$ $PPID >> \"$YM_TOWN/pids\"; kill -STOP $PPID; while :; do sleep 1; done";
    for bead in ["y-a", "y-b"] {
        town.shell_bead(bead, script);
        sling(&town, bead, &[]);
    }
    wait_until("both", || text(&town, "pids").split_whitespace().count() == 4);
    town.run(["stop", "--timeout", "300ms"]).ok();
    for pid in text(&town, "pids").split_whitespace().filter_map(|pid| pid.parse().ok()) {
        assert!(!is_alive(pid), "{pid} is still there");
    }
    for bead in ["y-a", "y-b"] {
        assert_eq!(
            (town.state_of(bead), ended_for(&town, bead, 0)),
            ("queued".into(), json!("graceful_shutdown"))
        );
    }
}

fn a_drain_shortens_the_time_of_what_is_ending_already(executor: &str) {
    let mut town = town_by(executor, 2);
    town.set("limits.kill_grace", "1h");
    serve(&mut town);
    let script = "trap '' TERM; echo $$ >> \"$YM_TOWN/pids\"; while :; do sleep 1; done";
    for bead in ["y-cancelled", "y-drained"] {
        town.shell_bead(bead, script);
        sling(&town, bead, &[]);
    }
    wait_until("both", || text(&town, "pids").lines().count() == 2);
    town.run(["cancel", "y-cancelled"]).ok();
    let patient = town.command(["stop", "--timeout", "1h"]).stdout(std::process::Stdio::null()).spawn();
    let mut patient = patient.expect("ym can be run");
    wait_until("the first drain", || town.events(Some("dispatch.stop_requested")).len() == 2);
    town.run(["stop", "--timeout", "200ms"]).ok();
    patient.wait().expect("it ends too");
    for pid in text(&town, "pids").lines().filter_map(|line| line.parse().ok()) {
        assert!(!is_alive(pid), "{pid} is still there");
    }
    assert_eq!(
        (town.state_of("y-cancelled"), town.state_of("y-drained")),
        ("cancelled".into(), "queued".into())
    );
}

// Limits.

#[test]
fn no_amount_is_too_absurd_for_the_journal() {
    let mut town = town(1);
    serve(&mut town);
    let claude = "echo '{\"type\":\"result\",\"total_cost_usd\":900000000}'";
    let script = format!("for n in 1 2 3; do ym worker cost 1000000000; done; {claude}");
    town.shell_bead("y-rich", &script);
    sling(&town, "y-rich", &[]);
    town.run(["wait", "y-rich"]).ok();
    assert_eq!(town.json(["status"])["spending"]["today"], 1e9);
    town.stop_daemon();
    serve(&mut town);
    assert_eq!(town.json(["show", "y-rich"])["context"]["cost"], 1e9);
}

#[test]
fn a_worker_that_reaches_its_cost_limit_is_ended_and_waits_for_a_person() {
    let mut town = town(2);
    town.set("cost.per_bead", "1");
    serve(&mut town);
    let script =
        "[ -e \"$YM_TOWN/cheap\" ] && exit 0; ym worker cost 0.85; ym worker cost 1.10 --total; sleep 1000";
    town.shell_bead("y-dear", script);
    sling(&town, "y-dear", &[]);
    town.await_state("y-dear", "blocked");
    assert_eq!(town.reasons_of("y-dear"), ["cost-limit"]);
    assert_eq!(ended_for(&town, "y-dear", 0), "cost_limit_reached");
    assert_eq!(alert_kinds(&town), ["cost-limit"]);
    let raised: Vec<Value> = town.events(Some("alert.raised"));
    let kinds: Vec<&Value> = raised.iter().map(|event| &event["alert"]["kind"]).collect();
    assert_eq!(kinds, ["cost-warning", "cost-limit"]);
    let waited = town.run(["--json", "wait", "y-dear"]);
    assert_eq!((waited.code, &waited.json()["stuck"][0]["id"]), (1, &json!("y-dear")));
    std::fs::write(file(&town, "cheap"), "").expect("a file");
    town.set("cost.per_bead", "5");
    town.await_state("y-dear", "closed");
    assert_eq!(town.json(["status"])["spending"]["today"], 1.1);
    assert!(alert_kinds(&town).is_empty());
}

fn a_worker_past_its_hard_cap_has_failed_and_retry_gives_it_a_fresh_one(executor: &str) {
    let mut town = town_by(executor, 1);
    town.set("limits.hard_cap", "200ms");
    serve(&mut town);
    town.shell_bead("y-long", "[ -e \"$YM_TOWN/short\" ] || sleep 1000");
    sling(&town, "y-long", &[]);
    town.await_state("y-long", "failed");
    assert_eq!(
        (ended_for(&town, "y-long", 0), alert_kinds(&town)),
        (json!("hard_cap_exceeded"), vec!["bead-failed".into()])
    );
    std::fs::write(file(&town, "short"), "").expect("a file");
    town.set("limits.hard_cap", "1h");
    town.run(["scheduler", "retry", "y-long"]).ok();
    town.await_state("y-long", "closed");
    assert!(alert_kinds(&town).is_empty());
}

#[test]
fn a_silent_worker_is_reported_once_and_one_that_writes_is_not() {
    let mut town = town(2);
    town.set("limits.stuck_after", "1500ms");
    serve(&mut town);
    let until = "while [ ! -e \"$YM_TOWN/go\" ]; do";
    let speaks = "[ -e \"$YM_TOWN/speak\" ] && echo I am back";
    town.shell_bead("y-silent", &format!("{until} {speaks}; sleep 0.05; done"));
    town.shell_bead("y-writes", &format!("{until} echo still here; sleep 0.05; done"));
    sling(&town, "y-silent", &[]);
    sling(&town, "y-writes", &[]);
    wait_until("the output of one was looked at", || !town.events(Some("dispatch.heard")).is_empty());
    wait_until("the other is reported", || alert_kinds(&town) == ["stuck"]);
    let heard = town.events(Some("dispatch.heard")).len();
    wait_until("time goes by", || town.events(Some("dispatch.heard")).len() > heard);
    let stuck: Vec<Value> = town.events(Some("dispatch.stuck"));
    assert_eq!((stuck.len(), &stuck[0]["id"]), (1, &json!("y-silent@1")));
    std::fs::write(file(&town, "speak"), "").expect("a file");
    wait_until("the alert is over when it writes again", || alert_kinds(&town).is_empty());
    std::fs::write(file(&town, "go"), "").expect("a file");
    town.run(["wait", "--all"]).ok();
    assert!(alert_kinds(&town).is_empty());
}

#[test]
fn a_running_bead_ends_at_its_deadline() {
    let mut town = town(1);
    serve(&mut town);
    town.shell_bead("y-late", "sleep 1000");
    sling(&town, "y-late", &["--deadline", "3s"]);
    town.await_state("y-late", "failed");
    assert_eq!(ended_for(&town, "y-late", 0), "deadline_exceeded");
}

#[test]
fn an_account_whose_service_is_away_rests_for_all_who_use_it() {
    let mut town = town(2);
    town.set("account.main.cooldown", "1h");
    serve(&mut town);
    town.shell_bead("y-a", "exit 69");
    town.shell_bead("y-b", "true");
    sling(&town, "y-a", &["--account", "main"]);
    wait_until("it rests", || !town.events(Some("account.cooling")).is_empty());
    sling(&town, "y-b", &["--account", "main"]);
    assert_eq!(town.reasons_of("y-b"), ["account-cooldown"]);
    assert!(town.json(["why", "y-b"])["reasons"][0]["until"].is_string());
    assert_eq!(town.json(["status"])["resting_accounts"][0]["account"], "main");
}

// What workers say.

#[test]
fn a_workers_word_counts_more_than_its_exit_code_and_an_old_ones_not_at_all() {
    let mut town = town(2);
    town.set("retry.crash.backoff", r#"["0s"]"#);
    serve(&mut town);
    town.shell_bead("y-done", "ym worker progress 'nearly there'; ym worker done merged; exit 9");
    let fails = "[ $YM_ATTEMPT -gt 1 ] && exit 0; ym worker fail 'the tests fail'";
    town.shell_bead("y-fails", fails);
    sling(&town, "y-done", &[]);
    sling(&town, "y-fails", &[]);
    town.run(["wait", "--all"]).ok();
    assert_eq!(dispatches(&town, "y-done")[0]["progress"], "nearly there");
    let closed = town.events(Some("bead.closed"));
    assert!(closed.iter().any(|event| event["id"] == "y-done" && event["reason"] == "merged"), "{closed:?}");
    assert_eq!(dispatches(&town, "y-fails")[0]["ended"]["outcome"]["message"], "the tests fail");
    for args in [
        vec!["done"],
        vec!["fail", "late"],
        vec!["cost", "5"],
        vec!["checkpoint", "late"],
        vec!["progress", "late"],
    ] {
        let args = [vec!["worker", "--dispatch", "y-fails@1"], args].concat();
        assert_eq!(town.refused(&args), "stale-dispatch", "{args:?}");
    }
    assert_eq!(town.events(Some("dispatch.late_report")).len(), 5);
    let late = town.run(["worker", "--dispatch", "y-fails@1", "checkpoint"]);
    assert_eq!((late.code, late.stdout.trim()), (1, "yield"), "who only looks at the word ends as well");
    for verb in ["cancel", "kill", "preempt"] {
        assert_eq!(town.refused([verb, "y-fails@1"]), "stale-dispatch", "an old id names no other dispatch");
    }
    assert_eq!(town.refused(["worker", "done"]), "no-dispatch");
    assert_eq!(town.refused(["worker", "--dispatch", "y-fails@7", "done"]), "unknown-dispatch");
    assert_eq!(town.run(["worker", "--dispatch", "y-done@1", "cost", "-1"]).code, 2);
}

/// An agent that speaks as claude does with `--output-format stream-json`.
const CLAUDE: &str = r#"#!/bin/sh
echo "$YM_DISPATCH $*" >> "$YM_TOWN/calls"
cat > /dev/null
echo '{"type":"system","subtype":"init","session_id":"s-'"$YM_ATTEMPT"'"}'
case " $* " in *" slow "*) while [ ! -e "$YM_TOWN/go" ]; do sleep 0.02; done ;; esac
echo '{"type":"result","total_cost_usd":0.25,"session_id":"s-'"$YM_ATTEMPT"'","usage":{"input_tokens":100,"output_tokens":20}}'
"#;

#[test]
fn an_agents_session_and_cost_are_read_off_its_output() {
    let mut town = town(1);
    town.set("preemption.timeout", "1h");
    let claude = file(&town, "claude");
    std::fs::write(&claude, CLAUDE).expect("a script");
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let agent = claude.display();
    let steps = format!(
        "name = 'agent'\n[[steps]]\nid = 'plan'\nargv = ['{agent}', 'slow']\n[[steps]]\nid = 'work'\nargv = ['{agent}', 'quick']\n"
    );
    formula(&town, "agent", &steps);
    serve(&mut town);
    for (bead, ralph) in [("y-resumes", false), ("y-ralph", true)] {
        let _ = std::fs::remove_file(file(&town, "go"));
        let _ = std::fs::remove_file(file(&town, "calls"));
        town.run(["bead", "add", bead, "--id", bead]).ok();
        let ralph_flag: &[&str] = if ralph { &["--ralph"] } else { &[] };
        sling(&town, bead, &[&["--formula", "agent", "--priority", "10"], ralph_flag].concat());
        wait_until("its session is known", || dispatches(&town, bead)[0]["session"] == "claude/s-1");
        let urgent = format!("{bead}-urgent");
        town.shell_bead(&urgent, "true");
        sling(&town, &urgent, &["--priority", "90"]);
        wait_until("it is asked", || town.json(["status"])["running"][0]["yielding_to"] == urgent.as_str());
        std::fs::write(file(&town, "go"), "").expect("a file");
        town.run(["wait", bead]).ok();
        let calls = text(&town, "calls");
        let resumed = if ralph { "" } else { " --resume s-1" };
        assert_eq!(calls, format!("{bead}@1 slow\n{bead}@2 quick{resumed}\n"));
        let show = town.json(["show", bead]);
        let costs: Vec<&Value> =
            show["dispatches"].as_array().expect("a list").iter().map(|d| &d["cost"]).collect();
        assert_eq!(costs, [&json!(0.25), &json!(0.25)]);
        assert_eq!((&show["dispatches"][0]["tokens"], &show["context"]["cost"]), (&json!(120), &json!(0.5)));
    }
}

#[test]
fn a_session_is_resumed_by_its_own_agent_only() {
    let mut town = town(1);
    for (name, says) in [("claude", r#"{"session_id":"c-1"}"#), ("codex", r#"{"thread_id":"x-1"}"#)] {
        let path = file(&town, name);
        let script = format!("#!/bin/sh\necho \"{name} $*\" >> \"$YM_TOWN/calls\"\necho '{says}'\n");
        std::fs::write(&path, script).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    }
    let step = |id: &str, agent: &str| {
        format!("[[steps]]\nid = '{id}'\nargv = ['{}', '{id}']\n", file(&town, agent).display())
    };
    let steps = ["a", "b", "c", "d"].iter().zip(["claude", "codex", "codex", "claude"]);
    let steps: String = steps.map(|(id, agent)| step(id, agent)).collect();
    formula(&town, "mixed", &format!("name = 'mixed'\n{steps}"));
    serve(&mut town);
    town.run(["bead", "add", "mixed", "--id", "y-mixed"]).ok();
    sling(&town, "y-mixed", &["--formula", "mixed"]);
    town.run(["wait", "y-mixed"]).ok();
    assert_eq!(text(&town, "calls"), "claude a\ncodex b\ncodex c resume x-1\nclaude d\n");
}

#[test]
fn a_failing_alert_command_is_tried_again_and_holds_nothing_up() {
    let mut town = town(1);
    town.set("limits.hard_cap", "100ms");
    town.set("alerts.retry", "50ms");
    let (tries, told) = (file(&town, "tries"), file(&town, "told"));
    let script = format!(
        "echo x >> '{0}'; [ $(wc -l < '{0}') -ge 3 ] || exit 1; cat >> '{1}'",
        tries.display(),
        told.display()
    );
    town.set("alerts.command", &json!(["sh", "-c", script]).to_string());
    serve(&mut town);
    town.shell_bead("y-long", "sleep 1000");
    sling(&town, "y-long", &[]);
    town.await_state("y-long", "failed");
    wait_until("it is told", || text(&town, "told").lines().count() == 1);
    let alert: Value = serde_json::from_str(&text(&town, "told")).expect("JSON");
    assert_eq!(alert["kind"], "bead-failed");
    wait_until("it counts as told", || town.events(Some("alert.told")).len() == 1);
    assert_eq!(text(&town, "tries").lines().count(), 3);
}
