//! The presets of agents, with stand-ins that take the arguments of the real command lines and speak as they do.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use yard_tests::town::{Town, wait_until};

/// The agents, what each says a good run used, and whether it has sessions.
const AGENTS: [(&str, Option<f64>, bool); 5] = [
    ("claude", Some(0.25), true),
    ("codex", None, true),
    ("gemini", None, true),
    ("opencode", Some(0.25), true),
    ("aider", Some(0.25), false),
];

const STAND_IN: &str = include_str!("../../data/agents/stand_in.py");

/// Quotes, newlines, backticks, a command and a variable.
const NASTY: &str =
    "say \"hi\", it's `uname` $(touch pwned) $HOME \\ %s {{title}}\n\n  - a list\n\ttabs; ünïcode 🚂";

/// A town whose workers find the stand-ins before anything else.
fn town() -> Town {
    let mut town = Town::new();
    town.set("scheduler.max_polecats", "1");
    town.set("retry.unavailable.backoff", "[\"10ms\"]");
    town.set("retry.crash.max_attempts", "1");
    let bin = town.root().join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    for (name, ..) in AGENTS {
        std::fs::write(bin.join(name), STAND_IN).expect("a script");
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).expect("executable");
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    town.start_daemon_with(&[("PATH", &path)]);
    town
}

fn text(town: &Town, name: &str) -> String {
    std::fs::read_to_string(town.root().join(name)).unwrap_or_default()
}

fn mood(town: &Town, mood: &str) {
    std::fs::write(town.root().join("mood"), mood).expect("a mood");
}

/// Makes a bead with a description of any length.
fn bead(town: &Town, id: &str, title: &str, description: &str) {
    let line = json!({"id": id, "title": title, "description": description, "status": "open", "priority": 2,
        "issue_type": "task", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"});
    let path = town.root().join("import.jsonl");
    std::fs::write(&path, format!("{line}\n")).expect("a file");
    town.run(["bead", "import", path.to_str().expect("utf-8")]).ok();
}

fn dispatch(town: &Town, bead: &str, nth: usize) -> Value {
    town.json(["show", bead])["dispatches"][nth].clone()
}

#[test]
fn a_prompt_reaches_every_agent_intact_and_its_figures_come_back() {
    let town = town();
    let long = format!("{NASTY}\n{}\nthe end", "0123456789 'abc' \"def\"\n".repeat(9000));
    assert!(long.len() > 200_000);
    for (name, cost, sessions) in AGENTS {
        let (id, title) = (format!("y-{name}"), format!("--help `{name}` \"quoted\""));
        bead(&town, &id, &title, &long);
        town.run(["sling", &id, "--no-convoy", "--agent", name]).ok();
        town.run(["wait", &id]).ok();
        assert_eq!(text(&town, "task"), format!("{title} ({id})\n\n{long}\n"), "{name}");
        let ran = dispatch(&town, &id, 0);
        assert_eq!(ran["tokens"], 120, "{name}");
        assert_eq!(ran["cost"].as_f64(), cost, "{name}");
        let session = ran["session"].as_str().map(|session| session.split('/').next() == Some(name));
        assert_eq!(session, sessions.then_some(true), "{name}");
        assert!(!town.root().join("pwned").exists());
    }
}

#[test]
fn a_refused_service_is_no_crash_and_the_session_goes_on() {
    let town = town();
    for (name, _, sessions) in AGENTS {
        let id = format!("y-{name}");
        let _ = std::fs::remove_file(town.root().join("resumed"));
        mood(&town, "limited");
        bead(&town, &id, name, "mend it");
        town.set("worker.agent", name);
        town.run(["sling", &id, "--no-convoy"]).ok();
        town.run(["wait", &id]).ok();
        let first = dispatch(&town, &id, 0);
        assert_eq!(first["ended"]["outcome"]["category"], "unavailable", "{name}: {first}");
        let session =
            first["session"].as_str().map_or("-", |session| session.split_once('/').expect("whose").1);
        assert_eq!(session != "-", sessions, "{name}");
        assert_eq!(text(&town, "resumed"), format!("-\n{session}\n"), "{name}");
        assert_eq!(dispatch(&town, &id, 1)["phase"], "succeeded", "{name}");
    }
}

#[test]
fn a_refusal_rests_the_account_and_talk_of_limits_does_not() {
    let town = town();
    for (name, ..) in AGENTS {
        town.set(&format!("account.{name}.cooldown"), "1h");
        for (word, category) in [("crash", "crash"), ("limited", "unavailable")] {
            mood(&town, word);
            let id = format!("y-{name}-{word}");
            bead(&town, &id, "the rate limit", "test the rate limit (429)");
            town.run(["sling", &id, "--no-convoy", "--agent", name, "--account", name]).ok();
            wait_until("it has ended", || !dispatch(&town, &id, 0)["ended"].is_null());
            let ended = dispatch(&town, &id, 0)["ended"]["outcome"].clone();
            assert_eq!(ended["category"], category, "{name}: {ended}");
            let resting = town.json(["status"])["resting_accounts"].as_array().expect("a list").clone();
            let rests = resting.iter().any(|account| account["account"] == name);
            assert_eq!(rests, category == "unavailable", "{name}");
        }
        town.run(["cancel", &format!("y-{name}-limited")]).ok();
    }
}

#[test]
fn an_argument_holds_128_kib_and_a_longer_prompt_is_refused_when_slung() {
    let town = town();
    town.set(
        "worker.agent",
        "[\"sh\", \"-c\", \"printf %s \\\"$1\\\" > \\\"$YM_TOWN/task\\\"\", \"sh\", \"{{prompt}}\"]",
    );
    bead(&town, "y-short", "--short", NASTY);
    bead(&town, "y-long", "long", &"x".repeat(200_000));
    let slung = town.run(["--json", "sling", "y-long", "y-short", "--no-convoy"]).ok().json();
    assert_eq!(slung["results"][0]["action"], "refused");
    let message = slung["results"][0]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("128 KiB"), "{message}");
    town.run(["wait", "y-short"]).ok();
    assert_eq!(text(&town, "task"), format!("--short (y-short)\n\n{NASTY}\n"));
}

#[test]
fn a_command_of_several_words_stays_as_it_is_and_an_unknown_one_reads_standard_input() {
    let town = town();
    let cases = [
        (json!(["codex", "exec", "--json", "-m", "o3"]), json!([["exec", "--json", "-m", "o3", "-"]])),
        (json!(["aider", "--model", "x"]), json!([["--model", "x", "--message-file", "/dev/stdin"]])),
    ];
    for (nth, (agent, calls)) in cases.into_iter().enumerate() {
        let _ = std::fs::remove_file(town.root().join("calls"));
        let id = format!("y-{nth}");
        bead(&town, &id, "mend", "it");
        town.set("worker.agent", &agent.to_string());
        town.run(["sling", &id, "--no-convoy"]).ok();
        town.run(["wait", &id]).ok();
        let made: Vec<Value> =
            text(&town, "calls").lines().map(|line| serde_json::from_str(line).expect("json")).collect();
        assert_eq!(json!(made), calls);
        assert_eq!(text(&town, "task"), format!("mend ({id})\n\nit\n"));
    }
    bead(&town, "y-plain", "plain", NASTY);
    town.run(["sling", "y-plain", "--no-convoy", "--agent", "cat"]).ok();
    town.run(["wait", "y-plain"]).ok();
    assert_eq!(town.run(["logs", "y-plain"]).ok().stdout, format!("plain (y-plain)\n\n{NASTY}\n"));
}

#[test]
fn a_towns_own_presets_change_and_add_and_a_bad_file_is_refused() {
    let town = town();
    let own = town.root().join(".yardmaster/agents.toml");
    let mine = "[mine]\nstart = ['sh', '-c', 'cat \"$1\"; echo \"SORRY full\"; exit 3', 'sh']\nprompt = ['{{prompt_file}}']\n\
        unavailable = [{ starts = ['sorry'] }]\n[claude]\nstart = ['claude', '-p', '--output-format', 'stream-json', '--verbose', '--model', 'opus']\n";
    std::fs::write(&own, mine).expect("a file");
    bead(&town, "y-opus", "opus", "it");
    town.run(["sling", "y-opus", "--no-convoy", "--agent", "claude"]).ok();
    town.run(["wait", "y-opus"]).ok();
    assert!(text(&town, "calls").contains("\"opus\""));
    town.set("retry.unavailable.backoff", "[\"1h\"]");
    bead(&town, "y-mine", "mine", NASTY);
    town.run(["sling", "y-mine", "--no-convoy", "--agent", "mine"]).ok();
    wait_until("it has ended", || !dispatch(&town, "y-mine", 0)["ended"].is_null());
    let outcome = dispatch(&town, "y-mine", 0)["ended"]["outcome"].clone();
    assert_eq!(
        (&outcome["category"], &outcome["message"]),
        (&json!("unavailable"), &json!("SORRY full (exit 3)"))
    );
    std::fs::write(&own, "[claude]\nstrat = ['x']\n").expect("a file");
    bead(&town, "y-bad", "bad", "it");
    let slung = town.run(["--json", "sling", "y-bad", "--no-convoy", "--agent", "claude"]).json();
    let message = slung["results"][0]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("agents.toml") && message.contains("strat"), "{message}");
}

#[test]
fn what_an_agent_said_of_its_service_counts_after_the_daemon_died() {
    let mut town = town();
    let own = "[slow]\nstart = ['sh', '-c', 'while [ ! -e \"$YM_TOWN/go\" ]; do sleep 0.02; done; echo SORRY; exit 1']\n\
        unavailable = [{ starts = ['SORRY'] }]\n";
    std::fs::write(town.root().join(".yardmaster/agents.toml"), own).expect("a file");
    town.set("retry.unavailable.backoff", "[\"1h\"]");
    bead(&town, "y-slow", "slow", "it");
    town.run(["sling", "y-slow", "--no-convoy", "--agent", "slow"]).ok();
    wait_until("it runs", || town.state_of("y-slow") == "running");
    town.kill_daemon();
    std::fs::write(town.root().join("go"), "").expect("a file");
    wait_until("its end is recorded", || {
        let claim = text(&town, ".yardmaster/run/y-slow@1.claim");
        claim.contains("\"exit\"")
    });
    town.start_daemon();
    wait_until("it has ended", || !dispatch(&town, "y-slow", 0)["ended"].is_null());
    assert_eq!(dispatch(&town, "y-slow", 0)["ended"]["outcome"]["category"], "unavailable");
}

#[test]
fn doctor_lists_the_agents_and_where_their_programs_are() {
    let town = town();
    let bin = town.root().join("bin");
    std::fs::remove_file(bin.join("aider")).expect("removed");
    let doctor = |town: &Town| {
        let mut command = town.command(["--json", "doctor"]);
        command.env("PATH", &bin);
        let output = command.output().expect("ym can be run");
        serde_json::from_slice::<Value>(&output.stdout).expect("json")
    };
    let of = |view: &Value, name: &str| {
        view["agents"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|agent| agent["name"] == name)
            .cloned()
            .expect("listed")
    };
    let view = doctor(&town);
    assert_eq!(of(&view, "claude")["path"], json!(bin.join("claude")));
    assert_eq!(of(&view, "claude")["start"][1], "-p");
    assert_eq!(of(&view, "aider")["path"], Value::Null);
    let words = |view: &Value| {
        let checks = view["checks"].as_array().expect("a list");
        checks.iter().find(|check| check["name"] == "agents").cloned().expect("a check")
    };
    assert!(words(&view)["message"].as_str().unwrap_or_default().contains("ym config set worker.agent"));
    town.set("worker.agent", "aider");
    assert_eq!(words(&doctor(&town))["status"], "warn");
    std::fs::write(town.root().join(".yardmaster/agents.toml"), "[claude]\nx = 1\n").expect("a file");
    assert_eq!(words(&doctor(&town))["status"], "fail");
}
