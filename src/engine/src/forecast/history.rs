//! How long work takes, learned from the runs that ended: kept up to date as they end, the last forty of each class.
//!
//! A class is what runs (formula, or the program of a bead with its own command), where, and what type of bead it is.
//! An estimate rests on the most specific class with enough runs, and knows how many those were.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::bead::Bead;
use crate::context::{Context, ContextFields};
use crate::dispatch::{Category, Dispatch, Outcome};
use crate::state::State;
use crate::{DispatchId, RigName, Timestamp};

/// So many runs of a class are remembered.
const REMEMBERED: usize = 40;
/// So many successful runs make an estimate of their own; fewer are looked at together with those of wider classes.
const ENOUGH: usize = 3;
/// So many of the last runs stand for a wide class.
const MOST_OF_A_WIDE_CLASS: usize = 200;
/// What is assumed of work when nothing like it, nor anything else, was ever measured: from two and a half minutes to
/// forty, ten in the middle.
const GUESS: [u64; 7] = [150_000, 300_000, 420_000, 600_000, 840_000, 1_200_000, 2_400_000];
/// A class is never taken to fail more often than this, in percent: otherwise one bad evening forecasts for ever.
const MOST_FAILURES: usize = 80;

/// What is alike: what runs, where, and what for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Class {
    what: String,
    rig: RigName,
    kind: String,
}

impl Class {
    /// The class of a bead that runs in this rig, by a formula or by its own command.
    pub(super) fn of(bead: &Bead, rig: &RigName, formula: Option<&str>) -> Self {
        let program = bead.argv.as_deref().and_then(|argv| argv.first()).map_or("", String::as_str);
        let program = program.rsplit('/').next().unwrap_or_default();
        let kind = if bead.kind.is_empty() { "task" } else { &*bead.kind };
        // A formula and a program may have the same name.
        let what = formula.map_or_else(|| format!("${program}"), str::to_owned);
        Self { what, rig: rig.clone(), kind: kind.to_owned() }
    }

    /// The class of a bead with this request.
    pub(super) fn of_request(bead: &Bead, fields: &ContextFields) -> Self {
        Self::of(bead, &fields.target_rig, fields.formula.as_ref().map(crate::FormulaName::as_str))
    }
}

/// One run, by when it ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Run {
    at: Timestamp,
    id: DispatchId,
    millis: u64,
    succeeded: bool,
}

/// The last runs of each class. Which those are follows from the runs alone, not from the order they were told in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(Class, BTreeSet<Run>)>", into = "Vec<(Class, BTreeSet<Run>)>")]
pub(crate) struct History(BTreeMap<Class, BTreeSet<Run>>);

impl From<Vec<(Class, BTreeSet<Run>)>> for History {
    fn from(classes: Vec<(Class, BTreeSet<Run>)>) -> Self {
        Self(classes.into_iter().collect())
    }
}

impl From<History> for Vec<(Class, BTreeSet<Run>)> {
    fn from(history: History) -> Self {
        history.0.into_iter().collect()
    }
}

impl History {
    fn add(&mut self, class: Class, run: Run) {
        let runs = self.0.entry(class).or_default();
        runs.insert(run);
        if runs.len() > REMEMBERED {
            runs.pop_first();
        }
    }

    fn of_class(&self, class: &Class) -> impl Iterator<Item = &Run> {
        self.0.get(class).into_iter().flatten()
    }

    /// All that ran by the same formula or program in the same rig.
    fn of_what(&self, class: &Class) -> impl Iterator<Item = &Run> {
        let first = Class { kind: String::new(), ..class.clone() };
        let alike = |other: &Class| other.what == first.what && other.rig == first.rig;
        let alike: Vec<_> = self.0.range(&first..).take_while(|(other, _)| alike(other)).collect();
        alike.into_iter().flat_map(|(_, runs)| runs)
    }
}

/// Makes estimates. What many classes share is worked out once.
pub(super) struct Estimator<'a> {
    history: &'a History,
    /// By rig and type, by rig, and for the whole town.
    wide: BTreeMap<(Option<RigName>, Option<String>), Estimate>,
}

impl<'a> Estimator<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        Self { history, wide: BTreeMap::new() }
    }

    /// What to expect of work of this class.
    pub(super) fn estimate(&mut self, class: &Class) -> Estimate {
        let mut found = Estimate::from(self.history.of_class(class));
        if found.runs() >= ENOUGH {
            return found;
        }
        found = Estimate::from(self.history.of_what(class));
        let (rig, kind) = (Some(class.rig.clone()), Some(class.kind.clone()));
        for wider in [(rig.clone(), kind), (rig, None), (None, None)] {
            if found.runs() >= ENOUGH {
                break;
            }
            found = self.wide(wider);
        }
        found
    }

    fn wide(&mut self, key: (Option<RigName>, Option<String>)) -> Estimate {
        let history = self.history;
        let estimate = self.wide.entry(key).or_insert_with_key(|(rig, kind)| {
            let fits = |class: &Class| {
                rig.as_ref().is_none_or(|rig| class.rig == *rig)
                    && kind.as_ref().is_none_or(|kind| class.kind == *kind)
            };
            let alike = history.0.iter().filter(|(class, _)| fits(class));
            let mut runs: Vec<&Run> = alike.flat_map(|(_, runs)| runs).collect();
            runs.sort_unstable();
            let last = runs.len().saturating_sub(MOST_OF_A_WIDE_CLASS);
            Estimate::from(runs[last..].iter().copied())
        });
        estimate.clone()
    }
}

impl State {
    /// Remembers how long an ended run took, if that says something about others.
    pub(crate) fn learn_from(&mut self, dispatch: &Dispatch) {
        if let Some((class, run)) = self.lesson_of(dispatch) {
            self.history.add(class, run);
        }
    }

    pub(crate) fn derive_history(&self) -> History {
        let mut history = History::default();
        for (class, run) in self.dispatches().filter_map(|dispatch| self.lesson_of(dispatch)) {
            history.add(class, run);
        }
        history
    }

    /// What a run that came to its own end says about others of its class; nothing, if it never ran or we ended it.
    fn lesson_of(&self, dispatch: &Dispatch) -> Option<(Class, Run)> {
        let (running_at, ended) = (dispatch.running_at?, dispatch.ended.as_ref()?);
        let succeeded = match &ended.outcome {
            Outcome::Succeeded => true,
            Outcome::Failed { category: Category::Crash | Category::Unavailable, .. }
            | Outcome::Lost { .. } => false,
            Outcome::Failed { category: Category::Yielded | Category::HardCap, .. }
            | Outcome::StartFailed { .. }
            | Outcome::Stopped { .. }
            | Outcome::NeverRan { .. } => return None,
        };
        let context = self.context(&dispatch.context)?;
        // What a crashed attempt did is not told apart from what was kept of it.
        if goes_on(context) && (context.crashes > 0 || context.unavailables > 0) {
            return None;
        }
        let bead = dispatch.id.bead();
        let entry = self.beads.get(bead).or_else(|| self.gone.get(bead))?;
        let before = if succeeded { already_done(context) } else { 0 };
        let millis = before.saturating_add(millis_between(running_at, ended.at));
        let run = Run { at: ended.at, id: dispatch.id.clone(), millis, succeeded };
        Some((Class::of_request(&entry.bead, &context.fields), run))
    }
}

/// Whether a request goes on where an earlier attempt was.
fn goes_on(context: &Context) -> bool {
    !context.resume.is_from_the_start()
}

/// How much of its work earlier attempts have done, in milliseconds.
pub(super) fn already_done(context: &Context) -> u64 {
    if goes_on(context) { context.active.0 } else { 0 }
}

pub(super) fn millis_between(earlier: Timestamp, later: Timestamp) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}

/// What to expect of work, by the runs it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Estimate {
    /// How long successful runs took, shortest first. Never empty.
    took: Vec<u64>,
    /// How long runs took that failed.
    failed: Vec<u64>,
    measured: bool,
}

impl Estimate {
    fn from<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        let (mut took, mut failed) = (Vec::new(), Vec::new());
        for run in runs {
            let list = if run.succeeded { &mut took } else { &mut failed };
            list.push(run.millis);
        }
        took.sort_unstable();
        failed.sort_unstable();
        let measured = !took.is_empty();
        if !measured {
            took = GUESS.to_vec();
        }
        Self { took, failed, measured }
    }

    /// How many successful runs it rests on; none when it is a guess.
    pub(super) fn runs(&self) -> usize {
        if self.measured { self.took.len() } else { 0 }
    }

    /// The expected time that is left of work of which so much is done.
    pub(super) fn expected_left(&self, done: u64) -> u64 {
        let longer = self.longer_than(done);
        if longer.is_empty() {
            return overdue(done);
        }
        let sum: u128 = longer.iter().map(|took| u128::from(*took)).sum();
        u64::try_from(sum / longer.len() as u128).unwrap_or(u64::MAX).saturating_sub(done)
    }

    /// A time that may be left of it, by a number from 0 to 1.
    pub(super) fn drawn_left(&self, done: u64, draw: f64) -> u64 {
        let longer = self.longer_than(done);
        match longer {
            [] => (overdue(done) as f64 * 2.0 * draw) as u64,
            _ => between(longer, draw).saturating_sub(done),
        }
    }

    /// The runs that took longer: what is known of work that has taken so long already.
    fn longer_than(&self, done: u64) -> &[u64] {
        let first = if done == 0 { 0 } else { self.took.partition_point(|took| *took <= done) };
        &self.took[first..]
    }

    /// When the attempt fails, if it does: the first number from 0 to 1 says whether, the second when.
    pub(super) fn drawn_failure(&self, done: u64, draw: impl Fn(u32) -> f64) -> Option<u64> {
        if self.failed.is_empty() || !self.measured {
            return None;
        }
        let all = self.took.len() + self.failed.len();
        let failures = (self.failed.len() * 100 / all).min(MOST_FAILURES);
        if draw(0) * 100.0 >= failures as f64 {
            return None;
        }
        between(&self.failed, draw(1)).checked_sub(done)
    }
}

/// What is still expected of work that has taken longer than any before it: a quarter of that again.
fn overdue(done: u64) -> u64 {
    (done / 4).max(1000)
}

/// The value at a place from 0 to 1 among sorted ones.
fn between(sorted: &[u64], place: f64) -> u64 {
    let place = place * (sorted.len() - 1) as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    let (low, high) = (sorted[low], sorted[high]);
    low + ((high - low) as f64 * part) as u64
}
