//! The first line: where we are, and whether what one sees is live.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::console::{Console, Mode};
use crate::paint::{Pen, width};
use crate::text::{count, fit, grouped, shown, span};
use crate::theme::Role;
use crate::town::Link;

/// Cells for who paused, and why.
const LONGEST_PAUSE: usize = 60;

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    let mut left = left(pen, console);
    let wide = usize::from(area.width);
    let without_tiles = crate::layout::plan(console).tiles.is_none() && area.width >= 60 && !console.homeless;
    let mut right = right(pen, console, !without_tiles || area.width >= 120, LONGEST_PAUSE);
    // Who paused, and why, matters more than when work that does not start would be done.
    if without_tiles && console.state().pause().is_none() {
        left.spans.push(Span::raw(summary(console)));
    }
    let too_wide = |right: &Line<'_>| (width(&left) + width(right) + 1).saturating_sub(wide);
    if too_wide(&right) > 0 {
        right = self::right(pen, console, false, LONGEST_PAUSE);
        let pause = right.spans.first().map_or(0, Span::width).saturating_sub(2 + too_wide(&right));
        right = self::right(pen, console, false, pause.max("PAUSED".len()));
    }
    let room = wide.saturating_sub(width(&right) + 1);
    let mut text = left;
    if width(&text) > room {
        let plain: String = text.spans.iter().map(|span| span.content.as_ref()).collect();
        text = Line::from(pen.span(fit(&plain, room, pen.look.glyphs.ellipsis), Role::Title));
    }
    pen.line(area, 0, &text);
    let wide = (width(&right) as u16).min(area.width);
    let place = Rect { x: area.x + area.width - wide, width: wide, ..area };
    pen.line(place, 0, &right);
}

fn left<'t>(pen: &Pen<'_>, console: &'t Console) -> Line<'t> {
    let mut spans = vec![
        Span::raw(" "),
        pen.span(console.view.name(), Role::Title),
        pen.span(if pen.look.glyphs.ascii { " > " } else { " ▸ " }, Role::Dim),
        pen.span(shown(&console.town.name), Role::Accent),
    ];
    if let Some(id) = console.convoy.as_ref().filter(|_| console.view == crate::console::View::Convoys) {
        spans.push(pen.span(format!(" {} {id}", pen.look.glyphs.dot), Role::Accent));
    }
    Line::from(spans)
}

/// Where in the log one is; what a simulation adds to its copy is not in it.
fn position(console: &Console) -> u64 {
    match &console.mode {
        Mode::Live | Mode::WhatIf(_) => console.town.state.seq().0,
        Mode::Replay(replay) => replay.state().seq().0,
    }
}

/// Workers and the end, for screens without room for more.
fn summary(console: &Console) -> String {
    let room = console.state().room(&yard_engine::capacity::Limit::Town);
    let of = room.max.map(|max| format!("/{max}")).unwrap_or_default();
    let band = console.shown_forecasts().town.as_ref().and_then(|forecast| forecast.finish);
    let zone = console.look.zone;
    let eta = band.map(|band| format!("  eta {}..{}", zone.minute(band.p50), zone.minute(band.p90)));
    format!("  workers {}{of}{}", room.active, eta.unwrap_or_default())
}

/// How live it is; in long form with the time, the position in the log, and who serves.
fn right<'t>(pen: &Pen<'_>, console: &Console, long: bool, pause: usize) -> Line<'t> {
    let mut spans = vec![mode(pen, console, pause), Span::raw(" ")];
    if long {
        let time = console.look.zone.clock(console.shown_now());
        spans.push(pen.span(time, Role::Text));
        spans.push(pen.span(format!("   seq {}", grouped(position(console))), Role::Dim));
        let server = match &console.town.link {
            Link::Live { .. } if console.embedded => "   serving the town".to_owned(),
            Link::Live { role, .. } => format!("   {} ok", format!("{role:?}").to_lowercase()),
            Link::Loading { .. } | Link::Lost { .. } => String::new(),
        };
        spans.push(pen.span(server, Role::Dim));
    }
    let needs = console.digest.problems.iter().filter(|problem| !problem.heals()).count();
    if needs > 0 {
        spans.push(pen.span(format!("   {}", count(needs, "problem")), Role::Bad));
    }
    spans.push(Span::raw(" "));
    Line::from(spans)
}

fn mode<'t>(pen: &Pen<'_>, console: &Console, room: usize) -> Span<'t> {
    let special = |text: String| pen.span(format!(" {text} "), Role::Mode);
    if console.homeless {
        return special("NO TOWN".to_owned());
    }
    match &console.mode {
        Mode::Replay(replay) => {
            let all = replay.events().len();
            return special(format!("REPLAY {} of {}", grouped(replay.at() as u64), grouped(all as u64)));
        }
        Mode::WhatIf(_) => return special("SIMULATION, nothing is applied".to_owned()),
        Mode::Live => {}
    }
    match &console.town.link {
        Link::Loading { of: 0, .. } => return special("CONNECTING".to_owned()),
        Link::Loading { read, of } => return special(format!("LOADING {}%", read * 100 / (*of).max(1))),
        Link::Lost { since, .. } => {
            let ago = span(console.now.as_millis() - since.as_millis());
            return special(format!("DISCONNECTED {ago}"));
        }
        Link::Live { .. } => {}
    }
    if let Some(waiting) = console.town.frozen() {
        return special(format!("FROZEN, {waiting} events wait"));
    }
    match console.state().pause() {
        Some(pause) => {
            let reason =
                pause.reason.as_ref().map(|reason| format!(": {}", shown(reason))).unwrap_or_default();
            special(fit(&format!("PAUSED by {}{reason}", shown(&pause.by)), room, pen.look.glyphs.ellipsis))
        }
        None => pen.span("LIVE", Role::Live),
    }
}

/// Everything in one line, for a screen with room for no more.
pub(crate) fn one_line(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    let state = console.state();
    let word = match (&console.town.link, &console.mode) {
        (Link::Lost { .. }, _) => "LOST",
        (_, Mode::Replay(_)) => "REPLAY",
        (_, Mode::WhatIf(_)) => "SIM",
        _ if state.pause().is_some() => "PAUSED",
        _ => "LIVE",
    };
    let broken = console.digest.problems.iter().filter(|problem| !problem.heals()).count();
    let text = format!("{word} {} run {} wait {broken} bad", state.live_count(), state.open_context_count());
    pen.put(area.x, area.y, area.width, &text, pen.style(Role::Text));
}
