//! The same tasks by every program that is here, the raw limit right before each: medians of the figures, and of the
//! ratios of these pairs.

use std::collections::BTreeMap;

use crate::Fallible;
use crate::effort::Effort;
use crate::pass::{Case, Outcome, Spec, measure};
use crate::peers::Program;
use crate::report::{figure, progress};

/// What is compared.
pub(crate) struct Contest {
    /// Its name among the figures.
    pub(crate) name: &'static str,
    pub(crate) case: Case,
    pub(crate) tasks: usize,
    pub(crate) slots: usize,
    /// How many dependencies a program must manage.
    pub(crate) dependencies: usize,
    /// Whether the raw limit does something like it.
    pub(crate) has_raw: bool,
}

/// What became of one program.
pub(crate) struct Entry {
    pub(crate) program: Program,
    /// How many tasks it was given.
    pub(crate) tasks: usize,
    passes: Vec<(Outcome, Option<Outcome>)>,
    pub(crate) trouble: Option<String>,
}

impl Entry {
    /// The median of a figure.
    pub(crate) fn median(&self, figure: &str) -> Option<f64> {
        middle(self.passes.iter().filter_map(|(own, _)| own.get(figure)))
    }

    /// The median of the raw limit's figure, in the passes right before.
    pub(crate) fn raw(&self, figure: &str) -> Option<f64> {
        middle(self.passes.iter().filter_map(|(_, raw)| raw.as_ref()?.get(figure)))
    }

    /// The median of the ratios to the raw limit right before.
    pub(crate) fn ratio(&self, figure: &str) -> Option<f64> {
        middle(
            self.passes.iter().filter_map(|(own, raw)| Some(own.get(figure)? / raw.as_ref()?.get(figure)?)),
        )
    }

    /// How processor time was counted.
    pub(crate) fn counted(&self) -> &str {
        self.passes.first().map_or("", |(own, _)| own.counted.as_str())
    }
}

/// The median; of an even number the mean of the two in the middle.
pub(crate) fn middle(samples: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = samples.collect();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let upper = sorted.get(half).copied()?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[half - 1], upper) })
}

impl Contest {
    /// Everybody who can take part: ours first.
    fn entrants(&self, effort: &Effort) -> Vec<Program> {
        let can = |program: &Program| {
            program.most_dependencies() >= self.dependencies
                && (!wants_queue(self.case) || program.has_a_queue())
                && effort.wants(*program)
                && program.is_here()
        };
        [Program::Ym, Program::YmTmpfs].into_iter().chain(Program::PEERS).filter(can).collect()
    }

    /// Measures all, pass by pass.
    pub(crate) fn hold(&self, effort: &Effort) -> Fallible<Vec<Entry>> {
        let entrants = self.entrants(effort).into_iter().map(|program| Entry {
            program,
            tasks: if wants_queue(self.case) {
                self.tasks
            } else {
                self.tasks.min(program.most_tasks(self.slots))
            },
            passes: Vec::new(),
            trouble: None,
        });
        let mut entries: Vec<Entry> = entrants.collect();
        for pass in 1..=effort.passes {
            for entry in entries.iter_mut().filter(|entry| entry.trouble.is_none()) {
                let spec = |program| Spec {
                    program,
                    case: self.case,
                    tasks: entry.tasks,
                    slots: self.slots,
                    timeout: effort.timeout,
                };
                let raw = if self.has_raw { Some(measure(&spec(Program::Raw))?) } else { None };
                let own = measure(&spec(entry.program))?;
                let brief = own.trouble.clone().unwrap_or_else(|| brief(&own));
                progress(&format!("  {}, pass {pass}: {}: {brief}", self.name, entry.program.name()));
                entry.trouble.clone_from(&own.trouble);
                if entry.trouble.is_none() {
                    self.note(entry.program, pass, &own, raw.as_ref());
                    entry.passes.push((own, raw));
                }
            }
        }
        Ok(entries)
    }

    fn note(&self, program: Program, pass: usize, own: &Outcome, raw: Option<&Outcome>) {
        let mut all: BTreeMap<String, f64> = own.figures.clone();
        let raw = raw.into_iter().flat_map(|raw| &raw.figures);
        all.extend(raw.map(|(name, value)| (format!("raw_{name}"), *value)));
        all.insert("pass".to_owned(), pass as f64);
        all.insert("slots".to_owned(), self.slots as f64);
        figure(self.name, program.name(), all);
    }
}

/// Whether a case is about a queue, in which nothing runs.
fn wants_queue(case: Case) -> bool {
    matches!(case, Case::Submit | Case::Status)
}

fn brief(outcome: &Outcome) -> String {
    let figures = outcome.figures.iter().map(|(name, value)| format!("{name} {value:.1}"));
    figures.collect::<Vec<_>>().join(", ")
}

/// Ours among the entries.
pub(crate) fn ours(entries: &[Entry]) -> Option<&Entry> {
    entries.iter().find(|entry| entry.program == Program::Ym)
}

/// The peers that are best by a key, in words: of all, and of those who keep anything.
pub(crate) fn best_peers(
    entries: &[Entry],
    better: Better,
    key: impl Fn(&Entry) -> Option<f64>,
    words: impl Fn(f64) -> String,
) -> String {
    let peers = || entries.iter().filter(|entry| Program::PEERS.contains(&entry.program));
    let reached = |entry: &Entry| Some((entry.program, key(entry)?));
    let order = |one: &(Program, f64), other: &(Program, f64)| match better {
        Better::More => other.1.total_cmp(&one.1),
        Better::Less => one.1.total_cmp(&other.1),
    };
    let best = peers().filter_map(reached).min_by(order);
    let durable = peers().filter(|entry| entry.program.keeps_something()).filter_map(reached).min_by(order);
    let told = |(program, value): (Program, f64)| {
        let note = if program.keeps_something() { "" } else { " (keeps nothing)" };
        format!("{} {}{note}", program.name(), words(value))
    };
    let both: Vec<String> = match (best, durable) {
        (Some(best), Some(durable)) if best.0 == durable.0 => vec![told(best)],
        (best, durable) => [best, durable].into_iter().flatten().map(told).collect(),
    };
    if both.is_empty() { "none found".to_owned() } else { both.join(", ") }
}

/// Which figures are good.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Better {
    More,
    Less,
}
