//! Trying something out: a copy of the town with other caps, priorities and holds, forecast by the same engine. Nothing
//! is applied until the user says so, and then as ordinary commands.

use std::sync::Arc;

use yard_engine::capacity::Limit;
use yard_engine::forecast::Change;
use yard_engine::{BeadId, State};

use crate::forecasts::Forecasts;

/// Something that can be turned.
#[derive(Debug, Clone)]
pub struct Knob {
    /// Its name.
    pub label: String,
    /// How it stands; none for a cap that is not set.
    pub now: Option<i64>,
    /// How it is tried.
    pub tried: Option<i64>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Cap(Limit),
    Paused,
    Parked(yard_engine::RigName),
    Held(BeadId),
    Priority(BeadId),
}

/// Everything that is being tried.
#[derive(Debug)]
pub struct WhatIf {
    base: State,
    fork: State,
    /// The knobs.
    pub knobs: Vec<Knob>,
    /// The one under the cursor.
    pub at: usize,
    /// The forecast of the town as it is.
    pub baseline: Arc<Forecasts>,
    scenario: Arc<Forecasts>,
    /// A forecast of what is tried is on its way.
    pub pending: bool,
    /// Where a cap begins that was not set.
    usual: i64,
}

impl WhatIf {
    /// A copy of this town, with knobs for its caps and for these beads.
    pub fn new(state: &State, beads: &[BeadId], baseline: Arc<Forecasts>) -> Self {
        let mut knobs = Vec::new();
        let caps = std::iter::once(Limit::Town)
            .chain(state.rigs().map(|rig| Limit::Rig(rig.name.clone())))
            .chain(state.settings().accounts.keys().cloned().map(Limit::Account));
        for limit in caps {
            let now = state.room(&limit).max.map(|max| i64::try_from(max).unwrap_or(i64::MAX));
            let label = format!("{} workers", limit.name());
            knobs.push(Knob { label, now, tried: now, kind: Kind::Cap(limit) });
        }
        let switch = |label: String, on: bool, kind: Kind| {
            let now = Some(i64::from(on));
            Knob { label, now, tried: now, kind }
        };
        knobs.push(switch("paused".to_owned(), state.pause().is_some(), Kind::Paused));
        for rig in state.rigs() {
            knobs.push(switch(
                format!("rig {} parked", rig.name),
                rig.parked,
                Kind::Parked(rig.name.clone()),
            ));
        }
        for bead in beads {
            let Some(entry) = state.bead(bead) else { continue };
            let context = entry.work.context.as_ref().and_then(|id| state.context(id));
            if let Some(context) = context.filter(|_| entry.work.live.is_none()) {
                knobs.push(switch(format!("hold {bead}"), context.held, Kind::Held(bead.clone())));
                let now = Some(i64::from(context.priority));
                let label = format!("priority of {bead}");
                knobs.push(Knob { label, now, tried: now, kind: Kind::Priority(bead.clone()) });
            }
        }
        let scenario = Arc::clone(&baseline);
        let usual = knobs.iter().find_map(|knob| knob.now).unwrap_or(8);
        Self {
            base: state.clone(),
            fork: state.clone(),
            knobs,
            at: 0,
            baseline,
            scenario,
            pending: false,
            usual,
        }
    }

    /// The town as it would be.
    pub fn state(&self) -> &State {
        &self.fork
    }

    /// The forecast of what is tried.
    pub fn scenario(&self) -> &Forecasts {
        &self.scenario
    }

    /// The forecast of the town as it is, made at the same moment as that of what is tried.
    pub fn untouched(&self) -> Option<&yard_engine::forecast::Forecast> {
        self.scenario.untouched.as_ref().or(self.baseline.town.as_ref())
    }

    /// Takes a forecast of what is tried.
    pub fn take(&mut self, forecasts: Arc<Forecasts>) {
        if forecasts.changes.is_empty() {
            self.baseline = Arc::clone(&forecasts);
        }
        if forecasts.changes.len() == self.changes().len() {
            self.scenario = forecasts;
            self.pending = false;
        }
    }

    /// Turns the knob under the cursor.
    pub fn turn(&mut self, by: i64) {
        let usual = self.usual;
        let Some(knob) = self.knobs.get_mut(self.at) else { return };
        knob.tried = match (&knob.kind, knob.tried) {
            (Kind::Cap(_), None) => (by < 0).then_some(usual),
            (Kind::Cap(_), Some(tried)) if tried + by < 1 => Some(1),
            (Kind::Cap(_), Some(tried)) => Some(tried + by),
            (Kind::Priority(_), tried) => Some((tried.unwrap_or(50) + by * 10).clamp(1, 100)),
            (Kind::Paused | Kind::Parked(_) | Kind::Held(_), _) => Some(i64::from(by > 0)),
        };
        self.rebuild();
    }

    /// Puts all knobs back.
    pub fn reset(&mut self) {
        for knob in &mut self.knobs {
            knob.tried = knob.now;
        }
        self.rebuild();
    }

    fn rebuild(&mut self) {
        self.fork = self.base.what_if(&self.changes());
        self.pending = true;
    }

    /// What is different.
    pub fn changes(&self) -> Vec<Change> {
        let turned = self.knobs.iter().filter(|knob| knob.tried != knob.now);
        turned.filter_map(change).collect()
    }
}

fn change(knob: &Knob) -> Option<Change> {
    let tried = knob.tried?;
    let on = tried != 0;
    Some(match &knob.kind {
        Kind::Cap(Limit::Town) => Change::MaxPolecats(tried),
        Kind::Cap(Limit::Rig(rig)) => Change::RigMaxPolecats(rig.clone(), u64::try_from(tried).ok()),
        Kind::Cap(Limit::Account(name)) => {
            Change::AccountMaxPolecats(name.clone(), u64::try_from(tried).ok())
        }
        // Tasks have no forecast of their own to try anything on.
        Kind::Cap(Limit::Agents | Limit::Tasks | Limit::TasksOf(_) | Limit::Slurm) => return None,
        Kind::Paused => Change::Paused(on),
        Kind::Parked(rig) => Change::Parked(rig.clone(), on),
        Kind::Held(bead) => Change::Hold(bead.clone(), on),
        Kind::Priority(bead) => Change::Priority(bead.clone(), u8::try_from(tried).ok()?),
    })
}

impl Knob {
    /// A value in words.
    pub fn words(&self, value: Option<i64>) -> String {
        match (&self.kind, value) {
            (Kind::Cap(_), None) => "none".to_owned(),
            (Kind::Cap(_) | Kind::Priority(_), Some(value)) => value.to_string(),
            (Kind::Priority(_), None) => "-".to_owned(),
            (Kind::Paused | Kind::Parked(_) | Kind::Held(_), value) => {
                if value == Some(1) { "yes" } else { "no" }.to_owned()
            }
        }
    }
}
