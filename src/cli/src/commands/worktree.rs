//! `ym worktree`.

use yard_client::views::{PruneView, WorktreeList};
use yard_client::{Ask, Safe};

use super::Done;
use crate::args::WorktreeCmd;
use crate::errors::FAILED;
use crate::render;
use crate::session::Session;
use crate::words::{count, size};

pub(super) fn run(session: &mut Session, command: WorktreeCmd) -> Done {
    match command {
        WorktreeCmd::List => list(session),
        WorktreeCmd::Prune { ids, all, branches, dry_run } => {
            prune(session, Ask::WorktreePrune { ids, all, branches, dry_run })
        }
    }
}

fn list(session: &mut Session) -> Done {
    let document = session.ask(Ask::WorktreeList)?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let view: WorktreeList = serde_json::from_str(document.get())?;
    render::worktrees(&mut session.out, &view)?;
    Ok(0)
}

fn prune(session: &mut Session, ask: Ask) -> Done {
    let document = session.ask(ask)?;
    let view: PruneView = serde_json::from_str(document.get())?;
    let code = if view.failed.is_empty() { 0 } else { FAILED };
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(code);
    }
    for failure in &view.failed {
        session.out.notice(&format!("{} stays: {}", failure.id, failure.error));
    }
    for worktree in &view.pruned {
        let branch = worktree.branch.as_ref().map(|branch| format!(" (branch {branch})")).unwrap_or_default();
        session.out.line(Safe(&format!("{}{branch}", worktree.id)))?;
    }
    if !session.out.quiet() {
        let verb = if view.dry_run { "would go" } else { "removed" };
        session.out.line(format!("{} {verb}, {}", count(view.pruned.len(), "worktree"), size(view.bytes)))?;
    }
    Ok(code)
}
