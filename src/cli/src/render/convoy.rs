//! Convoys.

use std::io;

use yard_client::safe_line;
use yard_client::views::{ConvoySummary, ConvoyView};

use super::{Table, in_short, tone_of};
use crate::output::{Out, Tone};

/// Convoys, one a line.
pub(crate) fn convoys(out: &mut Out, convoys: &[ConvoySummary]) -> io::Result<()> {
    if out.quiet() {
        return convoys.iter().try_for_each(|convoy| out.line(&convoy.id));
    }
    if convoys.is_empty() {
        return out.line("No convoys");
    }
    let mut table = Table::new(&["CONVOY", "STATUS", "DONE", "TITLE"]);
    for convoy in convoys {
        let done = format!("{}/{}", convoy.completed, convoy.total);
        table.row(vec![convoy.id.to_string(), convoy.status.clone(), done, convoy.title.clone()]);
    }
    table.print(out)
}

/// One convoy with its beads.
pub(crate) fn convoy(out: &mut Out, view: &ConvoyView) -> io::Result<()> {
    if out.quiet() {
        return view.tracked.iter().try_for_each(|bead| out.line(&bead.id));
    }
    let title = safe_line(&view.title, out.width().saturating_sub(view.id.as_str().len() + 2));
    out.line(format!("{}  {title}", out.paint(Tone::Bold, view.id.as_str())))?;
    let owned = if view.owned { ", owned" } else { "" };
    out.line(format!(
        "{}{owned}: {} of {} done, {} running",
        view.status, view.completed, view.total, view.running
    ))?;
    out.line(format!(
        "{} queued ({} ready), {} blocked, {} failed",
        view.queued, view.ready, view.blocked, view.failed
    ))?;
    let mut table = Table::new(&["ID", "STATE", "TITLE"]);
    for bead in &view.tracked {
        let state = match bead.state {
            Some(state) => out.paint(tone_of(state), state.as_str()),
            None => out.paint(Tone::Bad, "unknown"),
        };
        let waits = bead.reasons.iter().any(|reason| reason.code.is_blocking());
        let title = if waits {
            format!("{} · {}", safe_line(&bead.title, 30), in_short(&bead.reasons))
        } else {
            bead.title.clone()
        };
        table.row(vec![bead.id.to_string(), state, title]);
    }
    out.line("")?;
    table.print(out)
}
