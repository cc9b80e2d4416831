//! Convoys over real beads workspaces: staged, launched, fed by what the workspace's own tool writes, and never written.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use yard_tests::town::{Town, wait_until};
use yard_tests::workspace::{Workspace, bead};

/// A worker that claims its bead as itself, works a moment, and closes it.
const AGENT: &str = r#"
"$TRACKER" claim "$YM_BEAD" "$YM_ACTOR" && sleep 0.02 && "$TRACKER" close "$YM_BEAD"
"#;

/// A town with a rig `shop` (prefix `shop`) over a workspace.
fn shop(beads: &[Value]) -> (Town, Workspace) {
    let town = Town::new();
    let workspace = project(&town, "shop", beads);
    (town, workspace)
}

/// Another rig of a town, over a workspace of its own.
fn project(town: &Town, name: &str, beads: &[Value]) -> Workspace {
    let dir = town.root().join(name);
    let workspace = Workspace::create(&dir, beads);
    town.run(["rig", "add", name, "--prefix", name, "--path", dir.to_str().expect("utf-8")]).ok();
    workspace
}

/// Has every bead without a command of its own worked on by this script.
fn agents_run(town: &Town, script: &str) {
    let formulas = town.root().join(".yardmaster/formulas");
    fs::create_dir_all(&formulas).expect("a directory");
    let script = script.replace("$TRACKER", env!("CARGO_BIN_EXE_tracker"));
    let formula = format!("name = \"agent\"\n[[steps]]\nid = \"work\"\nshell = '''{script}'''\n");
    fs::write(formulas.join("agent.toml"), formula).expect("a file");
    town.set("worker.formula", "agent");
}

fn ids(list: &Value) -> Vec<String> {
    let items = list.as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["id"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Where in the log each bead was started first, and where it was closed.
fn starts_and_closes(town: &Town) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut starts, mut closes) = (BTreeMap::new(), BTreeMap::new());
    for event in town.events(None) {
        let seq = event["seq"].as_u64().expect("a position");
        match event["type"].as_str() {
            Some("dispatch.started") => {
                let id = event["dispatch"]["id"].as_str().expect("an id");
                let bead = id.split('@').next().expect("a bead").to_owned();
                starts.entry(bead).or_insert(seq);
            }
            Some("bead.closed") => {
                closes.insert(event["id"].as_str().expect("an id").to_owned(), seq);
            }
            _ => {}
        }
    }
    (starts, closes)
}

/// An epic in `shop` with a nested one, work in `web` below it, and every kind of edge.
fn two_projects(town: &Town) -> (Workspace, Workspace) {
    let shop = [
        bead("shop-e1", "epic", &[]),
        bead("shop-e2", "epic", &[("shop-e1", "parent-child"), ("shop-a", "blocks")]),
        bead("shop-a", "task", &[("shop-e1", "parent-child")]),
        bead("shop-b", "bug", &[("shop-e1", "parent-child"), ("shop-a", "blocks"), ("shop-z", "related")]),
        bead("shop-c", "feature", &[("shop-e1", "parent-child"), ("shop-b", "conditional-blocks")]),
        bead(
            "shop-d",
            "chore",
            &[("shop-e1", "parent-child"), ("shop-b", "waits-for"), ("shop-done", "blocks")],
        ),
        bead(
            "shop-f",
            "task",
            &[("shop-e1", "parent-child"), ("shop-c", "merge-blocks"), ("shop-a", "discovered-from")],
        ),
        bead("shop-g", "task", &[("shop-e2", "parent-child")]),
        bead("shop-h", "task", &[("shop-e2", "parent-child"), ("external:web:web-x", "blocks")]),
        bead("shop-z", "task", &[]),
    ];
    let mut closed = bead("shop-done", "task", &[("shop-e1", "parent-child")]);
    closed["status"] = json!("closed");
    closed["closed_at"] = json!("2026-11-15T23:51:00Z");
    let web = [
        bead("web-x", "task", &[("external:shop:shop-e1", "parent-child"), ("shop-b", "blocks")]),
        bead("web-y", "task", &[("external:shop:shop-e1", "parent-child"), ("web-x", "blocks")]),
    ];
    (project(town, "shop", &[&shop[..], &[closed]].concat()), project(town, "web", &web))
}

#[test]
fn a_convoy_over_two_workspaces_completes_in_dependency_order_and_leaves_their_files_alone() {
    let mut town = Town::new();
    let (shop, web) = two_projects(&town);
    agents_run(&town, AGENT);
    town.set("scheduler.max_polecats", "3");
    town.start_daemon();
    let before = (shop.fingerprint(), web.fingerprint());
    let staged = town.json(["convoy", "stage", "shop-e1"]);
    assert_eq!(staged["errors"], json!([]), "{staged}");
    let waves: Vec<Vec<String>> =
        staged["waves"].as_array().expect("waves").iter().map(|wave| ids(&wave["tasks"])).collect();
    let expected = [
        vec!["shop-a"],
        vec!["shop-b", "shop-g"],
        vec!["shop-c", "shop-d", "web-x"],
        vec!["shop-f", "shop-h", "web-y"],
    ];
    assert_eq!(waves, expected);
    assert_eq!(staged["status"], "staged:warnings", "two rigs and a nested epic are worth a look");
    let convoy = staged["convoy_id"].as_str().expect("a convoy");
    assert_eq!(town.state_of("shop-a"), "staged", "a staged convoy is inert");
    assert_eq!(
        town.refused(["convoy", "launch", convoy]),
        staged["warnings"][0]["category"],
        "warnings want --force"
    );
    assert_eq!((shop.fingerprint(), web.fingerprint()), before, "reading and staging touch nothing");

    town.json(["convoy", "launch", convoy, "--force"]);
    wait_until("the convoy is complete", || town.json(["convoy", "status", convoy])["status"] == "closed");
    let (starts, closes) = starts_and_closes(&town);
    let waits = [
        ("shop-b", "shop-a"),
        ("shop-c", "shop-b"),
        ("shop-d", "shop-b"),
        ("shop-f", "shop-c"),
        ("shop-g", "shop-a"),
        ("shop-h", "shop-a"),
        ("shop-h", "web-x"),
        ("web-x", "shop-b"),
        ("web-y", "web-x"),
    ];
    for (bead, on) in waits {
        assert!(starts[bead] > closes[on], "{bead} started before {on} was closed");
    }
    assert_eq!(starts.len(), 9, "each bead of the convoy, and nothing else: {starts:?}");
    assert_eq!(closes.len(), 9, "each close is seen once: {closes:?}");
    assert_eq!(town.state_of("shop-z"), "open");
    let written = (shop.fingerprint(), web.fingerprint());
    town.stop_daemon();
    assert_eq!((shop.fingerprint(), web.fingerprint()), written);
    let names: Vec<PathBuf> = written.0.iter().map(|file| file.0.clone()).collect();
    assert_eq!(names.len(), 2, "nothing but the tracker's own files: {names:?}");
}

#[test]
fn a_close_is_seen_once_whether_the_daemon_runs_is_down_or_is_killed() {
    let (mut town, workspace) =
        shop(&[bead("shop-a", "task", &[]), bead("shop-b", "task", &[]), bead("shop-c", "task", &[])]);
    town.start_daemon();
    workspace.close("shop-a");
    town.await_state("shop-a", "closed");
    town.kill_daemon();
    workspace.close("shop-b");
    // A command looks for itself, as soon as it is certain that nobody else does.
    town.await_state("shop-b", "closed");
    town.start_daemon();
    workspace.close("shop-c");
    town.await_state("shop-c", "closed");
    town.kill_daemon();
    town.start_daemon();
    let closed: Vec<Value> =
        town.events(Some("bead.closed")).iter().map(|event| event["id"].clone()).collect();
    assert_eq!(closed, ["shop-a", "shop-b", "shop-c"]);
}

#[test]
fn beads_of_a_workspace_are_changed_there_and_nowhere_else() {
    let (town, workspace) = shop(&[bead("shop-a", "task", &[]), bead("shop-b", "task", &[])]);
    let before = workspace.fingerprint();
    for command in [
        vec!["bead", "close", "shop-a"],
        vec!["bead", "update", "shop-a", "--title", "mine"],
        vec!["bead", "dep", "add", "shop-a", "shop-b"],
    ] {
        assert_eq!(town.refused(&command), "read-only-bead", "{command:?}");
    }
    assert_eq!(workspace.fingerprint(), before);
    assert_eq!(town.json(["bead", "show", "shop-a"])["title"], "work on shop-a");
}

#[test]
fn a_finished_worker_awaits_the_close_and_counts_as_crashed_without_one() {
    let (mut town, workspace) = shop(&[bead("shop-a", "task", &[]), bead("shop-b", "task", &[])]);
    agents_run(&town, "true");
    town.set("retry.crash.max_attempts", "1");
    town.start_daemon();
    town.run(["sling", "shop-a"]).ok();
    town.await_state("shop-a", "done");
    assert_eq!(town.reasons_of("shop-a"), ["awaiting-close"]);
    workspace.close("shop-a");
    town.await_state("shop-a", "closed");
    town.set("limits.close_grace", "0s");
    wait_until("the new grace", || town.json(["config", "get", "limits.close_grace"])["value"] == "0s");
    town.run(["poke"]).ok();
    town.run(["sling", "shop-b"]).ok();
    town.await_state("shop-b", "failed");
    let alerts = town.json(["alerts"]);
    assert_eq!(alerts["alerts"][0]["kind"], "bead-failed", "{alerts}");
}

#[test]
fn a_worker_reads_what_its_bead_says_at_length_from_the_workspace() {
    let (mut town, _workspace) = shop(&[bead("shop-a", "task", &[])]);
    agents_run(&town, "printf '%s' \"$YM_DESCRIPTION|$BD_ACTOR\" > said; \"$TRACKER\" close shop-a");
    town.start_daemon();
    town.run(["sling", "shop-a"]).ok();
    town.await_state("shop-a", "closed");
    let said = fs::read_to_string(town.root().join("shop/said")).expect("the worker's note");
    assert_eq!(said, "What shop-a is about.|ym/shop-a@1");
}

#[test]
fn a_broken_file_loses_nothing_and_raises_one_alert_while_it_lasts() {
    let (mut town, workspace) =
        shop(&[bead("shop-a", "task", &[]), bead("shop-b", "task", &[("shop-a", "blocks")])]);
    town.start_daemon();
    let whole = fs::read(workspace.file()).expect("the file");
    let alerts = || ids(&town.json(["alerts"])["alerts"]);
    let broken: [&dyn Fn(); 4] = [
        &|| fs::write(workspace.file(), &whole[..whole.len() / 2 + 7]).expect("written"),
        &|| fs::write(workspace.file(), b"\xff\xfe not utf-8\n").expect("written"),
        &|| {
            fs::write(
                workspace.file(),
                [&b"<<<<<<< HEAD\n"[..], &whole, b"=======\n>>>>>>> other\n"].concat(),
            )
            .expect("written");
        },
        &|| {
            fs::remove_file(workspace.file()).expect("removed");
            fs::create_dir(workspace.file()).expect("a directory");
        },
    ];
    broken[0]();
    wait_until("an alert", || alerts().len() == 1);
    let first = alerts();
    for way in &broken[1..] {
        way();
        town.run(["poke"]).ok();
        assert_eq!(town.json(["bead", "list"])["beads"].as_array().map(Vec::len), Some(2), "nothing is lost");
        assert_eq!(alerts(), first, "one alert, not one per event");
    }
    fs::remove_dir(workspace.file()).expect("removed");
    fs::write(workspace.file(), &whole).expect("written");
    wait_until("the alert is over", || alerts().is_empty());
    assert_eq!(town.events(Some("alert.raised")).len(), 1);
    workspace.close("shop-a");
    town.await_state("shop-a", "closed");
}

#[test]
fn a_bead_that_vanishes_is_missed_by_name_and_keeps_its_history_for_its_return() {
    let (mut town, workspace) =
        shop(&[bead("shop-a", "task", &[]), bead("shop-b", "task", &[("shop-a", "blocks")])]);
    agents_run(&town, "exit 1");
    town.set("retry.crash.max_attempts", "1");
    town.start_daemon();
    town.run(["sling", "shop-a"]).ok();
    town.await_state("shop-a", "failed");
    let line = fs::read_to_string(workspace.file()).expect("the file");
    workspace.rewrite(|beads| beads.retain(|bead| bead["id"] != "shop-a")).expect("written");
    wait_until("it is missed", || town.reasons_of("shop-b") == ["missing-dependency"]);
    assert_eq!(town.refused(["why", "shop-a"]), "unknown-bead");
    fs::write(workspace.file(), line).expect("written");
    wait_until("it is back", || town.run(["why", "shop-a"]).code == 0);
    assert_eq!(town.state_of("shop-a"), "failed");
    town.run(["scheduler", "retry", "shop-a"]).ok();
    wait_until("a second attempt", || town.json(["show", "shop-a"])["dispatches"][1]["id"] == "shop-a@2");
}

#[test]
fn a_bead_left_to_somebody_else_is_taken_over_when_that_one_is_forgotten() {
    let (mut town, workspace) = shop(&[bead("shop-b", "task", &[])]);
    town.set("scheduler.safety_scan", "100ms");
    town.start_daemon();
    town.run(["add", "--id", "shop-a", "--", "true"]).ok();
    town.await_state("shop-a", "closed");
    workspace.rewrite(|beads| beads.push(bead("shop-a", "bug", &[]))).expect("written");
    wait_until("a conflict", || town.json(["alerts"])["alerts"][0]["kind"] == "source-conflict");
    assert_eq!(town.json(["show", "shop-a"])["type"], "task", "who was first keeps an id");
    town.set("results.ttl", "1s");
    wait_until("the workspace's bead", || {
        let shown = town.run(["--json", "show", "shop-a"]);
        shown.code == 0 && shown.json()["type"] == "bug"
    });
    wait_until("no conflict", || town.json(["alerts"])["alerts"] == json!([]));
    assert_eq!(ids(&town.json(["bead", "list"])["beads"]), ["shop-a", "shop-b"]);
}

#[test]
fn a_workspace_without_a_live_file_is_asked_when_poked() {
    let mut town = Town::new();
    let dir = town.root().join("shop");
    fs::create_dir_all(dir.join(".beads/dolt")).expect("a directory");
    let tool = dir.join("list-beads");
    let prints = |beads: &[Value]| {
        let text = format!("#!/bin/sh\ncat <<'END'\n{}\nEND\n", Value::from(beads.to_vec()));
        fs::write(&tool, text).expect("a script");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&tool, mode).expect("executable");
    };
    prints(&[bead("shop-a", "task", &[])]);
    let bin = town.root().join("bin");
    fs::create_dir_all(&bin).expect("a directory");
    std::os::unix::fs::symlink(&tool, bin.join("bd")).expect("a link");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let added = town
        .command(["rig", "add", "shop", "--prefix", "shop", "--path", dir.to_str().expect("utf-8")])
        .env("PATH", &path)
        .output()
        .expect("ym runs");
    assert!(added.status.success(), "{added:?}");
    assert_eq!(ids(&town.json(["bead", "list"])["beads"]), ["shop-a"]);
    let mut closed = bead("shop-a", "task", &[]);
    closed["status"] = json!("closed");
    prints(&[closed, bead("shop-b", "task", &[])]);
    town.start_daemon_with(&[("PATH", &path)]);
    town.await_state("shop-a", "closed");
    prints(&[bead("shop-b", "task", &[]), bead("shop-c", "task", &[])]);
    town.run(["poke", "shop"]).ok();
    wait_until("the new list", || ids(&town.json(["bead", "list"])["beads"]) == ["shop-b", "shop-c"]);
}
