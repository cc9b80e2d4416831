//! The combined picture, and how a wait ended.

use std::io;

use yard_client::views::{Queued, RunningView, SpendingView, StatusView, StuckView, WaitView};
use yard_client::{Safe, safe_line};
use yard_engine::Standing;
use yard_engine::money::Usd;

use super::alert::alert;
use super::{Table, convoys, in_short, scheduler_status, tone_of};
use crate::output::{Out, Tone};
use crate::words::{count, now, short};

/// Lines per section.
const SHOWN: usize = 10;

/// Everything at once.
pub(crate) fn status(out: &mut Out, view: &StatusView, town: &str) -> io::Result<()> {
    if out.quiet() {
        return view.running.iter().try_for_each(|worker| out.line(&worker.id));
    }
    let served = match (view.daemon.running, view.daemon.pid) {
        (true, Some(pid)) => {
            let scheme = if view.daemon.tls { "https" } else { "http" };
            let http = view.daemon.http.as_ref().map(|address| format!(", {scheme}://{address}"));
            format!("daemon pid {pid}{}", http.unwrap_or_default())
        }
        (true, None) => "daemon running".to_owned(),
        (false, _) => match view.daemon.silent_pid {
            Some(pid) => format!("its daemon, pid {pid}, does not answer"),
            None => "no daemon".to_owned(),
        },
    };
    let room = out.width().saturating_sub(served.len() + 8);
    out.line(format!("Town: {} ({served})", safe_line(town, room)))?;
    scheduler_status(out, &view.scheduler)?;
    money(out, &view.spending)?;
    for account in &view.resting_accounts {
        let left = short(account.until.since(now()));
        let line = format!("Account {}: rests for {left}, its service was unavailable", account.account);
        out.line(out.paint(Tone::Warn, &safe_line(&line, out.width())))?;
    }
    view.alerts.iter().take(SHOWN).try_for_each(|one| alert(out, one))?;
    if view.alerts.len() > SHOWN {
        out.line(format!("  … and {} more: ym alerts", view.alerts.len() - SHOWN))?;
    }
    if !view.running.is_empty() {
        out.heading(&format!("Running ({})", view.running.len()))?;
        let mut table = Table::plain();
        for worker in view.running.iter().take(SHOWN) {
            let since = short(now().since(worker.started_at));
            let rig = worker.rig.to_string();
            table.row(vec![worker.dispatch_id.to_string(), rig, since, about_worker(worker)]);
        }
        table.print(out)?;
        more(out, view.running.len())?;
    }
    let beads = &view.scheduler.beads;
    queue(out, "Queued", beads.iter().filter(|bead| !bead.blocked))?;
    queue(out, "Blocked", beads.iter().filter(|bead| bead.blocked))?;
    if !view.problems.is_empty() {
        out.heading(&format!("Needs a person ({})", view.problems.len()))?;
        stuck(out, &view.problems, view.daemon.running)?;
    }
    if !view.convoys.is_empty() {
        out.heading(&format!("Convoys ({})", view.convoys.len()))?;
        convoys(out, &view.convoys[..view.convoys.len().min(SHOWN)])?;
        more(out, view.convoys.len())?;
    }
    Ok(())
}

/// What a worker is, says and costs.
fn about_worker(worker: &RunningView) -> String {
    let mark = match &worker.yielding_to {
        _ if worker.stopping => "(stopping) ".to_owned(),
        Some(bead) => format!("(gives way to {bead}) "),
        None if worker.stuck => "(no sign of life) ".to_owned(),
        None => String::new(),
    };
    let cost = worker.cost.map(|cost| format!("{cost} ")).unwrap_or_default();
    let doing = Some(worker.doing()).filter(|doing| !doing.is_empty());
    let doing = doing.map(|doing| format!(" · {doing}")).unwrap_or_default();
    format!("{mark}{cost}{}{doing}", worker.title)
}

fn money(out: &mut Out, view: &SpendingView) -> io::Result<()> {
    let part = |spent: Usd, limit: Option<Usd>, when: &str| {
        let limit = limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
        format!("{spent}{limit} {when}")
    };
    if view.this_month.is_zero() && view.daily.is_none() && view.monthly.is_none() {
        return Ok(());
    }
    let (today, month) =
        (part(view.today, view.daily, "today"), part(view.this_month, view.monthly, "this month"));
    let line = format!("Cost: {today}, {month}");
    let spent = [(view.today, view.daily), (view.this_month, view.monthly)];
    let over = spent.into_iter().any(|(spent, limit)| limit.is_some_and(|limit| spent >= limit));
    out.line(if over { out.paint(Tone::Bad, &line) } else { line })
}

fn more(out: &mut Out, all: usize) -> io::Result<()> {
    match all.saturating_sub(SHOWN) {
        0 => Ok(()),
        more => out.line(format!("  … and {more} more")),
    }
}

fn queue<'a>(out: &mut Out, name: &str, beads: impl Iterator<Item = &'a Queued>) -> io::Result<()> {
    let beads: Vec<&Queued> = beads.collect();
    if beads.is_empty() {
        return Ok(());
    }
    out.heading(&format!("{name} ({})", beads.len()))?;
    let mut table = Table::plain();
    for bead in beads.iter().take(SHOWN) {
        let about =
            if bead.reasons.is_empty() { Safe(&bead.title).to_string() } else { in_short(&bead.reasons) };
        table.row(vec![bead.id.to_string(), bead.target_rig.to_string(), bead.priority.to_string(), about]);
    }
    table.print(out)?;
    more(out, beads.len())
}

fn stuck(out: &mut Out, beads: &[StuckView], served: bool) -> io::Result<()> {
    let mut table = Table::plain();
    for bead in beads.iter().take(SHOWN) {
        let state = bead.state.map(|state| out.paint(tone_of(state), state.as_str())).unwrap_or_default();
        table.row(vec![bead.id.to_string(), state, why_stuck(bead, served)]);
    }
    table.print(out)?;
    more(out, beads.len())
}

/// What keeps a bead where it is, and what a person can do about it.
fn why_stuck(bead: &StuckView, served: bool) -> String {
    if !bead.reasons.is_empty() {
        return in_short(&bead.reasons);
    }
    let id = &bead.id;
    match bead.state {
        Some(Standing::Open) => format!("not scheduled: ym sling {id}"),
        Some(Standing::Staged) => "its convoy is not launched yet".to_owned(),
        Some(Standing::Queued) if served => "ready, and not started yet".to_owned(),
        Some(Standing::Queued) => "nothing starts it by itself: ym --daemon, or ym scheduler run".to_owned(),
        Some(Standing::Running) => "still running".to_owned(),
        Some(Standing::Assigned) => "an agent is to claim it".to_owned(),
        Some(Standing::Done) => "its close is awaited".to_owned(),
        Some(Standing::Failed | Standing::Cancelled | Standing::CircuitBroken) => {
            format!("ym scheduler retry {id} gives it another chance")
        }
        Some(Standing::Blocked | Standing::Closed) | None => format!("ym why {id}"),
    }
}

/// How a wait ended. `served`: somebody starts waiting work by itself.
pub(crate) fn waited(out: &mut Out, view: &WaitView, served: bool) -> io::Result<()> {
    let done = view.done_count.unwrap_or(view.done.len());
    let mut parts = vec![format!("{done} done")];
    if !view.failed.is_empty() {
        parts.push(format!("{} failed", view.failed.len()));
    }
    if !view.stuck.is_empty() {
        let word = if view.timed_out { "not ended" } else { "stuck" };
        parts.push(format!("{} {word}", view.stuck.len()));
    }
    let line = parts.join(", ");
    out.line(if view.timed_out { format!("Time is up: {line}") } else { line })?;
    if !view.failed.is_empty() {
        let ids: Vec<&str> = view.failed.iter().take(SHOWN).map(yard_engine::BeadId::as_str).collect();
        let rest = view.failed.len().saturating_sub(SHOWN);
        let rest = if rest > 0 { format!(" and {}", count(rest, "other")) } else { String::new() };
        let text =
            safe_line(&format!("Failed: {}{rest}; ym why ID, ym logs ID", ids.join(", ")), out.width());
        out.line(out.paint(Tone::Bad, &text))?;
    }
    stuck(out, &view.stuck, served)
}

#[cfg(test)]
mod tests {
    use yard_engine::BeadId;
    use yard_engine::readiness::Reason;

    use super::*;

    #[test]
    fn a_daemon_is_advised_only_where_it_would_help() {
        let id = BeadId::parse("gt-a").expect("an id");
        let of = |state, reasons| StuckView { id: id.clone(), state: Some(state), reasons };
        assert_eq!(why_stuck(&of(Standing::Open, vec![]), false), "not scheduled: ym sling gt-a");
        assert_eq!(why_stuck(&of(Standing::Open, vec![]), true), "not scheduled: ym sling gt-a");
        assert!(why_stuck(&of(Standing::Queued, vec![]), false).contains("ym --daemon"));
        assert!(!why_stuck(&of(Standing::Queued, vec![]), true).contains("ym --daemon"));
        let held = serde_json::json!({"code": "held", "message": "held back"});
        let held: Reason = serde_json::from_value(held).expect("a reason");
        assert_eq!(why_stuck(&of(Standing::Queued, vec![held]), false), "held back");
        assert!(why_stuck(&of(Standing::Cancelled, vec![]), false).contains("ym scheduler retry gt-a"));
    }
}
