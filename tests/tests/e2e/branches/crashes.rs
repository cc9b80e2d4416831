//! `kill -9` of the daemon in the middle of merges: the base is never half-merged, nor moved by anything that is not on
//! record.

use std::collections::BTreeSet;

use serde_json::json;
use yard_tests::dice::Dice;
use yard_tests::repo::Repo;
use yard_tests::town::{command_line, environment_has, processes, wait_until};

use super::part;

/// Whether some git of this town is still at work, as one that outlived its daemon may be.
fn git_is_at_work(repo: &Repo) -> bool {
    let here = format!("PWD={}", repo.root().display());
    let is_here = |pid: u32| {
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
        cwd.is_ok_and(|cwd| cwd.starts_with(repo.root())) || environment_has(pid, here.as_bytes())
    };
    processes().into_iter().any(|pid| command_line(pid).starts_with("git") && is_here(pid))
}

/// Every commit the base ever stood at was on record before it moved there.
fn check_base(repo: &Repo, base: &str, first: &str) {
    let recorded: BTreeSet<String> = repo
        .town
        .events(Some("merge.landing"))
        .iter()
        .filter_map(|e| Some(e["commit"].as_str()?.to_owned()))
        .collect();
    let moves = repo.git(["reflog", "show", "--format=%H", base]);
    for commit in moves.lines().filter(|commit| *commit != first) {
        assert!(recorded.contains(commit), "{base} was at {commit}, of which nothing is on record");
    }
    assert!(repo.builds(base), "{base} builds");
}

fn survive_kills(base: &str) {
    let (beads, kills) = if std::env::var_os("YM_TEST_FULL").is_some() { (150, 50) } else { (24, 8) };
    let mut dice = Dice::new();
    let mut repo = Repo::merging();
    repo.town.set("worker.check", r#"["sh", "build.sh"]"#);
    if base != "main" {
        repo.git(["branch", base]);
    }
    let first = repo.head(base);
    let ids: Vec<String> = (0..beads).map(|n| format!("y-{n}")).collect();
    for (n, id) in ids.iter().enumerate() {
        let on: Vec<&str> = if n >= 6 { vec![ids[n - 6].as_str()] } else { Vec::new() };
        part(&repo, id, &on);
    }
    let words = ["sling"].into_iter().chain(ids.iter().map(String::as_str)).chain(["--base-branch", base]);
    repo.town.run(words).ok();
    for kill in 0..kills {
        repo.town.start_daemon();
        let begun = kill * beads / (kills + 1);
        wait_until("merges to be under way", || repo.town.events(Some("merge.began")).len() > begun);
        for _ in 0..dice.below(12) {
            // Each look takes a moment: any point of a merge may be the next.
            std::hint::black_box(repo.town.events(Some("merge.merged")));
        }
        repo.town.kill_daemon();
        wait_until("what git was doing to be over", || !git_is_at_work(&repo));
        check_base(&repo, base, &first);
        repo.check_clean();
    }
    repo.town.start_daemon();
    let waited = repo.town.run(["--json", "wait", "--all", "--timeout", "300s"]).json();
    assert_eq!((&waited["failed"], &waited["stuck"]), (&json!([]), &json!([])), "{waited}");
    let closed = repo.town.events(Some("bead.closed")).len();
    assert_eq!(closed, beads, "each is merged once, and none is forgotten");
    check_base(&repo, base, &first);
    let has_branches = |repo: &Repo| repo.branches().iter().any(|branch| branch.starts_with("ym/"));
    let is_tidy = || repo.worktrees().is_empty() && !has_branches(&repo);
    wait_until(&format!("these to be gone: {:?} {:?}", repo.worktrees(), repo.branches()), is_tidy);
    repo.town.stop_daemon();
}

#[test]
fn kill_nine_during_merges_leaves_a_base_that_is_checked_out_whole_and_on_record() {
    survive_kills("main");
}

#[test]
fn kill_nine_during_merges_leaves_a_base_that_is_checked_out_nowhere_whole_and_on_record() {
    survive_kills("trunk");
}
