//! When it will be done.

use std::io;
use std::time::Duration;

use yard_client::safe_line;
use yard_client::views::{ForecastView, NeverView, StepView, WaveForecast, WhatIfView};
use yard_engine::Timestamp;

use super::Table;
use super::wrap::marked;
use crate::output::{Out, Tone};
use crate::words::{count, short};

/// Lines per section; the rest is in the document.
const SHOWN: usize = 12;
/// An id takes no more than this in a table.
const ID: usize = 24;

/// A forecast.
pub(crate) fn forecast(out: &mut Out, view: &ForecastView) -> io::Result<()> {
    if out.quiet() {
        return view.critical_path.iter().try_for_each(|step| out.line(&step.id));
    }
    let about = match (&view.title, &view.status) {
        (Some(title), Some(status)) => format!("  [{status}] {title}"),
        (Some(_) | None, _) => String::new(),
    };
    let about = safe_line(&about, out.width().saturating_sub(view.scope.len()));
    let name = if view.title.is_some() { view.scope.as_str() } else { "The whole town" };
    out.line(format!("{}{about}", out.paint(Tone::Bold, name)))?;
    if view.status.as_ref().is_some_and(|status| status.starts_with("staged")) {
        out.line("Not launched: this is what would be if it were launched now.")?;
    }
    if view.left == 0 && view.stuck.is_empty() {
        return out.line("Nothing to do: nothing runs, and nothing is asked for.");
    }
    if !view.dispatching {
        out.line(out.paint(Tone::Warn, "No daemon runs: nothing starts before ym --daemon is there."))?;
    }
    facts(view).print(out)?;
    path(out, view)?;
    waves(out, view)?;
    what_if(out, view)?;
    stuck(out, &view.stuck)
}

fn facts(view: &ForecastView) -> Table {
    let mut facts = Table::wrapping();
    let mut fact = |name: &str, value: String| facts.row(vec![name.to_owned(), value]);
    let moment = |at: Timestamp| moment(view.at, at);
    match &view.finish {
        None => fact("done", "never, as things stand: nothing of it runs".to_owned()),
        Some(band) => {
            let but = if view.stuck.is_empty() { "" } else { ", without what is stuck" };
            fact("done", format!("{}, in {}{but}", moment(band.p50), left(view.at, band.p50)));
            if view.samples > 0 {
                let likely = format!("{}, in {}", moment(band.p90), left(view.at, band.p90));
                fact("90% by", likely);
            }
        }
    }
    if let (Some(then), Some(slip)) = (view.expected_end, view.slip_ms) {
        fact("slip", format!("{} since its launch (then: {})", signed(slip), moment(then)));
    }
    let guessed = match view.unmeasured {
        0 => "each measured by earlier runs".to_owned(),
        all if all == view.left => "how long is a guess: nothing was ever measured".to_owned(),
        some => format!("of {some} of them how long is a guess"),
    };
    fact("left", format!("{}; {guessed}", count(view.left, "bead")));
    if view.coarse {
        let how = match view.samples {
            0 => "by expected durations alone".to_owned(),
            samples => format!("by {samples} samples only"),
        };
        fact("coarse", format!("there is too much to look at closely: {how}"));
    }
    facts
}

/// What holds up the end.
fn path(out: &mut Out, view: &ForecastView) -> io::Result<()> {
    if view.critical_path.is_empty() {
        return Ok(());
    }
    let left = short(Duration::from_millis(view.critical_left_ms));
    out.heading(&format!("Critical path, {left} left (expected durations)"))?;
    let mut table = Table::plain();
    // The ends of a long path say most.
    let steps = &view.critical_path;
    let hidden = steps.len().saturating_sub(SHOWN);
    let (first, last) = steps.split_at((SHOWN / 2).min(steps.len()));
    let last = &last[hidden.min(last.len())..];
    for step in first {
        table.row(step_row(view, step));
    }
    if hidden > 0 {
        table.row(vec![format!("… {hidden} more …")]);
    }
    for step in last {
        table.row(step_row(view, step));
    }
    table.print(out)
}

fn step_row(view: &ForecastView, step: &StepView) -> Vec<String> {
    let guess = if step.runs_measured == 0 { "?" } else { "" };
    let after = step.limit.as_ref().map(|limit| format!("(waits for {limit}) ")).unwrap_or_default();
    vec![
        safe_line(step.id.as_str(), ID),
        moment(view.at, step.start),
        format!("→ {}", moment(view.at, step.end)),
        format!("{}{guess}", short(step.end.since(step.start))),
        format!("{after}{}", step.title),
    ]
}

fn waves(out: &mut Out, view: &ForecastView) -> io::Result<()> {
    if view.waves.is_empty() {
        return Ok(());
    }
    out.line("")?;
    let mut table = Table::new(&["WAVE", "DONE", "START", "END", "HELD BY"]);
    for wave in view.waves.iter().take(SHOWN) {
        let WaveForecast { number, done, total, start, end, bound_by } = wave;
        let is_done = done == total;
        let time = |at: &Option<Timestamp>| match at {
            Some(at) => moment(view.at, *at),
            None if is_done => "—".to_owned(),
            None => "never".to_owned(),
        };
        table.row(vec![
            number.to_string(),
            format!("{done}/{total}"),
            time(start),
            time(end),
            bound_by.clone().unwrap_or_default(),
        ]);
    }
    table.print(out)?;
    more(out, view.waves.len())
}

fn what_if(out: &mut Out, view: &ForecastView) -> io::Result<()> {
    if view.what_if.is_empty() {
        return Ok(());
    }
    out.heading("What more slots would change")?;
    let mut table = Table::plain();
    for WhatIfView { change, command, p50, gain_ms, .. } in &view.what_if {
        let gain = match gain_ms {
            0 => "no gain".to_owned(),
            gain if *gain > 0 => format!("{} sooner", short(Duration::from_millis(gain.unsigned_abs()))),
            gain => format!("{} later", short(Duration::from_millis(gain.unsigned_abs()))),
        };
        table.row(vec![safe_line(change, ID), moment(view.at, *p50), gain, command.clone()]);
    }
    table.print(out)
}

fn stuck(out: &mut Out, stuck: &[NeverView]) -> io::Result<()> {
    if stuck.is_empty() {
        return Ok(());
    }
    out.heading(&format!("Never runs as things stand ({})", stuck.len()))?;
    for NeverView { id, why, .. } in stuck.iter().take(SHOWN) {
        let mark = out.paint(Tone::Warn, "·");
        marked(out, 2, &mark, &format!("{id}: {why}"))?;
    }
    more(out, stuck.len())
}

fn more(out: &mut Out, all: usize) -> io::Result<()> {
    match all.saturating_sub(SHOWN) {
        0 => Ok(()),
        more => out.line(format!("  … and {more} more (--json has all)")),
    }
}

/// A moment in UTC: within a day by the clock, else with its date.
fn moment(now: Timestamp, at: Timestamp) -> String {
    const DAY: i64 = 20 * 3_600_000;
    let text = at.to_string();
    let near = (at.as_millis() - now.as_millis()).abs() < DAY;
    match (text.get(5..10), text.get(11..19), text.get(11..16)) {
        (_, Some(clock), _) if near => format!("{clock}Z"),
        (Some(day), _, Some(clock)) => format!("{day} {clock}Z"),
        _ => text,
    }
}

fn left(now: Timestamp, at: Timestamp) -> String {
    short(at.since(now))
}

fn signed(millis: i64) -> String {
    let sign = if millis < 0 { "-" } else { "+" };
    format!("{sign}{}", short(Duration::from_millis(millis.unsigned_abs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_far_away_has_its_date() {
        let at = |text: &str| Timestamp::parse_rfc3339(text).expect("a time");
        let now = at("2026-11-16T09:30:00Z");
        assert_eq!(moment(now, at("2026-11-16T15:02:09Z")), "15:02:09Z");
        assert_eq!(moment(now, at("2026-11-18T15:02:09Z")), "11-18 15:02Z");
    }

    #[test]
    fn slips_have_a_sign() {
        assert_eq!([signed(240_000), signed(-5_000), signed(0)], ["+4m00s", "-5s", "+0s"]);
    }
}
