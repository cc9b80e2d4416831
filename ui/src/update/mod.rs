//! What happens next: a message comes in, the console changes, and effects come out. No clock, no terminal, no I/O.

mod agents;
mod keys;
mod menus;
mod modes;
mod mouse;
mod moves;
mod perform;
mod typing;

use std::collections::BTreeSet;

use yard_engine::Timestamp;

use crate::console::{Console, Mode, View};
use crate::forecasts::Wanted;
use crate::layers::{Layer, Text};
use crate::msg::{Effect, Msg, News, Ran};
use crate::replay::Replay;
use crate::text::count;
use crate::town::Link;

pub(crate) use menus::welcome;
pub(crate) use moves::rows;
pub use perform::{applies, perform};
pub(crate) use typing::completions;

/// Milliseconds between two forecasts of a town that changes.
const FORECAST_EVERY: i64 = 1_000;
/// Milliseconds after which one is made even if nothing changed, because time passed.
const FORECAST_ANYWAY: i64 = 15_000;
/// Events that a replay plays per tick.
const PLAYED: isize = 1;

/// Changes the console; what it wants done comes out.
pub fn update(console: &mut Console, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) => keys::key(console, key),
        Msg::Paste(text) => typing::paste(console, &text),
        Msg::Mouse(event) => mouse::mouse(console, event),
        Msg::Resize(width, height) => {
            console.size = (width, height);
            Vec::new()
        }
        Msg::Tick(now) => tick(console, now),
        Msg::Town(news) => hear(console, news),
        Msg::Serving(Ok(())) => Vec::new(),
        Msg::Serving(Err(why)) => {
            console.embedded = false;
            console.refuse(why);
            Vec::new()
        }
        Msg::Ran { lines, show } => {
            ran(console, lines, show);
            Vec::new()
        }
        Msg::Staged(Ok(plan)) => staged(console, plan),
        Msg::Staged(Err(why)) => {
            console.refuse(why);
            vec![Effect::Bell]
        }
        Msg::Forecast(forecasts) => {
            console.forecast_of = Some(console.town.version());
            if let (Mode::Live, Some(digest)) = (&console.mode, &forecasts.digest) {
                console.digest = digest.clone();
            }
            if let Mode::WhatIf(what_if) = &mut console.mode {
                what_if.take(forecasts.clone());
            }
            if forecasts.changes.is_empty() {
                console.forecasts = forecasts;
            }
            Vec::new()
        }
        Msg::Log(news) => {
            if console.log.bead.as_ref() == Some(&news.bead) {
                console.log.extend(news.fresh, news.lines);
            }
            Vec::new()
        }
        Msg::History(beginning, events) => {
            console.mode = Mode::Replay(Box::new(Replay::new(*beginning, events)));
            console.refresh(true);
            console
                .say("this is the past: Left and Right step, [ ] wave, { } fault, Space plays, Esc returns");
            Vec::new()
        }
        Msg::NoHistory(why) => {
            console.refuse(format!("the log cannot be read: {why}"));
            Vec::new()
        }
        Msg::Copied(Ok(how)) => {
            console.say(how);
            Vec::new()
        }
        Msg::Copied(Err(why)) => {
            console.refuse(why);
            Vec::new()
        }
        Msg::Say { text, bad } => {
            if bad {
                console.refuse(text);
            } else {
                console.say(text);
            }
            Vec::new()
        }
    }
}

/// Gets ready to be drawn: rows are brought up to date, lists scrolled, and the log that is looked at is followed.
pub fn prepare(console: &mut Console) -> Vec<Effect> {
    let reads_events = console.view == View::Events && !console.table.filter().is_empty();
    if console.drawn != console.town.version() || reads_events {
        console.refresh(false);
    }
    moves::scroll(console);
    let mut effects = follow_log(console);
    effects.extend(want_forecast(console));
    effects
}

fn tick(console: &mut Console, now: Timestamp) -> Vec<Effect> {
    console.now = now;
    if let Mode::Replay(replay) = &mut console.mode
        && replay.playing
    {
        let before = replay.at();
        replay.step(PLAYED);
        replay.playing = replay.at() != before;
        console.refresh(true);
    }
    Vec::new()
}

fn hear(console: &mut Console, news: News) -> Vec<Effect> {
    let mut effects = Vec::new();
    match news {
        News::Loading { read, of } => console.town.link = Link::Loading { read, of },
        News::State(state) => {
            console.town.replace(*state);
            console.forecast_of = None;
            if matches!(console.mode, Mode::Live) {
                console.refresh(true);
            }
            effects.push(Effect::Forecast(Wanted { now: console.now, ..Wanted::default() }));
        }
        News::Live { role, pid } => console.town.link = Link::Live { role, pid },
        News::Events(events) => console.town.hear(events),
        News::Earlier(events) => console.town.remember(events),
        News::Transient(alerts) => {
            if console.town.transient != alerts {
                console.town.transient = alerts;
                console.refresh(false);
            }
        }
        News::Lost { at, why } => console.town.link = Link::Lost { since: at, why },
    }
    effects
}

/// Says what became of commands: of one its own words, of several how many.
fn ran(console: &mut Console, lines: Vec<Ran>, show: bool) {
    let failed = lines.iter().find(|line| !line.ok);
    let first = |text: &str| text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
    if show && lines.iter().any(|line| line.output.trim().lines().count() > 1) {
        let title = lines.first().map(|line| format!("ym {}", line.argv.join(" "))).unwrap_or_default();
        let text = lines.iter().flat_map(|line| line.output.lines()).map(str::to_owned).collect();
        console.layers.push(Layer::Output(Text::default(), title, text));
        return;
    }
    match (failed, lines.as_slice()) {
        (Some(failed), [_]) => {
            let words: Vec<&str> =
                failed.output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            console.refuse(words.join("; "));
        }
        (Some(failed), all) => {
            let good = all.iter().filter(|line| line.ok).count();
            let which = failed.argv.join(" ");
            console.refuse(format!("{good} of {} done; ym {which}: {}", all.len(), first(&failed.output)));
        }
        (None, [one]) => {
            let text = first(&one.output);
            console.say(if text.is_empty() { format!("done: ym {}", one.argv.join(" ")) } else { text });
        }
        (None, all) => console.say(format!("{} carried out", count(all.len(), "command"))),
    }
}

fn staged(console: &mut Console, plan: Box<yard_client::views::StageView>) -> Vec<Effect> {
    let convoy = plan.convoy_id.clone();
    if convoy.is_some() {
        console.marks.clear();
    }
    // It said that it was planning.
    console.said = None;
    console.layers.push(Layer::Plan(Text::default(), plan));
    let convoys = convoy.into_iter().chain(console.main_convoy()).collect();
    vec![Effect::Forecast(Wanted { now: console.now, convoys, ..Wanted::default() })]
}

/// Follows the log of the bead under the cursor, as long as one looks at the town as it is.
fn follow_log(console: &mut Console) -> Vec<Effect> {
    let Some(bead) = console.bead() else {
        if console.agent().is_some() {
            // Whoever has nothing to do has no log, and somebody else's is not shown in its place.
            (console.log.bead, console.log.lines) = (None, Vec::new());
            console.log.attempts.clear();
        }
        return Vec::new();
    };
    let attempts: Vec<String> =
        console.town.state.dispatches_of(&bead).map(|dispatch| dispatch.id.to_string()).collect();
    if console.log.bead.as_ref() == Some(&bead) && console.log.attempts == attempts {
        return Vec::new();
    }
    if console.log.bead.as_ref() != Some(&bead) {
        console.log.lines.clear();
        console.log.search.clear();
        console.log.follow = true;
        console.log.top = 0;
    }
    console.log.bead = Some(bead.clone());
    console.log.attempts.clone_from(&attempts);
    if attempts.is_empty() { Vec::new() } else { vec![Effect::FollowLog { bead, attempts }] }
}

/// Asks for a forecast when the last one is outdated and none is on its way.
fn want_forecast(console: &mut Console) -> Option<Effect> {
    let known = console.forecast_of?;
    let age = console.now.as_millis() - console.forecasts.at.as_millis();
    let (changes, turned) = match &console.mode {
        Mode::Live => (Vec::new(), false),
        Mode::Replay(_) => return None,
        Mode::WhatIf(what_if) => (what_if.changes(), what_if.pending),
    };
    let due = turned || (known != console.town.version() && age >= FORECAST_EVERY) || age >= FORECAST_ANYWAY;
    if !due {
        return None;
    }
    console.forecast_of = None;
    let convoys: BTreeSet<_> = console.convoy_at_hand().into_iter().chain(console.main_convoy()).collect();
    let (convoys, transient) = (convoys.into_iter().collect(), console.town.transient.clone());
    Some(Effect::Forecast(Wanted { now: console.now, changes, convoys, transient }))
}
