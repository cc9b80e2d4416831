//! Hooks by which trackers tell that beads changed, called as bd calls them.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use yard_tests::town::{Town, wait_until};

/// Stands in for bd on a workspace without a live file: it prints its beads, and runs its hook after a close.
const BD: &str = r#"#!/bin/sh
case $1 in
list) cat "$YM_TOWN/beads.json" 2>/dev/null || echo '[]' ;;
close) sed -i s/open/closed/ "$YM_TOWN/beads.json"; echo '{"id":"s-1"}' | .beads/hooks/on_close "$2" close ;;
esac
"#;

/// A town with a rig whose workspace is read only when somebody pokes, and the folder of its hooks.
fn town() -> (Town, PathBuf) {
    let town = Town::new();
    town.set("sources.poll", "0s");
    let shop = town.root().join("it's shop");
    std::fs::create_dir_all(shop.join(".beads/dolt")).expect("a workspace");
    std::fs::write(town.root().join("bd"), BD).expect("a script");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(town.root().join("bd"), executable).expect("executable");
    let path = shop.to_str().expect("utf-8").to_owned();
    town.run(["rig", "add", "shop", "--prefix", "s", "--path", &path]).ok();
    (town, shop.join(".beads/hooks"))
}

fn serve(town: &mut Town) -> u32 {
    let path = format!("{}:{}", town.root().display(), std::env::var("PATH").unwrap_or_default());
    let root = town.root().to_str().expect("utf-8").to_owned();
    town.start_daemon_with(&[("PATH", &path), ("YM_TOWN", &root)])
}

fn states(view: &Value) -> Vec<&str> {
    view["hooks"].as_array().expect("a list").iter().filter_map(|hook| hook["state"].as_str()).collect()
}

/// Runs a hook as bd does: id and event as arguments, the bead as JSON on standard input.
fn call(hook: &Path) -> std::process::Output {
    let mut command = Command::new(hook);
    command.args(["s-1", "close"]).current_dir("/").env_remove("YM_TOWN");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("an executable");
    // It need not read it.
    let _ = child.stdin.take().expect("piped").write_all(b"{\"id\":\"s-1\"}");
    child.wait_with_output().expect("it ends")
}

fn quiet(output: &std::process::Output) {
    assert!(output.status.success(), "{output:?}");
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (b"".as_slice(), b"".as_slice()));
}

#[test]
fn hooks_are_installed_listed_and_removed_and_somebodys_own_is_left_alone() {
    let (town, hooks) = town();
    assert_eq!(states(&town.json(["hooks", "list"])), ["absent"; 3]);
    std::fs::create_dir_all(&hooks).expect("a folder");
    std::fs::write(hooks.join("on_update"), "#!/bin/sh\necho mine\n").expect("a hook");
    let installed = town.run(["--json", "hooks", "install", "--rig", "shop"]);
    assert_eq!(installed.code, 1, "one is not ours");
    assert!(installed.stderr.contains("poke --hook shop"), "{}", installed.stderr);
    assert_eq!(states(&installed.json()), ["installed", "foreign", "installed"]);
    assert_eq!(std::fs::read_to_string(hooks.join("on_update")).expect("there"), "#!/bin/sh\necho mine\n");
    std::fs::remove_file(hooks.join("on_update")).expect("removed");
    for _ in 0..2 {
        assert_eq!(states(&town.json(["hooks", "install"])), ["installed"; 3]);
    }
    assert_eq!(states(&town.json(["hooks", "remove"])), ["absent"; 3]);
    assert_eq!(town.refused(["hooks", "install", "--rig", "nope"]), "unknown-rig");
}

#[test]
fn a_tracker_that_runs_the_hook_has_its_workspace_read() {
    let (mut town, hooks) = town();
    town.run(["hooks", "install"]).ok();
    let bead = json!([{"id": "s-1", "title": "mend", "status": "open", "priority": 2, "issue_type": "task",
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}]);
    std::fs::write(town.root().join("beads.json"), bead.to_string()).expect("a file");
    serve(&mut town);
    wait_until("the bead is known", || town.run(["show", "s-1"]).code == 0);
    let mut bd = Command::new(town.root().join("bd"));
    bd.args(["close", "s-1"]).env("YM_TOWN", town.root());
    let workspace = hooks.ancestors().nth(2).expect("a directory");
    quiet(&bd.current_dir(workspace).output().expect("bd runs"));
    wait_until("the close is seen", || town.state_of("s-1") == "closed");
}

#[test]
fn a_hook_never_fails_its_caller() {
    let (mut town, hooks) = town();
    town.run(["hooks", "install"]).ok();
    let hook = hooks.join("on_close");
    quiet(&call(&hook));
    let pid = serve(&mut town);
    quiet(&call(&hook));
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid.to_string()]).status();
        assert!(sent.expect("kill runs").success());
    };
    signal("-STOP");
    // More than a stopped daemon's socket takes: connecting must not wait either.
    for _ in 0..20 {
        quiet(&call(&hook));
    }
    signal("-CONT");
    wait_until("the daemon answers again", || town.run(["status"]).code == 0);
    town.kill_daemon();
    quiet(&call(&hook));
    std::fs::remove_dir_all(town.root().join(".yardmaster")).expect("removed");
    quiet(&call(&hook));
    for words in [&["poke", "--hook"][..], &["poke", "--hook", "nope"], &["poke", "nope", "--hook"]] {
        assert_eq!(town.run(words).code, 0);
    }
}

#[test]
fn snippets_for_other_tools_are_ready_to_use() {
    let (town, _) = town();
    let settings: Value =
        serde_json::from_str(&town.run(["hooks", "show", "claude"]).ok().stdout).expect("json");
    let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().expect("a command").to_owned();
    let ran = Command::new("sh").args(["-c", &command]).current_dir("/").output().expect("a shell");
    quiet(&ran);
    let git = town.run(["hooks", "show", "git"]).ok().stdout;
    let path = town.root().join("post-commit");
    std::fs::write(&path, git).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    quiet(&call(&path));
}
