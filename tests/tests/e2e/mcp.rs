//! Agents over MCP: the official Python SDK as their client, against the real `ym mcp`. What an agent sees is in
//! `tests/mcp_client.py`; here is what the town has afterwards.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use yard_tests::town::{Town, tool_python, ym_binary};

/// A town with four beads.
fn town(settings: &[(&str, &str)]) -> Town {
    let town = Town::local();
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
    assert_eq!((&shown["cost"], &shown["tokens"]), (&json!(0.75), &json!(1000)), "{shown}");
    assert_eq!(actors(&town, "agent.registered"), ["fern"]);
}

#[test]
fn the_token_of_a_claim_that_has_expired_is_good_for_nothing() {
    let mut town = town(&[("agents.lease", "1s")]);
    town.start_daemon();
    tell("over", &town);
    assert_ne!(town.state_of("y-1"), "closed");
    assert_eq!(town.events(Some("dispatch.cost")), [] as [Value; 0]);
    let noted = town.events(Some("dispatch.checkpoint"));
    assert!(!noted.is_empty() && noted.iter().all(|event| event["id"] == "y-2@1"), "{noted:?}");
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
fn whoever_leaves_while_a_call_waits_takes_the_server_along_and_loses_no_mail() {
    let mut town = town(&[]);
    town.start_daemon();
    tell("leaves", &town);
}

/// A server spoken to by hand.
struct ByHand {
    server: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl ByHand {
    fn start(town: &Town) -> Self {
        let mut command = town.command(["mcp", "--as", "fern"]);
        command.env("YM_LOG", "trace").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().expect("ym can be run");
        let (input, output) = (server.stdin.take(), server.stdout.take().expect("piped"));
        let mut own = Self { server, input, lines: BufReader::new(output).lines() };
        let client = json!({"name": "by hand", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        own.say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        assert_eq!(own.hears()["result"]["serverInfo"]["name"], "yardmaster");
        own.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        own
    }

    fn call(&mut self, id: u32, tool: &str, arguments: Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    fn say(&mut self, message: Value) {
        writeln!(self.input.as_mut().expect("it is open"), "{message}").expect("it reads");
    }

    fn hears(&mut self) -> Value {
        let line = self.lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("a message")
    }

    fn close(&mut self) {
        self.input = None;
    }

    fn ends(mut self) {
        assert!(self.lines.next().is_none(), "nothing else is written");
        assert!(self.server.wait().expect("it ends").success());
    }
}

#[test]
fn standard_output_carries_the_protocol_and_nothing_else() {
    let town = town(&[]);
    let mut server = ByHand::start(&town);
    server.call(1, "register", json!({}));
    server.close();
    let registered = server.hears();
    let view = &registered["result"]["structuredContent"];
    assert_eq!((&view["name"], &view["program"]), (&json!("fern"), &json!("by hand")), "{registered}");
    server.ends();
}

#[test]
fn the_end_of_input_ends_a_call_that_waits() {
    let mut town = town(&[]);
    town.start_daemon();
    let mut server = ByHand::start(&town);
    server.call(1, "register", json!({}));
    server.hears();
    server.call(2, "inbox", json!({"wait_seconds": 300}));
    server.call(3, "list_agents", json!({}));
    assert_eq!(server.hears()["id"], 3);
    let began = Instant::now();
    server.close();
    assert_eq!(server.hears()["result"]["structuredContent"]["error"]["code"], "cancelled");
    server.ends();
    // The SDK would give it five seconds.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn a_client_that_leaves_before_it_has_said_hello_is_no_error() {
    let town = town(&[]);
    let ran = town.run(["mcp"]).ok();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(town.run(["mcp", "--as", "no\nname"]).code, 1);
    assert_eq!(town.run(["--town", "/", "mcp"]).code, 1);
}
