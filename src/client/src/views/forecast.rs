//! When it will be done, as a document.

use serde::{Deserialize, Serialize};
use yard_engine::capacity::Limit;
use yard_engine::convoy::Convoy;
use yard_engine::forecast::{Band, Change, Forecast, Forecaster, Options, Scope};
use yard_engine::{BeadId, ConvoyId, State, Timestamp};

/// Of more beads than this no what-if is worked out unless it is asked for.
const MOST_FOR_CANDIDATES: usize = 20_000;
/// So many limits are tried, those that hold up most beads first.
const MOST_CANDIDATES: usize = 4;
/// How much trouble a forecast is worth to whoever must not be kept waiting.
const MAIN: Options = Options { samples: 200, seed: 7, most: 1_000 };
/// And each of several to compare: they share their chances, so that few samples tell them apart.
const EACH: Options = Options { samples: 100, most: 250, ..MAIN };

/// When the town or a convoy will be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForecastView {
    /// The moment it was made for.
    pub at: Timestamp,
    /// `town`, or the id of the convoy.
    pub scope: String,
    /// Title of the convoy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Status of the convoy; a staged one is forecast as if it were launched now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// When everything that runs at all is done; none if nothing runs.
    pub finish: Option<BandView>,
    /// When the convoy was forecast to be done, when it was launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<Timestamp>,
    /// How much later it is now; negative is earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slip_ms: Option<i64>,
    /// How many samples the band rests on.
    pub samples: u32,
    /// There was too much to look at as closely as usual: the band rests on fewer samples, or on none.
    pub coarse: bool,
    /// Somebody is there who starts what is ready. Without one nothing starts by itself, and the forecast says what would
    /// be if there were.
    pub dispatching: bool,
    /// Beads that run or will run.
    pub left: usize,
    /// Those of them whose duration is a guess, because nothing was ever measured.
    pub unmeasured: usize,
    /// What holds up the end, first to last.
    pub critical_path: Vec<StepView>,
    /// From now to its end.
    pub critical_left_ms: u64,
    /// The waves of the convoy, as planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<WaveForecast>,
    /// What other limits would change.
    pub what_if: Vec<WhatIfView>,
    /// Beads that never run as things stand.
    pub stuck: Vec<NeverView>,
}

/// When something is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BandView {
    /// As likely before as after.
    pub p50: Timestamp,
    /// Before in nine of ten cases.
    pub p90: Timestamp,
}

/// A bead on the critical path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepView {
    /// Its id.
    pub id: BeadId,
    /// Its title.
    pub title: String,
    /// When it starts or started.
    pub start: Timestamp,
    /// When it is expected to be done.
    pub end: Timestamp,
    /// How much later that may be without the end coming later.
    pub slack_ms: u64,
    /// How many runs that is measured by; 0: it is a guess.
    pub runs_measured: u32,
    /// The limit it waits for, rather than for a bead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

/// A wave of a convoy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaveForecast {
    /// From 1.
    pub number: u32,
    /// Beads that are closed.
    pub done: usize,
    /// All its beads.
    pub total: usize,
    /// When the first of what is left starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// When the last of it is done; none if it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// What holds it: a bead that never runs, the limit its last bead waits for, or that bead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_by: Option<String>,
}

/// What another limit would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhatIfView {
    /// In words.
    pub change: String,
    /// The command that brings it about.
    pub command: String,
    /// When it would be done.
    pub p50: Timestamp,
    /// Very likely by then.
    pub p90: Timestamp,
    /// How much sooner that is; negative is later.
    pub gain_ms: i64,
}

/// A bead that never runs as things stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeverView {
    /// Its id.
    pub id: BeadId,
    /// Its title.
    pub title: String,
    /// Why.
    pub why: String,
}

/// Renders a forecast of the town, or of one convoy. `max_polecats` asks what that many slots would change.
pub fn forecast(
    state: &State,
    convoy: Option<&ConvoyId>,
    max_polecats: Option<i64>,
    now: Timestamp,
    dispatching: bool,
) -> ForecastView {
    let scope = convoy.map_or(Scope::Town, |id| Scope::Convoy(id.clone()));
    let mut forecaster = Forecaster::new(state, &scope, now);
    let forecast = forecaster.forecast(&MAIN);
    let what_if = match max_polecats {
        Some(slots) => compare(&mut forecaster, state, &[Change::MaxPolecats(slots)]),
        None if forecaster.beads() > MOST_FOR_CANDIDATES => Vec::new(),
        None => compare(&mut forecaster, state, &candidates(state, &forecast)),
    };
    let record = convoy.and_then(|id| state.convoy(id));
    ForecastView {
        at: forecast.at,
        scope: convoy.map_or_else(|| "town".to_owned(), ToString::to_string),
        title: record.map(|convoy| convoy.title.clone()),
        status: record.map(|convoy| convoy.status().to_owned()),
        finish: forecast.finish.map(|Band { p50, p90 }| BandView { p50, p90 }),
        expected_end: record.and_then(|convoy| convoy.expected_end),
        slip_ms: forecast.slip_ms,
        samples: forecast.samples,
        coarse: forecast.samples < MAIN.samples,
        dispatching,
        left: forecast.left,
        unmeasured: forecast.unmeasured,
        critical_path: forecast.critical_path.iter().filter_map(|id| step(state, &forecast, id)).collect(),
        critical_left_ms: forecast.critical_left.0,
        waves: record.map(|convoy| waves(state, &forecast, convoy)).unwrap_or_default(),
        what_if,
        stuck: forecast
            .stuck
            .iter()
            .map(|(id, why)| NeverView { id: id.clone(), title: title(state, id), why: why.clone() })
            .collect(),
    }
}

/// When a convoy will be done, for whoever wants to know nothing else; none if that takes long to find out.
pub fn convoy_eta(state: &State, convoy: &ConvoyId, now: Timestamp) -> Option<Timestamp> {
    const MOST: usize = 2_000;
    let open = state.convoy(convoy).is_some_and(Convoy::is_open);
    if !open || state.most_asked_for() > MOST {
        return None;
    }
    let forecast = state.forecast(&Scope::Convoy(convoy.clone()), now, &EACH);
    // What never ends has no end to tell.
    forecast.finish.filter(|_| forecast.stuck.is_empty()).map(|band| band.p50)
}

fn title(state: &State, id: &BeadId) -> String {
    let bead = state.bead(id).map(|entry| &*entry.bead).or_else(|| state.vanished_bead(id));
    bead.map(|bead| bead.title.clone()).unwrap_or_default()
}

fn step(state: &State, forecast: &Forecast, id: &BeadId) -> Option<StepView> {
    let planned = forecast.plan.get(id)?;
    Some(StepView {
        id: id.clone(),
        title: title(state, id),
        start: planned.start,
        end: planned.end,
        slack_ms: planned.slack.0,
        runs_measured: planned.runs_measured,
        limit: planned.limit.as_ref().map(|limit| slots_of(state, limit)),
    })
}

/// A limit with its size: `rig db: 2 slots`.
fn slots_of(state: &State, limit: &Limit) -> String {
    match state.room(limit).max {
        Some(1) => format!("{}: 1 slot", limit.name()),
        Some(max) => format!("{}: {max} slots", limit.name()),
        None => limit.name(),
    }
}

/// The waves of a convoy, and what holds each.
fn waves(state: &State, forecast: &Forecast, convoy: &Convoy) -> Vec<WaveForecast> {
    let mut rest = convoy.tracked.as_slice();
    let mut waves = Vec::with_capacity(convoy.waves.len());
    for (size, number) in convoy.waves.iter().zip(1_u32..) {
        let (beads, later) = rest.split_at(rest.len().min(*size as usize));
        rest = later;
        let is_done = |id: &&BeadId| state.bead(id).is_some_and(|entry| entry.bead.is_closed());
        let open: Vec<&BeadId> = beads.iter().filter(|id| !is_done(id)).collect();
        let planned = || open.iter().filter_map(|id| Some((*id, forecast.plan.get(*id)?)));
        let never = open.iter().find(|id| !forecast.plan.contains_key(**id));
        let last = planned().max_by_key(|(id, planned)| (planned.end, std::cmp::Reverse(*id)));
        let bound_by = match (never, last) {
            (Some(never), _) => Some(format!("{never} never runs")),
            (None, Some((_, planned))) if planned.limit.is_some() => {
                planned.limit.as_ref().map(|limit| slots_of(state, limit))
            }
            (None, Some((id, _))) => Some(id.to_string()),
            (None, None) => None,
        };
        waves.push(WaveForecast {
            number,
            done: beads.len() - open.len(),
            total: beads.len(),
            start: planned().map(|(_, planned)| planned.start).min(),
            end: last.filter(|_| never.is_none()).map(|(_, planned)| planned.end),
            bound_by,
        });
    }
    waves
}

/// Changes worth a look: more slots for the town, and one more for each other limit that holds beads up.
fn candidates(state: &State, forecast: &Forecast) -> Vec<Change> {
    let mut held_up: Vec<(usize, &Limit)> = Vec::new();
    for limit in forecast.plan.values().filter_map(|planned| planned.limit.as_ref()) {
        match held_up.iter_mut().find(|(_, known)| *known == limit) {
            Some((beads, _)) => *beads += 1,
            None => held_up.push((1, limit)),
        }
    }
    held_up.sort_by(|(a, x), (b, y)| b.cmp(a).then(x.cmp(y)));
    let town = state.settings().town_cap().and_then(|slots| i64::try_from(slots).ok());
    let mut changes: Vec<Change> = Vec::new();
    if let Some(slots) = town.filter(|_| held_up.iter().any(|(_, limit)| **limit == Limit::Town)) {
        changes.extend([1, 2, 4].map(|more| Change::MaxPolecats(slots.saturating_add(more))));
    }
    for (_, limit) in held_up.into_iter().filter(|(_, limit)| **limit != Limit::Town).take(MOST_CANDIDATES) {
        let more = state.room(limit).max.map(|max| max.saturating_add(1));
        changes.extend(match limit {
            Limit::Town | Limit::Agents | Limit::Tasks | Limit::TasksOf(_) | Limit::Slurm => None,
            Limit::Rig(rig) => Some(Change::RigMaxPolecats(rig.clone(), more)),
            Limit::Account(account) => Some(Change::AccountMaxPolecats(account.clone(), more)),
        });
    }
    changes
}

/// What each change of a limit would gain, all on the same chances.
fn compare(forecaster: &mut Forecaster<'_>, state: &State, changes: &[Change]) -> Vec<WhatIfView> {
    if changes.is_empty() {
        return Vec::new();
    }
    let now = forecaster.finish_with(&Limit::Town, state.settings().town_cap(), &EACH);
    let mut views = Vec::new();
    for change in changes {
        let (limit, max, words) = match change {
            Change::MaxPolecats(slots) => {
                let max = u64::try_from(*slots).ok().filter(|slots| *slots > 0);
                let words = max.map_or("no limit of the town".to_owned(), |max| format!("town: {max} slots"));
                (Limit::Town, max, words)
            }
            Change::RigMaxPolecats(rig, max) => {
                let words = format!("rig {rig}: {} slots", max.unwrap_or_default());
                (Limit::Rig(rig.clone()), *max, words)
            }
            Change::AccountMaxPolecats(account, max) => {
                let words = format!("account {account}: {} slots", max.unwrap_or_default());
                (Limit::Account(account.clone()), *max, words)
            }
            Change::Priority(..) | Change::Hold(..) | Change::Paused(_) | Change::Parked(..) => continue,
        };
        let then = forecaster.finish_with(&limit, max, &EACH);
        if let Some((now, then)) = now.zip(then) {
            views.push(WhatIfView {
                change: words,
                command: format!("ym {}", change.command_line().join(" ")),
                p50: then.p50,
                p90: then.p90,
                gain_ms: now.p50.as_millis() - then.p50.as_millis(),
            });
        }
    }
    views
}

#[cfg(test)]
#[path = "forecast_tests.rs"]
mod tests;
