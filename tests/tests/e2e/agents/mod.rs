//! Agents: real processes that register, wait for orders, claim and finish, with a daemon that may die at any moment.

mod claims;
mod crashes;
mod leases;
mod orders;

use std::process::{Child, Stdio};

use serde_json::Value;
use yard_tests::town::Town;

/// A town whose daemon runs, with these agents.
fn town_with(agents: &[&str]) -> Town {
    let mut town = Town::new();
    town.start_daemon();
    for agent in agents {
        register(&town, agent);
    }
    town
}

fn register(town: &Town, agent: &str) {
    town.run(["agent", "register", agent, "--program", "test"]).ok();
}

/// Makes a bead and gives it to whichever agent fits.
fn give_away(town: &Town, id: &str) {
    town.run(["bead", "add", &format!("work on {id}"), "--id", id]).ok();
    town.run(["sling", id, "--assign", "--no-convoy"]).ok();
}

/// A `ym` that waits for mail, not yet answered.
fn waits_for_mail(town: &Town, agent: &str) -> Child {
    let mut command = town.command(["--json", "agent", "inbox", "--wait", "--as", agent]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("ym can be run")
}

fn answer(child: Child) -> Value {
    let output = child.wait_with_output().expect("it ends");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {} {}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// What an agent is doing.
fn state_of(town: &Town, agent: &str) -> String {
    town.json(["agent", "status", "--as", agent])["state"].as_str().unwrap_or_default().to_owned()
}
