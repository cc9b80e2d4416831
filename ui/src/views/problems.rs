//! What needs a person, most urgent first; below, the cause and the remedy of the selected one.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::console::{Console, Pane};
use crate::layout::{Plan, inside, list_area};
use crate::paint::Pen;
use crate::text::{column, count, fit, right, shown, span};
use crate::theme::Role;

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, plan: &Plan, console: &Console) {
    let list = list_area(console);
    let cut = pen.look.glyphs.ellipsis;
    let problems = console.shown_problems();
    let heal = problems.iter().filter(|problem| problem.heals()).count();
    if plan.framed {
        let need = problems.len() - heal;
        let title = format!(
            "problems  {} you, {}",
            if need == 1 { "1 needs".to_owned() } else { format!("{need} need") },
            if heal == 1 { "1 heals by itself".to_owned() } else { format!("{heal} heal by themselves") }
        );
        pen.frame(plan.main, pen.title(&title), "most urgent first", console.pane == Pane::Main);
        let head = format!(
            "  {} {} {} CAUSE",
            column("WHAT", 9, cut),
            column("WHICH", 30, cut),
            right("FOR", 4, cut)
        );
        pen.put(list.x, list.y.saturating_sub(1), list.width, &head, pen.style(Role::Dim));
    }
    if problems.is_empty() {
        let text = format!(
            "Nothing needs you: {} at work, {} scheduled.",
            count(console.state().live_count(), "worker"),
            console.state().open_context_count()
        );
        pen.put(list.x + 1, list.y, list.width.saturating_sub(1), &text, pen.style(Role::Good));
        return;
    }
    let now = console.shown_now();
    for (line, problem) in
        problems.iter().enumerate().skip(console.problems_at.offset).take(usize::from(list.height))
    {
        let selected = line == console.problems_at.at;
        let since = problem.since.map(|since| span(now.as_millis() - since.as_millis())).unwrap_or_default();
        let text = Line::from(vec![
            Span::raw(if selected { pen.look.glyphs.cursor } else { " " }),
            pen.span(
                if problem.heals() { pen.look.glyphs.retry } else { pen.look.glyphs.warning },
                problem.role,
            ),
            pen.span(column(problem.word, 9, cut), problem.role),
            Span::raw(" "),
            Span::raw(column(&shown(&problem.name), 30, cut)),
            pen.span(format!(" {} ", right(&since, 4, cut)), Role::Dim),
            Span::raw(shown(&problem.cause)),
        ]);
        let row = (line - console.problems_at.offset) as u16;
        pen.line(list, row, &text);
        if selected {
            pen.tint(Rect { y: list.y + row, height: 1, ..list }, pen.style(Role::Selection));
        }
    }
    let inner = inside(plan.main);
    if plan.framed
        && inner.bottom() > list.bottom() + 2
        && let Some(problem) = problems.get(console.problems_at.at)
    {
        let rule = pen.look.glyphs.rule.repeat(usize::from(inner.width));
        pen.put(inner.x, list.bottom(), inner.width, &rule, pen.style(Role::Border));
        let place =
            Rect { x: inner.x + 1, y: list.bottom() + 1, width: inner.width.saturating_sub(1), height: 3 };
        let wide = usize::from(place.width);
        pen.line(place, 0, &Line::from(pen.span(fit(&shown(&problem.name), wide, cut), Role::Title)));
        pen.line(place, 1, &Line::from(fit(&shown(&problem.cause), wide, cut)));
        pen.line(
            place,
            2,
            &Line::from(pen.span(format!("{} {}", pen.look.glyphs.arrow, problem.remedy), Role::Accent)),
        );
    }
}
