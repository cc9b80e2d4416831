//! The scheduler, its queue and its passes.

use std::io;

use yard_client::views::{CapacityView, Queued, RunView, SchedulerList, SchedulerStatus};
use yard_client::{Safe, safe_line};
use yard_engine::plan::PlanReason;

use super::wrap::marked;
use super::{Table, in_short};
use crate::output::{Out, Tone};
use crate::words::{count, now, short};

/// Queued beads shown in a short answer.
const SHOWN: usize = 10;

/// The scheduler at a glance. Scripts read the line `Queued: N total, M ready`.
pub(crate) fn scheduler_status(out: &mut Out, view: &SchedulerStatus) -> io::Result<()> {
    let mode = match view.capacity.max {
        Some(max) => format!("{} dispatch, at most {max} workers", view.mode),
        None => format!("{} dispatch, no limit on workers", view.mode),
    };
    out.line(format!("Scheduler: {mode}"))?;
    if view.paused {
        let line = pause_line(view);
        out.line(out.paint(Tone::Warn, &safe_line(&line, out.width())))?;
    }
    out.line(format!("Queued: {} total, {} ready", view.queued_total, view.queued_ready))?;
    out.line(format!("Active: {}", active(view.active_polecats, &view.capacity)))?;
    for limit in view.capacity.limits.iter().filter(|limit| limit.name != "town") {
        let max = limit.max.map_or_else(|| "no limit".to_owned(), |max| format!("of {max}"));
        out.line(format!("  {}: {} {max}", Safe(&limit.name), limit.active))?;
    }
    if view.circuit_broken > 0 {
        let line = format!("Circuit-broken: {} (ym scheduler retry BEAD)", view.circuit_broken);
        out.line(out.paint(Tone::Bad, &line))?;
    } else {
        out.line("Circuit-broken: 0")?;
    }
    if let Some(at) = view.last_dispatch_at {
        out.line(format!("Last dispatch: {at} ({} ago)", short(now().since(at))))?;
    }
    Ok(())
}

fn pause_line(view: &SchedulerStatus) -> String {
    let by = view.paused_by.as_deref().unwrap_or("somebody");
    let since = view.paused_at.map(|at| format!(", {} ago", short(now().since(at)))).unwrap_or_default();
    let until = view.pause_until.map(|at| format!(", until {at}")).unwrap_or_default();
    let reason = view.pause_reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("Paused: by {by}{since}{until}{reason}")
}

fn active(workers: usize, capacity: &CapacityView) -> String {
    match (capacity.max, capacity.free) {
        (Some(max), Some(free)) => format!("{workers} of {max} workers, {free} free"),
        _ => count(workers, "worker"),
    }
}

/// The head of the queue.
pub(crate) fn first_queued(out: &mut Out, beads: &[Queued]) -> io::Result<()> {
    if beads.is_empty() {
        return Ok(());
    }
    out.line("")?;
    let mut table = Table::plain();
    for bead in beads.iter().take(SHOWN) {
        table.row(queued_row(out, bead));
    }
    table.print(out)?;
    let more = beads.len().saturating_sub(SHOWN);
    if more > 0 {
        out.line(format!("  … and {more} more: ym scheduler list"))?;
    }
    Ok(())
}

fn queued_row(out: &Out, bead: &Queued) -> Vec<String> {
    let mark = if bead.ready { out.paint(Tone::Good, "○") } else { out.paint(Tone::Warn, "⏸") };
    let about = if bead.reasons.is_empty() {
        Safe(&bead.title).to_string()
    } else {
        format!("{} · {}", safe_line(&bead.title, 30), in_short(&bead.reasons))
    };
    vec![mark, bead.id.to_string(), bead.target_rig.to_string(), bead.priority.to_string(), about]
}

/// Everything scheduled, by rig.
pub(crate) fn scheduler_list(out: &mut Out, view: &SchedulerList) -> io::Result<()> {
    if out.quiet() {
        return view.rigs.iter().flat_map(|rig| &rig.beads).try_for_each(|bead| out.line(&bead.id));
    }
    if view.rigs.is_empty() {
        return out.line("Nothing is scheduled");
    }
    for (n, rig) in view.rigs.iter().enumerate() {
        if n > 0 {
            out.line("")?;
        }
        let ready = rig.beads.iter().filter(|bead| bead.ready).count();
        let heading = format!("{} ({} scheduled, {ready} ready)", rig.rig, rig.beads.len());
        out.line(out.paint(Tone::Bold, &heading))?;
        let mut table = Table::plain();
        for bead in &rig.beads {
            let mut row = queued_row(out, bead);
            row.remove(2);
            table.row(row);
        }
        table.print(out)?;
    }
    Ok(())
}

/// What a planning pass did, and why it did no more.
pub(crate) fn pass(out: &mut Out, view: &RunView, paused: &str) -> io::Result<()> {
    if out.quiet() {
        return view.dispatched.iter().try_for_each(|start| out.line(&start.id));
    }
    let verb = if view.dry_run { "would start" } else { "started" };
    for start in &view.dispatched {
        let mark = out.paint(Tone::Good, "▶");
        out.line(format!("{mark} {verb} {} in {} ({})", start.id, start.rig, start.dispatch_id))?;
    }
    for failed in &view.failed {
        let mark = out.paint(Tone::Bad, "✗");
        marked(out, 0, &mark, &format!("{} could not start: {}", failed.id, failed.error))?;
    }
    let waiting =
        if view.skipped == 0 { "none waits".to_owned() } else { format!("{} ready, waiting", view.skipped) };
    let summary = match view.reason {
        PlanReason::None => "Nothing is ready".to_owned(),
        PlanReason::Ready => format!("{} {verb}; {waiting}", view.dispatched.len()),
        PlanReason::Batch => format!("{} {verb}; {waiting} (batch size)", view.dispatched.len()),
        PlanReason::Capacity => format!("{} {verb}; {waiting} (no free worker)", view.dispatched.len()),
        PlanReason::Paused => format!("Dispatch is paused{paused}; ym scheduler resume"),
    };
    out.line(Safe(&summary))
}
