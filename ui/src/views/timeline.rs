//! The timeline at full width: what ran, runs and will run, with the line of now.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::beads::{heading, load_strip};
use crate::console::{Console, Pane};
use crate::layout::{Plan, inside, list_area};
use crate::paint::Pen;
use crate::rows::row;
use crate::text::column;
use crate::theme::Role;
use crate::timeline::{axis, bars};

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, plan: &Plan, console: &Console) {
    let list = list_area(console);
    let names = usize::from(list.width) * 3 / 10;
    let wide = usize::from(list.width).saturating_sub(names + 1);
    let axis = axis(console, wide);
    let cut = pen.look.glyphs.ellipsis;
    if plan.framed {
        let right = format!("{}  + finer  - coarser  Left/Right move", axis.scale());
        pen.frame(plan.main, heading(pen, console), &right, console.pane == Pane::Main);
        let labels = axis.labels(console.look.zone, pen.look.glyphs.now_head);
        let head = format!("{} {labels}", column("    BEAD", names, cut));
        pen.put(list.x, list.y.saturating_sub(1), list.width, &head, pen.style(Role::Dim));
    }
    let offset = console.table.offset();
    let ids =
        console.table.visible(usize::from(list.height)).map(|id| id.as_str().width()).max().unwrap_or(4);
    for (line, id) in console.table.visible(usize::from(list.height)).enumerate() {
        let row = row(console, id);
        let selected = offset + line == console.table.cursor();
        let mark = if console.marks.contains(id) { pen.look.glyphs.mark } else { " " };
        let mut spans = vec![
            Span::raw(if selected { pen.look.glyphs.cursor } else { " " }),
            pen.span(mark, Role::Mark),
            pen.span(row.glyph, row.role),
            Span::raw(" "),
            Span::raw(column(
                &format!("{} {}", column(&row.id, ids.min(14), cut), row.title),
                names.saturating_sub(4),
                cut,
            )),
            Span::raw(" "),
        ];
        spans.extend(bars(console, &axis, id).into_iter().map(|(glyph, role)| pen.span(glyph, role)));
        pen.line(list, line as u16, &Line::from(spans));
        if selected {
            let width = names as u16;
            pen.tint(Rect { y: list.y + line as u16, height: 1, width, ..list }, pen.style(Role::Selection));
        }
    }
    let inner = inside(plan.main);
    if plan.framed && inner.bottom() > list.bottom() + 1 {
        let x = inner.x + names as u16 + 1;
        let place = Rect { x, y: list.bottom(), width: wide as u16, height: 2 };
        pen.put(inner.x, list.bottom(), names as u16, &column("    load", names, cut), pen.style(Role::Dim));
        load_strip(pen, place, console, &axis);
        pen.line(inner, inner.height - 1, &legend(pen));
    }
}

fn legend<'t>(pen: &Pen<'_>) -> Line<'t> {
    let glyphs = pen.look.glyphs;
    let signs = [
        (glyphs.past_critical, " running, critical  ", Role::PastCritical),
        (glyphs.past, " ran, runs  ", Role::Past),
        (glyphs.plan_critical, " planned, critical  ", Role::PlanCritical),
        (glyphs.plan, " planned  ", Role::Plan),
        (glyphs.now, " now  ", Role::Now),
        (glyphs.preempted, " gave way  ", Role::Warning),
        (glyphs.failed, " failed", Role::Bad),
    ];
    let mut spans = vec![Span::raw("    ")];
    for (glyph, words, role) in signs {
        spans.push(pen.span(glyph, role));
        spans.push(pen.span(words, Role::Dim));
    }
    Line::from(spans)
}
