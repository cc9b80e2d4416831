//! A worktree for each dispatch: kept when it failed, gone when it is merged, never shared.

use yard_tests::repo::Repo;
use yard_tests::town::{Town, wait_until};

#[test]
fn what_a_worker_leaves_uncommitted_is_committed_under_the_beads_title() {
    let mut repo = Repo::merging();
    repo.town.start_daemon();
    repo.town
        .run([
            "bead",
            "add",
            "Paint the fence",
            "--id",
            "y-a",
            "--",
            "sh",
            "-c",
            "echo red > fence; pwd > where",
        ])
        .ok();
    repo.town.run(["sling", "y-a"]).ok();
    repo.town.await_state("y-a", "closed");
    assert_eq!(repo.read("fence"), "red\n");
    assert!(repo.read("where").trim_end().ends_with("/.yardmaster/worktrees/y-a@1"));
    let message = repo.git(["log", "-1", "--format=%B", "main"]);
    assert!(message.starts_with("Paint the fence\n") && message.contains("Dispatch: y-a@1"), "{message}");
    wait_until("its worktree and its branch to be gone", || {
        repo.worktrees().is_empty() && repo.branches() == ["main".to_owned()].into()
    });
    repo.town.stop_daemon();
}

#[test]
fn what_a_worker_leaves_running_keeps_nothing_of_its_work_from_being_merged() {
    let mut repo = Repo::merging();
    repo.town.start_daemon();
    // As git itself does it: housekeeping that outlives the commit it was started by.
    let identity = "git -c user.name=x -c user.email=x@y";
    let committed = format!("sleep 1000 & echo a > a; git add a; {identity} commit -qm a");
    repo.town.shell_bead("y-a", &committed);
    repo.town.shell_bead("y-b", "sleep 1000 & echo b > b");
    repo.town.run(["sling", "y-a", "y-b"]).ok();
    for id in ["y-a", "y-b"] {
        repo.town.await_state(id, "closed");
    }
    assert_eq!((repo.read("a"), repo.read("b")), ("a\n".to_owned(), "b\n".to_owned()));
    assert_eq!(repo.town.events(Some("merge.merged")).len(), 2);
    repo.town.stop_daemon();
}

#[test]
fn a_worktree_whose_submodules_have_commits_of_their_own_is_not_removed() {
    let mut repo = Repo::merging();
    let other = tempfile::tempdir().expect("temporary directory");
    Repo::git_in(other.path(), ["init", "--quiet"]);
    Repo::git_in(other.path(), ["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let path = other.path().to_string_lossy().into_owned();
    repo.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &path, "sub"]);
    repo.commit("a submodule");
    repo.town.start_daemon();
    let script = "git -c protocol.file.allow=always submodule --quiet update --init && cd sub && \
                  git -c user.name=x -c user.email=x@y commit -q --allow-empty -m precious";
    repo.town.shell_bead("y-a", script);
    repo.town.run(["sling", "y-a"]).ok();
    repo.town.await_state("y-a", "closed");
    let commit = repo.git(["rev-parse", "main:sub"]);
    let said = repo.town.run(["worktree", "prune"]);
    assert!(said.code == 1 && said.stderr.contains("submodules"), "{}", said.stderr);
    assert_eq!(Repo::git_in(&repo.worktree("y-a@1").join("sub"), ["cat-file", "-t", &commit]), "commit");
    repo.town.stop_daemon();
}

#[test]
fn failed_attempts_keep_their_worktrees_and_share_none() {
    let mut repo = Repo::merging();
    repo.town.set("retry.crash.backoff", r#"["0s"]"#);
    repo.town.set("retry.crash.max_attempts", "2");
    repo.town.start_daemon();
    repo.town.shell_bead("y-a", "test -e left && exit 9; echo $YM_DISPATCH > left; exit 3");
    repo.town.run(["sling", "y-a"]).ok();
    repo.town.await_state("y-a", "failed");
    assert_eq!(repo.worktrees(), ["y-a@1".to_owned(), "y-a@2".to_owned()].into());
    for attempt in ["y-a@1", "y-a@2"] {
        let left = std::fs::read_to_string(repo.worktree(attempt).join("left")).expect("readable");
        assert_eq!(left.trim(), attempt, "each began with nothing of the other's");
    }
    let listed = repo.town.json(["worktree", "list"]);
    let states: Vec<_> = listed["worktrees"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|w| (&w["state"], &w["prunable"]))
        .collect();
    assert_eq!(states, [(&"kept".into(), &true.into()), (&"kept".into(), &false.into())]);
    assert!(listed["bytes"].as_u64().is_some_and(|bytes| bytes > 0));

    let dry = repo.town.json(["worktree", "prune", "--dry-run"]);
    assert_eq!((&dry["pruned"][0]["id"], repo.worktrees().len()), (&"y-a@1".into(), 2));
    repo.town.run(["worktree", "prune"]).ok();
    assert_eq!(repo.worktrees(), ["y-a@2".to_owned()].into());
    assert_eq!(repo.git(["show", "ym/y-a@1:left"]), "y-a@1", "what it left is on its branch");
    repo.town.run(["worktree", "prune", "--all"]).ok();
    assert!(repo.worktrees().is_empty());
    assert_eq!(repo.town.refused(["worktree", "prune", "y-a@2"]), "unknown-worktree");
    repo.town.stop_daemon();
}

#[test]
fn commits_that_no_branch_has_are_kept_when_a_worktree_is_pruned() {
    let mut repo = Repo::merging();
    repo.town.set("retry.crash.max_attempts", "1");
    repo.town.start_daemon();
    let script = "git checkout -q --detach; echo precious > find; git add find; \
                  git -c user.name=x -c user.email=x@y commit -qm find; echo more >> find; exit 3";
    repo.town.shell_bead("y-a", script);
    repo.town.run(["sling", "y-a"]).ok();
    repo.town.await_state("y-a", "failed");
    repo.town.run(["worktree", "prune", "--all"]).ok();
    assert!(repo.worktrees().is_empty());
    assert_eq!(repo.git(["show", "ym/y-a@1-left:find"]), "precious\nmore");
    repo.town.stop_daemon();
}

#[test]
fn a_worktree_in_use_is_not_pruned() {
    let mut repo = Repo::merging();
    repo.town.start_daemon();
    repo.town.shell_bead("y-a", "sleep 1000");
    repo.town.run(["sling", "y-a"]).ok();
    wait_until("its worktree", || repo.worktree("y-a@1").join("VERSION").exists());
    assert_eq!(repo.town.json(["worktree", "list"])["worktrees"][0]["state"], "in-use");
    assert_eq!(repo.town.refused(["worktree", "prune", "y-a@1"]), "in-use");
    repo.town.run(["worktree", "prune", "--all"]).ok();
    assert!(repo.worktree("y-a@1").join("VERSION").exists());
    repo.town.run(["kill", "y-a"]).ok();
    repo.town.await_state("y-a", "cancelled");
    assert!(repo.worktree("y-a@1").exists(), "what was called off is kept to be looked at");
    repo.town.stop_daemon();
}

#[test]
fn an_attempt_that_gave_way_goes_on_where_its_work_lies() {
    let mut repo = Repo::merging();
    let formula = "isolation = 'worktree'\n[[steps]]\nid = 'draft'\nshell = 'echo draft > text; pwd > first'\n\
                   [[steps]]\nid = 'polish'\nshell = 'if [ $YM_ATTEMPT = 1 ]; then exit 75; fi; echo polished >> text; pwd > second'\n";
    std::fs::write(repo.root().join(".yardmaster/formulas/two.toml"), formula).expect("written");
    repo.town.run(["bead", "add", "write", "--id", "y-a"]).ok();
    repo.town.start_daemon();
    repo.town.run(["sling", "y-a", "--formula", "two"]).ok();
    repo.town.await_state("y-a", "closed");
    assert_eq!(repo.read("text"), "draft\npolished\n");
    assert_eq!(repo.read("first"), repo.read("second"), "an agent's session is bound to its directory");
    repo.town.stop_daemon();
}

#[test]
fn a_rig_in_a_part_of_a_repository_works_in_the_same_part() {
    let mut repo = Repo::merging();
    repo.write("web/page", "hello\n");
    repo.commit("a page");
    let path = repo.root().join("web").to_string_lossy().into_owned();
    repo.town.run(["rig", "add", "web", "--prefix", "web", "--path", &path]).ok();
    repo.town.start_daemon();
    repo.town
        .run(["bead", "add", "page", "--id", "web-a", "--rig", "web", "--", "sh", "-c", "echo world >> page"])
        .ok();
    repo.town.run(["sling", "web-a"]).ok();
    repo.town.await_state("web-a", "closed");
    assert_eq!(repo.read("web/page"), "hello\nworld\n");
    repo.town.stop_daemon();
}

#[test]
fn what_cannot_have_a_worktree_says_why_and_counts_as_a_failed_start() {
    let mut town = Town::new();
    town.set("worker.isolation", "worktree");
    town.set("scheduler.max_polecats", "2");
    town.start_daemon();
    town.shell_bead("y-a", "true");
    town.run(["sling", "y-a"]).ok();
    town.await_state("y-a", "circuit-broken");
    let failure = town.json(["show", "y-a"])["context"]["last_failure"].to_string();
    assert!(failure.contains("needs a git repository"), "{failure}");
    town.stop_daemon();

    let mut repo = Repo::merging();
    repo.town.start_daemon();
    repo.town.shell_bead("y-a", "true");
    repo.town.run(["sling", "y-a", "--base-branch", "nowhere"]).ok();
    repo.town.await_state("y-a", "circuit-broken");
    let failure = repo.town.json(["show", "y-a"])["context"]["last_failure"].to_string();
    assert!(failure.contains("there is no branch 'nowhere'"), "{failure}");
    assert!(repo.worktrees().is_empty());
    repo.town.stop_daemon();
}

#[test]
fn a_worker_that_leaves_a_merge_unfinished_has_failed() {
    let mut repo = Repo::merging();
    repo.town.set("retry.crash.max_attempts", "1");
    repo.town.start_daemon();
    let script = "git config user.name x; git config user.email x@y; git checkout -q -b side; echo side > VERSION; \
                  git commit -qam side; git checkout -q -; echo here > VERSION; git commit -qam here; git merge -q side; exit 0";
    repo.town.shell_bead("y-a", script);
    repo.town.run(["sling", "y-a"]).ok();
    repo.town.await_state("y-a", "failed");
    let shown = repo.town.json(["show", "y-a"]);
    let message = shown["dispatches"][0]["ended"]["outcome"]["message"].to_string();
    assert!(message.contains("left a merge unfinished") && message.contains("VERSION"), "{message}");
    assert_eq!(repo.read("VERSION"), "1\n");
    repo.town.stop_daemon();
}
