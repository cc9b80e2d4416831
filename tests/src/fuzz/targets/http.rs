//! The HTTP API without its sockets: bodies, addresses and headers.

use yard_daemon::fuzzing::{authorized, task_body, task_list};
use yard_engine::Command;

use super::commands::Town;

pub(super) const WORDS: &[&str] = &[
    r#"{"agentId":"a","action":"click"}"#,
    r#""params":{"x":1}"#,
    r#""callbackUrl":"http://93.184.216.34/""#,
    r#""deadline":"2026-11-16T09:30:00Z""#,
    r#""formula":"demo""#,
    r#""rig":"yard""#,
    r#""after":["y-1"]"#,
    r#""maxAttempts":3"#,
    r#""priority":3.0"#,
    r#""tabId":"t""#,
    "/tasks?agentId=a&state=queued,running&limit=5&cursor=y-1",
    "Bearer ",
    "Session ",
    "http://127.0.0.1/",
    "http://[::1]/",
    "http://0x7f.1/",
];

const TOKEN: &str = "a-token-of-many-letters";

pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    task_list(&text);
    assert!(authorized(TOKEN, input).is_none() || text.contains(TOKEN), "let in without the token: {text:?}");
    let Some(task) = task_body(input) else { return };
    if let Some(url) = &task.callback {
        let host = url.split("//").nth(1).unwrap_or_default();
        assert!(!host.starts_with("127.") && !host.starts_with("localhost"), "{url} leads home");
    }
    let depth = task.params.as_ref().map_or(0, |params| deepest(&serde_json::Value::Object(params.clone())));
    assert!(depth <= 64, "params are {depth} levels deep");
    Town::with_work().decide(&Command::TaskSubmit { tasks: vec![task] });
}

fn deepest(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(deepest).max().unwrap_or(0),
        serde_json::Value::Object(fields) => 1 + fields.values().map(deepest).max().unwrap_or(0),
        _ => 0,
    }
}
