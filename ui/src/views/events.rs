//! The log of everything that happened, newest first.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use yard_client::views::history_line;
use yard_engine::convoy::ConvoyEvent;
use yard_engine::{BeadId, Event, Recorded};

use crate::console::{Console, Pane};
use crate::layout::{Plan, list_area};
use crate::paint::Pen;
use crate::replay::is_fault;
use crate::text::{column, fit, grouped, right, shown};
use crate::theme::Role;

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, plan: &Plan, console: &Console) {
    let list = list_area(console);
    let cut = pen.look.glyphs.ellipsis;
    if plan.framed {
        let filter = console.table.filter();
        let title = if filter.is_empty() {
            "events".to_owned()
        } else {
            format!("events  /{}", shown(filter.text()))
        };
        pen.frame(
            plan.main,
            pen.title(&title),
            "newest first  Enter shows one  w why its bead",
            console.pane == Pane::Main,
        );
        let head =
            format!("  {} {} {} WHAT", column("TIME", 8, cut), right("SEQ", 8, cut), column("TYPE", 22, cut));
        pen.put(list.x, list.y.saturating_sub(1), list.width, &head, pen.style(Role::Dim));
    }
    let mut any = false;
    let height = usize::from(list.height);
    for (line, event) in console.shown_events().enumerate().skip(console.events.offset).take(height) {
        any = true;
        let selected = line == console.events.at;
        let role = if is_fault(event) { Role::Bad } else { Role::Text };
        let text = Line::from(vec![
            Span::raw(if selected { pen.look.glyphs.cursor } else { " " }),
            Span::raw(" "),
            pen.span(console.look.zone.clock(event.at), Role::Dim),
            pen.span(format!(" {} ", right(&grouped(event.seq.0), 8, cut)), Role::Dim),
            pen.span(column(event.event.kind(), 22, cut), Role::Accent),
            pen.span(format!(" {}", fit(&what(event), 400, cut)), role),
        ]);
        let row = (line - console.events.offset) as u16;
        pen.line(list, row, &text);
        if selected {
            pen.tint(Rect { y: list.y + row, height: 1, ..list }, pen.style(Role::Selection));
        }
    }
    if !any {
        let words = if console.table.filter().is_empty() {
            "Nothing has happened yet."
        } else {
            "No event matches the filter; Esc takes it off."
        };
        pen.put(list.x + 1, list.y, list.width.saturating_sub(1), words, pen.style(Role::Dim));
    }
}

/// An event in one line, as it is searched.
pub(crate) fn line_of(event: &Recorded) -> String {
    format!("{} {} {}", event.seq.0, event.event.kind(), what(event))
}

/// What happened, in words.
fn what(event: &Recorded) -> String {
    if let Some(line) = history_line(event) {
        let bead = bead_of(event).map(|id| format!("{id} ")).unwrap_or_default();
        let actor = if matches!(line.actor.as_str(), "scheduler" | "worker") {
            String::new()
        } else {
            format!(" ({})", line.actor)
        };
        return shown(&format!("{bead}{}{actor}", line.reason));
    }
    let body = event.event.body();
    let words = match &event.event {
        Event::Convoy(event) => convoy_words(event),
        Event::Alert(yard_engine::alert::AlertEvent::Raised { alert }) => alert.message.clone(),
        // The record itself says it best.
        Event::Town(_)
        | Event::Rig(_)
        | Event::Alert(_)
        | Event::Bead(_)
        | Event::Context(_)
        | Event::Dispatch(_)
        | Event::Preemption(_) => body,
    };
    shown(&words)
}

fn convoy_words(event: &ConvoyEvent) -> String {
    match event {
        ConvoyEvent::Created { convoy, .. } => {
            format!("{} {}, {} beads", convoy.id, convoy.title, convoy.tracked.len())
        }
        ConvoyEvent::Staged { convoy, .. } => format!(
            "{} {}: {} beads in {} waves",
            convoy.id,
            convoy.title,
            convoy.tracked.len(),
            convoy.waves.len()
        ),
        ConvoyEvent::Launched { id, tracked, waves, .. } => {
            format!("{id} goes: {} beads in {} waves", tracked.len(), waves.len())
        }
        ConvoyEvent::Added { id, beads, .. } => format!("{id} gets {} more beads", beads.len()),
        ConvoyEvent::Reopened { id, .. } => format!("{id} is open again"),
        ConvoyEvent::Watched { id, watcher, wants, .. } => {
            format!("{watcher} {} {id}", if *wants { "watches" } else { "no longer watches" })
        }
        ConvoyEvent::Closed { id, reason, .. } => format!("{id} closed: {reason}"),
    }
}

/// The bead that an event is about.
pub(crate) fn bead_of(event: &Recorded) -> Option<BeadId> {
    let body: serde_json::Value = serde_json::from_str(&event.event.body()).ok()?;
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let candidates = match &event.event {
        Event::Bead(_) => vec![body.get("id").and_then(text), body.pointer("/bead/id").and_then(text)],
        Event::Context(_) => {
            vec![body.pointer("/context/fields/work_bead_id").and_then(text), body.get("bead").and_then(text)]
        }
        Event::Dispatch(_) => {
            vec![body.get("id").and_then(text), body.pointer("/dispatch/id").and_then(text)]
        }
        Event::Preemption(_) => vec![body.pointer("/cycle/bead").and_then(text)],
        Event::Town(_) | Event::Rig(_) | Event::Convoy(_) | Event::Alert(_) => Vec::new(),
    };
    let found = candidates.into_iter().flatten().next()?;
    found.split('@').next()?.parse().ok()
}
