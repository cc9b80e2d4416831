//! Secrets: what is not to be stored is in no file, no log, no event, no answer and no command line.

use std::path::Path;

use serde_json::json;
use yard_tests::http::{Http, Peer};
use yard_tests::town::{Town, command_line, wait_until};

const IN_ENVIRONMENT: &str = "canary-environment-5f1c";
const IN_VARIABLE: &str = "canary-variable-77aa";
const IN_HEADER: &str = "canary-header-19d4-long-enough-for-a-token";
const ON_STDIN: &str = "canary-instructions-c0de";

/// The files below a directory that hold a text.
fn holding(directory: &Path, text: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            holding(&path, text, found);
        } else if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
}

fn files_with(town: &Town, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    holding(town.root(), text, &mut found);
    let inside = |path: &String| path.trim_start_matches(&format!("{}/", town.root().display())).to_owned();
    let mut found: Vec<String> = found.iter().map(inside).collect();
    found.sort();
    found
}

#[test]
fn secrets_stay_where_they_belong() {
    let peer = Peer::start(|_| (500, "no".to_owned()));
    let mut town = Town::here();
    town.set("http.listen", "127.0.0.1:0");
    town.set("http.webhook_allow", &json!([peer.host()]).to_string());
    town.set("executor.http.base_url", &format!("http://{}", peer.host()));
    town.set("retry.crash.max_attempts", "1");
    town.set("alerts.command", &json!(["sh", "-c", "cat > /dev/null; exit 1"]).to_string());
    let formulas = town.root().join(".yardmaster/formulas");
    let formula = "[vars.token]\n[[steps]]\nid = 'w'\nshell = 'test -n \"$YM_VAR_TOKEN\" && test -n \"$CANARY\" && exit 3'\n";
    std::fs::write(formulas.join("secret.toml"), formula).expect("written");
    let daemon = town.start_daemon_with(&[("CANARY", IN_ENVIRONMENT), ("RUST_LOG", "trace")]);
    let http = Http::of(&town);
    let token = http.authorization().trim_start_matches("Bearer ").to_owned();
    // Work that fails, work that cannot start, a webhook that is refused, a caller with the wrong token, bad requests.
    town.run(["bead", "add", "t", "--id", "y-1"]).ok();
    town.run(["sling", "y-1", "--formula", "secret", "--var", &format!("token={IN_VARIABLE}")]).ok();
    town.run(["add", "--id", "y-2", "--", "/no/such/program"]);
    town.shell_bead("y-3", "exec sleep 60");
    town.run_with_input(["sling", "y-3", "--stdin"], ON_STDIN.as_bytes()).ok();
    let callback = format!("http://{}/hook", peer.host());
    let task = json!({"agentId": "a", "action": "click", "tabId": "t", "callbackUrl": callback});
    assert_eq!(http.send("POST", "/tasks", &[], task.to_string().as_bytes()).status, 202);
    let wrong = http.with(Some(&format!("Bearer {IN_HEADER}")));
    let mut answers = Vec::new();
    for (method, path) in [
        ("GET", "/tasks"),
        ("POST", "/tasks"),
        ("GET", "/metrics"),
        ("GET", "/nowhere"),
        ("GET", "/tasks/%00"),
    ] {
        answers.push(String::from_utf8_lossy(&wrong.send(method, path, &[], b"{").body).into_owned());
        answers.push(String::from_utf8_lossy(&http.send(method, path, &[], b"{").body).into_owned());
    }
    town.await_state("y-1", "failed");
    town.await_state("y-3", "running");
    wait_until("a webhook was tried", || {
        town.events(Some("webhook.failed")).len() + town.events(Some("task.ended")).len() >= 2
    });
    let session =
        town.json(["http", "token", "--agent", "a"])["session"].as_str().unwrap_or_default().to_owned();
    let webhook =
        std::fs::read_to_string(town.root().join(".yardmaster/webhook-secret")).expect("it was made");
    for words in [
        &["--json", "status"][..],
        &["--json", "events"],
        &["--json", "show", "y-3"],
        &["--json", "config", "list"],
        &["doctor"],
        &["alerts"],
    ] {
        let ran = town.run(words);
        answers.push(ran.stdout + &ran.stderr);
    }
    for pid in town.processes() {
        answers.push(command_line(pid));
    }
    answers.push(command_line(daemon));
    for secret in [IN_ENVIRONMENT, IN_HEADER, &token, &session, webhook.trim()] {
        assert!(secret.len() > 15, "{secret:?}");
        let told = answers.iter().find(|answer| answer.contains(secret));
        assert!(told.is_none(), "{secret} was told: {told:?}");
    }
    // With everything at rest, and once more after the end, when nothing is in a log that waits to be moved.
    for _ in 0..2 {
        assert_eq!(files_with(&town, IN_ENVIRONMENT), Vec::<String>::new());
        assert_eq!(files_with(&town, IN_HEADER), Vec::<String>::new());
        assert_eq!(files_with(&town, &session), Vec::<String>::new());
        assert_eq!(files_with(&town, &token), [".yardmaster/http-token"]);
        assert_eq!(files_with(&town, webhook.trim()), [".yardmaster/webhook-secret"]);
        // What belongs to a sling is kept with it, as the manual says, and nowhere else.
        for kept in [IN_VARIABLE, ON_STDIN] {
            let files = files_with(&town, kept);
            assert!(!files.is_empty(), "{kept} is part of the sling");
            assert!(files.iter().all(|file| file.starts_with(".yardmaster/journal.db")), "{kept}: {files:?}");
        }
        if town.daemon_pid().is_some() {
            town.stop_daemon();
        }
    }
}
