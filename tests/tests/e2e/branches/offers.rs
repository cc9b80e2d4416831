//! Branches that somebody else merges: announced, listed, and noticed when they are in.

use serde_json::json;
use yard_tests::repo::Repo;
use yard_tests::town::wait_until;

#[test]
fn a_branch_for_review_is_announced_listed_by_land_and_noticed_when_it_is_merged() {
    let mut repo = Repo::merging();
    repo.town.set("worker.merge", "mr");
    let told = repo.root().join(".yardmaster/told");
    repo.town.set("alerts.command", &json!(["sh", "-c", "cat >> \"$0\"", told]).to_string());
    repo.town.start_daemon();
    repo.town.shell_bead("y-a", "echo a > a");
    repo.town.shell_bead("y-b", "echo b > b");
    repo.town.run(["bead", "dep", "add", "y-b", "y-a", "--type", "merge-blocks"]).ok();
    let convoy = repo.town.json(["convoy", "create", "Both", "y-a", "y-b", "--owned"])["id"].clone();
    let convoy = convoy.as_str().expect("an id");
    repo.town.run(["sling", convoy]).ok();
    repo.town.await_state("y-a", "closed");
    let main = repo.head("main");
    wait_until("the announcement", || {
        std::fs::read_to_string(&told).is_ok_and(|t| t.contains("merge-request"))
    });
    assert!(std::fs::read_to_string(&told).is_ok_and(|text| text.contains("git merge ym/y-a@1")));
    wait_until("its worktree to be gone", || repo.worktrees().is_empty());
    assert!(repo.branches().contains("ym/y-a@1"));
    assert_eq!(repo.head("main"), main);

    let why = repo.town.json(["why", "y-b"]);
    assert_eq!(why["reasons"][0]["message"], "waits for the merge of y-a");
    let dry = repo.town.json(["convoy", "land", convoy, "--dry-run", "--force"]);
    assert_eq!(
        (&dry["branches"][0]["branch"], &dry["branches"][0]["base"]),
        (&json!("ym/y-a@1"), &json!("main"))
    );
    let text = repo.town.run(["convoy", "land", convoy, "--dry-run", "--force"]).ok().stdout;
    assert!(text.contains("y-a: ym/y-a@1 is not in main yet"), "{text}");

    // As a forge does it: one new commit, the branch itself is never in main.
    repo.git(["merge", "--quiet", "--squash", "ym/y-a@1"]);
    repo.git(["commit", "--quiet", "-m", "a, squashed"]);
    repo.town.run(["poke"]).ok();
    repo.town.await_state("y-b", "closed");
    assert_eq!(repo.town.json(["show", "y-a"])["merge"]["stage"]["stage"], "merged");
    repo.git(["merge", "--quiet", "ym/y-b@1"]);
    repo.town.run(["poke"]).ok();
    wait_until("the second to be noticed", || repo.town.events(Some("merge.merged")).len() == 2);
    let landed = repo.town.json(["convoy", "land", convoy]);
    assert_eq!((&landed["changed"], &landed["branches"]), (&json!(true), &json!([])));
    repo.town.stop_daemon();
}

#[test]
fn local_and_no_merge_keep_the_branch_and_tell_nobody() {
    let mut repo = Repo::merging();
    repo.town.start_daemon();
    repo.town.shell_bead("y-a", "echo a > a");
    repo.town.shell_bead("y-b", "echo b > b");
    let main = repo.head("main");
    repo.town.run(["sling", "y-a", "--merge", "local"]).ok();
    repo.town.run(["sling", "y-b", "--no-merge"]).ok();
    for id in ["y-a", "y-b"] {
        repo.town.await_state(id, "closed");
    }
    wait_until("the worktrees to be gone", || repo.worktrees().is_empty());
    assert_eq!(repo.head("main"), main);
    assert_eq!(repo.branches(), ["main".to_owned(), "ym/y-a@1".to_owned(), "ym/y-b@1".to_owned()].into());
    assert!(repo.town.events(Some("alert.raised")).is_empty());
    repo.town.stop_daemon();
}
