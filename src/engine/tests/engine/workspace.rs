//! A beads workspace for tests: what its tracker holds, and what a reading of it shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_engine::bead::{Bead, BeadStatus, DepKind, Dependency, Rare, one_per_pair};
use yard_engine::rig::BeadSource;
use yard_engine::{BeadId, RigName, SourceReading, Timestamp};

use crate::town::{Town, bead_id, rig_name};

/// When the tracker made, and closed, its beads.
fn made_at() -> Timestamp {
    Timestamp::from_millis(1_600_000_000_000)
}

pub(crate) fn closed_at() -> Timestamp {
    Timestamp::from_millis(1_650_000_000_000)
}

#[derive(Clone)]
pub(crate) struct Workspace {
    rig: RigName,
    beads: BTreeMap<BeadId, Bead>,
    /// What the last reading showed.
    shown: BTreeMap<BeadId, Bead>,
    version: u64,
}

impl Workspace {
    // What people and agents do in the tracker.

    pub(crate) fn has(&mut self, ids: &[&str]) {
        for id in ids {
            self.has_with(id, |_| {});
        }
    }

    /// A bead with these blocking dependencies, written as the tracker writes them.
    pub(crate) fn has_needing(&mut self, id: &str, needs: &[&str]) {
        self.has_with(id, |bead| {
            let edge =
                |on: &&str| Dependency::from_tracker(on, DepKind::Blocks).expect("a dependency can be read");
            bead.dependencies = needs.iter().map(edge).collect();
        });
    }

    pub(crate) fn has_with(&mut self, id: &str, change: impl FnOnce(&mut Bead)) {
        let mut bead = Bead {
            id: bead_id(id),
            title: format!("work on {id}"),
            kind: "task".into(),
            status: BeadStatus::Open,
            priority: 2,
            dependencies: Vec::new(),
            created_at: made_at(),
            source: Some(self.rig.clone()),
            pinned: false,
            ephemeral: false,
            is_template: false,
            argv: None,
            rare: Rare::default(),
        };
        change(&mut bead);
        bead.dependencies = one_per_pair(bead.dependencies);
        self.beads.insert(bead.id.clone(), bead);
        self.version += 1;
    }

    pub(crate) fn changes(&mut self, id: &str, change: impl FnOnce(&mut Bead)) {
        change(self.beads.get_mut(id).expect("the tracker has it"));
        self.version += 1;
    }

    pub(crate) fn closes(&mut self, id: &str) {
        self.changes(id, |bead| {
            bead.status = BeadStatus::Closed;
            bead.closed_at = Some(closed_at());
            bead.close_reason = Some("done".to_owned());
        });
    }

    pub(crate) fn reopens(&mut self, id: &str) {
        self.changes(id, |bead| {
            (bead.status, bead.closed_at, bead.close_reason) = (BeadStatus::Open, None, None);
        });
    }

    pub(crate) fn claims(&mut self, id: &str, who: &str) {
        self.changes(id, |bead| {
            (bead.status, bead.assignee) = (BeadStatus::InProgress, Some(who.to_owned()));
        });
    }

    pub(crate) fn releases(&mut self, id: &str) {
        self.changes(id, |bead| (bead.status, bead.assignee) = (BeadStatus::Open, None));
    }

    pub(crate) fn loses(&mut self, id: &str) -> Bead {
        self.version += 1;
        self.beads.remove(id).expect("the tracker has it")
    }

    pub(crate) fn regains(&mut self, bead: Bead) {
        self.version += 1;
        self.beads.insert(bead.id.clone(), bead);
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.beads.keys().map(ToString::to_string).collect()
    }

    // What readings of it show.

    /// What changed since the last reading.
    pub(crate) fn news(&mut self) -> SourceReading {
        let changed = self.beads.iter().filter(|(id, bead)| self.shown.get(*id) != Some(*bead));
        let beads = changed.map(|(_, bead)| bead.clone()).collect();
        let gone = self.shown.keys().filter(|id| !self.beads.contains_key(*id)).cloned().collect();
        self.reading(beads, gone, false)
    }

    /// Everything there is.
    pub(crate) fn whole(&mut self) -> SourceReading {
        let beads = self.beads.values().cloned().collect();
        self.reading(beads, Vec::new(), true)
    }

    fn reading(&mut self, beads: Vec<Bead>, gone: Vec<BeadId>, whole: bool) -> SourceReading {
        self.shown = self.beads.clone();
        SourceReading {
            rig: self.rig.clone(),
            stamp: format!("version {}", self.version),
            whole,
            beads: beads.into_iter().map(Arc::new).collect(),
            gone,
            vanished: whole,
            trouble: None,
        }
    }
}

impl Town {
    /// A rig whose beads come from a workspace.
    pub(crate) fn workspace(&mut self, name: &str, prefix: &str) -> Workspace {
        let source = BeadSource::Jsonl { path: ".beads/issues.jsonl".to_owned() };
        self.rig_with(name, prefix, |rig| rig.source = Some(source));
        Workspace { rig: rig_name(name), beads: BTreeMap::new(), shown: BTreeMap::new(), version: 0 }
    }

    /// A reading arrives.
    pub(crate) fn hears(&mut self, reading: &SourceReading) {
        self.act(|tx| tx.source_read(reading));
    }

    /// Somebody reads what changed in a workspace.
    pub(crate) fn reads(&mut self, workspace: &mut Workspace) {
        self.hears(&workspace.news());
    }

    /// Somebody reads all of a workspace.
    pub(crate) fn reads_all(&mut self, workspace: &mut Workspace) {
        self.hears(&workspace.whole());
    }
}
