//! Putting text into the buffer: everything is clipped to it, so that no size of the screen is too small.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget};
use unicode_width::UnicodeWidthStr;

use crate::look::Look;
use crate::text::fit;
use crate::theme::Role;

/// A buffer, and how things look.
pub(crate) struct Pen<'a> {
    /// What is drawn on.
    pub buf: &'a mut Buffer,
    /// How.
    pub look: &'a Look,
}

impl Pen<'_> {
    /// The style of a role.
    pub(crate) fn style(&self, role: Role) -> Style {
        self.look.style(role)
    }

    /// A piece of text in a role.
    pub(crate) fn span<'t>(&self, text: impl Into<std::borrow::Cow<'t, str>>, role: Role) -> Span<'t> {
        Span::styled(text, self.style(role))
    }

    /// Writes a text of one line; what does not fit is cut.
    pub(crate) fn put(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) {
        let area = self.buf.area.intersection(Rect::new(x, y, width, 1));
        if area.is_empty() || x < area.x {
            return;
        }
        self.buf.set_stringn(area.x, area.y, text, usize::from(area.width), style);
    }

    /// Writes a line of several styles; what does not fit is cut, and it shows.
    pub(crate) fn line(&mut self, area: Rect, row: u16, line: &Line<'_>) {
        if row >= area.height {
            return;
        }
        let place = self.buf.area.intersection(Rect::new(area.x, area.y + row, area.width, 1));
        if !place.is_empty() && place.x == area.x {
            self.buf.set_line(place.x, place.y, line, place.width);
            if width(line) > usize::from(place.width) {
                self.show_cut(place);
            }
        }
    }

    /// Marks the end of a line that was cut.
    fn show_cut(&mut self, place: Rect) {
        let last = place.right() - 1;
        let before = last.saturating_sub(1).max(place.x);
        // A letter of two cells cannot be cut in half.
        let at = if self.buf[(before, place.y)].symbol().width() > 1 { before } else { last };
        self.buf[(last, place.y)].set_symbol(" ");
        self.buf[(at, place.y)].set_symbol(self.look.glyphs.ellipsis);
    }

    /// Gives a whole line another style, without touching its text.
    pub(crate) fn tint(&mut self, area: Rect, style: Style) {
        let area = self.buf.area.intersection(area);
        if style.add_modifier.contains(Modifier::REVERSED) && style.fg.is_none() {
            // Turned around, every colour in the line would be a patch of its own.
            let text = self.style(Role::Text);
            let one = Style::new().fg(text.fg.unwrap_or(Color::Reset)).bg(text.bg.unwrap_or(Color::Reset));
            self.buf.set_style(area, one);
        }
        self.buf.set_style(area, style);
    }

    /// Draws a frame with a title and something to its right; gives what is inside.
    pub(crate) fn frame(&mut self, area: Rect, title: Line<'_>, right: &str, focused: bool) -> Rect {
        let area = self.buf.area.intersection(area);
        if area.width < 2 || area.height < 2 {
            return Rect { width: 0, height: 0, ..area };
        }
        let role = if focused { Role::Focus } else { Role::Border };
        let mut block = Block::bordered()
            .border_set(self.look.glyphs.border())
            .border_style(self.style(role))
            .title_top(title);
        if !right.is_empty() {
            let room = usize::from(area.width).saturating_sub(4);
            let right = format!(" {} ", fit(right, room, self.look.glyphs.ellipsis));
            let right = Line::from(self.span(right, Role::Dim)).right_aligned();
            block = block.title_top(right);
        }
        let inner = block.inner(area);
        block.render(area, self.buf);
        inner
    }

    /// Clears an area, for what lies over the view.
    pub(crate) fn clear(&mut self, area: Rect) {
        Clear.render(self.buf.area.intersection(area), self.buf);
        // Cleared cells have the terminal's own colours, which are not those of every theme.
        self.tint(area, self.style(Role::Text));
    }

    /// A title of a frame.
    pub(crate) fn title<'t>(&self, text: &'t str) -> Line<'t> {
        Line::from(vec![Span::raw(" "), self.span(text, Role::Title), Span::raw(" ")])
    }

    /// A gauge of this width.
    pub(crate) fn gauge(&self, part: u64, whole: u64, width: usize) -> (String, String) {
        let full = (width as u64 * part.min(whole)).checked_div(whole).unwrap_or(0) as usize;
        (self.look.glyphs.full.repeat(full), self.look.glyphs.empty.repeat(width - full))
    }
}

/// The width of a line.
pub(crate) fn width(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| span.content.width()).sum()
}
