//! Sling's guards, seen from the command line.

use serde_json::json;
use yard_tests::town::Town;

fn town_with_two_rigs() -> Town {
    let town = Town::new();
    town.run(["rig", "add", "api", "--prefix", "api"]).ok();
    town.run(["rig", "add", "web", "--prefix", "web"]).ok();
    town
}

fn code_of(town: &Town, args: &[&str]) -> String {
    let ran = town.run([&["--json", "sling"], args].concat());
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let answer = ran.json();
    let code = answer["results"][0]["code"].as_str().or(answer["error"]["code"].as_str());
    code.unwrap_or_else(|| panic!("a code in {answer}")).to_owned()
}

#[test]
fn the_cross_rig_guard_rejects_and_force_overrides() {
    let town = town_with_two_rigs();
    town.set("scheduler.max_polecats", "2");
    town.shell_bead("api-1", "true");
    assert_eq!(code_of(&town, &["api-1", "web"]), "cross-rig");
    let forced = town.json(["sling", "api-1", "web", "--force"]);
    assert_eq!(
        (&forced["results"][0]["action"], &forced["results"][0]["rig"]),
        (&json!("scheduled"), &json!("web"))
    );
}

#[test]
fn force_never_takes_closed_beads_nor_parked_or_docked_rigs() {
    let town = town_with_two_rigs();
    town.set("scheduler.max_polecats", "2");
    town.shell_bead("api-1", "true");
    town.run(["bead", "close", "api-1"]).ok();
    assert_eq!(code_of(&town, &["api-1", "--force"]), "closed");
    town.shell_bead("web-1", "true");
    town.run(["rig", "park", "web"]).ok();
    assert_eq!(code_of(&town, &["web-1", "--force"]), "rig-parked");
    town.run(["rig", "unpark", "web"]).ok();
    town.run(["rig", "dock", "web"]).ok();
    assert_eq!(code_of(&town, &["web-1", "--force"]), "rig-docked");
}

#[test]
fn the_status_guard_rejects_taken_beads_and_force_overrides() {
    let town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.shell_bead("y-1", "true");
    town.run(["bead", "update", "y-1", "--status", "in_progress", "--assignee", "ada"]).ok();
    assert_eq!(code_of(&town, &["y-1"]), "claimed-elsewhere");
    assert_eq!(town.json(["sling", "y-1", "--force"])["results"][0]["action"], "scheduled");
    assert_eq!(town.json(["scheduler", "run"])["dispatched"][0]["id"], "y-1");
}

#[test]
fn blocked_beads_are_refused_in_direct_mode_by_name_and_queued_in_deferred_mode() {
    let town = Town::new();
    town.shell_bead("y-first", "true");
    town.run(["bead", "add", "then", "--id", "y-then", "--needs", "y-first", "--", "true"]).ok();
    let refused = town.run(["--json", "sling", "y-then"]);
    assert_eq!(refused.code, 1);
    let result = refused.json()["results"][0].clone();
    assert_eq!(result["code"], "blocked-by");
    assert!(result["message"].as_str().is_some_and(|m| m.contains("y-first")), "{result}");
    town.set("scheduler.max_polecats", "2");
    assert_eq!(town.json(["sling", "y-then"])["results"][0]["action"], "scheduled");
}

#[test]
fn one_auto_convoy_for_a_batch_and_none_if_not_wanted() {
    let town = Town::new();
    town.set("scheduler.max_polecats", "5");
    for id in ["y-1", "y-2", "y-3"] {
        town.shell_bead(id, "true");
    }
    let batch = town.json(["sling", "y-1", "y-2"]);
    assert_eq!(batch["results"][0]["convoy_id"], batch["results"][1]["convoy_id"]);
    assert!(batch["results"][0]["convoy_id"].is_string());
    assert!(town.json(["sling", "y-3", "--no-convoy"])["results"][0]["convoy_id"].is_null());
    assert_eq!(town.json(["convoy", "list"])["convoys"].as_array().map(Vec::len), Some(1));
    town.run(["scheduler", "run"]).ok();
    town.run(["wait", "--all"]).ok();
    assert_eq!(town.json(["convoy", "list"])["convoys"], json!([]), "complete, hence closed");
}

#[test]
fn a_dry_run_changes_nothing() {
    let town = Town::new();
    town.shell_bead("y-1", "true");
    let before = town.events(None).len();
    assert_eq!(town.json(["sling", "y-1", "--dry-run"])["results"][0]["action"], "dispatched");
    town.run(["scheduler", "pause"]).ok();
    let paused = town.json(["sling", "y-1", "--dry-run"]);
    assert_eq!(paused["results"][0]["action"], "scheduled", "what is paused waits");
    town.run(["undo"]).ok();
    assert_eq!(town.events(Some("context")).len(), 0);
    assert!(town.events(None).len() > before);
}

#[test]
fn unknown_things_are_named_and_change_nothing() {
    let town = Town::local();
    let before = town.events(None).len();
    assert_eq!(code_of(&town, &["y-nope"]), "unknown-bead");
    town.shell_bead("y-1", "true");
    assert_eq!(code_of(&town, &["y-1", "nosuchrig"]), "unknown-rig");
    assert_eq!(code_of(&town, &["y-1", "--executor", "nonesuch"]), "unknown-executor");
    assert_eq!(town.run(["sling", "y-1", "--priority", "0"]).code, 2);
    assert_eq!(town.run(["sling"]).code, 2);
    assert_eq!(town.events(None).len(), before + 1, "only the bead was added");
}

#[test]
fn one_unknown_bead_does_not_keep_the_others_of_a_batch() {
    let town = Town::new();
    town.set("scheduler.max_polecats", "2");
    town.shell_bead("y-1", "true");
    let batch = town.json(["sling", "y-1", "y-nope"]);
    let actions: Vec<&str> = (0..2).filter_map(|i| batch["results"][i]["action"].as_str()).collect();
    assert_eq!(actions, ["scheduled", "refused"]);
    assert_eq!(batch["results"][1]["code"], "unknown-bead");
}

#[test]
fn a_context_goes_stale_when_its_bead_is_closed_or_taken() {
    let town = Town::new();
    town.set("scheduler.max_polecats", "2");
    for id in ["y-1", "y-2"] {
        town.shell_bead(id, "true");
    }
    town.run(["sling", "y-1", "y-2"]).ok();
    town.run(["bead", "close", "y-1"]).ok();
    town.run(["bead", "update", "y-2", "--assignee", "ada"]).ok();
    for id in ["y-1", "y-2"] {
        assert_eq!(town.json(["show", id])["context"]["close_reason"], "stale-work-bead");
    }
    assert_eq!(town.json(["scheduler", "status"])["queued_total"], 0);
}

#[test]
fn town_level_beads_are_never_dispatched_and_the_longest_prefix_wins() {
    let town = Town::new();
    town.run(["rig", "add", "deep", "--prefix", "y-deep"]).ok();
    town.shell_bead("y-deep-1", "true");
    assert_eq!(town.json(["bead", "show", "y-deep-1"])["rig"], "deep");
    town.shell_bead("hq-1", "true");
    assert_eq!(code_of(&town, &["hq-1"]), "not-dispatchable");
}
