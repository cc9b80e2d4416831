//! Convoys: the list with progress, and inside one its waves, what holds them, the critical path and every bead.

use std::fmt::Write as _;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use yard_engine::ConvoyId;
use yard_engine::convoy::Convoy;

use crate::console::{Console, Pane};
use crate::digest::{Counts, Progress};
use crate::layout::{Plan, inside, list_area};
use crate::paint::Pen;
use crate::rows::row;
use crate::text::{column, fit, right, shown, span};
use crate::theme::Role;

/// Waves shown above the beads of a convoy.
const WAVES: usize = 10;
/// Of more open beads in a wave, the last one to end is looked for among the first of them.
const MOST_HOLDERS: usize = 500;

/// Draws the list, or the inside of the open convoy.
pub(crate) fn draw(pen: &mut Pen<'_>, plan: &Plan, console: &Console) {
    match &console.convoy {
        Some(id) => inside_of(pen, plan, console, id),
        None => list(pen, plan, console),
    }
}

fn list(pen: &mut Pen<'_>, plan: &Plan, console: &Console) {
    let area = list_area(console);
    let cut = pen.look.glyphs.ellipsis;
    let ids = console.convoy_list();
    if plan.framed {
        let title = format!("convoys  {}", ids.len());
        pen.frame(plan.main, pen.title(&title), "Enter opens  s stage  L launch", console.pane == Pane::Main);
        let head = format!(
            "  {} {} {} {}",
            column("CONVOY", 12, cut),
            column("TITLE", 30, cut),
            column("STATUS", 15, cut),
            "PROGRESS"
        );
        pen.put(area.x, area.y.saturating_sub(1), area.width, &head, pen.style(Role::Dim));
    }
    if ids.is_empty() {
        let text = "No convoy yet: s stages one of an epic, of marked beads or of a file.";
        pen.put(area.x + 1, area.y, area.width.saturating_sub(1), text, pen.style(Role::Dim));
        return;
    }
    for (line, id) in ids.iter().enumerate().skip(console.convoys.offset).take(usize::from(area.height)) {
        let Some(convoy) = console.state().convoy(id) else { continue };
        let (total, completed) =
            (convoy.tracked.len(), console.digest.convoy(id).map_or(0, |progress| progress.counts.closed));
        let role = match convoy.status() {
            "open" => Role::Running,
            "closed" => Role::Done,
            "staged:warnings" => Role::Warning,
            _ => Role::Staged,
        };
        let wide = usize::from(area.width).saturating_sub(78).clamp(6, 30);
        let (full, empty) = pen.gauge(completed as u64, total as u64, wide);
        let percent = completed * 100 / total.max(1);
        let selected = line == console.convoys.at;
        let text = Line::from(vec![
            Span::raw(if selected { pen.look.glyphs.cursor } else { " " }),
            Span::raw(" "),
            Span::raw(column(convoy.id.as_str(), 12, cut)),
            Span::raw(" "),
            Span::raw(column(&shown(&convoy.title), 30, cut)),
            pen.span(format!(" {}", column(convoy.status(), 15, cut)), role),
            Span::raw(" "),
            pen.span(full, role),
            pen.span(empty, Role::Dim),
            Span::raw(format!(" {completed}/{total} {percent}%")),
        ]);
        let row = (line - console.convoys.offset) as u16;
        pen.line(area, row, &text);
        if selected {
            pen.tint(Rect { y: area.y + row, height: 1, ..area }, pen.style(Role::Selection));
        }
    }
}

/// Lines above the beads of a convoy.
pub(crate) fn head_height(console: &Console, id: &ConvoyId) -> u16 {
    let waves = console.state().convoy(id).map_or(0, |convoy| convoy.waves.len()).min(WAVES) as u16;
    let room = console.size.1 / 2;
    (waves + 4).min(room.saturating_sub(4)).max(1)
}

fn inside_of(pen: &mut Pen<'_>, plan: &Plan, console: &Console, id: &ConvoyId) {
    let area = list_area(console);
    let cut = pen.look.glyphs.ellipsis;
    let Some(view) = console.state().convoy(id) else {
        pen.put(area.x, area.y, area.width, "This convoy is gone; Esc leads back.", pen.style(Role::Dim));
        return;
    };
    if plan.framed {
        let title = format!("{}  {}", view.id, shown(&view.title));
        let title = fit(&title, usize::from(plan.main.width).saturating_sub(40), cut);
        pen.frame(
            plan.main,
            pen.title(&title),
            "L launch  w why  Enter details  Esc list",
            console.pane == Pane::Main,
        );
        let inner = inside(plan.main);
        head(pen, Rect { height: area.y.saturating_sub(inner.y), ..inner }, console, view);
    }
    let visible = view.tracked.iter().enumerate().skip(console.members.offset).take(usize::from(area.height));
    for (line, bead) in visible {
        let selected = line == console.members.at;
        let told = row(console, bead);
        let text = Line::from(vec![
            Span::raw(if selected { pen.look.glyphs.cursor } else { " " }),
            pen.span(right(&told.wave, 3, cut), Role::Dim),
            pen.span(format!(" {} ", told.glyph), told.role),
            Span::raw(column(&told.id, 14, cut)),
            Span::raw(" "),
            Span::raw(column(&told.title, 32, cut)),
            pen.span(format!(" {} ", column(told.state, 9, cut)), told.role),
            pen.span(format!("{} {} ", right(&told.age, 4, cut), right(&told.slack, 4, cut)), Role::Dim),
            pen.span(told.why, told.role),
        ]);
        let row = (line - console.members.offset) as u16;
        pen.line(area, row, &text);
        if selected {
            pen.tint(Rect { y: area.y + row, height: 1, ..area }, pen.style(Role::Selection));
        }
    }
}

/// The summary, the waves, and the headings of the beads.
fn head(pen: &mut Pen<'_>, area: Rect, console: &Console, view: &Convoy) {
    let cut = pen.look.glyphs.ellipsis;
    let none = Progress { id: view.id.clone(), counts: Counts::default(), waves: Vec::new() };
    let progress = console.digest.convoy(&view.id).unwrap_or(&none);
    let counts = &progress.counts;
    let percent = counts.closed * 100 / counts.total.max(1);
    let forecast = console.shown_forecasts().convoys.get(&view.id);
    let mut first = format!(
        " {}  {}/{} {percent}%  {} running  {} queued  {} blocked  {} failed",
        view.status(),
        counts.closed,
        counts.total,
        counts.running,
        counts.queued,
        counts.blocked,
        counts.failed
    );
    if let Some(forecast) = forecast {
        let zone = console.look.zone;
        match forecast.finish {
            Some(band) => {
                let _ = write!(
                    first,
                    "   eta {}..{}",
                    zone.minute_on(band.p50, console.now),
                    zone.minute_on(band.p90, console.now)
                );
                if let Some(slip) = forecast.slip_ms.filter(|slip| slip.abs() >= 1_000) {
                    let _ = write!(first, "  slip {}{}", if slip > 0 { "+" } else { "-" }, span(slip.abs()));
                }
            }
            None if !forecast.stuck.is_empty() => first.push_str("   cannot finish as things stand"),
            None => {}
        }
    }
    pen.line(area, 0, &Line::from(pen.span(first, Role::Text)));
    let waves = progress.waves.len();
    for (row, wave) in progress.waves.iter().take(WAVES).enumerate() {
        pen.line(area, row as u16 + 1, &wave_line(pen, console, wave, row + 1));
    }
    let row = waves.min(WAVES) as u16 + 1;
    if let Some(forecast) = forecast.filter(|forecast| !forecast.critical_path.is_empty()) {
        let names: Vec<String> = forecast.critical_path.iter().take(10).map(ToString::to_string).collect();
        let path = names.join(&format!(" {} ", pen.look.glyphs.arrow));
        let text = format!(" critical {}: {path}", span(forecast.critical_left.0 as i64));
        pen.line(
            area,
            row,
            &Line::from(pen.span(fit(&text, usize::from(area.width), cut), Role::PlanCritical)),
        );
    }
    let text = format!(
        "   W   {} {} {} {} {} WHY",
        column("BEAD", 14, cut),
        column("TITLE", 32, cut),
        column("STATE", 9, cut),
        right("AGE", 4, cut),
        right("SLK", 4, cut),
    );
    pen.line(area, area.height.saturating_sub(1), &Line::from(pen.span(text, Role::Dim)));
}

/// One wave: how far it is, and what holds it.
fn wave_line<'t>(pen: &Pen<'_>, console: &Console, wave: &Counts, number: usize) -> Line<'t> {
    let (full, empty) = pen.gauge(wave.closed as u64, wave.total as u64, 12);
    let forecasts = console.shown_forecasts();
    let open = wave.open.iter().take(MOST_HOLDERS);
    let last = open.max_by_key(|bead| forecasts.planned(bead).map(|planned| planned.end));
    let running = if wave.running > 0 { format!(" {} running", wave.running) } else { String::new() };
    let holds = match last {
        None => String::new(),
        Some(bead) => {
            let end =
                forecasts.planned(bead).map(|planned| console.look.zone.minute_on(planned.end, console.now));
            format!(
                "  waits for {} {} {}",
                bead,
                console.state().bead(bead).map(|entry| shown(&entry.bead.title)).unwrap_or_default(),
                end.map(|end| format!("until {end}")).unwrap_or_default()
            )
        }
    };
    Line::from(vec![
        pen.span(format!(" wave {number:<3}"), Role::Dim),
        pen.span(full, Role::Past),
        pen.span(empty, Role::Dim),
        Span::raw(format!(" {:>3}/{:<3}", wave.closed, wave.total)),
        pen.span(running, Role::Running),
        pen.span(holds, Role::Dim),
    ])
}
