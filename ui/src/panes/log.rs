//! The log of the selected bead, across its attempts. The worker's colours are kept; whatever else it sends is not.

use ansi_to_tui::IntoText;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;
use yard_engine::DispatchId;

use crate::console::{Console, Mode, Pane};
use crate::layers::LogPane;
use crate::msg::LogLine;
use crate::paint::Pen;
use crate::text::{fit, grouped, shown};
use crate::theme::Role;

/// More of a line is not shown; it is whole on disk.
const LONGEST: usize = 4_000;

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    let log = &console.log;
    let focused = console.pane == Pane::Log;
    let name = match &log.bead {
        Some(id) => {
            let title = console.state().bead(id).map(|entry| shown(&entry.bead.title)).unwrap_or_default();
            let attempt = match log.attempts.len() {
                0 | 1 => String::new(),
                many => format!("  {many} attempts"),
            };
            let when = if matches!(console.mode, Mode::Replay(_)) { "  (as it is now)" } else { "" };
            format!("log{when}  {id}  {title}{attempt}")
        }
        None => "log".to_owned(),
    };
    let name = fit(&name, usize::from(area.width).saturating_sub(40), pen.look.glyphs.ellipsis);
    let mut right = Vec::new();
    if !log.search.is_empty() {
        right.push(format!("/{}: {}", shown(&log.search), log.matches().len()));
    }
    right.push(if log.follow { "follow" } else { "F follows" }.to_owned());
    let lines = log.lines.len() + log.dropped;
    if log.dropped > 0 {
        right.push(format!("the last {} of these", grouped(log.lines.len() as u64)));
    }
    right.push(format!("{} line{}", grouped(lines as u64), if lines == 1 { "" } else { "s" }));
    let inner = pen.frame(area, pen.title(&name), &right.join("  "), focused);
    if log.lines.is_empty() {
        let words = match &log.bead {
            None if console.agent().is_some() => "this agent has no bead: w says why it is sent none",
            None => "select a bead that has run to see what it wrote",
            Some(id) if crate::crew::is_claimed(console.state(), id) => {
                "an agent has it, and writes its log elsewhere; what it says is in its row"
            }
            Some(_) if log.attempts.is_empty() => "it has not run yet: w says why",
            Some(_) => "nothing was written yet",
        };
        pen.put(inner.x + 1, inner.y, inner.width.saturating_sub(1), words, pen.style(Role::Dim));
        return;
    }
    let drawn = visible(pen, console, inner);
    for (row, line) in drawn.iter().enumerate() {
        pen.line(inner, row as u16, line);
    }
}

/// The lines that are seen.
fn visible<'t>(pen: &Pen<'_>, console: &'t Console, inner: Rect) -> Vec<Line<'t>> {
    let log = &console.log;
    let height = usize::from(inner.height);
    let width = usize::from(inner.width);
    if height == 0 || width == 0 {
        return Vec::new();
    }
    let last = log.lines.len().saturating_sub(height);
    let top = if log.follow { last } else { log.top.min(last) };
    let mut drawn = Vec::new();
    if log.dropped > 0 && top == 0 && !log.follow {
        let id = log.bead.as_ref().map(ToString::to_string).unwrap_or_default();
        let text =
            format!("{} earlier lines are not here; ym logs {id} has them", grouped(log.dropped as u64));
        drawn.push(Line::from(pen.span(text, Role::Warning)));
    }
    for line in log.lines.iter().skip(top).take(height) {
        let whole = one(pen, console, line, width);
        if log.wrap { drawn.extend(wrapped(whole, width)) } else { drawn.push(whole) }
    }
    if log.follow && drawn.len() > height {
        drawn.drain(..drawn.len() - height);
    }
    drawn.truncate(height);
    drawn
}

fn one<'t>(pen: &Pen<'_>, console: &Console, line: &'t LogLine, width: usize) -> Line<'t> {
    let log = &console.log;
    match line {
        LogLine::Attempt(name) => {
            let name = attempt(console, name);
            let rule = pen.look.glyphs.rule;
            let head = format!("{} {} ", rule.repeat(2), name);
            let rest = rule.repeat(width.saturating_sub(head.width()));
            Line::from(pen.span(format!("{head}{rest}"), Role::Dim))
        }
        LogLine::Text(text) => {
            let mut line = coloured(text);
            let wanted = log.search.to_lowercase();
            if !wanted.is_empty() && text.to_lowercase().contains(&wanted) {
                line = line.style(pen.style(Role::Accent));
                line.spans.insert(0, pen.span(pen.look.glyphs.cursor, Role::Mark));
            }
            line
        }
    }
}

/// An attempt with its beginning and its end.
fn attempt(console: &Console, name: &str) -> String {
    let dispatch = DispatchId::parse(name).ok().and_then(|id| console.state().dispatch(&id));
    let told = dispatch.map(|dispatch| {
        let began = console.look.zone.clock(dispatch.running_at.unwrap_or(dispatch.started_at));
        format!("  {began}  {}", yard_client::views::dispatch(dispatch).phase)
    });
    shown(&format!("{name}{}", told.unwrap_or_default()))
}

/// A line with its colours, and nothing else that a terminal would obey.
fn coloured<'t>(text: &str) -> Line<'t> {
    let cut = text.char_indices().nth(LONGEST).map_or(text, |(at, _)| &text[..at]);
    let only_colours = keep_colours(cut);
    let parsed = only_colours.as_bytes().into_text().ok();
    let line = parsed.and_then(|text| text.lines.into_iter().next());
    let Some(line) = line else { return Line::from(shown(cut)) };
    let spans = line.spans.into_iter().map(|span| Span::styled(shown(&span.content), tame(span.style)));
    Line::from(spans.collect::<Vec<_>>())
}

/// Blinking and hidden text help nobody.
fn tame(style: Style) -> Style {
    use ratatui::style::{Color, Modifier};
    // Back to normal means the theme's normal, not the terminal's.
    let plain = |colour: Option<Color>| colour.filter(|colour| *colour != Color::Reset);
    let style = Style { fg: plain(style.fg), bg: plain(style.bg), ..style };
    style.remove_modifier(Modifier::SLOW_BLINK | Modifier::RAPID_BLINK | Modifier::HIDDEN)
}

/// Takes out every escape sequence that does not set colours; tabs become spaces.
fn keep_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(&rest[..at]);
        let (sequence, after) = rest[at..].split_at(sequence_length(&rest[at..]));
        if sequence.ends_with('m') && sequence.starts_with("\u{1b}[") {
            out.push_str(sequence);
        }
        rest = after;
    }
    out.push_str(rest);
    out.replace('\t', "    ").replace(['\r', '\n'], "")
}

/// How long the escape sequence at the start is; one that never ends takes the rest, as in a terminal.
fn sequence_length(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    let end_of =
        |found: Option<(usize, char)>| found.map_or(text.len(), |(at, letter)| at + letter.len_utf8());
    match letters.next() {
        Some((_, '[')) => end_of(letters.find(|(_, letter)| !(' '..='?').contains(letter))),
        Some((_, ']' | 'P' | 'X' | '^' | '_')) => {
            let found = letters.find(|(_, letter)| matches!(letter, '\u{7}' | '\u{1b}'));
            match found {
                Some((at, '\u{1b}')) if text[at..].starts_with("\u{1b}\\") => at + 2,
                other => end_of(other),
            }
        }
        other => end_of(other),
    }
}

/// Breaks a line into as many as it needs.
fn wrapped(line: Line<'_>, width: usize) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut current: Vec<Span<'_>> = Vec::new();
    let mut used = 0;
    for span in line.spans {
        let style = span.style;
        let mut piece = String::new();
        for letter in span.content.chars() {
            let wide = unicode_width::UnicodeWidthChar::width(letter).unwrap_or(0);
            if used + wide > width {
                current.push(Span::styled(std::mem::take(&mut piece), style));
                lines.push(Line::from(std::mem::take(&mut current)));
                used = 0;
            }
            piece.push(letter);
            used += wide;
        }
        current.push(Span::styled(piece, style));
    }
    lines.push(Line::from(current));
    lines
}

/// The log as plain text, for copying.
pub(crate) fn plain(log: &LogPane) -> String {
    let lines = log.lines.iter().map(|line| match line {
        LogLine::Attempt(name) => format!("-- {name} --"),
        LogLine::Text(text) => yard_client::Safe(text).to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_stay_and_everything_else_goes() {
        let line = coloured("\u{1b}[31mred\u{1b}[0m plain");
        assert_eq!(line.spans[0].content, "red");
        assert_eq!(line.spans[0].style.fg, Some(ratatui::style::Color::Red));
        let text =
            |line: &str| coloured(line).spans.iter().map(|s| s.content.to_string()).collect::<String>();
        assert_eq!(text("a\u{1b}[2Jb"), "ab");
        assert_eq!(text("a\u{1b}]0;title\u{7}b\tc"), "ab    c");
        assert_eq!(text("\u{1b}[5mblink"), "blink");
        assert_eq!(text("50%\r100%"), "50%100%");
    }

    #[test]
    fn a_long_line_is_broken_or_cut() {
        let lines = wrapped(Line::from("abcdefgh"), 3);
        let texts: Vec<String> =
            lines.iter().map(|l| l.spans.iter().map(|s| s.content.as_ref()).collect()).collect();
        assert_eq!(texts, ["abc", "def", "gh"]);
        assert!(coloured(&"x".repeat(100_000)).width() <= LONGEST);
    }
}
