//! What can happen to a bead, and what follows from it for the graph and the schedule.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Bead, BeadEntry, BeadStatus, Dependency, Work, bead_kind};
use crate::state::State;
use crate::{BeadId, Timestamp};

/// A change to a native bead's fields; absent means unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BeadChange {
    /// New title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// New description; empty clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// New type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// New status, other than closing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<BeadStatus>,
    /// New priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// New assignee; empty clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// New labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
}

/// What can happen to a bead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum BeadEvent {
    /// It came to be, or was imported.
    #[serde(rename = "bead.added")]
    Added {
        /// The record.
        bead: Arc<Bead>,
        /// Who did it.
        actor: String,
    },
    /// Fields changed.
    #[serde(rename = "bead.updated")]
    Updated {
        /// Which bead.
        id: BeadId,
        /// What changed.
        change: Box<BeadChange>,
        /// Who did it.
        actor: String,
    },
    /// It is done.
    #[serde(rename = "bead.closed")]
    Closed {
        /// Which bead.
        id: BeadId,
        /// Why.
        reason: String,
        /// Who did it: a person, the dispatch whose worker succeeded, or the workspace that shows it.
        actor: String,
        /// When its tracker closed it; otherwise now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        closed_at: Option<Timestamp>,
    },
    /// Its workspace shows it anew or changed.
    #[serde(rename = "bead.observed")]
    Observed {
        /// The record.
        bead: Arc<Bead>,
    },
    /// Its workspace shows it no longer.
    #[serde(rename = "bead.vanished")]
    Vanished {
        /// Which bead.
        id: BeadId,
    },
    /// It is to be done again.
    #[serde(rename = "bead.reopened")]
    Reopened {
        /// Which bead.
        id: BeadId,
        /// Who did it.
        actor: String,
    },
    /// It came to depend on another.
    #[serde(rename = "bead.dependency_added")]
    DependencyAdded {
        /// The holder.
        id: BeadId,
        /// The edge.
        dependency: Dependency,
        /// Who did it.
        actor: String,
    },
    /// It depends on another no longer.
    #[serde(rename = "bead.dependency_removed")]
    DependencyRemoved {
        /// The holder.
        id: BeadId,
        /// The other end.
        on: BeadId,
        /// Who did it.
        actor: String,
    },
}

impl BeadEvent {
    /// The bead this is about.
    pub fn bead(&self) -> &BeadId {
        match self {
            Self::Added { bead, .. } | Self::Observed { bead } => &bead.id,
            Self::Vanished { id }
            | Self::Updated { id, .. }
            | Self::Closed { id, .. }
            | Self::Reopened { id, .. }
            | Self::DependencyAdded { id, .. }
            | Self::DependencyRemoved { id, .. } => id,
        }
    }
}

impl State {
    pub(crate) fn apply_bead(&mut self, event: &BeadEvent, at: Timestamp) {
        let id = event.bead().clone();
        match event {
            BeadEvent::Added { bead, .. } | BeadEvent::Observed { bead } => self.put_bead(bead),
            BeadEvent::Vanished { .. } => self.vanish(&id),
            BeadEvent::Updated { change, .. } => {
                let was_closed = self.is_closed(&id);
                self.change_bead(&id, change);
                self.beads.note_change(&id);
                self.closing_changed(&id, was_closed);
            }
            BeadEvent::Closed { reason, closed_at, .. } => {
                let was_closed = self.is_closed(&id);
                if let Some(bead) = self.beads.record_mut(&id) {
                    bead.status = BeadStatus::Closed;
                    bead.closed_at = Some(closed_at.unwrap_or(at));
                    bead.close_reason = Some(reason.clone()).filter(|text| !text.is_empty());
                }
                self.beads.note_change(&id);
                self.set_verdict(&id, None);
                self.closing_changed(&id, was_closed);
            }
            BeadEvent::Reopened { .. } => {
                let was_closed = self.is_closed(&id);
                if let Some(bead) = self.beads.record_mut(&id) {
                    bead.status = BeadStatus::Open;
                    bead.closed_at = None;
                    bead.close_reason = None;
                }
                self.beads.note_change(&id);
                self.set_verdict(&id, None);
                self.closing_changed(&id, was_closed);
            }
            BeadEvent::DependencyAdded { dependency, .. } => {
                if let Some(bead) = self.beads.record_mut(&id) {
                    bead.dependencies.retain(|d| d.on != dependency.on);
                    bead.dependencies.push(dependency.clone());
                }
                self.beads.note_change(&id);
                self.edge_removed(&id, &dependency.on);
                if let Some(number) = self.beads.number(&id) {
                    self.index_edges(number);
                }
                self.watch_for_cycles(&id);
                self.recount_blockers(&id);
            }
            BeadEvent::DependencyRemoved { on, .. } => {
                if let Some(bead) = self.beads.record_mut(&id) {
                    bead.dependencies.retain(|d| d.on != *on);
                }
                self.beads.note_change(&id);
                self.edge_removed(&id, on);
                self.recount_blockers(&id);
            }
        }
        if self.note_claim(&id, at) {
            // Whose it is decides whether it may start.
            self.refresh_bead(&id);
        }
        self.note_hands(&id);
        self.remember(&id);
    }

    /// Takes a bead's record over, new or in place of the old one, whose history it keeps.
    fn put_bead(&mut self, bead: &Arc<Bead>) {
        let id = bead.id.clone();
        let was_closed = self.is_closed(&id);
        let (mut work, mut claim) = (Work::default(), (None, false, None));
        let mut edges_changed = true;
        if let Some(old) = self.beads.remove(&id) {
            edges_changed = old.bead.dependencies != bead.dependencies;
            for edge in &old.bead.dependencies {
                self.edge_removed(&id, &edge.on);
            }
            self.unset_alarm(&old.bead);
            (work, claim) = (old.work, (old.claimed_since, old.claimed_by_worker, old.claimed_for));
        } else if let Some(old) = self.gone.remove(&id) {
            work = old.work;
        }
        if let Some(until) = bead.defer_until.filter(|until| *until > self.clock) {
            self.alarms.insert((until, id.clone()));
        }
        let arrives_closed = bead.is_closed();
        let verdict = work.verdict.filter(|_| !arrives_closed);
        if let (Some(due), false) = (work.close_by, arrives_closed) {
            self.awaited_closes.insert((due, id.clone()));
        }
        let (claimed_since, claimed_by_worker, claimed_for) = claim;
        let number = self.beads.insert(BeadEntry {
            bead: Arc::clone(bead),
            work,
            claimed_since,
            claimed_by_worker,
            claimed_for,
            gone: false,
            open_blockers: 0,
            blocked: false,
        });
        self.index_edges(number);
        match verdict {
            Some(verdict) => {
                self.settled.insert(id.clone(), verdict);
            }
            None => self.set_verdict(&id, None),
        }
        if edges_changed {
            self.watch_for_cycles(&id);
        }
        self.set_open_blockers(&id);
        self.closing_changed(&id, was_closed);
        if self.dependents.has(&self.beads, number, number) {
            // It waits for itself: its own arrival was counted above, and again among its dependents.
            self.recount_blockers(&id);
        }
    }

    /// A bead is nobody's any more: whoever depends on it waits for a bead that nobody has.
    pub(crate) fn vanish(&mut self, id: &BeadId) {
        let was_closed = self.is_closed(id);
        let Some(mut entry) = self.beads.remove(id) else { return };
        for edge in &entry.bead.dependencies {
            self.edge_removed(id, &edge.on);
        }
        self.unset_alarm(&entry.bead);
        self.settled.remove(id);
        if let Some(due) = entry.work.close_by {
            self.awaited_closes.remove(&(due, id.clone()));
        }
        entry.gone = true;
        (entry.open_blockers, entry.blocked) = (0, false);
        (entry.claimed_since, entry.claimed_by_worker, entry.claimed_for) = (None, false, None);
        self.gone.insert(entry);
        self.note_hands(id);
        self.closing_changed(id, was_closed);
        self.free_id(id);
    }

    fn unset_alarm(&mut self, bead: &Bead) {
        if let Some(until) = bead.defer_until {
            self.alarms.remove(&(until, bead.id.clone()));
        }
    }

    /// Notes since when somebody is on a bead, and whether that is part of a claim of ours; says whether the latter changed.
    fn note_claim(&mut self, id: &BeadId, at: Timestamp) -> bool {
        let Some(entry) = self.beads.get_mut(id) else { return false };
        let before = (entry.claimed_by_worker, entry.claimed_for.clone());
        let claimed = matches!(entry.bead.status, BeadStatus::InProgress | BeadStatus::Hooked);
        if !claimed || entry.claimed_since.is_none() {
            entry.claimed_by_worker = claimed && entry.work.live.is_some();
        }
        entry.claimed_since = claimed.then(|| entry.claimed_since.unwrap_or(at));
        let by_agent = [entry.claimed_for.take(), entry.work.holder.clone()].into_iter().flatten();
        let assignee = entry.bead.assignee.as_deref().filter(|_| claimed);
        entry.claimed_for = by_agent.into_iter().find(|agent| assignee == Some(agent.as_str()));
        before != (entry.claimed_by_worker, entry.claimed_for.clone())
    }

    fn change_bead(&mut self, id: &BeadId, change: &BeadChange) {
        let Some(bead) = self.beads.record_mut(id) else { return };
        let or_none = |text: &String| Some(text.clone()).filter(|t| !t.is_empty());
        if let Some(title) = &change.title {
            bead.title.clone_from(title);
        }
        if let Some(description) = &change.description {
            bead.description = or_none(description);
        }
        if let Some(kind) = &change.kind {
            bead.kind = bead_kind(kind);
        }
        if let Some(status) = &change.status {
            bead.status = status.clone();
        }
        if let Some(priority) = change.priority {
            bead.priority = priority;
        }
        if let Some(assignee) = &change.assignee {
            bead.assignee = or_none(assignee);
        }
        if let Some(labels) = &change.labels {
            bead.labels.clone_from(labels);
        }
    }
}
