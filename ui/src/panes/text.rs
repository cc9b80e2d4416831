//! A box of text over the view that can be scrolled.

use ratatui::layout::Rect;
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use crate::layers::Text;
use crate::layout::centred;
use crate::paint::{Pen, width};
use crate::text::fit;
use crate::theme::Role;

/// Draws lines in a box as large as they need, scrolled as wished. `keys` says what helps.
pub(crate) fn draw(pen: &mut Pen<'_>, screen: Rect, title: &str, lines: &[Line<'_>], text: Text, keys: &str) {
    let widest = lines.iter().map(width).max().unwrap_or(0).max(title.width() + 2).max(keys.width() + 8);
    let margin = |side: u16, from: u16| if side > from { side - 4 } else { side };
    let wide = (widest as u16).saturating_add(4).min(margin(screen.width, 60));
    let high = (lines.len() as u16).saturating_add(2).min(margin(screen.height, 16));
    let area = centred(screen, wide, high);
    pen.clear(area);
    let inner = pen.frame(area, pen.title(title), "", true);
    let room = usize::from(inner.height);
    let scroll = text.scroll.min(lines.len().saturating_sub(room));
    let text_area = Rect { x: inner.x + 1, width: inner.width.saturating_sub(1), ..inner };
    for (row, line) in lines.iter().skip(scroll).take(room).enumerate() {
        pen.line(text_area, row as u16, line);
    }
    let more = if lines.len() > room {
        format!("  {}/{}", (scroll + room).min(lines.len()), lines.len())
    } else {
        String::new()
    };
    let foot =
        fit(&format!(" {keys}{more} "), usize::from(area.width.saturating_sub(2)), pen.look.glyphs.ellipsis);
    let x = area.right().saturating_sub(foot.width() as u16 + 1);
    pen.put(x, area.bottom().saturating_sub(1), foot.width() as u16, &foot, pen.style(Role::Dim));
}
