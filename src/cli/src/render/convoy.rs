//! Convoys.

use std::io;

use yard_client::views::{ConvoySummary, ConvoyView, StrandedView, TrackedView};
use yard_client::{Safe, safe_line};
use yard_engine::Standing;

use super::show::reasons;
use super::wrap::marked;
use super::{Table, in_short, tone_of, word};
use crate::output::{Out, Tone};

/// Beads shown of a convoy; the rest is in the document.
const MOST: usize = 200;
/// An id takes no more than this in a table.
const ID: usize = 28;

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
        table.row(vec![convoy.id.to_string(), convoy.status.clone(), done, Safe(&convoy.title).to_string()]);
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
    facts(view).print(out)?;
    if view.tracked.is_empty() {
        return out.line(format!("No beads: ym convoy add {} BEAD", view.id));
    }
    // Only what was staged has waves.
    let planned = view.tracked.iter().any(|bead| bead.wave.is_some());
    let mut table =
        Table::new(if planned { &["WAVE", "ID", "STATE", "TITLE"] } else { &["ID", "STATE", "TITLE"] });
    for bead in view.tracked.iter().take(MOST) {
        let mut row = vec![safe_line(bead.id.as_str(), ID), state(out, bead), about(bead)];
        if planned {
            row.insert(0, wave(bead));
        }
        table.row(row);
    }
    out.line("")?;
    table.print(out)?;
    more(out, view.tracked.len().saturating_sub(MOST))?;
    if view.status.starts_with("staged") {
        out.line(format!("Nothing of it starts before ym convoy launch {}", view.id))?;
    }
    Ok(())
}

fn facts(view: &ConvoyView) -> Table {
    let mut facts = Table::wrapping();
    let mut fact = |name: &str, value: String| facts.row(vec![name.to_owned(), value]);
    if let Some(merge) = view.merge_strategy {
        fact("merge", word(&merge));
    }
    if let Some(branch) = &view.base_branch {
        fact("base branch", branch.clone());
    }
    if !view.cost.is_zero() {
        fact("cost", view.cost.to_string());
    }
    if !view.watchers.is_empty() {
        fact("watchers", view.watchers.join(", "));
    }
    if let Some(at) = view.eta {
        fact("done", format!("{at}, as likely before as after; ym forecast {}", view.id));
    }
    if let Some(at) = view.closed_at {
        fact("closed", format!("{at} {}", view.close_reason.as_deref().unwrap_or_default()));
    }
    facts
}

/// Convoys, each with its beads below it.
pub(crate) fn convoy_trees(out: &mut Out, convoys: &[ConvoyView]) -> io::Result<()> {
    if convoys.is_empty() {
        return out.line("No convoys");
    }
    for view in convoys {
        let done = format!("[{}] {}/{}", view.status, view.completed, view.total);
        let room = out.width().saturating_sub(view.id.as_str().len() + done.len() + 2);
        let title = safe_line(&view.title, room);
        out.line(format!("{} {done} {title}", out.paint(Tone::Bold, view.id.as_str())))?;
        let mut table = Table::new(&[]);
        for (n, bead) in view.tracked.iter().take(MOST).enumerate() {
            let branch = if n + 1 == view.tracked.len() { "└──" } else { "├──" };
            let id = safe_line(bead.id.as_str(), ID);
            let wave = bead.wave.map_or_else(|| "no wave".to_owned(), |wave| format!("wave {wave}"));
            table.row(vec![branch.to_owned(), id, wave, state(out, bead), about(bead)]);
        }
        table.print(out)?;
        more(out, view.tracked.len().saturating_sub(MOST))?;
    }
    Ok(())
}

/// Convoys in which nothing can go on, with the reasons of each bead.
pub(crate) fn stranded(out: &mut Out, convoys: &[StrandedView]) -> io::Result<()> {
    if out.quiet() {
        return convoys.iter().try_for_each(|convoy| out.line(&convoy.id));
    }
    if convoys.is_empty() {
        return out.line("No convoy is stuck");
    }
    for (n, convoy) in convoys.iter().enumerate() {
        if n > 0 {
            out.line("")?;
        }
        let title = safe_line(&convoy.title, out.width().saturating_sub(convoy.id.as_str().len() + 2));
        out.line(format!("{}  {title}", out.paint(Tone::Bold, convoy.id.as_str())))?;
        out.line(format!(
            "{} of {} beads open, {} ready",
            convoy.stuck.len(),
            convoy.tracked_count,
            convoy.ready_count
        ))?;
        for bead in convoy.stuck.iter().take(MOST) {
            out.line(format!("  {}", bead.id))?;
            if bead.reasons.is_empty() {
                let mark = out.paint(Tone::Good, "○");
                marked(
                    out,
                    2,
                    &mark,
                    "ready: ym convoy launch or ym sling asks for it, ym --daemon or ym scheduler run starts it",
                )?;
            }
            reasons(out, &bead.reasons)?;
        }
        more(out, convoy.stuck.len().saturating_sub(MOST))?;
    }
    Ok(())
}

fn more(out: &mut Out, left_out: usize) -> io::Result<()> {
    match left_out {
        0 => Ok(()),
        more => out.line(format!("… and {more} more (--json has all)")),
    }
}

fn wave(bead: &TrackedView) -> String {
    bead.wave.map_or_else(|| "—".to_owned(), |wave| wave.to_string())
}

fn state(out: &Out, bead: &TrackedView) -> String {
    match bead.state {
        Some(state) => out.paint(tone_of(state), state.as_str()),
        None => out.paint(Tone::Bad, "gone"),
    }
}

/// Its title, and what keeps it or who is on it.
fn about(bead: &TrackedView) -> String {
    let waits = bead.state.is_none() || bead.reasons.iter().any(|reason| reason.code.is_blocking());
    let title = safe_line(&bead.title, 30);
    match (&bead.worker, waits) {
        (_, true) => format!("{title} · {}", in_short(&bead.reasons)),
        (Some(worker), false) if bead.state == Some(Standing::Running) => format!("{title} · {worker}"),
        (_, false) => Safe(&bead.title).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tracked(state: &str, reasons: &serde_json::Value) -> TrackedView {
        let bead = json!({"id": "gt-a", "title": "Fix it", "status": "open", "type": "task", "wave": 2, "rig": "gt",
            "state": state, "reasons": reasons, "worker": "local pid 7"});
        serde_json::from_value(bead).expect("a bead")
    }

    #[test]
    fn a_bead_says_what_keeps_it_or_who_is_on_it() {
        let waits = json!([{"code": "blocked-by", "message": "waits for gt-b", "ids": ["gt-b"]}]);
        assert_eq!(about(&tracked("blocked", &waits)), "Fix it · waits for gt-b");
        assert_eq!(about(&tracked("running", &json!([]))), "Fix it · local pid 7");
        assert_eq!(about(&tracked("closed", &json!([]))), "Fix it");
        let gone = json!([{"code": "not-dispatchable", "message": "gt-a is gone"}]);
        let gone = TrackedView { state: None, ..tracked("open", &gone) };
        assert_eq!(about(&gone), "Fix it · gt-a is gone");
    }
}
