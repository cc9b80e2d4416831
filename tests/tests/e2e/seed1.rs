//! Seed 1's Quick Start and Minimal Example, as written, with `ym` for `gt` and no daemon.

use yard_tests::town::Town;

fn gastown() -> Town {
    let town = Town::local();
    town.run(["rig", "add", "gastown", "--prefix", "gt"]).ok();
    town
}

fn true_bead(town: &Town, id: &str, more: &[&str]) {
    let args = [&["bead", "add", id, "--id", id], more, &["--", "true"]].concat();
    town.run(args).ok();
}

#[test]
fn minimal_example() {
    let town = gastown();
    true_bead(&town, "gt-abc", &[]);
    town.run(["config", "set", "scheduler.max_polecats", "5"]).ok();
    let slung = town.run(["sling", "gt-abc", "gastown"]).ok();
    assert!(slung.stderr.contains("ym --daemon"), "it says that nothing starts it: {}", slung.stderr);
    let status = town.run(["scheduler", "status"]).ok();
    assert!(status.stdout.contains("Queued: 1 total, 1 ready"), "{}", status.stdout);
    let run = town.json(["scheduler", "run"]);
    assert_eq!(run["dispatched"][0]["id"], "gt-abc");
    assert_eq!(run["dispatched"][0]["dispatch_id"], "gt-abc@1");
    let shown = town.json(["show", "gt-abc"]);
    assert_eq!(shown["context"]["status"], "closed");
    assert_eq!(shown["context"]["close_reason"], "dispatched");
    assert_eq!(town.json(["wait", "gt-abc"])["done"][0], "gt-abc");
    assert_eq!(town.state_of("gt-abc"), "closed");
}

#[test]
fn quick_start() {
    let town = gastown();
    for id in ["gt-abc", "gt-def", "gt-ghi", "gt-in-convoy"] {
        true_bead(&town, id, &[]);
    }
    town.run(["bead", "add", "an epic", "--id", "gt-epic-123", "--type", "epic"]).ok();
    true_bead(&town, "gt-child", &["--parent", "gt-epic-123"]);
    let convoy = town.json(["convoy", "create", "a convoy", "gt-in-convoy"]);
    let convoy = convoy["id"].as_str().expect("an id").to_owned();
    assert!(convoy.starts_with("hq-cv-") && convoy.len() == "hq-cv-".len() + 5, "{convoy}");

    town.run(["config", "set", "scheduler.max_polecats", "5"]).ok();
    town.run(["sling", "gt-abc", "gastown"]).ok();
    let batch = town.json(["sling", "gt-abc", "gt-def", "gt-ghi", "gastown"]);
    assert_eq!(batch["mode"], "deferred");
    assert_eq!(batch["results"][0]["action"], "already-scheduled");
    assert_eq!(batch["results"][1]["action"], "scheduled");
    assert_eq!(town.json(["sling", &convoy])["results"][0]["id"], "gt-in-convoy");
    assert_eq!(town.json(["sling", "gt-epic-123"])["results"][0]["id"], "gt-child");

    let status = town.run(["scheduler", "status"]).ok();
    assert!(status.stdout.contains("Queued: 5 total, 5 ready"), "{}", status.stdout);
    let list = town.json(["scheduler", "list"]);
    assert_eq!(list["rigs"][0]["rig"], "gastown");
    assert_eq!(list["rigs"][0]["beads"].as_array().expect("a list").len(), 5);

    let preview = town.json(["scheduler", "run", "--dry-run"]);
    assert_eq!(preview["dispatched"].as_array().expect("a list").len(), 5);
    assert_eq!(preview["dry_run"], true);
    assert_eq!(town.json(["scheduler", "status"])["queued_total"], 5, "a preview changes nothing");
    let run = town.json(["scheduler", "run"]);
    assert_eq!(run["dispatched"].as_array().expect("a list").len(), 5);
    town.run(["wait", "--all"]).ok();
    assert_eq!(town.json(["scheduler", "status"])["queued_total"], 0);
}

#[test]
fn dispatch_mode_minus_one_and_zero_are_direct_and_n_is_deferred() {
    let town = gastown();
    for (value, mode) in [("-1", "direct"), ("0", "direct"), ("3", "deferred")] {
        town.run(["config", "set", "scheduler.max_polecats", value]).ok();
        assert_eq!(town.json(["scheduler", "status"])["mode"], mode);
        let id = format!("gt-mode{}", value.trim_start_matches('-'));
        true_bead(&town, &id, &[]);
        let action = if mode == "direct" { "dispatched" } else { "scheduled" };
        assert_eq!(town.json(["sling", &id, "gastown"])["results"][0]["action"], action, "{value}");
    }
}

#[test]
fn scheduler_pause_resume_and_clear() {
    let town = gastown();
    town.set("scheduler.max_polecats", "5");
    true_bead(&town, "gt-a", &[]);
    true_bead(&town, "gt-b", &[]);
    town.run(["sling", "gt-a", "gt-b", "gastown"]).ok();
    town.run(["scheduler", "pause", "--reason", "maintenance"]).ok();
    let run = town.json(["scheduler", "run"]);
    assert_eq!(
        (run["reason"].as_str(), run["dispatched"].as_array().map(Vec::len)),
        (Some("paused"), Some(0))
    );
    let status = town.json(["scheduler", "status"]);
    assert_eq!(status["paused"], true);
    assert_eq!(status["paused_by"], "tester");
    assert_eq!(status["pause_reason"], "maintenance");
    town.run(["scheduler", "resume"]).ok();
    town.run(["scheduler", "clear", "--bead", "gt-a"]).ok();
    assert_eq!(town.json(["scheduler", "status"])["queued_total"], 1);
    assert_eq!(town.json(["show", "gt-a"])["context"]["close_reason"], "cleared");
    town.run(["scheduler", "clear"]).ok();
    assert_eq!(town.json(["scheduler", "status"])["queued_total"], 0);
    assert_eq!(town.state_of("gt-a"), "open", "the work bead is untouched");
}

#[test]
fn context_fields_are_all_in_the_record() {
    let town = gastown();
    town.set("scheduler.max_polecats", "5");
    town.set("worker.agent", r#"["cat"]"#);
    town.run(["bead", "add", "full", "--id", "gt-full"]).ok();
    town.run([
        "sling",
        "gt-full",
        "gastown",
        "--args",
        "be careful",
        "--merge",
        "direct",
        "--base-branch",
        "dev",
        "--account",
        "main",
        "--agent",
        "claude",
        "--no-merge",
        "--owned",
        "--ralph",
    ])
    .ok();
    let context = town.json(["show", "gt-full"])["context"].clone();
    let expected = [
        ("version", "1"),
        ("work_bead_id", "\"gt-full\""),
        ("target_rig", "\"gastown\""),
        ("formula", "\"mol-polecat-work\""),
        ("args", "\"be careful\""),
        ("merge", "\"direct\""),
        ("base_branch", "\"dev\""),
        ("no_merge", "true"),
        ("account", "\"main\""),
        ("agent", "\"claude\""),
        ("owned", "true"),
        ("mode", "\"ralph\""),
        ("dispatch_failures", "0"),
    ];
    for (field, value) in expected {
        assert_eq!(context[field].to_string(), value, "{field} in {context}");
    }
    assert!(context["enqueued_at"].as_str().is_some_and(|t| t.ends_with('Z')));
    assert!(context["convoy"].as_str().is_some_and(|c| c.starts_with("hq-cv-")));
}

#[test]
fn circuit_breaker_opens_after_three_failed_starts_and_retry_rearms() {
    let town = gastown();
    town.set("scheduler.max_polecats", "5");
    town.run(["bead", "add", "broken", "--id", "gt-x", "--", "/no/such/program"]).ok();
    town.run(["sling", "gt-x", "gastown"]).ok();
    for failures in 1..=3 {
        let run = town.json(["scheduler", "run"]);
        assert_eq!(run["failed"][0]["id"], "gt-x", "{run}");
        let context = town.json(["show", "gt-x"])["context"].clone();
        assert_eq!(context["dispatch_failures"], failures);
        assert!(
            context["last_failure"].as_str().is_some_and(|t| t.contains("/no/such/program")),
            "{context}"
        );
    }
    assert_eq!(town.state_of("gt-x"), "circuit-broken");
    assert_eq!(town.json(["show", "gt-x"])["context"]["close_reason"], "circuit-broken");
    assert_eq!(town.json(["scheduler", "status"])["circuit_broken"], 1);
    town.run(["scheduler", "retry", "gt-x"]).ok();
    let context = town.json(["show", "gt-x"])["context"].clone();
    assert_eq!((&context["status"], &context["dispatch_failures"]), (&"open".into(), &0.into()));
}

#[test]
fn spawn_delay_and_batch_size_are_honoured() {
    let town = gastown();
    town.set("scheduler.max_polecats", "5");
    town.set("scheduler.batch_size", "2");
    town.set("scheduler.spawn_delay", "200ms");
    for id in ["gt-a", "gt-b", "gt-c"] {
        true_bead(&town, id, &[]);
    }
    town.run(["sling", "gt-a", "gt-b", "gt-c", "gastown"]).ok();
    let run = town.json(["scheduler", "run"]);
    assert_eq!(run["dispatched"].as_array().map(Vec::len), Some(2));
    assert_eq!((run["skipped"].as_u64(), run["reason"].as_str()), (Some(1), Some("batch")));
}

#[test]
fn daemon_entry_point_timeout_is_five_minutes() {
    let town = gastown();
    assert_eq!(town.json(["config", "get", "limits.spawn_timeout"])["value"], "5m");
}

#[test]
fn daemon_entry_point_environment_identifies_the_dispatch() {
    let mut town = gastown();
    town.set("scheduler.max_polecats", "5");
    town.shell_bead("gt-env", "echo \"$YM_ACTOR\"");
    town.run(["sling", "gt-env", "gastown"]).ok();
    town.start_daemon();
    town.run(["wait", "gt-env"]).ok();
    assert_eq!(town.run(["logs", "gt-env"]).ok().stdout, "ym/gt-env@1\n");
}

#[test]
fn daemon_entry_point_gating_deferred_work_starts_only_with_a_daemon_or_a_run() {
    let mut town = gastown();
    town.set("scheduler.max_polecats", "5");
    true_bead(&town, "gt-gated", &[]);
    town.run(["sling", "gt-gated", "gastown"]).ok();
    assert_eq!(town.state_of("gt-gated"), "queued");
    assert_eq!(town.run(["wait", "gt-gated"]).code, 1, "nothing starts it by itself");
    town.start_daemon();
    town.run(["wait", "gt-gated"]).ok();
}
