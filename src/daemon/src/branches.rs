//! Branches and worktrees on disk: where they lie, and the one thread that lets git work on them, so that the loop never
//! waits for it. What it found out comes back as an input; it decides nothing.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};

use tracing::warn;
use yard_engine::bead::Bead;
use yard_engine::context::Context;
use yard_engine::dispatch::Dispatch;
use yard_engine::merge::MergeProblem;
use yard_engine::worktree::Worktree;
use yard_engine::{BeadId, DispatchId};
use yard_workers::{
    Composed, Condemned, GitError, Landed, MergeOrder, WorktreePlace, WorktreeSpec, branches_under, compose,
    is_in_base, land, remove_worktree,
};

use crate::input::{Input, Inputs};
use crate::town::TownDir;

/// Something git is to do.
#[derive(Debug)]
pub enum GitJob {
    /// Make the merged tree of a bead's branch.
    Compose(BeadId, MergeOrder),
    /// Move the base, from one commit to another.
    Land {
        /// Whose branch.
        bead: BeadId,
        /// What is merged into what.
        order: MergeOrder,
        /// Where the base is expected to stand.
        onto: String,
        /// Where it is to stand.
        commit: String,
    },
    /// See which of these branches somebody else has merged.
    Look(Vec<Offer>),
    /// Take a worktree away.
    Remove(Condemned),
    /// See which branches of ours a repository has.
    List(PathBuf),
}

/// A branch that somebody else is to merge.
#[derive(Debug)]
pub struct Offer {
    /// Whose branch.
    pub bead: BeadId,
    /// What is to be merged into what.
    pub order: MergeOrder,
    /// The commit it was last known at.
    pub last_known: String,
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum GitNews {
    /// A merged tree is there.
    Composed {
        /// Whose branch.
        bead: BeadId,
        /// Where the base stood.
        onto: String,
        /// The merged commit.
        commit: String,
    },
    /// The base has it.
    Landed {
        /// Whose branch.
        bead: BeadId,
        /// The commit it is in as.
        commit: String,
    },
    /// The base was somewhere else than expected.
    Moved {
        /// Whose branch was to be merged.
        bead: BeadId,
    },
    /// These branches are in their base, as these commits.
    Looked(Vec<(BeadId, String)>),
    /// The branches of ours that a repository has.
    Branches(Vec<String>),
    /// A person has to look.
    Blocked {
        /// Whose branch.
        bead: BeadId,
        /// At what.
        problem: MergeProblem,
    },
}

/// The thread that lets git work, one job after the other.
#[derive(Debug)]
pub(crate) struct GitHand {
    jobs: Option<Sender<GitJob>>,
    news: Inputs,
}

impl GitHand {
    pub(crate) fn new(news: Inputs) -> Self {
        Self { jobs: None, news }
    }

    /// Hands a job over. The thread begins with the first one: most towns have none.
    pub(crate) fn take(&mut self, job: GitJob) {
        let jobs = self.jobs.get_or_insert_with(|| start(self.news.clone()));
        if let Err(mpsc::SendError(job)) = jobs.send(job) {
            // It could not be started, or has ended by a panic: once more with another one.
            let jobs = self.jobs.insert(start(self.news.clone()));
            drop(jobs.send(job));
        }
    }
}

fn start(news: Inputs) -> Sender<GitJob> {
    let (sender, received) = mpsc::channel::<GitJob>();
    let work = move || {
        for job in received {
            if let Some(found) = perform(job) {
                news.send(Input::Git(found));
            }
        }
    };
    let started = std::thread::Builder::new().name("ym-git".to_owned()).spawn(work);
    if let Err(error) = started {
        warn!(%error, "no thread for git; it is tried again");
    }
    sender
}

fn perform(job: GitJob) -> Option<GitNews> {
    match job {
        GitJob::Compose(bead, order) => Some(match compose(&order) {
            Ok(Composed::AlreadyIn { commit }) => GitNews::Landed { bead, commit },
            Ok(Composed::Ready { onto, commit }) => GitNews::Composed { bead, onto, commit },
            Ok(Composed::Conflict { files }) => {
                GitNews::Blocked { bead, problem: MergeProblem::Conflict { files } }
            }
            Err(error) => refused(bead, &error),
        }),
        GitJob::Land { bead, order, onto, commit } => Some(match land(&order, &onto, &commit) {
            Ok(Landed::Done) => GitNews::Landed { bead, commit },
            Ok(Landed::Moved) => GitNews::Moved { bead },
            Err(error) => refused(bead, &error),
        }),
        GitJob::Look(offers) => Some(GitNews::Looked(offers.into_iter().filter_map(found_in_base).collect())),
        GitJob::List(repo) => match branches_under(&repo, PREFIX) {
            Ok(names) => Some(GitNews::Branches(names)),
            Err(error) => {
                warn!(repo = %repo.display(), %error, "cannot see which branches there are");
                None
            }
        },
        GitJob::Remove(condemned) => {
            if let Err(error) = remove_worktree(&condemned) {
                warn!(worktree = %condemned.path.display(), %error, "a worktree stays; see ym worktree list");
            }
            None
        }
    }
}

fn found_in_base(offer: Offer) -> Option<(BeadId, String)> {
    let Offer { bead, order, last_known } = offer;
    match is_in_base(&order, &last_known) {
        Ok(commit) => commit.map(|commit| (bead, commit)),
        Err(error) => {
            warn!(%bead, %error, "cannot tell whether its branch is merged");
            None
        }
    }
}

fn refused(bead: BeadId, error: &GitError) -> GitNews {
    GitNews::Blocked { bead, problem: MergeProblem::Refused { why: error.to_string() } }
}

/// Where the worktree that was made for a dispatch lies.
pub(crate) fn path_of(town: &TownDir, made_for: &DispatchId) -> PathBuf {
    town.worktrees().join(made_for.to_string())
}

/// What the branches of dispatches begin with.
const PREFIX: &str = "ym/";

/// The dispatch whose branch this is.
pub(crate) fn dispatch_of(branch: &str) -> Option<DispatchId> {
    DispatchId::parse(branch.strip_prefix(PREFIX)?).ok()
}

/// The branch of a dispatch. Git allows no two dots in a row, which an id may have.
fn branch_of(dispatch: &DispatchId) -> String {
    format!("{PREFIX}{}", dispatch.to_string().replace("..", "._."))
}

/// Where a dispatch works: in the worktree of the attempt it goes on after, or in one of its own.
pub(crate) fn worktree_of(
    town: &TownDir,
    dispatch: &Dispatch,
    context: &Context,
    bead: &Bead,
    repo: &Path,
) -> WorktreeSpec {
    let made_for = dispatch.id.clone();
    let (path, place) = if let Some(worktree) = &context.resume.worktree {
        let worktree = Worktree::clone(worktree);
        (path_of(town, &worktree.made_for), WorktreePlace::Again { worktree })
    } else {
        let base = context.fields.base_branch.clone();
        let branch = branch_of(&made_for);
        (path_of(town, &made_for), WorktreePlace::New { made_for, branch, base })
    };
    let message = format!("{}\n\nBead: {}\nDispatch: {}\n", bead.title, bead.id, dispatch.id);
    WorktreeSpec { repo: repo.to_owned(), path, place, message }
}

/// Where a merged tree is checked.
pub(crate) fn trial(town: &TownDir, run: &DispatchId, repo: PathBuf, commit: &str) -> WorktreeSpec {
    let place = WorktreePlace::Detached { commit: commit.to_owned() };
    WorktreeSpec { repo, path: path_of(town, run), place, message: String::new() }
}
