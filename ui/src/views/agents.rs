//! Live workers: what they are on, what they say, what they cost.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use yard_client::views::running;

use crate::console::{Console, Pane};
use crate::layout::{Plan, list_area};
use crate::paint::Pen;
use crate::text::{column, right, shown, span};
use crate::theme::Role;

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, plan: &Plan, console: &Console) {
    let list = list_area(console);
    let cut = pen.look.glyphs.ellipsis;
    let workers = running(console.state());
    if plan.framed {
        let title = format!("workers  {}", workers.len());
        pen.frame(plan.main, pen.title(&title), "l logs  a attach  x act", console.pane == Pane::Main);
        let head = format!(
            "  {} {} {} {} {} {} {} {}",
            column("BEAD", 12, cut),
            column("TITLE", 20, cut),
            column("RIG", 10, cut),
            column("STATE", 9, cut),
            right("FOR", 4, cut),
            right("COST", 7, cut),
            right("HEARD", 5, cut),
            "SAYS"
        );
        pen.put(list.x, list.y.saturating_sub(1), list.width, &head, pen.style(Role::Dim));
    }
    if workers.is_empty() {
        let text = match console.state().open_context_count() {
            0 => "No worker is live, and nothing is scheduled.",
            _ => "No worker is live: w says of any waiting bead why.",
        };
        pen.put(list.x + 1, list.y, list.width.saturating_sub(1), text, pen.style(Role::Dim));
        return;
    }
    let now = console.shown_now();
    for (line, worker) in
        workers.iter().enumerate().skip(console.agents.offset).take(usize::from(list.height))
    {
        let (glyph, word, role) = if worker.stuck {
            (pen.look.glyphs.warning, "stalled".to_owned(), Role::Warning)
        } else if worker.stopping {
            (pen.look.glyphs.cancelled, "stopping".to_owned(), Role::Warning)
        } else if let Some(bead) = &worker.yielding_to {
            (pen.look.glyphs.preempted, format!("for {bead}"), Role::Warning)
        } else {
            (pen.look.glyphs.running, "running".to_owned(), Role::Running)
        };
        let says = worker.progress.as_deref().or(worker.step.as_deref()).map(shown).unwrap_or_default();
        let heard = console.state().dispatch(&worker.dispatch_id).and_then(|dispatch| dispatch.heard_at);
        let heard = heard.map(|at| span(now.as_millis() - at.as_millis()));
        let selected = line == console.agents.at;
        let text = Line::from(vec![
            Span::raw(if selected { pen.look.glyphs.cursor } else { " " }),
            pen.span(glyph, role),
            Span::raw(column(&shown(worker.id.as_str()), 12, cut)),
            Span::raw(" "),
            Span::raw(column(&shown(&worker.title), 20, cut)),
            pen.span(format!(" {} ", column(worker.rig.as_str(), 10, cut)), Role::Dim),
            pen.span(column(&word, 9, cut), role),
            pen.span(
                format!(" {} ", right(&span(now.as_millis() - worker.started_at.as_millis()), 4, cut)),
                Role::Dim,
            ),
            Span::raw(right(&worker.cost.map(|cost| cost.to_string()).unwrap_or_default(), 7, cut)),
            pen.span(format!(" {} ", right(&heard.unwrap_or_default(), 5, cut)), Role::Dim),
            Span::raw(says),
        ]);
        let row = (line - console.agents.offset) as u16;
        pen.line(list, row, &text);
        if selected {
            pen.tint(Rect { y: list.y + row, height: 1, ..list }, pen.style(Role::Selection));
        }
    }
}
