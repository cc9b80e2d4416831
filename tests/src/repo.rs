//! A real git repository that is a town: what is merged, what is checked out, and whether it still builds.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::town::Town;

/// Builds the repository: every part must find the parts it needs.
const BUILD: &str = "#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")\"\nfor part in parts/*.sh; do . ./$part; done\n\
                     for part in parts/*.sh; do part_$(basename $part .sh); done\necho built\n";

/// A repository whose branch `main` is checked out, with a town in it.
#[derive(Debug)]
pub struct Repo {
    /// The town; its first rig is the repository, with the prefix `y`.
    pub town: Town,
}

impl Repo {
    /// A repository in which each dispatch works in a worktree, and we merge by ourselves.
    pub fn merging() -> Self {
        let repo = Self::new();
        repo.town.set("worker.isolation", "worktree");
        repo.town.set("worker.merge", "direct");
        repo.town.set("scheduler.max_polecats", "4");
        repo
    }

    /// The same, with nothing configured.
    pub fn new() -> Self {
        let town = Town::new();
        let repo = Self { town };
        repo.git(["init", "--quiet", "--initial-branch=main"]);
        repo.write("build.sh", BUILD);
        repo.write("parts/start.sh", "part_start() { :; }\n");
        repo.write("VERSION", "1\n");
        // The town lies in the repository, and does not belong to it.
        repo.write(".git/info/exclude", ".yardmaster\ndaemon.log\n");
        repo.commit("the beginning");
        repo
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        self.town.root()
    }

    /// Runs git in a directory; it must do well.
    pub fn git_in<S: AsRef<OsStr>>(dir: &Path, args: impl IntoIterator<Item = S>) -> String {
        let mut command = Command::new("git");
        command.current_dir(dir).args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]);
        let output = command.args(args).output().expect("git runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Runs git in the repository.
    pub fn git<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        Self::git_in(self.root(), args)
    }

    /// Writes a file of the checkout.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// A file of the checkout.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root().join(name)).expect("readable")
    }

    /// Commits everything in the checkout.
    pub fn commit(&self, message: &str) -> String {
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "-m", message]);
        self.head("main")
    }

    /// Where a branch stands.
    pub fn head(&self, branch: &str) -> String {
        self.git(["rev-parse", "--verify", branch])
    }

    /// The branches there are.
    pub fn branches(&self) -> BTreeSet<String> {
        self.git(["for-each-ref", "--format=%(refname:short)", "refs/heads"])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// The commits of a branch with their first lines, newest first.
    pub fn log(&self, branch: &str) -> Vec<(String, String)> {
        let text = self.git(["log", "--topo-order", "--format=%H %s", branch]);
        let split = |line: &str| line.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned()));
        text.lines().filter_map(split).collect()
    }

    /// The worktrees of dispatches that are on disk, by the dispatch.
    pub fn worktrees(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.root().join(".yardmaster/worktrees")).into_iter().flatten();
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.contains('@')).collect()
    }

    /// Where the worktree of a dispatch lies.
    pub fn worktree(&self, dispatch: &str) -> PathBuf {
        self.root().join(".yardmaster/worktrees").join(dispatch)
    }

    /// What a fresh checkout of a branch says when it is built.
    pub fn builds(&self, branch: &str) -> bool {
        let dir = tempfile::tempdir().expect("temporary directory");
        let place = dir.path().join("checkout");
        self.git([
            "clone".as_ref(),
            "--quiet".as_ref(),
            "--branch".as_ref(),
            branch.as_ref(),
            ".".as_ref(),
            place.as_os_str(),
        ]);
        let built = Command::new("sh").arg(place.join("build.sh")).output().expect("sh runs");
        built.status.success() && built.stdout.ends_with(b"built\n")
    }

    /// Nothing in the checkout differs from the branch it is on.
    pub fn check_clean(&self) {
        assert_eq!(self.git(["status", "--porcelain"]), "", "the checkout is as its branch is");
    }
}

impl Default for Repo {
    fn default() -> Self {
        Self::new()
    }
}
