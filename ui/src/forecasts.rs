//! The forecast beside the town: it is made on a thread of its own from a state of its own, so that it never delays a
//! key press, and the console shows the last one made.

use std::collections::BTreeMap;

use yard_client::views::AlertView;
use yard_engine::forecast::{Change, Forecast, Options, Scope};
use yard_engine::{BeadId, ConvoyId, State, Timestamp};

use crate::digest::{Digest, LARGE_TOWN};
use crate::table::Slack;

/// Samples of one forecast.
const SAMPLES: u32 = 200;
/// The same dice every time: what changes on the screen has changed in the town.
const SEED: u64 = 7;

/// What is to be forecast.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// From when.
    pub now: Timestamp,
    /// What is tried out; none for the town as it is.
    pub changes: Vec<Change>,
    /// Convoys of which the end is wanted, besides the town's.
    pub convoys: Vec<ConvoyId>,
    /// Alerts that the log knows nothing of.
    pub transient: Vec<AlertView>,
}

/// What was forecast.
#[derive(Debug, Default)]
pub struct Forecasts {
    /// When.
    pub at: Timestamp,
    /// For the whole town.
    pub town: Option<Forecast>,
    /// For some convoys.
    pub convoys: BTreeMap<ConvoyId, Forecast>,
    /// What was tried out, if anything.
    pub changes: Vec<Change>,
    /// For the whole town as it is, at the same moment, if something was tried out.
    pub untouched: Option<Forecast>,
    /// A walk over the town, if it is too large to be walked elsewhere.
    pub digest: Option<Digest>,
}

/// Makes a forecast.
pub fn forecast(state: &State, wanted: &Wanted) -> Forecasts {
    let options = Options { samples: SAMPLES, seed: SEED, ..Options::default() };
    let fork = (!wanted.changes.is_empty()).then(|| state.what_if(&wanted.changes));
    let untouched = fork.as_ref().map(|_| state.forecast(&Scope::Town, wanted.now, &options));
    let state = fork.as_ref().unwrap_or(state);
    let of = |scope: Scope| state.forecast(&scope, wanted.now, &options);
    let convoys = wanted.convoys.iter().filter(|id| state.convoy(id).is_some());
    Forecasts {
        at: wanted.now,
        town: Some(of(Scope::Town)),
        convoys: convoys.map(|id| (id.clone(), of(Scope::Convoy(id.clone())))).collect(),
        changes: wanted.changes.clone(),
        untouched,
        digest: (state.bead_count() > LARGE_TOWN).then(|| Digest::of(state, &wanted.transient, wanted.now)),
    }
}

impl Forecasts {
    /// When a bead will run, as far as that can be said.
    pub fn planned(&self, bead: &BeadId) -> Option<&yard_engine::forecast::Planned> {
        let of_convoy = self.convoys.values().find_map(|forecast| forecast.plan.get(bead));
        self.town.as_ref().and_then(|forecast| forecast.plan.get(bead)).or(of_convoy)
    }

    /// The plan of everything.
    pub fn plan(&self) -> Option<&BTreeMap<BeadId, yard_engine::forecast::Planned>> {
        self.town.as_ref().map(|forecast| &forecast.plan)
    }
}

impl Slack for Forecasts {
    fn slack(&self, bead: &BeadId) -> Option<u64> {
        self.planned(bead).map(|planned| planned.slack.0)
    }
}
