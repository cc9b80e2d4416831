//! Agents over MCP: the official Python SDK as their client, against the real `ym mcp`. What an agent sees is in
//! `tests/mcp_client.py`; here is what the town has afterwards.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use yard_tests::town::{Town, tool_python, ym_binary};

/// A town with four beads.
fn town(settings: &[(&str, &str)]) -> Town {
    let town = Town::new();
    for (key, value) in settings {
        town.set(key, value);
    }
    for id in ["y-1", "y-2", "y-3", "y-4"] {
        town.run(["bead", "add", "Write the report", "--id", id]).ok();
    }
    town
}

fn tell(story: &str, town: &Town) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp_client.py");
    let mut command = Command::new(tool_python());
    command.arg(script).arg(story).arg(ym_binary()).arg(town.root());
    command.env_remove("YM_AGENT").env_remove("YM_ACTOR").env("USER", "tester");
    let output = command.output().expect("python can be run");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", said(&output.stdout), said(&output.stderr));
}

fn actors(town: &Town, kind: &str) -> Vec<Value> {
    town.events(Some(kind)).into_iter().map(|event| event["actor"].clone()).collect()
}

#[test]
fn an_agent_gets_an_order_over_mcp_and_carries_it_out() {
    let mut town = town(&[]);
    town.start_daemon();
    tell("loop", &town);
    assert_eq!(town.state_of("y-1"), "closed");
    let shown = town.json(["show", "y-1@1"]);
    assert_eq!(shown["cost_usd"], 0.75, "{shown}");
    assert_eq!(actors(&town, "agent.registered"), ["fern"]);
}

#[test]
fn the_token_of_a_claim_that_has_expired_is_good_for_nothing() {
    let mut town = town(&[("agents.lease", "1s")]);
    town.start_daemon();
    tell("over", &town);
    assert_eq!(town.state_of("y-1"), "running");
    let now = town.json(["show", "y-1@2"]);
    assert!(now["cost_usd"].as_f64().unwrap_or_default() < 0.001, "{now}");
    assert_eq!(town.state_of("y-2"), "closed");
}

#[test]
fn claims_made_for_an_agent_are_known_to_its_session() {
    let mut town = town(&[]);
    town.start_daemon();
    tell("claimed-for-it", &town);
    assert_eq!(["y-1", "y-4"].map(|bead| town.state_of(bead)), ["closed", "closed"]);
    assert_ne!(town.state_of("y-3"), "closed");
}

#[test]
fn mcp_needs_no_daemon() {
    let town = town(&[]);
    tell("without-a-daemon", &town);
    for bead in ["y-1", "y-2", "y-3", "y-4"] {
        assert_eq!(town.state_of(bead), "closed");
    }
}

#[test]
fn the_server_ends_with_its_client_although_a_call_waits() {
    let mut town = town(&[]);
    town.start_daemon();
    tell("leaves", &town);
}

#[test]
fn standard_output_carries_the_protocol_and_nothing_else() {
    let town = town(&[]);
    let mut command = town.command(["mcp", "--as", "fern"]);
    command.env("YM_LOG", "trace").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().expect("ym can be run");
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    });
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "register", "arguments": {}}
    });
    let mut input = server.stdin.take().expect("piped");
    let mut lines = BufReader::new(server.stdout.take().expect("piped")).lines();
    let mut answer = || -> Value {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("a message")
    };
    writeln!(input, "{hello}").expect("it reads");
    assert_eq!(answer()["result"]["serverInfo"]["name"], "yardmaster");
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).expect("it reads");
    writeln!(input, "{call}").expect("it reads");
    drop(input);
    let registered = answer();
    assert_eq!(registered["result"]["structuredContent"]["name"], "fern", "{registered}");
    assert!(lines.next().is_none(), "nothing else is written");
    assert!(server.wait().expect("it ends").success());
}

#[test]
fn a_client_that_leaves_before_it_has_said_hello_is_no_error() {
    let town = town(&[]);
    let ran = town.run(["mcp"]).ok();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(town.run(["mcp", "--as", "no\nname"]).code, 1);
    assert_eq!(town.run(["--town", "/", "mcp"]).code, 1);
}
