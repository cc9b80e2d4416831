//! One thing with all that is known of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use yard_client::views::{ContextView, DispatchView, ShowView, WhyView};
use yard_client::{Safe, safe_line};
use yard_engine::Standing;
use yard_engine::readiness::{Reason, ReasonCode};

use super::wrap::marked;
use super::{Table, tone_of, word};
use crate::output::{Out, Tone};
use crate::words::{now, short};

/// Lines of a description shown.
const DESCRIPTION: usize = 40;
/// Reasons shown of a convoy.
const REASONS: usize = 10;

/// Why a bead or convoy is where it is.
pub(crate) fn why(out: &mut Out, view: &WhyView) -> io::Result<()> {
    let state = state_word(out, view.state);
    if view.kind == "convoy" {
        let ready = if view.ready { ", with beads ready to start" } else { "" };
        out.line(format!("Convoy {} is {state}{ready}", view.id))?;
        summed_up(out, &view.reasons)?;
        return out.line(format!("ym convoy status {} lists its beads", view.id));
    }
    let ready = match (view.ready, view.state) {
        (true, Some(Standing::Open)) => format!(", ready but not scheduled: ym sling {}", view.id),
        (true, _) => ", ready to start".to_owned(),
        (false, _) => String::new(),
    };
    out.line(format!("{} is {state}{ready}", view.id))?;
    reasons(out, &view.reasons)?;
    if view.history.is_empty() {
        return Ok(());
    }
    out.heading("History")?;
    let mut table = Table::wrapping();
    for line in &view.history {
        let said = format!("{} ({})", line.reason, line.actor);
        let to = safe_line(&line.to, 14);
        table.row(vec![line.at.to_string(), to, said]);
    }
    table.print(out)
}

/// Why something does not run, each reason whole.
pub(super) fn reasons(out: &mut Out, reasons: &[Reason]) -> io::Result<()> {
    // That something is closed is no reason for it to wait, and has been said.
    reasons.iter().filter(|reason| reason.code != ReasonCode::Closed).try_for_each(|why| reason(out, why, 1))
}

fn reason(out: &mut Out, reason: &Reason, times: usize) -> io::Result<()> {
    let code = word(&reason.code);
    let mark = out.paint(Tone::Warn, "⏸");
    let times = if times > 1 { format!(" ({times} beads)") } else { String::new() };
    marked(out, 2, &mark, &format!("{code}: {}{times}", reason.message))
}

/// The reasons of many beads, each once, the most frequent first.
fn summed_up(out: &mut Out, all: &[Reason]) -> io::Result<()> {
    let mut times: BTreeMap<&str, (usize, &Reason)> = BTreeMap::new();
    for reason in all {
        times.entry(&reason.message).or_insert((0, reason)).0 += 1;
    }
    let mut each: Vec<(usize, &Reason)> = times.into_values().collect();
    each.sort_by_key(|(times, _)| Reverse(*times));
    for (times, why) in each.iter().take(REASONS) {
        reason(out, why, *times)?;
    }
    match each.len().saturating_sub(REASONS) {
        0 => Ok(()),
        more => out.line(format!("  … and {more} more")),
    }
}

/// A bead with its context and attempts.
pub(crate) fn bead(out: &mut Out, view: &ShowView) -> io::Result<()> {
    let bead = &view.bead;
    if out.quiet() {
        return out.line(&bead.id);
    }
    let title = safe_line(&bead.title, out.width().saturating_sub(bead.id.as_str().len() + 2));
    out.line(format!("{}  {title}", out.paint(Tone::Bold, bead.id.as_str())))?;
    let state = state_word(out, bead.state);
    let rig = bead.rig.as_ref().map_or_else(|| "no rig".to_owned(), |rig| format!("rig {rig}"));
    out.line(format!(
        "{state}, {}, P{}, {rig}, tracker says {}",
        Safe(&bead.kind),
        bead.priority,
        Safe(&bead.status)
    ))?;
    reasons(out, &bead.reasons)?;
    let mut facts = Table::wrapping();
    let mut fact = |name: &str, value: String| facts.row(vec![name.to_owned(), value]);
    if let Some(rig) = &bead.source {
        fact("from", format!("the beads workspace of rig {rig}, which ym only reads"));
    }
    if let Some(assignee) = &bead.assignee {
        fact("assignee", assignee.clone());
    }
    if let Some(until) = bead.defer_until {
        fact("put off", format!("until {until}"));
    }
    if !bead.labels.is_empty() {
        fact("labels", bead.labels.join(", "));
    }
    for dependency in &bead.dependencies {
        let written = dependency.written.as_ref().map(|text| format!(", written {text}")).unwrap_or_default();
        fact("needs", format!("{} ({}{written})", dependency.id, dependency.kind));
    }
    if let Some(argv) = &bead.argv {
        fact("command", argv.join(" "));
    }
    fact("created", bead.created_at.to_string());
    if let Some(at) = bead.closed_at {
        fact("closed", format!("{at} {}", bead.close_reason.as_deref().unwrap_or_default()));
    }
    facts.print(out)?;
    if let Some(text) = &bead.description {
        out.line("")?;
        for line in text.lines().take(DESCRIPTION) {
            out.line(format!("  {}", safe_line(line, out.width() - 2)))?;
        }
    }
    if let Some(context) = &view.context {
        out.heading("Context")?;
        context_facts(out, context)?;
    }
    if !view.dispatches.is_empty() {
        out.heading("Dispatches")?;
        let mut table = Table::wrapping();
        for attempt in &view.dispatches {
            table.row(dispatch_row(attempt));
        }
        table.print(out)?;
    }
    Ok(())
}

/// Where something stands; a bead that stands nowhere is gone.
fn state_word(out: &Out, state: Option<Standing>) -> String {
    match state {
        Some(state) => out.paint(tone_of(state), state.as_str()),
        None => out.paint(Tone::Bad, "gone"),
    }
}

/// A context.
pub(crate) fn context(out: &mut Out, view: &ContextView) -> io::Result<()> {
    if out.quiet() {
        return out.line(&view.id);
    }
    context_facts(out, view)
}

fn context_facts(out: &mut Out, view: &ContextView) -> io::Result<()> {
    let fields = &view.fields;
    let mut table = Table::wrapping();
    let mut fact = |name: &str, value: String| table.row(vec![name.to_owned(), value]);
    let reason = view.close_reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    fact("context", format!("{} {}{reason}", view.id, view.status));
    fact("bead", format!("{} in {}", fields.work_bead_id, fields.target_rig));
    fact("enqueued", format!("{} ({} ago)", fields.enqueued_at, short(now().since(fields.enqueued_at))));
    fact("priority", view.priority.to_string());
    if view.held {
        fact("held", format!("ym unhold {}", fields.work_bead_id));
    }
    if let Some(formula) = &fields.formula {
        fact("formula", formula.to_string());
    }
    if let Some(args) = &fields.args {
        fact("args", args.clone());
    }
    if let Some(vars) = &fields.vars {
        fact("vars", vars.replace('\n', ", "));
    }
    if let Some(convoy) = &fields.convoy {
        fact("convoy", convoy.to_string());
    }
    if let Some(account) = &fields.account {
        fact("account", account.to_string());
    }
    if fields.dispatch_failures > 0 {
        let last = fields.last_failure.as_deref().unwrap_or_default();
        fact("failures", format!("{}: {last}", fields.dispatch_failures));
    }
    if view.crashes + view.unavailables > 0 {
        fact("retries", format!("{} crashes, {} unavailable", view.crashes, view.unavailables));
    }
    if !view.active_ms.is_zero() {
        fact("active", format!("{} so far", short(view.active_ms.duration())));
    }
    if !view.cost.is_zero() {
        fact("cost", format!("{} so far", view.cost));
    }
    if let Some(step) = &view.resume.after {
        fact("goes on", format!("after step {step}"));
    }
    if let Some(note) = &view.resume.note {
        fact("checkpoint", note.clone());
    }
    if let Some(at) = view.not_before {
        fact("not before", at.to_string());
    }
    if let Some(at) = view.deadline {
        fact("deadline", at.to_string());
    }
    table.print(out)
}

/// A dispatch.
pub(crate) fn dispatch(out: &mut Out, view: &DispatchView) -> io::Result<()> {
    if out.quiet() {
        return out.line(&view.dispatch.id);
    }
    let mut table = Table::wrapping();
    let dispatch = &view.dispatch;
    let mut fact = |name: &str, value: String| table.row(vec![name.to_owned(), value]);
    fact("dispatch", format!("{} ({})", dispatch.id, view.phase));
    fact("context", dispatch.context.to_string());
    fact("where", format!("{} by {}", dispatch.rig, dispatch.executor));
    fact("started", dispatch.started_at.to_string());
    if let Some(pid) = dispatch.pid {
        fact("pid", pid.to_string());
    }
    if let Some(step) = &dispatch.step {
        fact("last step", step.clone());
    }
    if let Some(index) = dispatch.running_step().filter(|_| dispatch.is_live()) {
        fact("step", format!("{} of {}: {}", index + 1, dispatch.steps.len(), dispatch.steps[index]));
    }
    let session = dispatch.session.as_ref().map(ToString::to_string);
    let said = [
        ("checkpoint", dispatch.checkpoint.clone()),
        ("progress", dispatch.progress.clone()),
        ("last line", dispatch.last_line.clone()),
        ("session", session),
    ];
    for (name, text) in said {
        if let Some(text) = text {
            fact(name, text);
        }
    }
    let cost = Some(dispatch.cost.to_string()).filter(|_| !dispatch.cost.is_zero());
    let tokens = Some(format!("{} tokens", dispatch.tokens)).filter(|_| dispatch.tokens > 0);
    if cost.is_some() || tokens.is_some() {
        fact("cost", cost.into_iter().chain(tokens).collect::<Vec<_>>().join(", "));
    }
    if let Some(ended) = &dispatch.ended {
        fact("ended", ended.at.to_string());
    }
    fact("log", format!("ym logs {}", dispatch.id));
    table.print(out)
}

fn dispatch_row(view: &DispatchView) -> Vec<String> {
    let dispatch = &view.dispatch;
    let began = dispatch.running_at.unwrap_or(dispatch.started_at);
    let until = dispatch.ended.as_ref().map_or_else(now, |ended| ended.at);
    vec![dispatch.id.to_string(), began.to_string(), short(until.since(began)), view.phase.clone()]
}
