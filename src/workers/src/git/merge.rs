//! Merging without touching either branch, and moving the base when that is decided.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{Git, GitError, refused};

/// A branch that is to be merged into another.
#[derive(Debug, Clone)]
pub struct MergeOrder {
    /// A directory in the repository.
    pub repo: PathBuf,
    /// What is merged.
    pub branch: String,
    /// Into what.
    pub base: String,
    /// What the merge says about itself.
    pub message: String,
}

/// What came of making a merged tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Composed {
    /// The base has everything already.
    AlreadyIn {
        /// Where the base stands.
        commit: String,
    },
    /// The base may go from one commit to the other.
    Ready {
        /// Where the base stood.
        onto: String,
        /// The merged tree.
        commit: String,
    },
    /// Both sides changed the same places.
    Conflict {
        /// Of these files.
        files: Vec<String>,
    },
}

/// Makes the merged tree as a commit that no branch has. Neither branch is touched, nor any directory.
pub fn compose(order: &MergeOrder) -> Result<Composed, GitError> {
    let git = Git::at(&order.repo);
    let gone = |branch: &str| GitError::Unfit(format!("the branch {branch} is gone"));
    let base = git.branch_commit(&order.base)?.ok_or_else(|| gone(&order.base))?;
    let head = git.branch_commit(&order.branch)?.ok_or_else(|| gone(&order.branch))?;
    if git.is_ancestor(&head, &base)? {
        return Ok(Composed::AlreadyIn { commit: base });
    }
    if git.is_ancestor(&base, &head)? {
        return Ok(Composed::Ready { onto: base, commit: head });
    }
    match merged_tree(git, &base, &head)? {
        Err(files) => Ok(Composed::Conflict { files }),
        Ok(tree) => {
            let commit = commit_tree(git, &tree, [&base, &head], &order.message)?;
            Ok(Composed::Ready { onto: base, commit })
        }
    }
}

/// The tree of both, or the files in which they conflict.
fn merged_tree(git: Git<'_>, base: &str, head: &str) -> Result<Result<String, Vec<String>>, GitError> {
    let args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", base, head];
    let output = git.output(&args)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut parts = text.split('\0').filter(|part| !part.is_empty());
    match (output.status.code(), parts.next()) {
        (Some(0), Some(tree)) => Ok(Ok(tree.trim().to_owned())),
        (Some(1), Some(_)) => Ok(Err(parts.map(ToOwned::to_owned).collect())),
        _ => Err(refused(&args, &output)),
    }
}

fn commit_tree(git: Git<'_>, tree: &str, parents: [&str; 2], message: &str) -> Result<String, GitError> {
    let mut args = git.identity();
    args.extend(["commit-tree", tree, "-p", parents[0], "-p", parents[1], "-F", "-"]);
    let mut command = git.command(&args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(GitError::NotRun)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A message that is not taken makes the command fail, which is looked at below.
        let _ = stdin.write_all(message.as_bytes());
    }
    let output = child.wait_with_output().map_err(GitError::NotRun)?;
    if !output.status.success() {
        return Err(refused(&args, &output));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What came of moving the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landed {
    /// It is where it should be, or beyond.
    Done,
    /// It is somewhere else than expected: nothing was done.
    Moved,
}

/// Moves the base from one commit to another, with the directory in which it is checked out, if there is one. Local
/// changes there are kept; where they are in the way, nothing is done and git says so.
pub fn land(order: &MergeOrder, onto: &str, commit: &str) -> Result<Landed, GitError> {
    let git = Git::at(&order.repo);
    let Some(now) = git.branch_commit(&order.base)? else { return Ok(Landed::Moved) };
    if now == commit || git.is_ancestor(commit, &now)? {
        return Ok(Landed::Done);
    }
    if now != onto {
        return Ok(Landed::Moved);
    }
    match checked_out_at(git, &order.base)? {
        Some(directory) => forward(&directory, commit)?,
        None => move_branch(git, &order.base, onto, commit)?,
    }
    Ok(Landed::Done)
}

fn move_branch(git: Git<'_>, base: &str, onto: &str, commit: &str) -> Result<(), GitError> {
    let name = format!("refs/heads/{base}");
    git.say(&["update-ref", "-m", "ym: merged", &name, commit, onto]).map(|_| ())
}

/// Takes the directory along in which the base is checked out.
fn forward(directory: &Path, commit: &str) -> Result<(), GitError> {
    let args = ["-c", "merge.autoStash=false", "merge", "--ff-only", "--quiet", commit];
    let (what, said) = match Git::at(directory).say(&args) {
        Err(GitError::Refused { what, said }) => (what, said),
        other => return other.map(|_| ()),
    };
    let said = format!("{said} (in {}; commit or stash what is in the way)", directory.display());
    Err(GitError::Refused { what, said })
}

/// The directory in which a branch is checked out.
fn checked_out_at(git: Git<'_>, branch: &str) -> Result<Option<PathBuf>, GitError> {
    let text = git.say(&["worktree", "list", "--porcelain", "-z"])?;
    let wanted = format!("branch refs/heads/{branch}");
    for entry in text.split("\0\0") {
        let mut lines = entry.split('\0').filter(|line| !line.is_empty());
        let place = lines.clone().find_map(|line| line.strip_prefix("worktree "));
        // One whose directory somebody has deleted is nowhere.
        let is_there = !lines.clone().any(|line| line.starts_with("prunable"));
        if lines.any(|line| line == wanted) && is_there {
            return Ok(place.map(PathBuf::from));
        }
    }
    Ok(None)
}

/// Where the base stands, if everything of a branch is in it: as such, squashed or rebased. A branch that is gone counts
/// by the commit it was last known at.
pub fn is_in_base(order: &MergeOrder, last_known: &str) -> Result<Option<String>, GitError> {
    let git = Git::at(&order.repo);
    let Some(base) = git.branch_commit(&order.base)? else { return Ok(None) };
    let head = git.branch_commit(&order.branch)?.unwrap_or_else(|| last_known.to_owned());
    if git.is_ancestor(&head, &base)? {
        return Ok(Some(base));
    }
    let tree = git.say(&["rev-parse", "--verify", &format!("{base}^{{tree}}")])?;
    let adds_nothing = merged_tree(git, &base, &head)? == Ok(tree);
    Ok(adds_nothing.then_some(base))
}
