//! When it will be done: the schedule of what is left, by the engine's own rules and with durations from its own
//! history. Pure like everything here: the same town, moment and seed give the same forecast.
//!
//! A forecast holds as far as things go on as they do: nobody changes anything, nothing new is asked for, nobody is
//! pushed out, and what fails comes right within its retries. What it knows nothing about it says.

mod build;
mod chance;
mod change;
mod history;
mod model;
mod path;
mod simulate;
mod stuck;

use std::collections::BTreeMap;

use chance::Chance;
pub use change::Change;
pub(crate) use history::History;
use model::{Launched, Model, NEVER, NONE, Place};
use simulate::Simulation;

use crate::bead::Verdict;
use crate::capacity::Limit;
use crate::state::State;
use crate::{BeadId, ConvoyId, Millis, Timestamp};

/// Fewer samples say nothing about a band; then there are none.
const FEWEST_SAMPLES: u32 = 20;
/// So many classes of requests cost nothing extra.
const USUAL_CLASSES: usize = 16;

/// A launch among more beads than this is not kept waiting for a forecast.
const MOST_AT_LAUNCH: usize = 5_000;

/// How much trouble to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How many samples the band rests on; none for expected durations only.
    pub samples: u32,
    /// What chance begins with.
    pub seed: u64,
    /// Of more open beads than this fewer samples are taken, then none; [`Forecast::samples`] says how many were.
    pub most: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { samples: 200, seed: 7, most: 2_000 }
    }
}

/// What is to be finished. The rest of the town competes for the slots all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything that is asked for.
    Town,
    /// The beads of one convoy; of a staged one, as if it were launched now.
    Convoy(ConvoyId),
}

/// When it will be done, as things stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The moment it was made for.
    pub at: Timestamp,
    /// How many samples the band rests on; 0: on expected durations alone, both ends are the same.
    pub samples: u32,
    /// When the last bead in scope that runs at all is done; none if there is none.
    pub finish: Option<Band>,
    /// How much later that is than was forecast when the convoy was launched, in milliseconds; negative is earlier.
    pub slip_ms: Option<i64>,
    /// Beads in scope that run or will run.
    pub left: usize,
    /// Those of them whose duration is a guess, because nothing was ever measured.
    pub unmeasured: usize,
    /// Every bead of the town that runs or will run, with expected durations.
    pub plan: BTreeMap<BeadId, Planned>,
    /// From what runs or could start now to the last bead in scope, each starting when the one before it ends.
    pub critical_path: Vec<BeadId>,
    /// From now to the end of that path.
    pub critical_left: Millis,
    /// From each moment on so many slots are busy.
    pub load: Vec<(Timestamp, u32)>,
    /// Beads in scope that never run as things stand, by id, and why.
    pub stuck: Vec<(BeadId, String)>,
}

/// When something is over: as likely before as after, and very likely before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// In half of all samples it is over by then.
    pub p50: Timestamp,
    /// In nine of ten samples it is over by then.
    pub p90: Timestamp,
}

/// What is planned for a bead, with expected durations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// When it starts; of what runs, when it did.
    pub start: Timestamp,
    /// When it is done.
    pub end: Timestamp,
    /// How much later that may be without the last bead in scope ending later.
    pub slack: Millis,
    /// It is on the critical path.
    pub critical: bool,
    /// How many runs its duration was measured by; 0: it is a guess.
    pub runs_measured: u32,
    /// The bead whose end it waits for last: a blocker, or who holds its slot.
    pub after: Option<BeadId>,
    /// The limit it waits for after its blockers are closed.
    pub limit: Option<Limit>,
}

impl State {
    /// When it will be done, as things stand. An unknown convoy has nothing to do.
    pub fn forecast(&self, scope: &Scope, now: Timestamp, options: &Options) -> Forecast {
        Forecaster::new(self, scope, now).forecast(options)
    }

    /// So many beads are asked for at most; finding out costs nothing.
    pub fn most_asked_for(&self) -> usize {
        let fed = self.convoys.values().filter(|convoy| convoy.is_fed());
        let fed: usize = fed.map(|convoy| self.open_beads_of(&convoy.id)).sum();
        fed + self.open_contexts.len() + self.live.len()
    }

    /// When a convoy that is launched now with these beads will be done; none if nothing of it runs, if most of it was
    /// never measured, or if finding out would hold up the launch.
    pub(crate) fn expected_at_launch(
        &self,
        convoy: &ConvoyId,
        beads: &[BeadId],
        now: Timestamp,
    ) -> Option<Timestamp> {
        if beads.len() + self.most_asked_for() > MOST_AT_LAUNCH {
            return None;
        }
        let options = Options { samples: 100, most: 500, ..Options::default() };
        let forecast = Forecaster::of_beads(self, now, beads, Some((convoy, beads))).forecast(&options);
        // What rests on guesses is no promise that anything could slip from.
        let measured = forecast.unmeasured * 2 <= forecast.left;
        forecast.finish.filter(|_| measured).map(|band| band.p50)
    }
}

/// Makes forecasts of one town at one moment that differ in their limits only, for little more than one costs.
pub struct Forecaster<'a> {
    model: Model<'a>,
    scope: Vec<&'a BeadId>,
    launched: bool,
    expected: Option<Timestamp>,
    now: Timestamp,
}

impl std::fmt::Debug for Forecaster<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forecaster").field("units", &self.model.units.len()).finish_non_exhaustive()
    }
}

impl<'a> Forecaster<'a> {
    /// Looks at a town at a moment.
    pub fn new(state: &'a State, scope: &Scope, now: Timestamp) -> Self {
        let now = now.max(state.clock);
        let convoy = match scope {
            Scope::Town => None,
            Scope::Convoy(id) => state.convoys.get(id),
        };
        let staged = convoy.filter(|convoy| convoy.staged.is_some());
        let launched = staged.map(|convoy| (&convoy.id, convoy.tracked.as_slice()));
        match (scope, convoy) {
            (Scope::Town, _) => {
                let model = Model::of(state, now, None);
                let given_up = state.settled.iter().filter(|(_, verdict)| match verdict {
                    Verdict::Failed | Verdict::Unavailable | Verdict::CircuitBroken => true,
                    Verdict::Done | Verdict::Cancelled => false,
                });
                let mut scope: Vec<&BeadId> = model.units.iter().map(|unit| unit.id).collect();
                scope.extend(given_up.map(|(id, _)| id));
                scope.sort_unstable();
                scope.dedup();
                Self { model, scope, launched: false, expected: None, now }
            }
            (Scope::Convoy(_), Some(convoy)) => {
                let expected = convoy.expected_end;
                Self { expected, ..Self::of_beads(state, now, &convoy.tracked, launched) }
            }
            (Scope::Convoy(_), None) => Self::of_beads(state, now, &[], None),
        }
    }

    /// Of these beads, some of which a convoy may be about to launch.
    fn of_beads(state: &'a State, now: Timestamp, beads: &'a [BeadId], launched: Launched<'a>) -> Self {
        let mut scope: Vec<&BeadId> = beads.iter().filter(|id| !state.is_closed(id)).collect();
        scope.sort_unstable();
        scope.dedup();
        let model = Model::of(state, now, launched);
        Self { model, scope, launched: launched.is_some(), expected: None, now }
    }

    /// The forecast.
    pub fn forecast(&self, options: &Options) -> Forecast {
        let model = &self.model;
        let scope: Vec<u32> = self.scope.iter().filter_map(|id| model.unit_of(id)).collect();
        let mut run = Simulation::new(model);
        run.run(None);
        let last = path::last_of(&run, &scope);
        let chain = path::chain_to(&run, last);
        let end = last.map_or(0, |last| run.end[last as usize]);
        let plan = self.plan(&run, &path::slack(model, &run, &scope, end), &chain);
        let ends = |unit: &&u32| run.end[**unit as usize] < NEVER;
        let left: Vec<u32> = scope.iter().filter(ends).copied().collect();
        let stuck = self.scope.iter().filter(|id| !plan.contains_key(**id));
        let stuck: Vec<_> = stuck.map(|id| ((*id).clone(), stuck::why(model, id, self.launched))).collect();
        let is_guess = |unit: &&u32| plan[model.units[**unit as usize].id].runs_measured == 0;
        let unmeasured = left.iter().filter(is_guess).count();
        let load = path::load(model, &run).into_iter();
        let load = load.map(|(time, busy)| (model.moment(time), busy)).collect();
        let critical_path = chain.iter().map(|unit| model.units[*unit as usize].id.clone()).collect();
        let samples = self.samples(options);
        let finish = last.map(|_| self.band(&mut run, &left, samples, options.seed, end));
        Forecast {
            at: self.now,
            samples,
            slip_ms: finish.zip(self.expected).map(|(band, then)| band.p50.as_millis() - then.as_millis()),
            finish,
            left: left.len(),
            unmeasured,
            critical_path,
            critical_left: Millis(u64::try_from(end).unwrap_or(0)),
            load,
            stuck,
            plan,
        }
    }

    /// How many beads are asked for in the town.
    pub fn beads(&self) -> usize {
        self.model.units.len()
    }

    /// When it would be done if a limit were another; none as in [`Forecast::finish`]. A limit that nothing counts against
    /// changes nothing.
    #[must_use]
    pub fn finish_with(&mut self, limit: &Limit, max: Option<u64>, options: &Options) -> Option<Band> {
        let place = self.model.limits.iter().position(|known| known == limit);
        let before =
            place.map(|place| std::mem::replace(&mut self.model.caps[place], max.unwrap_or(u64::MAX)));
        let finish = self.finish(options);
        if let Some((place, before)) = place.zip(before) {
            self.model.caps[place] = before;
        }
        finish
    }

    fn finish(&self, options: &Options) -> Option<Band> {
        let scope: Vec<u32> = self.scope.iter().filter_map(|id| self.model.unit_of(id)).collect();
        let mut run = Simulation::new(&self.model);
        run.run(None);
        let end = path::last_of(&run, &scope).map(|last| run.end[last as usize])?;
        let left: Vec<u32> = scope.into_iter().filter(|unit| run.end[*unit as usize] < NEVER).collect();
        Some(self.band(&mut run, &left, self.samples(options), options.seed, end))
    }

    /// So many samples are worth their time.
    fn samples(&self, options: &Options) -> u32 {
        let classes = self.model.classes.len().div_ceil(USUAL_CLASSES).max(1);
        let work = self.model.units.len().saturating_mul(classes);
        if work <= options.most {
            return options.samples;
        }
        let samples = u64::from(options.samples) * options.most as u64 / work as u64;
        u32::try_from(samples).ok().filter(|samples| *samples >= FEWEST_SAMPLES).unwrap_or(0)
    }

    fn plan(&self, run: &Simulation<'_, '_>, slack: &[i64], chain: &[u32]) -> BTreeMap<BeadId, Planned> {
        let model = &self.model;
        let mut plan = BTreeMap::new();
        for (number, unit) in model.units.iter().enumerate() {
            if run.end[number] == NEVER {
                continue;
            }
            let runs = match unit.place {
                Place::Finished => 1,
                _ => model.estimates.get(unit.estimate as usize).map_or(0, history::Estimate::runs),
            };
            let began = match unit.place {
                Place::Running => 0_i64.saturating_sub(i64::try_from(unit.ran).unwrap_or(0)),
                _ => run.start[number].min(run.end[number]),
            };
            let planned = Planned {
                start: model.moment(began),
                end: model.moment(run.end[number]),
                slack: Millis(u64::try_from(slack[number]).unwrap_or(0)),
                critical: false,
                runs_measured: u32::try_from(runs).unwrap_or(u32::MAX),
                after: (run.after[number] != NONE)
                    .then(|| model.units[run.after[number] as usize].id.clone()),
                limit: model.limits.get(run.limit[number] as usize).cloned(),
            };
            plan.insert(unit.id.clone(), planned);
        }
        for unit in chain {
            if let Some(planned) = plan.get_mut(model.units[*unit as usize].id) {
                planned.critical = true;
            }
        }
        plan
    }

    /// When these units are all done, over so many samples; by expected durations if there are none.
    fn band(&self, run: &mut Simulation<'_, '_>, left: &[u32], samples: u32, seed: u64, end: i64) -> Band {
        let mut ends = Vec::with_capacity(samples as usize);
        for sample in 0..samples {
            run.run(Some(Chance::new(seed, sample)));
            let done = left.iter().map(|unit| run.end[*unit as usize]).filter(|end| *end < NEVER);
            ends.push(done.max().unwrap_or(0));
        }
        ends.sort_unstable();
        let at = |percent: usize| {
            let place = (ends.len() * percent).div_ceil(100).max(1) - 1;
            self.model.moment(ends.get(place).copied().unwrap_or(end))
        };
        Band { p50: at(50), p90: at(90) }
    }
}
