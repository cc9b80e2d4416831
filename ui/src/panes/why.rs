//! Why a bead is not running: every guard, the chain of what it waits for, and the cheapest ways out.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use yard_engine::{BeadId, Standing};

use crate::console::Console;
use crate::layers::Text;
use crate::look::Look;
use crate::paint::Pen;
use crate::text::shown;
use crate::theme::Role;
use crate::ways::{chain, checks, ways_out};

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, screen: Rect, console: &Console, text: Text, id: &BeadId) {
    let state = console.state();
    let title = state.bead(id).map(|entry| shown(&entry.bead.title)).unwrap_or_default();
    let standing = state.standing(id);
    let heading = match standing {
        Some(Standing::Running) => format!("why {id} {title}: it is running"),
        Some(Standing::Closed) => format!("why {id} {title}: it is closed"),
        Some(Standing::Open) => format!("why {id} {title}: nobody asked for it yet"),
        _ => format!("why {id} {title} is not running"),
    };
    let lines = lines(pen, console, id);
    super::text::draw(pen, screen, &heading, &lines, text, "Enter takes a way out  Esc back");
}

/// The same as lines, for the pane and for copies.
fn lines<'t>(pen: &Pen<'_>, console: &Console, id: &BeadId) -> Vec<Line<'t>> {
    let state = console.state();
    let (now, forecasts) = (console.shown_now(), console.shown_forecasts());
    let mut lines = Vec::new();
    let standing = state.standing(id);
    let is_epic = state.bead(id).is_some_and(|entry| entry.bead.is_epic());
    if is_epic {
        lines.push(Line::from(crate::views::beads::sentence(console, id)));
    } else if standing == Some(Standing::Open) {
        lines.push(Line::from(vec![
            Span::raw("Nothing was asked of it. "),
            pen.span(format!("$ ym sling {id}"), Role::Accent),
            Span::raw(" puts it on the schedule."),
        ]));
    }
    for check in checks(state, id, now) {
        let (word, role) = if check.ok { ("ok   ", Role::Dim) } else { ("BLOCK", Role::Bad) };
        let words = if check.ok { Role::Dim } else { Role::Text };
        lines.push(Line::from(vec![
            Span::raw(format!("{:<10}", check.guard)),
            pen.span(word, role),
            Span::raw("  "),
            pen.span(check.words, words),
        ]));
    }
    let links = chain(state, forecasts, id, now);
    if !links.is_empty() {
        lines.push(Line::default());
        lines.push(Line::from(pen.span("waits for", Role::Title)));
        for link in links {
            let title = state.bead(&link.id).map(|entry| shown(&entry.bead.title)).unwrap_or_default();
            let word = link.standing.map_or("unknown", Standing::as_str);
            lines.push(Line::from(vec![
                Span::raw("  ".repeat(link.depth)),
                pen.span(
                    format!("{} {word:<8} ", pen.look.glyphs.standing(link.standing)),
                    Look::role_of(link.standing),
                ),
                pen.span(format!("{} {title}  ", link.id), Role::Text),
                pen.span(link.words, Role::Dim),
            ]));
        }
    }
    let ways = ways_out(state, forecasts, id, now);
    if !ways.is_empty() {
        lines.push(Line::default());
        lines.push(Line::from(pen.span("cheapest ways out", Role::Title)));
        for way in ways {
            lines.push(Line::from(vec![
                pen.span(format!("{} ", pen.look.glyphs.arrow), Role::Accent),
                Span::raw(format!("{}  ", way.words)),
                pen.span(format!("$ ym {}", way.line.join(" ")), Role::Accent),
            ]));
        }
    }
    if let Some(planned) = forecasts.planned(id).filter(|planned| planned.start > now) {
        lines.push(Line::default());
        let limit = planned
            .limit
            .as_ref()
            .map(|limit| format!(", then a slot of {}", limit.name()))
            .unwrap_or_default();
        let after = planned.after.as_ref().map(|on| format!(" after {on}{limit}")).unwrap_or_default();
        let guess = if planned.runs_measured == 0 { "; never measured, so a guess" } else { "" };
        lines.push(Line::from(format!(
            "expected to start {}{after}{guess}",
            console.look.zone.minute_on(planned.start, now)
        )));
    }
    lines
}
