//! A dispatch's own worktree, as its shim makes it and leaves it.

use std::path::{Path, PathBuf};

use yard_engine::worktree::Worktree;

use super::{Git, GitError};
use crate::spec::{WorktreePlace, WorktreeSpec};

/// What git leaves in a worktree that it has not finished making.
const UNFINISHED: &str = "initializing";

/// How to get into a worktree.
#[derive(Debug)]
pub(crate) struct Entrance {
    /// What has to be run first, in the rig's directory; nothing if it is there already.
    pub(crate) argv: Option<Vec<String>>,
    /// Where programs run: the same place in the worktree as the rig's directory has in its repository.
    pub(crate) cwd: PathBuf,
    /// What it is; none for one without a branch.
    pub(crate) worktree: Option<Worktree>,
}

/// Finds out how to get into a worktree. Takes nothing away but what git itself left half-made.
pub(crate) fn plan(spec: &WorktreeSpec) -> Result<Entrance, GitError> {
    let git = Git::at(&spec.repo);
    let inside = git.say(&["rev-parse", "--show-prefix"]).map_err(|error| match error {
        GitError::Refused { .. } => GitError::Unfit(format!(
            "isolation = \"worktree\" needs a git repository, and {} is in none ({error})",
            spec.repo.display()
        )),
        other => other,
    })?;
    let cwd = spec.path.join(inside);
    let add = |more: &[&str]| {
        let fixed = ["git", "worktree", "add", "--quiet"];
        Some(fixed.iter().chain(more).map(|word| (*word).to_owned()).collect::<Vec<_>>())
    };
    let path = spec.path.to_str().ok_or_else(|| GitError::Unfit("the town's path is not text".to_owned()))?;
    match &spec.place {
        WorktreePlace::Detached { commit } => {
            Ok(Entrance { argv: add(&["--detach", path, commit]), cwd, worktree: None })
        }
        WorktreePlace::New { made_for, branch, base } => {
            let base = match base {
                Some(base) => base.clone(),
                None => current_branch(git, &spec.repo)?,
            };
            let start = git.branch_commit(&base)?.ok_or_else(|| no_branch(&base, &spec.repo))?;
            let argv = add(&["--no-track", "-b", branch, path, &start]);
            let (made_for, branch) = (made_for.clone(), branch.clone());
            let worktree = Worktree { made_for, branch, base, start, finished: false, head: None };
            Ok(Entrance { argv, cwd, worktree: Some(worktree) })
        }
        WorktreePlace::Again { worktree } => {
            let argv = if is_whole(&spec.path) {
                None
            } else {
                clear_away(git, &spec.path);
                match git.branch_commit(&worktree.branch)? {
                    Some(_) => add(&[path, &worktree.branch]),
                    None => add(&["--no-track", "-b", &worktree.branch, path, &worktree.start]),
                }
            };
            let worktree = Worktree { finished: false, head: None, ..worktree.clone() };
            Ok(Entrance { argv, cwd, worktree: Some(worktree) })
        }
    }
}

fn current_branch(git: Git<'_>, repo: &Path) -> Result<String, GitError> {
    git.say(&["symbolic-ref", "--quiet", "--short", "HEAD"]).map_err(|error| match error {
        GitError::Refused { .. } => GitError::Unfit(format!(
            "{} is on no branch: say which one to start from with --base-branch",
            repo.display()
        )),
        other => other,
    })
}

fn no_branch(base: &str, repo: &Path) -> GitError {
    GitError::Unfit(format!(
        "there is no branch '{base}' with a commit in {}: make it, or say another one with --base-branch",
        repo.display()
    ))
}

/// Whether git has finished making a worktree.
fn is_whole(path: &Path) -> bool {
    let git = Git::at(path);
    let is_here =
        path.join(".git").exists() && git.say(&["rev-parse", "--verify", "--quiet", "HEAD"]).is_ok();
    let Ok(own) = git.say(&["rev-parse", "--absolute-git-dir"]) else { return false };
    let locked = std::fs::read_to_string(Path::new(&own).join("locked")).unwrap_or_default();
    is_here && locked.trim() != UNFINISHED
}

/// Takes away what is left of a worktree that was never finished, or that somebody has deleted.
fn clear_away(git: Git<'_>, path: &Path) {
    // What cannot be taken away makes the next step fail, with git's own words.
    let path = path.as_os_str();
    let _ = git.output(&["worktree".as_ref(), "remove".as_ref(), "-f".as_ref(), "-f".as_ref(), path]);
    let _ = git.output(&["worktree", "prune"]);
}

/// Puts everything a worker left in its worktree on its branch, and says where that stands now.
pub(crate) fn finish(path: &Path, worktree: &Worktree, message: &str) -> Result<Worktree, GitError> {
    let git = Git::at(path);
    let unmerged = git.say(&["ls-files", "--unmerged"])?;
    if !unmerged.is_empty() {
        let files: Vec<&str> = unmerged.lines().filter_map(|line| line.split('\t').nth(1)).collect();
        let mut files: Vec<&str> = files.into_iter().take(10).collect();
        files.dedup();
        return Err(GitError::Unfit(format!(
            "the worker left a merge unfinished in its worktree: {}",
            files.join(", ")
        )));
    }
    git.commit_all(message)?;
    let head = git.say(&["rev-parse", "--verify", "HEAD"])?;
    if git.branch_commit(&worktree.branch)?.as_ref() != Some(&head) {
        // It worked on another branch, or on none; what it left checked out is its work.
        git.say(&[
            "update-ref",
            "-m",
            "ym: what the worker left",
            &format!("refs/heads/{}", worktree.branch),
            &head,
        ])?;
    }
    Ok(Worktree { finished: true, head: (head != worktree.start).then_some(head), ..worktree.clone() })
}
