//! Texts that would be commands, if anybody ran them: through formulas, scripts, branches, alerts, hooks, tmux and wake.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use yard_tests::town::{Town, wait_until};

/// Texts that run something wherever a shell looks at them.
fn evil(canary: &Path) -> Vec<String> {
    let touch = format!("touch {}", canary.display());
    vec![
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("'; {touch}; '"),
        format!("\"; {touch}; \""),
        format!("x; {touch} #"),
        format!("x && {touch} || {touch} | {touch} & {touch}"),
        format!("x\n{touch}\n"),
        format!("--help\r\n{touch}"),
        format!("-c {touch}"),
        format!("--upload-pack={touch}"),
        format!("${{IFS}}$({touch})"),
        format!("#{{{touch}}} #({touch})"),
        format!("{{{{title}}}} %({touch}) $'{touch}'"),
    ]
}

/// A town whose directory is a repository, and the file that nobody may make.
fn town(executor: &str) -> (Town, PathBuf) {
    let town = Town::with_executor(executor);
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]).args(words);
        let output = git.current_dir(town.root()).output().expect("git");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q", "."]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    let canary = town.root().join("canary");
    (town, canary)
}

by_both_executors!(no_text_of_a_bead_is_run);

fn no_text_of_a_bead_is_run(executor: &str) {
    let (mut town, canary) = town(executor);
    town.set("alerts.command", &json!(["sh", "-c", "cat > /dev/null"]).to_string());
    town.set("rig.yard.wake", &json!(["sh", "-c", "true"]).to_string());
    let formula = "isolation = 'worktree'\n[vars.v]\n[[steps]]\nid = 'argv'\nargv = ['printf', '%s\\n', '{{title}}', '{{description}}', '{{v}}', '{{args}}']\n\
                   [[steps]]\nid = 'shell'\nstdin = '{{prompt}}'\nshell = 'cat; printf \"<%s>\" \"$YM_TITLE\" \"$YM_VAR_V\" \"$YM_ARGS\" \"$YM_LABELS\"; echo x > made'\n";
    std::fs::write(town.root().join(".yardmaster/formulas/evil.toml"), formula).expect("written");
    town.start_daemon();
    let texts = evil(&canary);
    for (nth, text) in texts.iter().enumerate() {
        let id = format!("y-{nth}");
        let title = format!("--title={text}");
        town.run([
            "bead",
            "add",
            "t",
            "--id",
            &id,
            &format!("--description={text}"),
            &format!("--label={text}"),
        ])
        .ok();
        town.run(["bead", "update", &id, &title]).ok();
        let line = text.replace(['\n', '\r'], " ");
        town.run([
            "sling",
            &id,
            "--formula",
            "evil",
            &format!("--var=v={line}"),
            &format!("--args={text}"),
            "--merge",
            "direct",
        ])
        .ok();
    }
    for (nth, text) in texts.iter().enumerate() {
        let id = format!("y-{nth}");
        wait_until(&format!("{id} has ended"), || {
            ["closed", "failed"].contains(&town.state_of(&id).as_str())
        });
        assert_eq!(town.state_of(&id), "closed", "{text:?}: {}", town.run(["show", &id]).stdout);
        let log = town.run(["logs", &id]).ok().stdout.replace("\r\n", "\n");
        assert!(
            log.contains(&format!("<{}>", text.replace("\r\n", "\n"))),
            "{text:?} reached it whole: {log:?}"
        );
    }
    assert!(!canary.exists(), "something was run");
}

#[test]
fn no_name_of_a_branch_is_run() {
    let (mut town, canary) = town("local");
    let formula = "isolation = 'worktree'\n[[steps]]\nid = 'w'\nargv = ['sh', '-c', 'echo x > made']\n";
    std::fs::write(town.root().join(".yardmaster/formulas/iso.toml"), formula).expect("written");
    town.set("scheduler.max_dispatch_failures", "1");
    town.start_daemon();
    let more = [
        "main:x",
        "main..x",
        "@{-1}",
        "refs/heads/../../x",
        "main ",
        "HEAD^{/x}",
        "..",
        "main\u{0}x",
        "\u{202e}niam",
        "--exec=x",
    ];
    let branches = evil(&canary).into_iter().chain(more.iter().map(|text| (*text).to_owned()));
    for (nth, branch) in branches.filter(|branch| !branch.contains('\0')).enumerate() {
        let id = format!("y-{nth}");
        town.run(["bead", "add", "t", "--id", &id]).ok();
        let slung =
            town.run(["--json", "sling", &id, "--formula", "iso", &format!("--base-branch={branch}")]);
        if slung.code == 0 {
            wait_until(&format!("{id} has come to an end"), || {
                ["circuit-broken", "failed", "closed", "blocked"].contains(&town.state_of(&id).as_str())
            });
            assert_ne!(town.state_of(&id), "closed", "{branch:?} is no branch");
        }
        assert!(!canary.exists(), "{branch:?} was run");
    }
    assert_eq!(town.run(["status"]).code, 0);
}

#[test]
fn no_command_on_the_way_is_given_to_a_shell() {
    let (mut town, canary) = town("local");
    for text in evil(&canary) {
        let told = town.root().join("told");
        // A program of its own name gets it as one argument, and nothing else happens.
        town.set(
            "alerts.command",
            &json!(["sh", "-c", format!("cat > {}; exit 0", told.display()), &text]).to_string(),
        );
        town.set("rig.yard.wake", &json!(["true", &text]).to_string());
        town.set("worker.agent", &json!(["true", &text]).to_string());
    }
    town.start_daemon();
    for (nth, text) in evil(&canary).iter().enumerate() {
        let id = format!("y-{nth}");
        town.run(["bead", "add", "t", "--id", &id, "--", "true", text]).ok();
        town.run(["sling", &id]).ok();
        town.run(["wait", &id]).ok();
        let line = json!({"argv": ["true", text], "name": text}).to_string();
        town.run_with_input(["add", "--file", "-"], line.as_bytes()).ok();
    }
    town.run(["wait", "--all"]).ok();
    assert!(!canary.exists(), "something was run");
}
