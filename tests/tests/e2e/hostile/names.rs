//! Ids and names: one grammar at every door. What it refuses changes nothing, wherever it is said.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};
use yard_engine::{
    AccountName, AgentName, AlertId, BeadId, ContextId, ConvoyId, DispatchId, FormulaName, RigName,
};
use yard_tests::dice::Dice;
use yard_tests::http::Http;
use yard_tests::town::{Town, wait_until};

/// Names nobody may have: leading elsewhere, commanding, looking like others, being nothing.
const BAD: [&str; 24] = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "-x",
    "--force",
    ".hidden",
    "_x",
    "a b",
    "a\tb",
    "a\nb",
    "a\u{1b}[31mb",
    "a\0b",
    "а-1",
    "ｙ-1",
    "y\u{200b}-1",
    "y-1\u{202e}",
    "$(touch canary)",
    "`touch canary`",
    "%2e%2e%2f",
    "y-1;x",
];

/// The grammar, told once more.
fn fits(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_' || c == '-';
    text.len() <= 128 && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(allowed)
}

/// A name made of pieces that were chosen to do harm.
fn made(dice: &mut Dice) -> String {
    const PIECES: [&str; 34] = [
        "a", "y-1", "Z", "0", "9", "-", "_", ".", "..", "/", "\\", " ", "\0", "\n", "\t", "\u{7f}", "\u{1b}",
        "@", "@1", ":", "~", "%", "$", "`", "'", "\"", "é", "а", "ｙ", "\u{200b}", "\u{202e}", "\u{fdfa}",
        "🚂", "con",
    ];
    let length = if dice.below(20) == 0 { 120 + dice.below(20) } else { dice.below(6) };
    (0..length).map(|_| PIECES[dice.below(PIECES.len() as u64) as usize]).collect()
}

#[test]
fn ten_thousand_names_meet_one_grammar() {
    let mut dice = Dice::seeded(9);
    let mut refused = 0;
    for _ in 0..10_000 {
        let text = made(&mut dice);
        let said = [
            BeadId::parse(&text).is_ok(),
            ContextId::parse(&text).is_ok(),
            ConvoyId::parse(&text).is_ok(),
            AlertId::parse(&text).is_ok(),
            AgentName::parse(&text).is_ok(),
            RigName::parse(&text).is_ok(),
            FormulaName::parse(&text).is_ok(),
            AccountName::parse(&text).is_ok(),
            DispatchId::parse(&format!("{text}@1")).is_ok(),
            serde_json::from_value::<RigName>(json!(text)).is_ok(),
        ];
        assert!(said.iter().all(|taken| *taken == fits(&text)), "{text:?}: {said:?}");
        if fits(&text) {
            let path = Path::new("/logs").join(format!("{text}@1.log"));
            assert_eq!(path.parent(), Some(Path::new("/logs")), "{text:?} leads elsewhere");
        } else {
            refused += 1;
        }
    }
    assert!(
        (5_000..9_900).contains(&refused),
        "{refused} of 10000 refused: the names are too tame or too wild"
    );
}

/// Everything that takes an id or a name over the socket, with this one in its place.
fn asks(name: &str) -> Vec<Value> {
    let commands = [
        json!({"do": "rig-add", "rig": {"name": name, "prefix": "api", "path": "api"}}),
        json!({"do": "rig-add", "rig": {"name": "api", "prefix": name, "path": "api"}}),
        json!({"do": "rig-add", "rig": {"name": "api", "prefix": "api", "path": "api", "formula": name}}),
        json!({"do": "rig-remove", "name": name}),
        json!({"do": "rig-switch", "name": name, "switch": "park"}),
        json!({"do": "bead-add", "bead": {"title": "t", "id": name}}),
        json!({"do": "bead-add", "bead": {"title": "t", "rig": name}}),
        json!({"do": "bead-update", "id": name, "change": {"title": "x"}}),
        json!({"do": "bead-close", "ids": [name], "reason": null}),
        json!({"do": "bead-reopen", "id": name}),
        json!({"do": "dependency-add", "id": name, "on": "y-1", "kind": "blocks"}),
        json!({"do": "dependency-add", "id": "y-1", "on": name, "kind": "blocks"}),
        json!({"do": "dependency-remove", "id": name, "on": "y-1"}),
        json!({"do": "bead-import", "beads": [{"title": "t", "id": name}]}),
        json!({"do": "add", "items": [{"argv": ["true"], "id": name}]}),
        json!({"do": "add", "items": [{"argv": ["true"], "after": [name]}]}),
        json!({"do": "sling", "ids": [name]}),
        json!({"do": "sling", "ids": ["y-1"], "rig": name}),
        json!({"do": "sling", "ids": ["y-1"], "formula": name}),
        json!({"do": "sling", "ids": ["y-1"], "account": name}),
        json!({"do": "sling", "ids": ["y-1"], "assign": {"agent": name}}),
        json!({"do": "sling", "ids": ["y-1"], "executor": format!("{name}!")}),
        json!({"do": "clear", "bead": name}),
        json!({"do": "restore", "contexts": [name]}),
        json!({"do": "withdraw", "contexts": [name], "verdict": null}),
        json!({"do": "retry", "bead": name}),
        json!({"do": "hold", "id": name, "held": true}),
        json!({"do": "priority", "id": name, "priority": 5}),
        json!({"do": "cancel", "id": name, "at_once": false}),
        json!({"do": "preempt", "id": name, "candidate": null}),
        json!({"do": "preempt", "id": "y-1", "candidate": name}),
        json!({"do": "worker", "dispatch": name, "says": {"progress": {"text": "x"}}}),
        json!({"do": "worker", "dispatch": format!("{name}@1"), "says": {"progress": {"text": "x"}}}),
        json!({"do": "convoy-create", "title": "t", "beads": [name]}),
        json!({"do": "convoy-add", "id": name, "beads": ["y-1"]}),
        json!({"do": "convoy-stage", "targets": [name], "title": null, "launch": false}),
        json!({"do": "convoy-launch", "targets": [name], "force": true}),
        json!({"do": "convoy-check", "id": name, "dry_run": false}),
        json!({"do": "convoy-close", "id": name, "reason": null, "force": true}),
        json!({"do": "convoy-land", "id": name, "force": true, "dry_run": false}),
        json!({"do": "convoy-watch", "id": name, "watcher": "me", "wants": true}),
        json!({"do": "convoy-unstage", "id": name}),
        json!({"do": "convoy-reopen", "id": name}),
        json!({"do": "alert-ack", "id": name}),
        json!({"do": "agent-register", "name": name, "program": "p"}),
        json!({"do": "agent-retire", "agent": name}),
        json!({"do": "agent-heartbeat", "agent": name}),
        json!({"do": "agent-status", "agent": name, "status": "idle", "note": null}),
        json!({"do": "agent-inbox", "agent": name, "keep": false}),
        json!({"do": "agent-claim", "agent": name, "bead": "y-1"}),
        json!({"do": "agent-claim", "agent": "fern", "bead": name}),
        json!({"do": "agent-ends", "agent": name, "bead": "y-1", "token": null, "how": "done"}),
        json!({"do": "task-submit", "tasks": [{"agent": "a", "action": "x", "priority": 0, "max_attempts": 1, "formula": name}]}),
        json!({"do": "task-submit", "tasks": [{"agent": "a", "action": "x", "priority": 0, "max_attempts": 1, "rig": name}]}),
        json!({"do": "task-submit", "tasks": [{"agent": "a", "action": "x", "priority": 0, "max_attempts": 1, "after": [name]}]}),
        json!({"do": "task-cancel", "id": name, "agent": null}),
        json!({"do": "configure", "key": format!("rig.{name}.formula"), "value": "x"}),
        json!({"do": "configure", "key": format!("account.{name}.max_polecats"), "value": "1"}),
        json!({"do": "configure", "key": "worker.formula", "value": format!("{name}!")}),
    ];
    let others = [
        json!({"ask": "show", "id": name}),
        json!({"ask": "why", "id": name}),
        json!({"ask": "log-of", "id": name}),
        json!({"ask": "convoy-status", "id": name}),
        json!({"ask": "forecast", "convoy": name, "max_polecats": null}),
        json!({"ask": "agent-why", "agent": name}),
        json!({"ask": "agent-wait", "agent": name, "keep": true, "timeout_ms": 1}),
        json!({"ask": "worktree-prune", "ids": [name], "all": false, "branches": false, "dry_run": false}),
        json!({"ask": "task", "id": name, "agent": null}),
        json!({"ask": "wait", "ids": [name], "all": false, "timeout_ms": 1, "summary": false}),
        json!({"ask": "poke", "rig": name}),
    ];
    commands.into_iter().map(|command| json!({"ask": "command", "command": command})).chain(others).collect()
}

/// Asks over a connection of its own, and gives the last line of the answer.
fn answered(socket: &Path, ask: &Value) -> Value {
    let stream = UnixStream::connect(socket).expect("a daemon listens");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a hello");
    let request = json!({"actor": "tester", "ask": ask}).to_string() + "\n";
    reader.get_mut().write_all(request.as_bytes()).expect("it reads");
    line.clear();
    reader.read_line(&mut line).expect("an answer");
    serde_json::from_str(&line).expect("JSON")
}

/// Every file of the town, and how long its log is.
fn shape(town: &Town) -> (BTreeSet<String>, usize) {
    fn walk(directory: &Path, all: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            all.insert(entry.path().display().to_string());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                walk(&entry.path(), all);
            }
        }
    }
    let mut files = BTreeSet::new();
    walk(town.root().parent().expect("a directory"), &mut files);
    (files, town.events(None).len())
}

#[test]
fn a_bad_name_changes_nothing_whatever_is_asked_over_the_socket() {
    let mut town = Town::new();
    town.shell_bead("y-1", "true");
    town.run(["agent", "register", "fern", "--program", "p"]).ok();
    town.start_daemon();
    let socket = town.root().join(".yardmaster/ym.sock");
    let before = shape(&town);
    let mut dice = Dice::seeded(10);
    let generated = std::iter::repeat_with(|| made(&mut dice)).filter(|name| !fits(name)).take(12);
    let names: Vec<String> = BAD.iter().map(|name| (*name).to_owned()).chain(generated).collect();
    let mut asked = 0;
    for name in names {
        assert!(!fits(&name), "{name:?}");
        for ask in asks(&name) {
            let answer = answered(&socket, &ask);
            let taken = answer["ok"]["document"].as_object().is_some_and(|document| {
                document.get("id").is_some_and(|id| id == &json!(name))
                    || document.get("changed").is_some_and(|changed| changed == &json!(true))
            });
            assert!(!taken, "{ask} was taken: {answer}");
            asked += 1;
        }
    }
    assert!(asked > 2_000, "{asked}");
    assert_eq!(shape(&town), before, "a bad name left a trace");
    town.run(["status"]).ok();
}

#[test]
fn a_bad_name_is_refused_by_every_command() {
    let mut town = Town::new();
    town.shell_bead("y-1", "true");
    town.run(["agent", "register", "fern", "--program", "p"]).ok();
    town.start_daemon();
    let before = shape(&town);
    let commands: [&[&str]; 48] = [
        &["bead", "add", "t", "--id=NAME"],
        &["bead", "add", "t", "--rig=NAME"],
        &["bead", "add", "t", "--needs=NAME"],
        &["bead", "add", "t", "--parent=NAME"],
        &["bead", "show", "--", "NAME"],
        &["bead", "close", "--", "NAME"],
        &["bead", "reopen", "--", "NAME"],
        &["bead", "update", "--title=x", "--", "NAME"],
        &["bead", "dep", "add", "--", "NAME", "y-1"],
        &["bead", "dep", "add", "--", "y-1", "NAME"],
        &["bead", "dep", "remove", "--", "NAME", "y-1"],
        &["add", "--id=NAME", "--", "true"],
        &["add", "--after=NAME", "--", "true"],
        &["sling", "--", "NAME"],
        &["sling", "--", "y-1", "NAME"],
        &["sling", "y-1", "--formula=NAME"],
        &["sling", "y-1", "--account=NAME"],
        &["sling", "y-1", "--assign=NAME!"],
        &["sling", "y-1", "--executor=NAME!"],
        &["scheduler", "clear", "--bead=NAME"],
        &["scheduler", "retry", "--", "NAME"],
        &["convoy", "stage", "--", "NAME"],
        &["convoy", "launch", "--", "NAME"],
        &["convoy", "create", "t", "--", "NAME"],
        &["convoy", "create", "t", "--from-epic=NAME"],
        &["convoy", "add", "--", "NAME", "y-1"],
        &["convoy", "status", "--", "NAME"],
        &["convoy", "close", "--", "NAME"],
        &["convoy", "land", "--", "NAME"],
        &["why", "--", "NAME"],
        &["show", "--", "NAME"],
        &["logs", "--", "NAME"],
        &["attach", "--", "NAME"],
        &["cancel", "--", "NAME"],
        &["kill", "--", "NAME"],
        &["preempt", "--", "NAME"],
        &["hold", "--", "NAME"],
        &["unhold", "--", "NAME"],
        &["forecast", "--", "NAME"],
        &["alerts", "--ack=NAME"],
        &["poke", "--", "NAME"],
        &["agent", "register", "--program=p", "--", "NAME"],
        &["agent", "inbox", "--as=NAME"],
        &["agent", "claim", "y-1", "--as=NAME"],
        &["agent", "claim", "--as=fern", "--", "NAME"],
        &["rig", "add", "--prefix=api", "--", "NAME"],
        &["rig", "add", "api", "--prefix=NAME"],
        &["rig", "remove", "--", "NAME"],
    ];
    for name in ["../../etc/passwd", "a\u{1b}[31mb", "ｙ-1", "--force"] {
        for words in commands {
            let words = words.iter().map(|word| word.replace("NAME", name));
            let ran = town.run(words.clone());
            let words: Vec<String> = words.collect();
            assert!(
                ran.code == 1 || ran.code == 2,
                "{words:?} gave {}: {}{}",
                ran.code,
                ran.stdout,
                ran.stderr
            );
            assert!(
                !super::has_controls(&ran.stdout) && !super::has_controls(&ran.stderr),
                "{words:?}: {ran:?}"
            );
        }
    }
    assert_eq!(shape(&town), before, "a bad name left a trace");
}

#[test]
fn a_bad_name_finds_nothing_over_http() {
    let mut town = Town::new();
    town.set("http.listen", "127.0.0.1:0");
    town.start_daemon();
    let http = Http::of(&town);
    let before = shape(&town);
    for name in BAD {
        let encoded = name.bytes().fold(String::new(), |text, byte| format!("{text}%{byte:02X}"));
        for (method, path) in [
            ("GET", format!("/tasks/{encoded}")),
            ("POST", format!("/tasks/{encoded}/cancel")),
            ("GET", format!("/agents/{encoded}/inbox")),
            ("POST", format!("/agents/{encoded}/heartbeat")),
            ("PUT", format!("/agents/{encoded}/claims/y-1")),
            ("PUT", format!("/agents/fern/claims/{encoded}")),
            ("GET", format!("/tasks?cursor={encoded}&limit={encoded}")),
        ] {
            let answer = http.send(method, &path, &[], b"");
            assert!((400..500).contains(&answer.status), "{method} {path}: {}", answer.status);
        }
        for body in [
            json!({"name": name, "program": "p"}),
            json!({"agentId": "a", "action": "x", "formula": format!("{name}!")}),
        ] {
            let path = if body.get("name").is_some() { "/agents" } else { "/tasks" };
            let answer = http.send("POST", path, &[], body.to_string().as_bytes());
            assert!((400..500).contains(&answer.status), "{body}: {}", answer.status);
        }
    }
    assert_eq!(shape(&town), before, "a bad name left a trace");
}

#[test]
fn a_bad_name_in_a_workspace_is_told_and_the_others_are_read() {
    let mut town = Town::new();
    let shop = town.root().join("shop");
    std::fs::create_dir_all(&shop).expect("a directory");
    let lines = BAD.iter().map(|name| json!({"id": name, "title": "bad"}).to_string());
    let good = json!({"id": "s-1", "title": "good", "dependencies": [{"depends_on_id": "../../x", "type": "blocks"}]});
    let text: Vec<String> = lines.chain([good.to_string()]).collect();
    std::fs::write(shop.join("beads.jsonl"), text.join("\n")).expect("written");
    let [path, beads] = [shop.clone(), shop.join("beads.jsonl")].map(|path| path.display().to_string());
    town.start_daemon();
    town.run(["rig", "add", "shop", "--prefix", "s", "--path", &path, "--beads", &beads]).ok();
    wait_until("the good bead is there", || town.run(["bead", "show", "s-1"]).code == 0);
    let beads = town.json(["bead", "list"])["beads"].clone();
    assert_eq!(beads.as_array().map(Vec::len), Some(1), "{beads}");
    assert_eq!(
        town.reasons_of("s-1"),
        ["missing-dependency"],
        "what it waits for has no usable name, and still blocks"
    );
    wait_until("it is told", || town.run(["alerts"]).ok().stdout.contains("cannot be read"));
    assert!(!super::has_controls(&town.run(["alerts"]).ok().stdout));
}
