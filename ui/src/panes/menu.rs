//! A few choices, each with its key, in a box over the view.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::layers::{Menu, Pick};
use crate::layout::centred;
use crate::paint::Pen;
use crate::text::{fit, shown};
use crate::theme::Role;

/// Where it lies.
pub(crate) fn area(menu: &Menu, screen: Rect) -> Rect {
    let item = |item: &crate::layers::Item| item.title.width() + item.note.width() + 9;
    let widest = menu.items.iter().map(item).chain(menu.notes.iter().map(|note| note.width() + 2)).max();
    let wide = widest.unwrap_or(0).max(menu.title.width() + 4) as u16 + 2;
    centred(screen, wide, (menu.items.len() + menu.notes.len()) as u16 + 2)
}

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, screen: Rect, menu: &Menu) {
    let area = area(menu, screen);
    pen.clear(area);
    let inner = pen.frame(area, pen.title(&shown(&menu.title)), "", true);
    let mut row = 0;
    for note in &menu.notes {
        let role = if note.starts_with('$') { Role::Accent } else { Role::Dim };
        pen.line(inner, row, &Line::from(pen.span(format!(" {}", shown(note)), role)));
        row += 1;
    }
    for (at, item) in menu.items.iter().enumerate() {
        let off = matches!(item.pick, Pick::Nothing(_));
        let role = if off { Role::Dim } else { Role::Text };
        let room = usize::from(inner.width).saturating_sub(item.note.width() + 7);
        let title = fit(&shown(&item.title), room, pen.look.glyphs.ellipsis);
        let gap = usize::from(inner.width).saturating_sub(title.width() + item.note.width() + 6);
        let cursor = if at == menu.at { pen.look.glyphs.cursor } else { " " };
        let line = Line::from(vec![
            Span::raw(cursor),
            pen.span(format!("[{}] ", item.key), if off { Role::Dim } else { Role::Key }),
            pen.span(title, role),
            Span::raw(" ".repeat(gap)),
            pen.span(shown(&item.note), Role::Dim),
        ]);
        pen.line(inner, row, &line);
        if at == menu.at {
            pen.tint(Rect { y: inner.y + row, height: 1, ..inner }, pen.style(Role::Selection));
        }
        row += 1;
    }
}
