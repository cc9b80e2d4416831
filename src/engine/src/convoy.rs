//! Convoys: tracked sets of beads. A convoy is complete, and closes, when every bead it tracks is closed.

use serde::{Deserialize, Serialize};

use crate::settings::Merge;
use crate::state::State;
use crate::{BeadId, ConvoyId, Timestamp};

/// The prefix of every convoy id.
pub const CONVOY_PREFIX: &str = "hq-cv-";

/// A tracked set of beads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Convoy {
    /// `hq-cv-` and five characters.
    pub id: ConvoyId,
    /// What it is about.
    pub title: String,
    /// The beads, in the order they were added.
    pub tracked: Vec<BeadId>,
    /// The caller looks after it.
    #[serde(default)]
    pub owned: bool,
    /// Merge strategy of its beads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// When it came to be.
    pub created_at: Timestamp,
    /// When and why it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<ConvoyClosed>,
}

impl Convoy {
    /// Whether it still tracks work.
    pub fn is_open(&self) -> bool {
        self.closed.is_none()
    }
}

/// When and why a convoy closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvoyClosed {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
}

/// What can happen to a convoy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ConvoyEvent {
    /// It came to be.
    #[serde(rename = "convoy.created")]
    Created {
        /// The record.
        convoy: Box<Convoy>,
        /// Who did it.
        actor: String,
    },
    /// All its beads are closed, or a person closed it.
    #[serde(rename = "convoy.closed")]
    Closed {
        /// Which convoy.
        id: ConvoyId,
        /// Why.
        reason: String,
        /// Who did it.
        actor: String,
    },
}

impl State {
    pub(crate) fn apply_convoy(&mut self, event: &ConvoyEvent, at: Timestamp) {
        match event {
            ConvoyEvent::Created { convoy, .. } => {
                let convoy = Convoy::clone(convoy);
                self.track(&convoy);
                self.touch_convoy(&convoy.id);
                self.convoys.insert(convoy.id.clone(), convoy);
            }
            ConvoyEvent::Closed { id, reason, .. } => {
                if let Some(convoy) = self.convoys.get_mut(id) {
                    convoy.closed = Some(ConvoyClosed { at, reason: reason.clone() });
                    for bead in convoy.tracked.clone() {
                        self.untrack(&bead, id);
                    }
                    self.convoy_open_beads.remove(id);
                }
                self.touch_convoy(id);
            }
        }
    }

    pub(crate) fn track(&mut self, convoy: &Convoy) {
        if convoy.is_open() {
            for bead in &convoy.tracked {
                self.tracking.entry(bead.clone()).or_default().insert(convoy.id.clone());
            }
            let open = convoy.tracked.iter().filter(|bead| !self.is_closed(bead)).count();
            self.convoy_open_beads.insert(convoy.id.clone(), open);
        }
    }

    /// A tracked bead closed or reopened: keeps each convoy's count of open beads.
    pub(crate) fn recount_convoys(&mut self, bead: &BeadId, is_closed: bool) {
        for convoy in self.tracking.get(bead).into_iter().flatten() {
            if let Some(open) = self.convoy_open_beads.get_mut(convoy) {
                *open = if is_closed { open.saturating_sub(1) } else { *open + 1 };
            }
        }
    }

    /// How many beads of an open convoy are not closed yet.
    pub fn open_beads_of(&self, convoy: &ConvoyId) -> usize {
        self.convoy_open_beads.get(convoy).copied().unwrap_or(0)
    }

    fn untrack(&mut self, bead: &BeadId, convoy: &ConvoyId) {
        if let Some(convoys) = self.tracking.get_mut(bead) {
            convoys.remove(convoy);
            if convoys.is_empty() {
                self.tracking.remove(bead);
            }
        }
    }

    /// The open convoys that track a bead.
    pub fn convoys_tracking(&self, bead: &BeadId) -> impl Iterator<Item = &Convoy> {
        let ids = self.tracking.get(bead).into_iter().flatten();
        ids.filter_map(|id| self.convoys.get(id))
    }

    /// A convoy by id.
    pub fn convoy(&self, id: &ConvoyId) -> Option<&Convoy> {
        self.convoys.get(id)
    }

    /// All convoys, by id.
    pub fn convoys(&self) -> impl Iterator<Item = &Convoy> {
        self.convoys.values()
    }
}
