//! A box of text over the view that can be scrolled.

use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::layers::Text;
use crate::layout::centred;
use crate::paint::{Pen, width};

/// Draws lines in a box as large as they need, scrolled as wished. `keys` says what helps.
pub(crate) fn draw(
    pen: &mut Pen<'_>,
    screen: Rect,
    title: &str,
    lines: &[Line<'_>],
    text: &Text,
    keys: &str,
) {
    let widest = lines.iter().map(width).max().unwrap_or(0).max(title.len() + 4).max(keys.len() + 6);
    let wide = (widest as u16).saturating_add(4).min(screen.width.saturating_sub(if screen.width > 60 {
        4
    } else {
        0
    }));
    let high = (lines.len() as u16)
        .saturating_add(2)
        .min(screen.height.saturating_sub(if screen.height > 16 { 4 } else { 0 }));
    let area = centred(screen, wide, high);
    pen.clear(area);
    let inner = pen.frame(area, pen.title(title), keys, true);
    let room = usize::from(inner.height);
    let scroll = text.scroll.min(lines.len().saturating_sub(room));
    let text_area = Rect { x: inner.x + 1, width: inner.width.saturating_sub(1), ..inner };
    for (row, line) in lines.iter().skip(scroll).take(room).enumerate() {
        pen.line(text_area, row as u16, line);
    }
    if lines.len() > room && room > 0 {
        let shown = (scroll + room).min(lines.len());
        let mark = format!(" {shown}/{} ", lines.len());
        let x = area.right().saturating_sub(mark.len() as u16 + 2);
        pen.put(
            x,
            area.bottom().saturating_sub(1),
            mark.len() as u16,
            &mark,
            pen.style(crate::theme::Role::Dim),
        );
    }
}
