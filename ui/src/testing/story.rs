//! A story: beads with the time each takes and what goes wrong with some of them, played by the real engine. The same
//! story gives the same log, event for event.

use std::collections::BTreeMap;

use yard_engine::bead::DepKind;
use yard_engine::command::WorkerSays;
use yard_engine::dispatch::Category;
use yard_engine::money::Usd;
use yard_engine::{BeadId, DispatchId, Timestamp};

use super::{Yard, edge};

/// A piece of work and how long it takes.
pub(crate) struct Job {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// What type of bead it is: the forecast learns by it.
    pub(crate) kind: &'static str,
    pub(crate) seconds: i64,
    pub(crate) needs: &'static [&'static str],
}

/// What goes wrong with an attempt.
#[derive(Clone, Copy)]
pub(crate) enum Fault {
    /// Its program is not there.
    NoStart(&'static str),
    /// It ends like this, after so many seconds.
    Ends { after: i64, code: i32, category: Category, message: &'static str },
}

/// A yard whose workers take their time.
pub(crate) struct Story {
    pub(crate) yard: Yard,
    seconds: BTreeMap<BeadId, i64>,
    /// By bead and attempt; attempt 0 stands for all.
    faults: BTreeMap<(&'static str, u32), Fault>,
}

impl Story {
    pub(crate) fn in_yard(yard: Yard) -> Self {
        Self { yard, seconds: BTreeMap::new(), faults: BTreeMap::new() }
    }

    /// Makes beads.
    pub(crate) fn jobs(&mut self, jobs: &[Job], epic: &str) {
        for job in jobs {
            self.seconds.insert(super::bead(job.id), job.seconds);
            self.yard.bead(job.id, job.title, |bead| {
                bead.kind = job.kind.to_owned();
                bead.dependencies = job.needs.iter().map(|on| edge(on, DepKind::Blocks)).collect();
                if !epic.is_empty() {
                    bead.dependencies.push(edge(epic, DepKind::ParentChild));
                }
            });
        }
    }

    /// Has an attempt go wrong.
    pub(crate) fn fault(&mut self, id: &'static str, attempt: u32, fault: Fault) {
        self.faults.insert((id, attempt), fault);
    }

    fn fault_of(&self, id: &DispatchId) -> Option<Fault> {
        let of = |attempt: u32| {
            let found =
                self.faults.iter().find(|((bead, n), _)| *bead == id.bead().as_str() && *n == attempt);
            found.map(|(_, fault)| *fault)
        };
        of(id.attempt()).or_else(|| of(0))
    }

    /// Lets the town work until so many seconds after the beginning of the pictures' day.
    pub(crate) fn until(&mut self, seconds: i64) {
        let end = super::BEGINNING + seconds * 1_000;
        loop {
            self.begin();
            let now = self.yard.now.as_millis();
            let due = self.yard.state.next_due().map(Timestamp::as_millis);
            let next = self.ends().into_iter().map(|(at, _)| at).chain(due).min();
            // What is overdue is looked at in the next moment, so that time always passes.
            let Some(next) = next.map(|next| next.max(now + 1)).filter(|next| *next <= end) else { break };
            self.at(next);
            for (at, id) in self.ends() {
                if at <= next {
                    self.finish(&id);
                }
            }
        }
        self.at(end);
        self.begin();
    }

    fn at(&mut self, millis: i64) {
        self.yard.now = Timestamp::from_millis(millis);
        self.yard.later(0);
    }

    /// Whatever was started runs, or cannot.
    fn begin(&mut self) {
        loop {
            let starting =
                self.yard.state.live_dispatches().filter(|d| d.running_at.is_none() && d.stop.is_none());
            let starting: Vec<DispatchId> = starting.map(|dispatch| dispatch.id.clone()).collect();
            if starting.is_empty() {
                return;
            }
            for id in starting {
                match self.fault_of(&id) {
                    Some(Fault::NoStart(error)) => self.yard.start_fails(id.bead().as_str(), error),
                    Some(Fault::Ends { .. }) | None => self.yard.runs(id.bead().as_str()),
                }
            }
        }
    }

    /// When each worker ends.
    fn ends(&self) -> Vec<(i64, DispatchId)> {
        let running = self.yard.state.live_dispatches().filter_map(|d| Some((d.running_at?, d.id.clone())));
        running
            .map(|(since, id)| {
                let takes = match self.fault_of(&id) {
                    Some(Fault::Ends { after, .. }) => after,
                    Some(Fault::NoStart(_)) | None => self.seconds.get(id.bead()).copied().unwrap_or(60),
                };
                (since.as_millis() + takes * 1_000, id)
            })
            .collect()
    }

    fn finish(&mut self, id: &DispatchId) {
        let bead = id.bead().as_str().to_owned();
        let seconds = self.seconds.get(id.bead()).copied().unwrap_or(60);
        let dollars = seconds as f64 / 60.0 * 0.06 + (bead.len() as i64 + seconds % 7) as f64 / 100.0;
        self.cost(&bead, dollars);
        match self.fault_of(id) {
            Some(Fault::Ends { code, category, message, .. }) => {
                self.yard.ends(&bead, code, category, message);
            }
            Some(Fault::NoStart(_)) | None => self.yard.exits(&bead, 0),
        }
    }

    /// What a worker has cost so far.
    pub(crate) fn cost(&mut self, bead: &str, dollars: f64) {
        let usd = Usd::from_dollars(dollars).expect("an amount");
        self.yard
            .says(bead, WorkerSays::Cost { usd, total: true, tokens: Some((dollars * 90_000.0) as u64) });
    }

    /// What a worker says it is doing.
    pub(crate) fn progress(&mut self, bead: &str, text: &str) {
        self.yard.says(bead, WorkerSays::Progress { text: text.to_owned() });
    }
}
