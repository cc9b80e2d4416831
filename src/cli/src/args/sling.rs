//! `sling` and `add`.

use clap::{Args, ValueEnum};
use yard_engine::Timestamp;
use yard_engine::settings::Merge;

use crate::words;

/// What happens to a finished branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MergeWord {
    /// Merge it into its base, once it is its turn
    Direct,
    /// Keep the branch and announce it; somebody else merges it
    Mr,
    /// Keep the branch, and tell nobody
    Local,
}

impl From<MergeWord> for Merge {
    fn from(word: MergeWord) -> Self {
        match word {
            MergeWord::Direct => Self::Direct,
            MergeWord::Mr => Self::Mr,
            MergeWord::Local => Self::Local,
        }
    }
}

// `ym sling`
#[derive(Debug, Args)]
pub(crate) struct SlingArgs {
    /// Beads, one epic or one convoy; the last may be a rig
    #[arg(required = true, value_name = "BEAD")]
    pub(crate) ids: Vec<String>,
    /// Instructions for the worker, in plain language
    #[arg(long, short, allow_hyphen_values = true)]
    pub(crate) args: Option<String>,
    /// A formula variable; it is kept in the log, so pass secrets by the daemon's environment
    #[arg(long, value_name = "K=V", value_parser = words::pair)]
    pub(crate) var: Vec<(String, String)>,
    /// Formula [default: the rig's, else worker.formula]
    #[arg(long)]
    pub(crate) formula: Option<String>,
    /// Apply the formula named first to this bead
    #[arg(long, value_name = "BEAD", conflicts_with = "formula")]
    pub(crate) on: Option<String>,
    /// No formula at all
    #[arg(long, conflicts_with_all = ["formula", "on"])]
    pub(crate) hook_raw_bead: bool,
    /// Merge strategy
    #[arg(long)]
    pub(crate) merge: Option<MergeWord>,
    /// Keep the result on its branch
    #[arg(long)]
    pub(crate) no_merge: bool,
    /// Base branch of the worktree
    #[arg(long)]
    pub(crate) base_branch: Option<String>,
    /// Account whose cap counts
    #[arg(long)]
    pub(crate) account: Option<String>,
    /// Agent command instead of worker.agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// The caller looks after the convoy
    #[arg(long)]
    pub(crate) owned: bool,
    /// Make no convoy
    #[arg(long)]
    pub(crate) no_convoy: bool,
    /// Do not run the rig's wake command
    #[arg(long)]
    pub(crate) no_boot: bool,
    /// A fresh session per step
    #[arg(long)]
    pub(crate) ralph: bool,
    /// Send it to a registered agent; without a name to any
    #[arg(long, value_name = "AGENT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) assign: Option<String>,
    /// Executor: local, tmux or slurm [default: the rig's, else worker.executor]
    #[arg(long)]
    pub(crate) executor: Option<String>,
    /// 1 to 100, higher is sooner [default: from the bead's priority]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) priority: Option<u8>,
    /// Not before this time, or this span from now
    #[arg(long, value_name = "T", value_parser = words::moment)]
    pub(crate) not_before: Option<Timestamp>,
    /// Expires if not started by this time, or this span from now
    #[arg(long, value_name = "T", value_parser = words::moment)]
    pub(crate) deadline: Option<Timestamp>,
    /// Override the cross-rig and status guards
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Only say what would happen
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Read the instructions from standard input
    #[arg(long, conflicts_with = "args")]
    pub(crate) stdin: bool,
}

// `ym add`
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// A bead that must close first
    #[arg(long, value_name = "ID")]
    pub(crate) after: Vec<String>,
    /// 1 to 100, higher is sooner
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) priority: Option<u8>,
    /// A name for people [default: the command]
    #[arg(long, value_name = "T")]
    pub(crate) name: Option<String>,
    /// Its id [default: made up]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Many, one JSON object a line, all or nothing; - for standard input
    #[arg(long, value_name = "F", conflicts_with_all = ["after", "priority", "name", "id", "command"])]
    pub(crate) file: Option<String>,
    /// Program and arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "file")]
    pub(crate) command: Vec<String>,
}
