//! What to run: the whole order a shim needs, so that it can work without asking anyone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use yard_engine::session::Session;
use yard_engine::slurm::SlurmRequest;
use yard_engine::worktree::Worktree;
use yard_engine::{DispatchId, Millis};

use crate::preset::AgentPreset;

/// One phase of a dispatch: a program, its arguments and what it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSpec {
    /// The step's name, unique in its dispatch.
    pub id: String,
    /// Program and arguments; the program is looked up in the worker's PATH unless it holds a slash.
    pub argv: Vec<String>,
    /// Text given on standard input; without it standard input is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// How long the step may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// The agent it runs, if it is one we know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentPreset>,
    /// So many arguments at the end of `argv` stay there when others are added to go on with a session.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tail: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Everything a shim must know to run a dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The phases, in order; the first that fails ends the dispatch.
    pub steps: Vec<StepSpec>,
    /// Working directory of every step.
    pub cwd: PathBuf,
    /// Variables added to the environment the fork server was started with.
    pub env: Vec<(String, String)>,
    /// Where output goes; created at its first byte.
    pub log: PathBuf,
    /// At most this many bytes of output are kept (in the log and its predecessor `<log>.1`).
    pub log_cap: u64,
    /// From SIGTERM to SIGKILL, where a stop request does not say otherwise.
    pub kill_grace: Millis,
    /// How long the whole dispatch may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard_cap: Option<Millis>,
    /// Index of the step to begin with: a resumed dispatch skips what is finished.
    #[serde(default)]
    pub first_step: usize,
    /// The worktree it works in; `cwd` is then only where that comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<WorktreeSpec>>,
    /// The agent's session of an earlier attempt, to go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
}

impl RunSpec {
    /// The value of a variable in `env`, the last one if it is given twice.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// A git worktree that a dispatch works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeSpec {
    /// A directory in the repository: the rig's.
    pub repo: PathBuf,
    /// Where the worktree lies.
    pub path: PathBuf,
    /// What is checked out there.
    pub place: WorktreePlace,
    /// The words under which whatever the worker did not commit is committed.
    pub message: String,
}

/// What is checked out in a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorktreePlace {
    /// A new branch.
    New {
        /// The dispatch it is made for.
        made_for: DispatchId,
        /// Its name.
        branch: String,
        /// Where it begins; by default at the branch that the repository is on.
        base: Option<String>,
    },
    /// What an earlier attempt left there.
    Again {
        /// As it was known then.
        worktree: Worktree,
    },
    /// A commit without a branch; the worktree goes away with the dispatch.
    Detached {
        /// Which one.
        commit: String,
    },
}

/// Where the process of a worker is made, and whether it can be looked at there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Surface {
    /// Here, where nobody can see it: its output goes to its log alone.
    #[default]
    None,
    /// In a tmux session of its own, which gives it a terminal.
    Tmux,
    /// On some node of a cluster, as a job that asks for this.
    Slurm(Box<SlurmRequest>),
}

/// One dispatch and what it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartOrder {
    /// The attempt; its claim file carries this name.
    pub dispatch: DispatchId,
    /// What to run.
    pub spec: RunSpec,
    /// Where its process is made.
    pub surface: Surface,
}
