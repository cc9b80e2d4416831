//! Taking worktrees away, without losing anything that is only in them.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Git, GitError, Turn};

/// A worktree that is to go.
#[derive(Debug, Clone)]
pub struct Condemned {
    /// A directory in its repository, besides the worktree itself.
    pub repo: PathBuf,
    /// Where it is.
    pub path: PathBuf,
    /// Its branch, if it is to go as well, and the commit at which it may.
    pub branch: Option<(String, String)>,
    /// What is in it goes onto its branch first; otherwise a worktree with changes stays.
    pub commit_first: Option<String>,
}

/// Removes a worktree. One that holds what is in no commit stays, unless that is committed first; so does a branch that
/// has moved on.
pub fn remove_worktree(condemned: &Condemned) -> Result<(), GitError> {
    let git = Git::at(&condemned.repo);
    let _turn = Turn::wait(&condemned.path);
    if condemned.path.exists() {
        let inside = Git::at(&condemned.path);
        match &condemned.commit_first {
            Some(message) => inside.commit_all(message)?,
            None if inside.say(&["status", "--porcelain"])?.is_empty() => {}
            None => {
                let path = condemned.path.display();
                return Err(GitError::Unfit(format!("{path} holds changes that are in no commit")));
            }
        }
        keep_commits(inside, &condemned.path)?;
        no_submodules(inside, &condemned.path)?;
        let path = condemned.path.as_os_str();
        git.say(&["worktree".as_ref(), "remove".as_ref(), "--force".as_ref(), path])?;
    }
    // Also for one whose directory somebody has deleted.
    git.say(&["worktree", "prune"])?;
    if let Some((branch, commit)) = &condemned.branch
        && git.branch_commit(branch)?.as_ref() == Some(commit)
    {
        git.say(&["update-ref", "-d", &format!("refs/heads/{branch}"), commit])?;
    }
    Ok(())
}

/// Takes away a place of which nothing is to be kept, such as that of a check. What stays is only clutter, and is listed.
pub(crate) fn discard(repo: &Path, path: &Path) {
    let git = Git::at(repo);
    let _turn = Turn::wait(path);
    let words = ["worktree", "remove", "--force"].map(OsStr::new);
    if git.say(&[words.as_slice(), &[path.as_os_str()]].concat()).is_err() {
        let _ = std::fs::remove_dir_all(path);
        let _ = git.say(&["worktree", "prune"]);
    }
}

/// The repositories of a worktree's submodules lie in its own administration, and would go with it.
fn no_submodules(inside: Git<'_>, path: &Path) -> Result<(), GitError> {
    let own = inside.say(&["rev-parse", "--absolute-git-dir"])?;
    if Path::new(&own).join("modules").is_dir() {
        return Err(GitError::Unfit(format!(
            "{0} has submodules, whose own commits would be lost with it; push them, then git worktree remove --force {0}",
            path.display()
        )));
    }
    Ok(())
}

/// Gives a name to what is checked out, if no branch has it: a worker may have left its branch.
fn keep_commits(inside: Git<'_>, path: &Path) -> Result<(), GitError> {
    if inside.is_so(&["symbolic-ref", "--quiet", "HEAD"])? {
        return Ok(());
    }
    let holders = inside.say(&["branch", "--format=%(refname)", "--contains", "HEAD"])?;
    let name = path.file_name().map(|name| name.to_string_lossy().replace("..", "._."));
    // A detached head is listed as well, in words of its own.
    if let Some(name) = name.filter(|_| !holders.contains("refs/heads/")) {
        inside.say(&["branch", &format!("ym/{name}-left"), "HEAD"])?;
    }
    Ok(())
}

/// The branches of a repository whose names begin like this.
pub fn branches_under(repo: &Path, prefix: &str) -> Result<Vec<String>, GitError> {
    let names =
        Git::at(repo).say(&["for-each-ref", "--format=%(refname:short)", &format!("refs/heads/{prefix}")])?;
    Ok(names.lines().map(str::to_owned).collect())
}

/// How many bytes a directory takes on disk.
pub fn disk_use(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let of_entry = |entry: std::fs::DirEntry| {
        let Ok(meta) = entry.metadata() else { return 0 };
        let below = if meta.is_dir() { disk_use(&entry.path()) } else { 0 };
        meta.blocks() * 512 + below
    };
    entries.flatten().map(of_entry).sum()
}
