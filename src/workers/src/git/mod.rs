//! Git, as workers and merges need it: always the program itself, always with argument lists.
//!
//! Promises: nothing here moves a branch except [`land`], which moves the base from one commit to another or not at all,
//! and [`finish`], which moves the branch of a worktree to what is checked out there. A directory is removed only if git
//! finds nothing in it that would be lost.

mod merge;
mod remove;
mod turn;
mod worktree;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

pub use merge::{Composed, Landed, MergeOrder, compose, is_in_base, land};
pub(crate) use remove::discard;
pub use remove::{Condemned, branches_under, disk_use, remove_worktree};
pub(crate) use turn::Turn;
pub(crate) use worktree::{finish, plan};

/// What git did not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// The program itself cannot be run.
    #[error("git cannot be run: {0}; install git, or use isolation = \"none\"")]
    NotRun(std::io::Error),
    /// It said no.
    #[error("git {what}: {said}")]
    Refused {
        /// Which command.
        what: String,
        /// Its own words.
        said: String,
    },
    /// Something is not as it has to be.
    #[error("{0}")]
    Unfit(String),
}

/// Variables by which git would work on another repository than the one it is started in.
const MISLEADING: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
];

/// How often a repository that somebody else is at is tried again.
const MOST_TRIES: u32 = 25;
/// And how long is waited in between.
const PAUSE: Duration = Duration::from_millis(200);

/// Whether git only stumbled over another git, which will soon be done.
pub(crate) fn is_passing(said: &str) -> bool {
    let is_locked = said.contains(".lock': File exists") || said.contains("cannot lock ref");
    // A worktree that is just being made has files without contents for a moment.
    let is_unfinished = said.contains("/worktrees/") && said.contains("failed to read");
    is_locked || is_unfinished
}

/// A hook that hangs must not hold up every merge, nor housekeeping outlive what it was started by.
const OURS: [&str; 6] = ["-c", "core.hooksPath=/dev/null", "-c", "maintenance.auto=false", "-c", "gc.auto=0"];

/// Git in a directory.
#[derive(Debug, Clone, Copy)]
struct Git<'a> {
    dir: &'a Path,
}

impl<'a> Git<'a> {
    fn at(dir: &'a Path) -> Self {
        Self { dir }
    }

    fn command<S: AsRef<OsStr>>(self, args: &[S]) -> Command {
        let mut command = Command::new("git");
        command.current_dir(self.dir).args(OURS).args(args).stdin(Stdio::null());
        // Its words are read by us, and nobody is there to be asked for a password.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        for name in MISLEADING {
            command.env_remove(name);
        }
        command
    }

    /// Runs it and takes what it says, whatever its exit code. What only another git is in the way of is tried again.
    fn output<S: AsRef<OsStr>>(self, args: &[S]) -> Result<Output, GitError> {
        let mut tries = 0;
        loop {
            if !self.dir.is_dir() {
                return Err(GitError::Unfit(format!("the directory {} is gone", self.dir.display())));
            }
            let output = self.command(args).output().map_err(GitError::NotRun)?;
            let in_the_way = !output.status.success() && is_passing(&String::from_utf8_lossy(&output.stderr));
            if !in_the_way || tries == MOST_TRIES {
                return Ok(output);
            }
            tries += 1;
            std::thread::sleep(PAUSE);
        }
    }

    /// What it says, without the last newline; an error if its exit code is not zero.
    fn say<S: AsRef<OsStr>>(self, args: &[S]) -> Result<String, GitError> {
        let output = self.output(args)?;
        if !output.status.success() {
            return Err(refused(args, &output));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
    }

    /// The answer of a command that asks by its exit code: 0 is yes, 1 is no.
    fn is_so<S: AsRef<OsStr>>(self, args: &[S]) -> Result<bool, GitError> {
        let output = self.output(args)?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(refused(args, &output)),
        }
    }

    /// The commit a branch stands at; none if there is no such branch.
    fn branch_commit(self, branch: &str) -> Result<Option<String>, GitError> {
        let name = format!("refs/heads/{branch}^{{commit}}");
        let output = self.output(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name])?;
        let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !commit.is_empty()).then_some(commit))
    }

    fn is_ancestor(self, of: &str, commit: &str) -> Result<bool, GitError> {
        self.is_so(&["merge-base", "--is-ancestor", of, commit])
    }

    /// Commits everything that git does not ignore, without hooks: what was forgotten must not be lost for one of them.
    fn commit_all(self, message: &str) -> Result<(), GitError> {
        if self.say(&["status", "--porcelain"])?.is_empty() {
            return Ok(());
        }
        self.say(&["add", "--all"])?;
        let mut commit = self.identity();
        commit.extend(["commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", message]);
        self.say(&commit).map(|_| ())
    }

    /// Arguments that name somebody as the author, where nobody has told git who that is.
    fn identity(self) -> Vec<&'static str> {
        let known = self.output(&["var", "GIT_COMMITTER_IDENT"]).is_ok_and(|output| output.status.success());
        if known {
            Vec::new()
        } else {
            vec!["-c", "user.name=Yardmaster", "-c", "user.email=yardmaster@localhost"]
        }
    }
}

/// The oldest git that merges without a checkout.
pub const OLDEST_GIT: (u32, u32) = (2, 38);

/// The version of the git that is used, as far as it matters.
pub fn git_version() -> Result<(u32, u32), GitError> {
    let said = Git::at(Path::new("/")).say(&["version"])?;
    let numbers = said.split_whitespace().find_map(|word| {
        let mut parts = word.split('.').map_while(|part| part.parse::<u32>().ok());
        Some((parts.next()?, parts.next()?))
    });
    numbers.ok_or_else(|| GitError::Unfit(format!("git says {said:?} when asked for its version")))
}

fn refused<S: AsRef<OsStr>>(args: &[S], output: &Output) -> GitError {
    let words = args.iter().map(|arg| arg.as_ref().to_string_lossy());
    let what =
        words.skip_while(|word| word.starts_with('-') || word.contains('=')).take(2).collect::<Vec<_>>();
    let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("hint:"));
    let said = lines.take(12).collect::<Vec<_>>().join(" ");
    let said = if said.is_empty() { format!("it ended without a word ({})", output.status) } else { said };
    GitError::Refused { what: what.join(" "), said }
}
