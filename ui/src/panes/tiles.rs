//! Capacity, guards and finish: is it healthy, what stands in the way, when will it be done.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use yard_client::views::{SchedulerStatus, Waiting, resting_accounts, scheduler_status, spending};

use unicode_width::UnicodeWidthStr;
use yard_engine::agent::AgentState;
use yard_engine::{ConvoyId, State};

use crate::console::Console;
use crate::digest::Progress;
use crate::paint::Pen;
use crate::text::{count, fit, shown, span, span_exact};
use crate::theme::Role;

/// Draws the three boxes.
pub(crate) fn draw(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    let third = area.width / 3;
    let first = Rect { width: third, ..area };
    let second = Rect { x: area.x + third, width: third, ..area };
    let last = Rect { x: area.x + 2 * third, width: area.width - 2 * third, ..area };
    let scheduler = scheduler_status(console.state(), true);
    capacity(pen, first, console, &scheduler);
    guards(pen, second, console, &scheduler);
    finish(pen, last, console);
}

fn lines(pen: &mut Pen<'_>, area: Rect, title: &str, lines: &[Line<'_>]) {
    let inner = pen.frame(area, pen.title(title), "", false);
    for (row, line) in lines.iter().enumerate() {
        pen.line(inner, row as u16, line);
    }
}

fn capacity(pen: &mut Pen<'_>, area: Rect, console: &Console, scheduler: &SchedulerStatus<Waiting<'_>>) {
    let capacity = &scheduler.capacity;
    let wide = usize::from(area.width).saturating_sub(22).min(24);
    let agents = busy_agents(console.state());
    let of = capacity.max.map_or_else(|| "no cap".to_owned(), |max| format!("{}/{max}", capacity.active));
    // The gauge makes room for the agents.
    let room = usize::from(area.width).saturating_sub(14 + of.width() + agents.width());
    let (full, empty) =
        pen.gauge(capacity.active, capacity.max.unwrap_or(capacity.active.max(1)), wide.min(room));
    let workers = Line::from(vec![
        Span::raw(" workers "),
        pen.span(full, Role::Running),
        pen.span(empty, Role::Dim),
        Span::raw(format!("  {of}")),
        pen.span(agents, Role::Accent),
    ]);
    let starts = console.town.starts_until(console.shown_now(), wide.max(1));
    let lately: u32 = starts.iter().rev().take(6).sum();
    let started = Line::from(vec![
        Span::raw(" started "),
        pen.span(pen.look.glyphs.sparkline(&starts, 0), Role::Accent),
        Span::raw(format!("  {lately}/min")),
    ]);
    let held = console.digest.held;
    let waiting = scheduler.queued_total.saturating_sub(scheduler.queued_ready);
    let mut queued = vec![
        Span::raw(" queued  "),
        pen.span(format!("{} ready", scheduler.queued_ready), Role::Queued),
        pen.span(format!("  {waiting} waiting"), Role::Blocked),
    ];
    if held > 0 {
        queued.push(pen.span(format!("  {held} held"), Role::Warning));
    }
    lines(pen, area, "capacity", &[workers, started, Line::from(queued)]);
}

/// How many of the agents that are there work; nothing where none was ever registered.
fn busy_agents(state: &State) -> String {
    if state.agents().next().is_none() {
        return String::new();
    }
    let working = state.agents().filter(|agent| agent.state == AgentState::Working).count();
    let there = state.agents().filter(|agent| agent.is_there()).count();
    format!("  agents {working}/{there}")
}

fn guards(pen: &mut Pen<'_>, area: Rect, console: &Console, scheduler: &SchedulerStatus<Waiting<'_>>) {
    let resting = resting_accounts(console.state());
    let dispatch = match (&scheduler.paused_by, console.state().host_gate()) {
        (Some(by), _) => {
            pen.span(format!("PAUSED by {}", fit(&shown(by), 12, pen.look.glyphs.ellipsis)), Role::Warning)
        }
        (None, Some(why)) => pen.span(format!("host: {}", shown(why)), Role::Warning),
        (None, None) => pen.span("running", Role::Good),
    };
    let breaker = match scheduler.circuit_broken {
        0 => pen.span("breaker closed", Role::Good),
        open => pen.span(format!("breaker {open} open"), Role::Bad),
    };
    let first = Line::from(vec![Span::raw(" dispatch  "), dispatch, Span::raw("   "), breaker]);
    let tight = scheduler
        .capacity
        .limits
        .iter()
        .filter(|limit| !matches!(limit.name.as_str(), "town" | "agents") && limit.max.is_some());
    let mut limits: Vec<Span<'_>> = vec![Span::raw(" limits    ")];
    // Of an account that rests, how long is worth more than how many it might have.
    let rests = |name: &str| {
        let account = name.strip_prefix("account ");
        resting.iter().any(|resting| account == Some(resting.account.as_str()))
    };
    for limit in tight.filter(|limit| !rests(&limit.name)).take(3) {
        let role = if limit.free == Some(0) { Role::Warning } else { Role::Text };
        let name = limit.name.trim_start_matches("rig ").trim_start_matches("account ");
        let text = format!("{} {}/{}  ", shown(name), limit.active, limit.max.unwrap_or(0));
        limits.push(pen.span(text, role));
    }
    for account in resting.iter().take(1) {
        let left = span_exact(account.until.as_millis() - console.now.as_millis());
        limits.push(pen.span(format!("{} rests {left}", shown(account.account.as_str())), Role::Warning));
    }
    if limits.len() == 1 {
        limits.push(pen.span("none besides the town's", Role::Dim));
    }
    let spent = spending(console.state());
    let budget = match (&spent.daily, &spent.monthly) {
        (Some(daily), _) => format!(" of {daily} today"),
        (None, Some(monthly)) => format!(" today, {} of {monthly} this month", spent.this_month),
        (None, None) => " today".to_owned(),
    };
    let cost = Line::from(format!(" cost      {}{budget}", spent.today));
    lines(pen, area, "guards", &[first, Line::from(limits), cost]);
}

fn finish(pen: &mut Pen<'_>, area: Rect, console: &Console) {
    let state = console.state();
    let Some(convoy) = console.main_convoy().and_then(|id| state.convoy(&id)) else {
        let mut text = vec![overall(pen, console, None)];
        let staged = state.convoys().filter(|convoy| convoy.staged.is_some()).count();
        text.push(match staged {
            0 => Line::from(pen.span(" no convoy is under way: s stages one", Role::Dim)),
            some => Line::from(
                pen.span(format!(" {} staged: L launches it", count(some, "convoy")), Role::Staged),
            ),
        });
        lines(pen, area, "finish", &text);
        return;
    };
    let progress = console.digest.convoy(&convoy.id);
    let done = progress.map_or(0, |progress| progress.counts.closed);
    let unfinished = |progress: &Progress| progress.waves.iter().position(|wave| wave.closed < wave.total);
    let wave = progress.and_then(unfinished).map(|wave| wave + 1);
    let percent = done * 100 / convoy.tracked.len().max(1);
    let room = usize::from(area.width).saturating_sub(24);
    let name = shown(&convoy.title);
    let name = fit(name.trim_start_matches("Convoy: "), room.max(8), pen.look.glyphs.ellipsis);
    let wave = wave.map_or_else(String::new, |wave| format!("  w{wave}/{}", convoy.waves.len()));
    let first = Line::from(vec![
        Span::raw(" "),
        pen.span(name, Role::Accent),
        Span::raw(format!("{wave}  {done}/{}  {percent}%", convoy.tracked.len())),
    ]);
    let forecasts = console.shown_forecasts();
    let forecast = forecasts.convoys.get(&convoy.id).or(forecasts.town.as_ref());
    let critical = forecast.filter(|forecast| !forecast.critical_path.is_empty()).map(|forecast| {
        let next = &forecast.critical_path[0];
        let title = state.bead(next).map(|entry| shown(&entry.bead.title)).unwrap_or_default();
        format!(" critical {} left: {}", span(forecast.critical_left.0 as i64), title)
    });
    let text = [first, overall(pen, console, Some(&convoy.id)), Line::from(critical.unwrap_or_default())];
    lines(pen, area, "finish", &text);
}

/// When all will be done, honestly.
fn overall<'t>(pen: &Pen<'_>, console: &Console, convoy: Option<&ConvoyId>) -> Line<'t> {
    let forecasts = console.shown_forecasts();
    let own = convoy.and_then(|id| forecasts.convoys.get(id));
    let Some(forecast) = own.or(forecasts.town.as_ref()) else {
        return Line::from(pen.span(" no forecast yet", Role::Dim));
    };
    let Some(band) = forecast.finish else {
        let text = match forecast.stuck.len() {
            0 => " nothing to do".to_owned(),
            stuck => format!(" {} cannot run as things stand", count(stuck, "bead")),
        };
        return Line::from(pen.span(text, Role::Dim));
    };
    let zone = console.look.zone;
    let now = console.now;
    let mut spans = vec![Span::raw(format!(
        " eta p50 {}  p90 {}",
        zone.minute_on(band.p50, now),
        zone.minute_on(band.p90, now)
    ))];
    if let Some(slip) = forecast.slip_ms.filter(|slip| slip.abs() >= 1_000) {
        let (sign, role) = if slip > 0 { ("+", Role::Warning) } else { ("-", Role::Good) };
        spans.push(pen.span(format!("  slip {sign}{}", span(slip.abs())), role));
    }
    if forecast.unmeasured > 0 {
        spans.push(pen.span(format!("  {} guessed", forecast.unmeasured), Role::Dim));
    }
    Line::from(spans)
}
