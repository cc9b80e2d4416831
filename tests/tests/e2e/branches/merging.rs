//! Merging into the base: in order, checked first, and never over what is in the way.

use std::collections::BTreeMap;

use serde_json::json;
use yard_tests::repo::Repo;
use yard_tests::town::wait_until;

use super::part;

/// A bead that changes a line which its rival changes, too, from the same beginning.
fn rival(repo: &Repo, id: &str, other: &str) {
    let meet = repo.root().join(".yardmaster");
    let script = format!(
        "echo {id} > VERSION; touch '{0}/{id}'; while [ ! -e '{0}/{other}' ]; do sleep 0.02; done",
        meet.display()
    );
    repo.town.shell_bead(id, &script);
}

#[test]
fn twenty_beads_and_one_conflict_leave_nineteen_merged_in_order_and_one_blocked() {
    let mut repo = Repo::merging();
    repo.town.set("worker.check", r#"["sh", "build.sh"]"#);
    let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for n in 0..18_usize {
        // Three chains that meet every third step.
        let of = |n: usize| format!("y-{n}");
        let mut on = if n >= 3 { vec![of(n - 3)] } else { Vec::new() };
        if n >= 3 && n.is_multiple_of(3) {
            on.push(of(n - 1));
        }
        part(&repo, &of(n), &on.iter().map(String::as_str).collect::<Vec<_>>());
        needs.insert(of(n), on);
    }
    rival(&repo, "y-red", "y-blue");
    rival(&repo, "y-blue", "y-red");
    repo.town.start_daemon();
    let all: Vec<String> = needs.keys().cloned().chain(["y-red".to_owned(), "y-blue".to_owned()]).collect();
    repo.town.run(["sling"].into_iter().chain(all.iter().map(String::as_str))).ok();
    let waited = repo.town.run(["--json", "wait", "--all", "--timeout", "120s"]).json();
    assert_eq!(waited["done"].as_array().map(Vec::len), Some(19), "{waited}");
    let [stuck] = waited["stuck"].as_array().expect("a list").as_slice() else { panic!("{waited}") };
    let blocked = stuck["id"].as_str().expect("an id");
    assert!(["y-red", "y-blue"].contains(&blocked), "{blocked}");
    assert_eq!(
        (&stuck["state"], &stuck["reasons"][0]["code"]),
        (&json!("blocked"), &json!("merge-conflict"))
    );
    assert!(
        stuck["reasons"][0]["message"].as_str().is_some_and(|m| m.contains("conflicts in VERSION")),
        "{stuck}"
    );
    let shown = repo.town.json(["show", blocked]);
    assert_eq!(shown["merge"]["stage"]["problem"]["files"], json!(["VERSION"]), "{}", shown["merge"]);
    let alerts = repo.town.json(["alerts"]);
    assert_eq!(alerts["alerts"][0]["kind"], "merge-conflict");

    let log = repo.log("main");
    let place = |bead: &str| log.iter().position(|(_, subject)| subject == &format!("part {bead}"));
    for (bead, on) in &needs {
        let own = place(bead).unwrap_or_else(|| panic!("{bead} is in main: {log:?}"));
        for other in on {
            assert!(place(other).is_some_and(|before| before > own), "{other} came before {bead}");
        }
    }
    assert!(repo.builds("main"), "what was merged builds");
    repo.check_clean();
    let winner = if blocked == "y-red" { "y-blue" } else { "y-red" };
    assert_eq!(repo.read("VERSION"), format!("{winner}\n"));
    wait_until("the other worktrees to be gone", || {
        (repo.worktrees().len(), repo.branches().len()) == (1, 2)
    });
    assert_eq!(repo.worktrees(), [format!("{blocked}@1")].into());
    assert_eq!(repo.branches(), ["main".to_owned(), format!("ym/{blocked}@1")].into());
    repo.town.stop_daemon();
}

#[test]
fn a_conflict_touches_neither_branch_and_is_merged_once_it_is_mended() {
    let mut repo = Repo::merging();
    repo.town.start_daemon();
    let meet = repo.root().join(".yardmaster/go");
    let script = format!("echo mine > VERSION; while [ ! -e '{}' ]; do sleep 0.02; done", meet.display());
    repo.town.shell_bead("y-a", &script);
    repo.town.run(["sling", "y-a"]).ok();
    repo.town.await_state("y-a", "running");
    wait_until("its worktree", || repo.worktree("y-a@1").join("VERSION").exists());
    repo.write("VERSION", "theirs\n");
    let theirs = repo.commit("their change");
    std::fs::write(&meet, "").expect("written");
    repo.town.await_state("y-a", "blocked");
    assert_eq!((repo.head("main"), repo.read("VERSION")), (theirs.clone(), "theirs\n".to_owned()));
    let branch = repo.head("ym/y-a@1");
    assert_eq!(repo.git(["show", "ym/y-a@1:VERSION"]), "mine");
    let tree = repo.worktree("y-a@1");
    assert!(Repo::git_in(&tree, ["status", "--porcelain"]).is_empty(), "nothing half-merged lies there");
    assert!(Repo::git_in(&tree, ["ls-files", "--unmerged"]).is_empty());

    repo.town.run(["scheduler", "retry", "y-a"]).ok();
    wait_until("the second try to fail", || repo.town.events(Some("merge.blocked")).len() == 2);
    assert_eq!(repo.head("ym/y-a@1"), branch);
    Repo::git_in(&tree, ["merge", "--quiet", "--strategy-option=ours", "-m", "mended", "main"]);
    repo.town.run(["scheduler", "retry", "y-a"]).ok();
    repo.town.await_state("y-a", "closed");
    assert_eq!(repo.read("VERSION"), "mine\n");
    let closed = repo.town.events(Some("bead.closed"));
    let head = repo.head("main");
    assert_eq!(closed[0]["reason"], format!("Merged in {} (main)", &head[..10]));
    assert!(repo.town.json(["alerts"])["alerts"].as_array().is_some_and(Vec::is_empty));
    wait_until("its worktree to be gone", || repo.worktrees().is_empty());
    repo.town.stop_daemon();
}

#[test]
fn a_check_that_fails_keeps_the_merged_tree_out_of_the_base() {
    let mut repo = Repo::merging();
    let formula = "isolation = 'worktree'\n[[steps]]\nid = 'work'\nshell = 'echo \"part_bad() { nowhere; }\" > parts/bad.sh'\n\
                   [check]\nshell = 'pwd; sh build.sh'\ntimeout = '1m'\n";
    std::fs::write(repo.root().join(".yardmaster/formulas/breaks.toml"), formula).expect("written");
    repo.town.run(["bead", "add", "break it", "--id", "y-a"]).ok();
    repo.town.start_daemon();
    let before = repo.head("main");
    // The base moves meanwhile, so that the tree to be checked is neither side's.
    repo.town.run(["sling", "y-a", "--formula", "breaks"]).ok();
    repo.town.await_state("y-a", "blocked");
    assert_eq!(repo.head("main"), before);
    let why = repo.town.json(["why", "y-a"]);
    assert!(
        why["reasons"][0]["message"].as_str().is_some_and(|m| m.contains("the check y-a@2 failed")),
        "{why}"
    );
    let log = repo.town.run(["logs", "y-a@2"]).ok().stdout;
    assert!(log.contains("nowhere"), "the check's own words are kept: {log}");
    assert!(log.contains("worktrees/y-a@2"), "it ran on the merged tree, not in the checkout: {log}");
    wait_until("the place of the check to be gone", || repo.worktrees() == ["y-a@1".to_owned()].into());
    repo.town.stop_daemon();
}

#[test]
fn local_changes_in_the_checkout_are_never_overwritten() {
    let mut repo = Repo::merging();
    repo.town.start_daemon();
    repo.write("VERSION", "not yet committed\n");
    repo.town.shell_bead("y-a", "echo 2 > VERSION");
    repo.town.shell_bead("y-b", "echo b > other");
    repo.town.run(["sling", "y-a", "y-b"]).ok();
    repo.town.await_state("y-a", "blocked");
    let why = repo.town.json(["why", "y-a"]).to_string();
    assert!(why.contains("VERSION") && why.contains("commit or stash"), "{why}");
    repo.town.await_state("y-b", "closed");
    assert_eq!(
        (repo.read("VERSION"), repo.read("other")),
        ("not yet committed\n".to_owned(), "b\n".to_owned())
    );
    repo.git(["checkout", "--quiet", "VERSION"]);
    repo.town.run(["scheduler", "retry", "y-a"]).ok();
    repo.town.await_state("y-a", "closed");
    assert_eq!(repo.read("VERSION"), "2\n");
    repo.town.stop_daemon();
}

#[test]
fn a_base_that_is_checked_out_nowhere_is_moved_all_the_same() {
    let mut repo = Repo::merging();
    repo.git(["branch", "trunk"]);
    let main = repo.head("main");
    repo.town.start_daemon();
    for id in ["y-a", "y-b"] {
        repo.town.shell_bead(id, &format!("test \"$YM_BASE_BRANCH\" = trunk && echo {id} > {id}"));
    }
    repo.town.run(["sling", "y-a", "y-b", "--base-branch", "trunk"]).ok();
    repo.town.await_state("y-a", "closed");
    repo.town.await_state("y-b", "closed");
    assert_eq!(repo.head("main"), main);
    assert_eq!(repo.git(["show", "trunk:y-a"]), "y-a");
    assert_eq!(repo.git(["show", "trunk:y-b"]), "y-b");
    assert!(!repo.root().join("y-a").exists());
    repo.town.stop_daemon();
}
