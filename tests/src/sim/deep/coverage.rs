//! What histories came across: types of events, refusals, and ways to recover.

use std::collections::BTreeMap;

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Durable events by type.
    pub events: BTreeMap<String, u64>,
    /// Refusals by code.
    pub refusals: BTreeMap<String, u64>,
    /// Ways to recover, by name.
    pub routes: BTreeMap<String, u64>,
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}

impl Coverage {
    pub(super) fn event(&mut self, kind: &str) {
        count(&mut self.events, kind);
    }

    pub(super) fn refusal(&mut self, code: &str) {
        count(&mut self.refusals, code);
    }

    pub(super) fn route(&mut self, name: &str) {
        count(&mut self.routes, name);
    }

    /// Adds what another history came across.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.events, &other.events),
            (&mut self.refusals, &other.refusals),
            (&mut self.routes, &other.routes),
        ];
        for (sum, part) in pairs {
            for (name, count) in part {
                *sum.entry(name.clone()).or_default() += count;
            }
        }
    }
}
