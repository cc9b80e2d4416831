//! What a mode has to say above the views: the axis of a replay with then and now, or the knobs of a what-if.

use std::fmt::Write as _;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use yard_engine::State;
use yard_engine::capacity::Limit;
use yard_engine::forecast::Forecast;

use crate::console::{Console, Mode};
use crate::paint::Pen;
use crate::replay::{Mark, Replay};
use crate::text::{column, right, shown, span};
use crate::theme::Role;
use crate::whatif::WhatIf;

/// Draws it.
pub(crate) fn draw(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    match &console.mode {
        Mode::Live => {}
        Mode::Replay(replay) => scrub(pen, area, console, replay),
        Mode::WhatIf(what_if) => knobs(pen, area, console, what_if),
    }
}

fn scrub(pen: &mut Pen<'_>, area: Rect, console: &Console, replay: &Replay) {
    let zone = console.look.zone;
    let keys = "Left/Right event  [ ] wave  { } fault  Space play  @ go to  d diff  Esc live";
    let inner = pen.frame(area, pen.title("replay"), keys, true);
    let wide = usize::from(inner.width).saturating_sub(20);
    let mut cells: Vec<(&str, Role)> = vec![(pen.look.glyphs.rule, Role::Dim); wide.max(1)];
    let all = replay.events().len().max(1);
    let mut mark = |share: f64, cell: (&'static str, Role)| {
        let at = ((share * wide as f64) as usize).min(wide.saturating_sub(1));
        if let Some(place) = cells.get_mut(at) {
            *place = cell;
        }
    };
    for share in replay.shares(Mark::Wave) {
        mark(share, ("|", Role::Accent));
    }
    for share in replay.shares(Mark::Fault) {
        mark(share, (pen.look.glyphs.failed, Role::Bad));
    }
    mark(replay.at() as f64 / all as f64, (pen.look.glyphs.now_head, Role::Now));
    let first = replay.events().first().map(|event| zone.clock(event.at)).unwrap_or_default();
    let last = replay.events().last().map(|event| zone.clock(event.at)).unwrap_or_default();
    let mut spans = vec![pen.span(format!("{first} "), Role::Dim)];
    spans.extend(cells.into_iter().map(|(text, role)| pen.span(text, role)));
    spans.push(pen.span(format!(" {last}"), Role::Dim));
    pen.line(inner, 0, &Line::from(spans));
    let event = replay.last();
    let event =
        event.map_or_else(|| "the beginning".to_owned(), |event| crate::views::events::line_of(event));
    pen.line(inner, 1, &Line::from(vec![pen.span("event ", Role::Dim), Span::raw(event)]));
    if replay.diff {
        pen.line(inner, 2, &then_and_now(pen, console, replay));
    }
}

/// What is different now, in numbers.
fn then_and_now<'t>(pen: &Pen<'_>, console: &Console, replay: &Replay) -> Line<'t> {
    let (then, now) = (replay.state(), &console.town.state);
    let counts = |state: &State| {
        let closed = state.beads().filter(|entry| entry.bead.is_closed()).count();
        (state.live_count(), state.open_context_count(), closed, state.settled().count())
    };
    let (was, is) = (counts(then), counts(now));
    let mut changed = 0;
    for entry in now.beads().take(20_000) {
        let id = &entry.bead.id;
        changed += usize::from(then.standing(id) != now.standing(id));
    }
    let cap =
        |state: &State| state.room(&Limit::Town).max.map_or_else(|| "none".to_owned(), |max| max.to_string());
    let arrow = pen.look.glyphs.arrow;
    let mut text = format!(
        "running {} {arrow} {}   scheduled {} {arrow} {}   closed {} {arrow} {}   given up {} {arrow} {}",
        was.0, is.0, was.1, is.1, was.2, is.2, was.3, is.3
    );
    if cap(then) != cap(now) {
        let _ = write!(text, "   cap {} {arrow} {}", cap(then), cap(now));
    }
    let eta = |forecasts: &crate::forecasts::Forecasts| {
        let band = forecasts.town.as_ref().and_then(|forecast| forecast.finish);
        band.map_or_else(|| "-".to_owned(), |band| console.look.zone.minute(band.p50))
    };
    let (was, is) = (eta(replay.forecasts()), eta(&console.forecasts));
    if was != is {
        let _ = write!(text, "   eta {was} {arrow} {is}");
    }
    Line::from(vec![
        pen.span("then and now  ", Role::Dim),
        Span::raw(text),
        pen.span(format!("   {changed} stand differently now"), Role::Accent),
    ])
}

fn knobs(pen: &mut Pen<'_>, area: Rect, console: &Console, what_if: &WhatIf) {
    let half = area.width / 2;
    let left = Rect { width: half, ..area };
    let other = Rect { x: area.x + half, width: area.width - half, ..area };
    let inner = pen.frame(left, pen.title("what if"), "j k choose  + - turn  r reset", true);
    let cut = pen.look.glyphs.ellipsis;
    let name = usize::from(inner.width).saturating_sub(26);
    pen.line(
        inner,
        0,
        &Line::from(pen.span(
            format!("  {}{}{}", column("", name, cut), right("now", 8, cut), right("try", 8, cut)),
            Role::Dim,
        )),
    );
    let rows = usize::from(inner.height).saturating_sub(1);
    let offset = crate::table::scrolled(0, what_if.at, what_if.knobs.len(), rows);
    for (row, knob) in what_if.knobs.iter().enumerate().skip(offset).take(rows) {
        let turned = knob.tried != knob.now;
        let cursor = if row == what_if.at { pen.look.glyphs.cursor } else { " " };
        let role = if turned { Role::Warning } else { Role::Text };
        let line = Line::from(vec![
            Span::raw(format!("{cursor} ")),
            pen.span(column(&shown(&knob.label), name, cut), role),
            pen.span(right(&knob.words(knob.now), 8, cut), Role::Dim),
            pen.span(right(&knob.words(knob.tried), 8, cut), role),
        ]);
        let y = (row - offset) as u16 + 1;
        pen.line(inner, y, &line);
        if row == what_if.at {
            pen.tint(Rect { y: inner.y + y, height: 1, ..inner }, pen.style(Role::Selection));
        }
    }
    result(pen, other, console, what_if);
}

fn result(pen: &mut Pen<'_>, area: Rect, console: &Console, what_if: &WhatIf) {
    let state = if what_if.pending { "computing" } else { "A applies it" };
    let inner = pen.frame(area, pen.title("what comes of it"), state, false);
    let zone = console.look.zone;
    let (Some(now), Some(tried)) = (what_if.untouched(), &what_if.scenario().town) else {
        pen.line(inner, 0, &Line::from(pen.span(" no forecast yet", Role::Dim)));
        return;
    };
    let cut = pen.look.glyphs.ellipsis;
    let mut row = 0;
    let mut put = |pen: &mut Pen<'_>, name: &str, a: String, b: String, gain: String, role: Role| {
        let line = Line::from(vec![
            pen.span(column(&format!(" {name}"), 20, cut), Role::Dim),
            Span::raw(right(&a, 10, cut)),
            Span::raw(right(&b, 10, cut)),
            pen.span(right(&gain, 14, cut), role),
        ]);
        pen.line(inner, row, &line);
        row += 1;
    };
    put(pen, "", "now".to_owned(), "try".to_owned(), String::new(), Role::Dim);
    let time =
        |forecast: &Forecast, p90: bool| forecast.finish.map(|band| if p90 { band.p90 } else { band.p50 });
    for (name, p90) in [("finish p50", false), ("finish p90", true)] {
        let (a, b) = (time(now, p90), time(tried, p90));
        let words = |time: Option<yard_engine::Timestamp>| {
            time.map_or_else(|| "never".to_owned(), |time| zone.minute_on(time, console.now))
        };
        let gain = a.zip(b).map(|(a, b)| a.as_millis() - b.as_millis());
        let (gain, role) = gained(gain);
        put(pen, name, words(a), words(b), gain, role);
    }
    let (gain, role) = gained(Some(now.critical_left.0 as i64 - tried.critical_left.0 as i64));
    put(
        pen,
        "critical path",
        span(now.critical_left.0 as i64),
        span(tried.critical_left.0 as i64),
        gain,
        role,
    );
    let peak =
        |forecast: &Forecast| forecast.load.iter().map(|(_, busy)| *busy).max().unwrap_or(0).to_string();
    put(pen, "most workers", peak(now), peak(tried), String::new(), Role::Text);
    let stuck = |forecast: &Forecast| forecast.stuck.len().to_string();
    put(pen, "never run", stuck(now), stuck(tried), String::new(), Role::Text);
    let samples = tried.samples;
    let guessed = tried.unmeasured;
    pen.line(
        inner,
        row,
        &Line::from(
            pen.span(format!(" the same engine, {samples} samples; {guessed} never measured"), Role::Dim),
        ),
    );
}

fn gained(millis: Option<i64>) -> (String, Role) {
    match millis {
        None | Some(-999..=999) => (String::new(), Role::Text),
        Some(gain @ 1_000..) => (format!("{} sooner", span(gain)), Role::Good),
        Some(loss) => (format!("{} later", span(-loss)), Role::Warning),
    }
}
