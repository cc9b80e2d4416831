//! Beads in lists, and what became of a sling.

use std::io;

use yard_client::views::BeadView;
use yard_client::{Safe, safe_line};
use yard_engine::command::{SlingAction, SlingResult};

use super::wrap::marked;
use super::{Table, in_short, tone_of};
use crate::output::{Out, Tone};

/// Beads, one a line.
pub(crate) fn beads(out: &mut Out, beads: &[BeadView]) -> io::Result<()> {
    if out.quiet() {
        return beads.iter().try_for_each(|bead| out.line(&bead.id));
    }
    if beads.is_empty() {
        return out.line("No beads");
    }
    let mut table = Table::new(&["ID", "P", "TYPE", "STATE", "TITLE"]);
    for bead in beads {
        let state = bead.state.map(|state| out.paint(tone_of(state), state.as_str())).unwrap_or_default();
        let waits = bead.reasons.iter().any(|reason| reason.code.is_blocking());
        let title = match &bead.blocked_by {
            Some(by) => format!("{} · blocked by {}", safe_line(&bead.title, 30), by.join(", ")),
            None if waits => format!("{} · {}", safe_line(&bead.title, 30), in_short(&bead.reasons)),
            None => Safe(&bead.title).to_string(),
        };
        let kind = safe_line(&bead.kind, 12);
        table.row(vec![bead.id.to_string(), format!("P{}", bead.priority), kind, state, title]);
    }
    table.print(out)
}

/// What became of each bead of a sling.
pub(crate) fn sling_results(out: &mut Out, results: &[SlingResult], dry_run: bool) -> io::Result<()> {
    for result in results {
        if out.quiet() {
            if result.action != SlingAction::Refused && result.action != SlingAction::Skipped {
                out.line(&result.id)?;
            }
            continue;
        }
        let (tone, mark, word) = match result.action {
            SlingAction::Dispatched if dry_run => (Tone::Good, "▶", "would start"),
            SlingAction::Dispatched => (Tone::Good, "▶", "dispatched"),
            SlingAction::Scheduled if dry_run => (Tone::Good, "○", "would be scheduled"),
            SlingAction::Scheduled => (Tone::Good, "○", "scheduled"),
            SlingAction::AlreadyScheduled => (Tone::Dim, "=", "already scheduled"),
            SlingAction::AlreadyRunning => (Tone::Dim, "=", "already running"),
            SlingAction::Skipped => (Tone::Dim, "-", "skipped"),
            SlingAction::Refused => (Tone::Bad, "✗", "refused"),
        };
        let mut facts = Vec::new();
        facts.extend(result.rig.as_ref().map(|rig| format!("in {rig}")));
        facts.extend(result.dispatch_id.as_ref().map(ToString::to_string));
        facts.extend(result.convoy_id.as_ref().map(|convoy| format!("convoy {convoy}")));
        facts.extend(result.message.clone());
        let facts = if facts.is_empty() { String::new() } else { format!(": {}", facts.join(", ")) };
        let mark = out.paint(tone, mark);
        marked(out, 0, &mark, &format!("{} {word}{facts}", result.id))?;
    }
    Ok(())
}
