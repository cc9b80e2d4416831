//! The log of everything that happened, newest first.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use yard_client::views::{event_subject, event_words};
use yard_engine::agent::AgentEvent;
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
    let height = usize::from(list.height);
    let rows = console.event_count();
    for line in (console.events.offset..rows).take(height) {
        let Some(event) = console.event_at(line) else { break };
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
    if rows == 0 {
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
    serde_json::to_value(event).map(|value| shown(&event_words(&value))).unwrap_or_default()
}

/// The bead that an event is about.
pub(crate) fn bead_of(event: &Recorded) -> Option<BeadId> {
    let about_bead = match &event.event {
        Event::Bead(_)
        | Event::Context(_)
        | Event::Dispatch(_)
        | Event::Preemption(_)
        | Event::Task(_)
        | Event::Merge(_)
        | Event::Agent(AgentEvent::Sent { .. } | AgentEvent::Withdrawn { .. }) => true,
        Event::Town(_) | Event::Rig(_) | Event::Convoy(_) | Event::Alert(_) | Event::Agent(_) => false,
    };
    let subject =
        about_bead.then(|| serde_json::to_value(event).ok().map(|value| event_subject(&value)))??;
    subject.split('@').next()?.parse().ok()
}
