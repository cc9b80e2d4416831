//! Worktrees, one a line.

use std::io;

use yard_client::views::WorktreeList;

use super::Table;
use crate::output::Out;
use crate::words::{count, size};

/// What there is on disk.
pub(crate) fn worktrees(out: &mut Out, view: &WorktreeList) -> io::Result<()> {
    if out.quiet() {
        return view.worktrees.iter().try_for_each(|worktree| out.line(&worktree.id));
    }
    if view.worktrees.is_empty() {
        return out.line("No worktrees");
    }
    let mut table = Table::new(&["WORKTREE", "STATE", "SIZE", "BRANCH", "FROM"]);
    for worktree in &view.worktrees {
        let state = if worktree.prunable { format!("{} *", worktree.state) } else { worktree.state.clone() };
        table.row(vec![
            worktree.id.to_string(),
            state,
            size(worktree.bytes),
            worktree.branch.clone().unwrap_or_default(),
            worktree.base.clone().unwrap_or_default(),
        ]);
    }
    table.print(out)?;
    out.line(format!("{}, {}", count(view.worktrees.len(), "worktree"), size(view.bytes)))?;
    if view.worktrees.iter().any(|worktree| worktree.prunable) {
        out.line("* ym worktree prune removes these; their branches stay")?;
    }
    Ok(())
}
