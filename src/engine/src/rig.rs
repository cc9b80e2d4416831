//! Rigs: the projects of a town. A bead belongs to the rig with the longest registered prefix of its id.

use serde::{Deserialize, Serialize};

use crate::state::State;
use crate::{BeadId, RigName};

/// The prefix of town-level beads, which no rig ever owns.
pub const TOWN_PREFIX: &str = "hq";

/// One project in the town.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rig {
    /// Its name.
    pub name: RigName,
    /// The bead prefix, without the hyphen.
    pub prefix: String,
    /// The directory its workers run in.
    pub path: String,
    /// Level 1 stop: nothing starts here.
    #[serde(default)]
    pub parked: bool,
    /// Level 2 stop: out of service.
    #[serde(default)]
    pub docked: bool,
    /// At most this many live workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_polecats: Option<u64>,
    /// Executor of this rig's beads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// Formula of this rig's beads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<crate::FormulaName>,
    /// Where its beads come from; none when they are native.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<BeadSource>,
}

/// Where the beads of a rig come from. Only ever read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum BeadSource {
    /// A beads workspace that keeps its JSON lines up to date.
    Jsonl {
        /// The file; relative to the rig's directory.
        path: String,
    },
    /// A workspace without such a file: its own tool is asked.
    Command {
        /// Program and arguments, run in the rig's directory; it prints the beads as JSON.
        argv: Vec<String>,
    },
}

/// A switch of a rig that stops or releases its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RigSwitch {
    /// Level 1 stop.
    Park,
    /// Back from parked.
    Unpark,
    /// Level 2 stop.
    Dock,
    /// Back from docked.
    Undock,
}

/// What can happen to a rig.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum RigEvent {
    /// A project joined the town.
    #[serde(rename = "rig.added")]
    Added {
        /// Its record.
        rig: Box<Rig>,
        /// Who did it.
        actor: String,
    },
    /// A project left the town.
    #[serde(rename = "rig.removed")]
    Removed {
        /// Which one.
        name: RigName,
        /// Who did it.
        actor: String,
    },
    /// A project was parked, docked or released.
    #[serde(rename = "rig.switched")]
    Switched {
        /// Which one.
        name: RigName,
        /// What was switched.
        switch: RigSwitch,
        /// Who did it.
        actor: String,
    },
}

impl State {
    pub(crate) fn apply_rig(&mut self, event: &RigEvent) {
        match event {
            RigEvent::Added { rig, .. } => {
                self.rigs.insert(rig.name.clone(), (**rig).clone());
                self.touch_rig(&rig.name);
                self.rebuild_queue();
            }
            RigEvent::Removed { name, .. } => {
                self.rigs.remove(name);
                self.sources.remove(name);
                self.contested.remove(name);
                let shown = self.beads.values().filter(|e| e.bead.source.as_ref() == Some(name));
                for bead in shown.map(|e| e.bead.id.clone()).collect::<Vec<_>>() {
                    self.vanish(&bead);
                    self.remember(&bead);
                }
                self.touch_rig(name);
                self.touch_town();
                self.rebuild_queue();
            }
            RigEvent::Switched { name, switch, .. } => {
                if let Some(rig) = self.rigs.get_mut(name) {
                    match switch {
                        RigSwitch::Park => rig.parked = true,
                        RigSwitch::Unpark => rig.parked = false,
                        RigSwitch::Dock => rig.docked = true,
                        RigSwitch::Undock => rig.docked = false,
                    }
                }
                self.touch_rig(name);
                self.refresh_contexts_of_rig(name);
            }
        }
    }

    /// The rig a bead belongs to: the one with the longest registered prefix of its id, or the one that a task was given.
    pub fn rig_of(&self, bead: &BeadId) -> Option<&Rig> {
        let text = bead.as_str();
        let mut end = text.len();
        while let Some(hyphen) = text[..end].rfind('-') {
            let prefix = &text[..hyphen];
            if let Some(name) = self.rig_by_prefix.get(prefix) {
                return self.rigs.get(name);
            }
            end = hyphen;
        }
        self.rig_of_task(bead)
    }

    /// The rigs of many beads, one after the other.
    pub fn rigs_of_beads(&self) -> RigsOfBeads<'_> {
        RigsOfBeads { state: self, last: None }
    }

    /// Whether the bead is a town-level coordination artefact that is never dispatched.
    pub fn is_town_level(&self, bead: &BeadId) -> bool {
        bead.as_str().strip_prefix(TOWN_PREFIX).is_some_and(|rest| rest.starts_with('-'))
    }

    /// A rig by name.
    pub fn rig(&self, name: &RigName) -> Option<&Rig> {
        self.rigs.get(name)
    }

    /// All rigs, by name.
    pub fn rigs(&self) -> impl Iterator<Item = &Rig> {
        self.rigs.values()
    }
}

/// Finds the rigs of beads. Beads that come one after the other are mostly of one rig, and then nobody has to look.
#[derive(Debug)]
pub struct RigsOfBeads<'a> {
    state: &'a State,
    /// The last id up to its last hyphen, and the rig that follows from it.
    last: Option<(&'a str, Option<&'a Rig>)>,
}

impl<'a> RigsOfBeads<'a> {
    /// As [`State::rig_of`].
    pub fn of(&mut self, bead: &'a BeadId) -> Option<&'a Rig> {
        let text = bead.as_str();
        let Some(hyphen) = text.rfind('-') else { return self.state.rig_of(bead) };
        let prefix = &text[..hyphen];
        match self.last {
            Some((last, rig)) if last == prefix => rig,
            Some(_) | None => {
                let rig = self.state.rig_of(bead);
                self.last = Some((prefix, rig));
                rig
            }
        }
    }
}
