//! Help and palette: a list that is searched by typing, in a box over the view.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::layers::Finder;
use crate::layout::centred;
use crate::paint::Pen;
use crate::table::scrolled;
use crate::text::{column, shown};
use crate::theme::Role;

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, screen: Rect, finder: &Finder) {
    let wide = screen.width.saturating_sub(4).clamp(screen.width.min(20), 110);
    let high = screen.height.saturating_sub(4).max(screen.height.min(6));
    let area = centred(screen, wide, high);
    pen.clear(area);
    let right = format!("{} of {}  Enter does it, Esc leaves", finder.found.len(), finder.entries.len());
    let inner = pen.frame(area, pen.title(finder.title), &right, true);
    let typed = finder.input.value();
    let hint = if typed.is_empty() { "  type to search" } else { "" };
    let prompt = Line::from(vec![
        pen.span(" > ", Role::Key),
        Span::raw(shown(typed)),
        pen.span(" ", Role::Selection),
        pen.span(hint, Role::Dim),
    ]);
    pen.line(inner, 0, &prompt);
    let about = if inner.height >= 10 { 3 } else { 0 };
    let rows =
        Rect { y: inner.y + 1.min(inner.height), height: inner.height.saturating_sub(1 + about), ..inner };
    if finder.found.is_empty() {
        pen.put(
            rows.x + 3,
            rows.y,
            rows.width.saturating_sub(3),
            "nothing is called like that; Ctrl-p searches the commands too, and : runs any of them",
            pen.style(Role::Dim),
        );
        return;
    }
    let keys = finder.entries.iter().map(|entry| entry.keys.width()).max().unwrap_or(0).min(14);
    let titles = finder.entries.iter().map(|entry| entry.title.width()).max().unwrap_or(0).min(24);
    let offset = scrolled(0, finder.at, finder.found.len(), usize::from(rows.height));
    for (row, at) in finder.found.iter().skip(offset).take(usize::from(rows.height)).enumerate() {
        let entry = &finder.entries[*at];
        let cut = pen.look.glyphs.ellipsis;
        let cursor = if offset + row == finder.at { pen.look.glyphs.cursor } else { " " };
        let line = Line::from(vec![
            Span::raw(format!("{cursor} ")),
            pen.span(column(&entry.keys, keys, cut), Role::Key),
            Span::raw("  "),
            pen.span(column(&entry.title, titles, cut), Role::Accent),
            Span::raw("  "),
            pen.span(entry.help.clone(), Role::Text),
        ]);
        pen.line(rows, row as u16, &line);
        if offset + row == finder.at {
            pen.tint(Rect { y: rows.y + row as u16, height: 1, ..rows }, pen.style(Role::Selection));
        }
    }
    if let (true, Some(at)) = (about > 0, finder.found.get(finder.at)) {
        let rule = pen.look.glyphs.rule.repeat(usize::from(inner.width));
        pen.put(inner.x, rows.bottom(), inner.width, &rule, pen.style(Role::Border));
        let wide = usize::from(inner.width).saturating_sub(2).max(1);
        for (row, text) in broken(&finder.entries[*at].help, wide).into_iter().take(2).enumerate() {
            pen.put(
                inner.x + 1,
                rows.bottom() + 1 + row as u16,
                inner.width.saturating_sub(1),
                &text,
                pen.style(Role::Text),
            );
        }
    }
}

/// Breaks a text between words.
fn broken(text: &str, wide: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.width());
        if last > 0 && last + 1 + word.width() > wide {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
