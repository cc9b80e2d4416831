//! The simulated workspace of a rig: a tracker that agents and people write, and a source that reads it. The tracker
//! outlives the daemon; what the source has shown so far, and what it has under way, do not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use yard_engine::bead::{Bead, BeadStatus, DepKind, Dependency, Rare, one_per_pair};
use yard_engine::rig::{BeadSource, Rig};
use yard_engine::{BeadId, Command, DispatchId, Millis, RigName, SourceReading, Timestamp};

use super::daemon::Halt;
use super::history::World;
use super::{Broken, Mutant};

/// The rig whose beads the tracker keeps, and their prefix.
const RIG: &str = "yak";
const PREFIX: &str = "y";

#[derive(Default)]
pub(super) struct Tracker {
    /// Whether the town has such a rig at all.
    is_kept: bool,
    beads: BTreeMap<BeadId, Bead>,
    /// Beads that disappeared and may be found again.
    lost: Vec<Bead>,
    ever_lost: BTreeSet<BeadId>,
    /// Agents that close their bead some time after they ended.
    closing: Vec<BeadId>,
    version: u64,
    /// What the source has shown since the daemon started; none if nothing.
    shown: Option<BTreeMap<BeadId, Bead>>,
    /// Readings under way, in the order they were made.
    readings: VecDeque<SourceReading>,
}

impl Tracker {
    fn changes(&mut self, id: &BeadId, change: impl FnOnce(&mut Bead)) {
        if let Some(bead) = self.beads.get_mut(id) {
            change(bead);
            self.version += 1;
        }
    }

    fn closes(&mut self, id: &BeadId, at: Timestamp) {
        self.changes(id, |bead| {
            if !bead.is_closed() {
                (bead.status, bead.closed_at) = (BeadStatus::Closed, Some(at));
                bead.close_reason = Some("done".to_owned());
            }
        });
    }

    fn releases(&mut self, id: &BeadId) {
        self.changes(id, |bead| {
            if !bead.is_closed() {
                (bead.status, bead.assignee, bead.defer_until) = (BeadStatus::Open, None, None);
            }
        });
    }

    /// Whether this bead really disappeared at some time.
    pub(super) fn ever_lost(&self, id: &BeadId) -> bool {
        self.ever_lost.contains(id)
    }

    fn reading(&self, beads: Vec<Bead>, gone: Vec<BeadId>, whole: bool) -> SourceReading {
        let stamp = format!("version {}", self.version);
        let rig = RigName::parse(RIG).expect("a valid name");
        let beads = beads.into_iter().map(Arc::new).collect();
        SourceReading { rig, stamp, whole, beads, gone, vanished: whole, trouble: None }
    }

    /// What the source sees when it looks: everything at first, later what changed.
    fn look(&mut self) -> SourceReading {
        let reading = match &self.shown {
            None => self.reading(self.beads.values().cloned().collect(), Vec::new(), true),
            Some(shown) => {
                let new = self.beads.iter().filter(|(id, bead)| shown.get(*id) != Some(*bead));
                let new = new.map(|(_, bead)| bead.clone()).collect();
                let gone = shown.keys().filter(|id| !self.beads.contains_key(*id)).cloned().collect();
                self.reading(new, gone, false)
            }
        };
        self.shown = Some(self.beads.clone());
        reading
    }

    /// What the source sees of a file that is just being written: some of it, and that something is wrong.
    fn glimpse(&mut self, count: usize) -> SourceReading {
        let some: Vec<Bead> = self.beads.values().take(count).cloned().collect();
        let whole = self.shown.is_none();
        if let Some(shown) = &mut self.shown {
            shown.extend(some.iter().map(|bead| (bead.id.clone(), bead.clone())));
        }
        let trouble = Some("its last line is cut off".to_owned());
        SourceReading { vanished: false, trouble, ..self.reading(some, Vec::new(), whole) }
    }

    /// Everything, for whoever begins to follow the workspace; none if this is not it, or if nobody keeps it yet.
    pub(super) fn read_anew(&mut self, rig: &RigName) -> Option<SourceReading> {
        if !self.is_kept || rig.as_str() != RIG {
            return None;
        }
        self.begin_again();
        Some(self.look())
    }

    fn has_news(&self) -> bool {
        self.is_kept && self.shown.as_ref() != Some(&self.beads)
    }

    /// The daemon is gone, or could not write a reading down: the source begins again with everything.
    pub(super) fn begin_again(&mut self) {
        self.shown = None;
        self.readings.clear();
    }
}

impl World {
    pub(super) fn add_workspace(&mut self) -> Result<(), Halt> {
        let rig = Rig {
            name: RigName::parse(RIG).expect("a valid name"),
            prefix: PREFIX.to_owned(),
            path: RIG.to_owned(),
            parked: false,
            docked: false,
            max_polecats: None,
            executor: None,
            formula: None,
            source: Some(BeadSource::Jsonl { path: ".beads/issues.jsonl".to_owned() }),
        };
        self.ask(&Command::RigAdd { rig })?;
        self.tracker.is_kept = true;
        for _ in 0..self.dice.between(1, 4) {
            self.somebody_writes_a_bead();
        }
        self.source_looks();
        self.a_reading_arrives()
    }

    /// A new bead, or a known one with other dependencies; they lead to earlier beads, or to native ones.
    pub(super) fn somebody_writes_a_bead(&mut self) {
        let n = self.dice.below(6);
        let mut on: Vec<BeadId> = (0..n).map(tracked_id).collect();
        on.extend(self.beads.iter().filter(|id| !id.as_str().starts_with("y-")).take(2).cloned());
        let mut dependencies = Vec::new();
        while self.dice.one_in(3) {
            if let Some(on) = self.dice.pick(&on) {
                let target =
                    if self.dice.one_in(3) { format!("external:{RIG}:{on}") } else { on.to_string() };
                dependencies.extend(Dependency::from_tracker(&target, DepKind::Blocks));
            }
        }
        self.tracker_has(n, one_per_pair(dependencies));
    }

    /// The tracker has its nth bead, with these dependencies.
    pub(super) fn tracker_has(&mut self, n: usize, dependencies: Vec<Dependency>) -> BeadId {
        let id = tracked_id(n);
        self.tracker.version += 1;
        self.tracker.lost.retain(|bead| bead.id != id);
        let fresh = Bead {
            id: id.clone(),
            title: "tracked work".to_owned(),
            kind: "task".into(),
            status: BeadStatus::Open,
            priority: 2,
            dependencies: Vec::new(),
            created_at: self.now,
            source: RigName::parse(RIG).ok(),
            pinned: false,
            ephemeral: false,
            is_template: false,
            argv: None,
            rare: Rare::default(),
        };
        self.tracker.beads.entry(id.clone()).or_insert(fresh).dependencies = dependencies;
        self.gains(id.clone());
        id
    }

    /// Somebody does something in the tracker: an agent that ended a while ago, or a person.
    pub(super) fn tracker_moves(&mut self) {
        if !self.tracker.is_kept {
            return;
        }
        if !self.tracker.closing.is_empty() && self.dice.one_in(2) {
            let nth = self.dice.below(self.tracker.closing.len());
            let id = self.tracker.closing.swap_remove(nth);
            self.tell(|| format!("tracker: the agent of {id} closes it late"));
            return self.tracker.closes(&id, self.now);
        }
        let ids: Vec<BeadId> = self.tracker.beads.keys().cloned().collect();
        let Some(id) = self.dice.pick(&ids).cloned() else { return self.somebody_writes_a_bead() };
        let lot = self.dice.below(12);
        self.tell(|| format!("tracker: {id}, lot {lot}"));
        match lot {
            0 => self.tracker.closes(&id, self.now),
            1 => self.tracker.changes(&id, |bead| {
                (bead.status, bead.closed_at, bead.close_reason) = (BeadStatus::Open, None, None);
            }),
            2 => self.tracker.changes(&id, |bead| {
                if !bead.is_closed() {
                    (bead.status, bead.assignee) = (BeadStatus::InProgress, Some("bob".to_owned()));
                }
            }),
            3 | 4 => self.tracker.releases(&id),
            5 => {
                if let Some(bead) = self.tracker.beads.remove(&id) {
                    self.tracker.version += 1;
                    self.tracker.ever_lost.insert(id);
                    self.tracker.lost.push(bead);
                }
            }
            6 | 7 => {
                if let Some(bead) = self.tracker.lost.pop() {
                    self.tracker.version += 1;
                    self.tracker.beads.insert(bead.id.clone(), bead);
                }
            }
            8 => {
                let span = self.dice.between(1, 8_000);
                let until = self.now.after(Millis(span).duration());
                self.tracker.changes(&id, |bead| bead.defer_until = Some(until));
            }
            9 => self.tracker.changes(&id, |bead| bead.title.push('!')),
            _ => self.somebody_writes_a_bead(),
        }
    }

    /// The worker of a tracked bead begins; most agents say so in the tracker.
    pub(super) fn agent_claims(&mut self, id: &DispatchId) {
        let speaks = self.dice.one_in(2);
        self.tracker.changes(id.bead(), |bead| {
            let free = bead.status == BeadStatus::Open && bead.assignee.is_none();
            if free && speaks {
                (bead.status, bead.assignee) = (BeadStatus::InProgress, Some(format!("ym/{id}")));
            }
        });
    }

    /// The worker of a tracked bead ends well; its agent closes the bead: before that, later, or not at all.
    pub(super) fn agent_closes(&mut self, id: &BeadId) {
        let Some(program) = self.workers.programs.get_mut(id) else { return };
        if program.forgets > 0 {
            program.forgets -= 1;
        } else if program.closes_late {
            self.tracker.closing.push(id.clone());
        } else {
            self.tracker.closes(id, self.now);
        }
    }

    /// The source looks at the tracker, and sends what it saw, maybe twice. What it never looks at, it sees later.
    pub(super) fn source_looks(&mut self) {
        if !self.tracker.is_kept {
            return;
        }
        if !self.is_deep() && self.workspace_must_be_read_anew() {
            self.tracker.begin_again();
        }
        let reading = if self.faults && self.dice.one_in(6) {
            let count = self.dice.below(4);
            self.tracker.glimpse(count)
        } else {
            self.tracker.look()
        };
        if self.faults && self.dice.one_in(6) {
            self.tracker.readings.push_back(reading.clone());
        }
        self.tracker.readings.push_back(reading);
    }

    /// The reading that has been under way for longest arrives. One that cannot be made durable is made again.
    pub(super) fn a_reading_arrives(&mut self) -> Result<(), Halt> {
        let Some(mut reading) = self.tracker.readings.pop_front() else { return self.idle() };
        self.tell(|| format!("heard: {reading:?}"));
        if self.mutant == Some(Mutant::DoubtBelieved) {
            reading.vanished |= reading.whole;
        }
        let closes_again = self.mutant == Some(Mutant::ClosesSeenAgain) && reading.whole;
        if !self.hear_reading(&reading, closes_again)? {
            self.tracker.begin_again();
        }
        Ok(())
    }

    /// The daemon's loop sees to this by itself, where it is part of the simulation.
    fn workspace_must_be_read_anew(&self) -> bool {
        self.state().rigs().any(|rig| self.state().must_be_read_anew(&rig.name))
    }

    /// With the faults over: what the agents still owe is done, and what the source has not told is told.
    pub(super) fn tracker_comes_to_rest(&mut self) -> Result<bool, Halt> {
        let owed = std::mem::take(&mut self.tracker.closing);
        for id in &owed {
            self.tracker.closes(id, self.now);
        }
        if self.tracker.has_news() || (!self.is_deep() && self.workspace_must_be_read_anew()) {
            self.source_looks();
        }
        let moved = !owed.is_empty() || !self.tracker.readings.is_empty();
        while !self.tracker.readings.is_empty() {
            self.a_reading_arrives()?;
        }
        Ok(moved)
    }

    /// Takes back what only people can: nothing is lost, taken, put off, or waits for what it cannot get.
    pub(super) fn put_tracker_in_order(&mut self) {
        for bead in std::mem::take(&mut self.tracker.lost) {
            self.tracker.beads.insert(bead.id.clone(), bead);
        }
        for id in self.tracker.beads.keys().cloned().collect::<Vec<_>>() {
            self.tracker.releases(&id);
            let earlier = |on: &BeadId| *on < id && self.tracker.beads.contains_key(on);
            let kept: Vec<Dependency> = self.tracker.beads[&id].dependencies.clone();
            let kept = kept.into_iter().filter(|edge| earlier(&edge.on)).collect();
            self.tracker.changes(&id, |bead| bead.dependencies = kept);
        }
    }

    /// At the end of a history the town knows exactly what the tracker shows.
    pub(super) fn check_tracker_is_known(&self) -> Result<(), Broken> {
        let known =
            self.state().beads().filter(|entry| entry.bead.source.is_some()).map(|entry| &*entry.bead);
        // Who was first keeps an id: somebody may have added it while the tracker had lost it.
        let native = |id: &BeadId| self.state().bead(id).is_some_and(|entry| entry.bead.source.is_none());
        let same = known.eq(self.tracker.beads.values().filter(|bead| !native(&bead.id)));
        Broken::unless(same, || "the town does not know what its workspace shows".to_owned())
    }
}

fn tracked_id(n: usize) -> BeadId {
    BeadId::parse(&format!("{PREFIX}-{n}")).expect("a valid id")
}
