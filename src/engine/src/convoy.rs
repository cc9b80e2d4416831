//! Convoys: tracked sets of beads. A staged one is inert. An open one that is fed gets each of its beads on the schedule
//! as soon as it is ready. It closes when every bead it tracks is closed, unless its owner looks after it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::money::Usd;
use crate::settings::Merge;
use crate::spending::Budget;
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
    /// The beads: wave by wave as last planned, then those without a wave, then those added later.
    pub tracked: Vec<BeadId>,
    /// How many beads of `tracked` each wave has. For display only: what may start is decided by readiness alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<u32>,
    /// The caller looks after it: it waits for `land`.
    #[serde(default)]
    pub owned: bool,
    /// Merge strategy of its beads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// Base branch of its beads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// Who is told when it is complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watchers: Vec<String>,
    /// When it came to be.
    pub created_at: Timestamp,
    /// Planned, but not launched yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<Staged>,
    /// Since when its beads get on the schedule by themselves, as they become ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fed_since: Option<Timestamp>,
    /// When it was forecast to be done, when it was launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<Timestamp>,
    /// What its beads have cost while it was open.
    #[serde(default, skip_serializing_if = "Usd::is_zero")]
    pub cost: Usd,
    /// When and why it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<ConvoyClosed>,
}

/// How a staged convoy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Staged {
    /// Nothing speaks against it.
    Ready,
    /// Something should be looked at; launching takes `--force`.
    Warnings,
}

impl Convoy {
    /// A convoy of these beads with nothing else said.
    pub fn new(id: ConvoyId, title: String, tracked: Vec<BeadId>, created_at: Timestamp) -> Self {
        Self {
            id,
            title,
            tracked,
            waves: Vec::new(),
            owned: false,
            merge: None,
            base_branch: None,
            watchers: Vec::new(),
            created_at,
            staged: None,
            fed_since: None,
            expected_end: None,
            cost: Usd::ZERO,
            closed: None,
        }
    }

    /// Whether it is under way: neither staged nor closed.
    pub fn is_open(&self) -> bool {
        self.closed.is_none() && self.staged.is_none()
    }

    /// Whether its beads get on the schedule by themselves.
    pub fn is_fed(&self) -> bool {
        self.fed_since.is_some() && self.is_open()
    }

    /// The word for how it stands; a contract with scripts.
    pub fn status(&self) -> &'static str {
        match (&self.closed, self.staged) {
            (Some(_), _) => "closed",
            (None, Some(Staged::Ready)) => "staged:ready",
            (None, Some(Staged::Warnings)) => "staged:warnings",
            (None, None) => "open",
        }
    }

    /// The wave of each bead that has one, as last planned, from 1.
    pub fn wave_numbers(&self) -> BTreeMap<&BeadId, u32> {
        let numbers = self.waves.iter().zip(1_u32..).flat_map(|(size, wave)| (0..*size).map(move |_| wave));
        self.tracked.iter().zip(numbers).collect()
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
    /// It came to be, open.
    #[serde(rename = "convoy.created")]
    Created {
        /// The record.
        convoy: Box<Convoy>,
        /// Who did it.
        actor: String,
    },
    /// It was planned, or planned anew, and waits for its launch.
    #[serde(rename = "convoy.staged")]
    Staged {
        /// The record.
        convoy: Box<Convoy>,
        /// Who did it.
        actor: String,
    },
    /// It goes: from now on its beads are fed.
    #[serde(rename = "convoy.launched")]
    Launched {
        /// Which convoy.
        id: ConvoyId,
        /// Its beads, as planned at launch.
        tracked: Vec<BeadId>,
        /// How many of them each wave has.
        waves: Vec<u32>,
        /// When it is forecast to be done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected_end: Option<Timestamp>,
        /// Who did it.
        actor: String,
    },
    /// More beads joined.
    #[serde(rename = "convoy.added")]
    Added {
        /// Which convoy.
        id: ConvoyId,
        /// The new ones.
        beads: Vec<BeadId>,
        /// Who did it.
        actor: String,
    },
    /// It was closed and is open again.
    #[serde(rename = "convoy.reopened")]
    Reopened {
        /// Which convoy.
        id: ConvoyId,
        /// Who did it.
        actor: String,
    },
    /// Somebody wants to be told of its end, or no longer.
    #[serde(rename = "convoy.watched")]
    Watched {
        /// Which convoy.
        id: ConvoyId,
        /// Who.
        watcher: String,
        /// Whether he wants to.
        wants: bool,
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

impl ConvoyEvent {
    /// The convoy this is about.
    pub fn convoy(&self) -> &ConvoyId {
        match self {
            Self::Created { convoy, .. } | Self::Staged { convoy, .. } => &convoy.id,
            Self::Launched { id, .. }
            | Self::Added { id, .. }
            | Self::Reopened { id, .. }
            | Self::Watched { id, .. }
            | Self::Closed { id, .. } => id,
        }
    }
}

impl State {
    pub(crate) fn apply_convoy(&mut self, event: &ConvoyEvent, at: Timestamp) {
        let id = event.convoy().clone();
        let before = self.fed_beads(&id);
        let kept_back = self.beads_kept_back(&id);
        self.untrack(&id);
        match event {
            ConvoyEvent::Created { convoy, .. } | ConvoyEvent::Staged { convoy, .. } => {
                self.convoys.insert(id.clone(), Convoy::clone(convoy));
            }
            ConvoyEvent::Launched { tracked, waves, expected_end, .. } => self.change_convoy(&id, |convoy| {
                convoy.tracked.clone_from(tracked);
                convoy.waves.clone_from(waves);
                convoy.expected_end = *expected_end;
                convoy.staged = None;
                convoy.fed_since = Some(at);
            }),
            ConvoyEvent::Added { beads, .. } => {
                self.change_convoy(&id, |convoy| convoy.tracked.extend(beads.iter().cloned()));
            }
            ConvoyEvent::Reopened { .. } => self.change_convoy(&id, |convoy| convoy.closed = None),
            ConvoyEvent::Watched { watcher, wants, .. } => self.change_convoy(&id, |convoy| {
                convoy.watchers.retain(|known| known != watcher);
                if *wants {
                    convoy.watchers.push(watcher.clone());
                }
            }),
            ConvoyEvent::Closed { reason, .. } => self.change_convoy(&id, |convoy| {
                convoy.closed = Some(ConvoyClosed { at, reason: reason.clone() });
            }),
        }
        self.track(&id);
        self.touch_convoy(&id);
        for bead in before.iter().chain(&self.fed_beads(&id)) {
            self.refresh_hunger(bead);
        }
        for bead in kept_back.iter().chain(&self.beads_kept_back(&id)) {
            self.refresh_bead(bead);
        }
    }

    /// The beads that wait because this convoy may spend nothing more.
    fn beads_kept_back(&self, id: &ConvoyId) -> Vec<BeadId> {
        let open = self.convoys.get(id).filter(|convoy| convoy.is_open());
        let spent = open.filter(|_| self.is_spent(&Budget::Convoy(id.clone())));
        spent.map(|convoy| convoy.tracked.clone()).unwrap_or_default()
    }

    /// The beads that a convoy feeds, and where all that is ready is offered also those that it keeps back.
    fn fed_beads(&self, id: &ConvoyId) -> Vec<BeadId> {
        let keeps_back = self.offers_all_that_is_ready();
        let fed = self.convoys.get(id).filter(|convoy| convoy.is_fed() || keeps_back);
        fed.map(|convoy| convoy.tracked.clone()).unwrap_or_default()
    }

    fn change_convoy(&mut self, id: &ConvoyId, change: impl FnOnce(&mut Convoy)) {
        if let Some(convoy) = self.convoys.get_mut(id) {
            change(convoy);
        }
    }

    /// Puts a convoy into the indexes.
    pub(crate) fn track(&mut self, id: &ConvoyId) {
        let Some(convoy) = self.convoys.get(id) else { return };
        let is_closed = convoy.closed.is_some();
        let mut open = 0;
        // All are found before anything is done with one: the look-ups wait for memory, and so many wait at once.
        let numbers: Vec<Option<u32>> = convoy.tracked.iter().map(|bead| self.beads.number(bead)).collect();
        for (bead, number) in convoy.tracked.iter().zip(numbers) {
            let number = number.unwrap_or_else(|| self.beads.give_number(bead));
            self.tracking.add(number, id);
            open += usize::from(!self.beads.is_closed_at(number));
        }
        if !is_closed {
            self.convoy_open_beads.insert(id.clone(), open);
        }
    }

    /// Forgets a convoy for good.
    pub(crate) fn forget_convoy(&mut self, id: &ConvoyId) {
        self.untrack(id);
        self.convoys.remove(id);
        self.touch_convoy(id);
    }

    /// Takes a convoy out of the indexes.
    fn untrack(&mut self, id: &ConvoyId) {
        let Some(convoy) = self.convoys.get(id) else { return };
        for bead in &convoy.tracked {
            if let Some(number) = self.beads.number(bead) {
                self.tracking.remove(number, id);
            }
        }
        self.convoy_open_beads.remove(id);
    }

    /// A tracked bead closed or reopened: keeps each convoy's count of open beads.
    pub(crate) fn recount_convoys(&mut self, bead: &BeadId, is_closed: bool) {
        for convoy in self.tracking.of(self.beads.number(bead)) {
            if let Some(open) = self.convoy_open_beads.get_mut(convoy) {
                *open = if is_closed { open.saturating_sub(1) } else { *open + 1 };
            }
        }
    }

    /// How many beads of a convoy that is not closed are not closed yet.
    pub fn open_beads_of(&self, convoy: &ConvoyId) -> usize {
        self.convoy_open_beads.get(convoy).copied().unwrap_or(0)
    }

    /// The convoys that track a bead and are not closed, staged ones included, by id.
    pub(crate) fn all_convoys_tracking(&self, bead: &BeadId) -> impl Iterator<Item = &Convoy> {
        let ids = self.tracking.of(self.beads.number(bead));
        ids.filter_map(|id| self.convoys.get(id)).filter(|convoy| convoy.closed.is_none())
    }

    /// The open convoys that track a bead, by id.
    pub fn convoys_tracking(&self, bead: &BeadId) -> impl Iterator<Item = &Convoy> {
        self.all_convoys_tracking(bead).filter(|convoy| convoy.is_open())
    }

    /// Whether only staged convoys track a bead.
    pub(crate) fn is_only_staged(&self, bead: &BeadId) -> bool {
        let mut any = false;
        let all = self.all_convoys_tracking(bead).all(|convoy| {
            any = true;
            convoy.staged.is_some()
        });
        any && all
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
