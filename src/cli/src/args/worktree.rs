//! `ym worktree`.

use clap::Subcommand;

/// What there is to do with worktrees.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum WorktreeCmd {
    /// Show the worktrees of dispatches: what they are for, what they take on disk
    #[command(after_long_help = "Example:\n  ym worktree list --json | jq .bytes")]
    List,
    /// Remove worktrees that nobody needs
    ///
    /// Those of failed attempts whose bead is closed or was tried again, and those no dispatch is known of. What is in no
    /// commit is committed to the worktree's branch first, and branches stay, so that nothing is lost. A worktree in
    /// which a worker is, or whose branch waits to be merged, is never removed.
    #[command(
        after_long_help = "Examples:\n  ym worktree prune --dry-run\n  ym worktree prune gt-abc@2 --branches"
    )]
    Prune {
        /// Only these, by the dispatch whose name they bear
        #[arg(value_name = "DISPATCH")]
        ids: Vec<String>,
        /// Also those of failed attempts whose bead is still open
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Their branches, too, unless somebody has moved them on
        #[arg(long)]
        branches: bool,
        /// Only say what would go
        #[arg(long)]
        dry_run: bool,
    },
}
