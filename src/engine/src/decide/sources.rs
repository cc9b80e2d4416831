//! Taking over what a rig's workspace shows. Each difference from what the log last recorded is one event, so a close
//! is seen exactly once, however often and by whomever the workspace is read.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Asker;
use super::alerts::{Condition, bead_key};
use crate::alert::AlertKind;
use crate::bead::{Bead, BeadEvent, BeadStatus};
use crate::context::{CloseReason, Context};
use crate::readiness::list;
use crate::source::SourceReading;
use crate::state::State;
use crate::town::TownEvent;
use crate::tx::Tx;
use crate::{BeadId, RigName};

impl Tx<'_> {
    /// Records what a reading shows that the state does not have yet.
    pub fn source_read(&mut self, reading: &SourceReading) {
        let rig = &reading.rig;
        // The rig may have been removed, or become another, while its workspace was read.
        if self.state().rig(rig).is_none_or(|rig| rig.source.is_none()) {
            return;
        }
        let vanished = self.disappeared(reading);
        let taken = self.observe_all(reading);
        for id in &vanished {
            self.emit(BeadEvent::Vanished { id: id.clone() });
            let actor = actor_of(rig);
            self.close_stale_context(&Asker { actor: &actor, kitchen: &super::Kitchen::default() }, id);
            self.end_alerts_about(id);
        }
        self.tell_vanished(rig, &vanished);
        let contested = self.contested(reading, taken);
        self.tell_conflicts(rig, &contested);
        self.tell_trouble(reading);
        let state = self.state();
        let told = state.source_stamp(rig) == Some(&reading.stamp)
            && contested.iter().eq(state.contested.get(rig).into_iter().flatten());
        // What must be read anew is not known by what changed in it.
        if !told && (reading.whole || !state.must_be_read_anew(rig)) {
            let (rig, stamp) = (rig.clone(), reading.stamp.clone());
            self.emit(TownEvent::SourceRead { rig, stamp, contested: contested.into_iter().collect() });
        }
    }

    /// All beads that the workspace shows and that belong to somebody else, if those in `taken` do of the reading's.
    fn contested(&self, reading: &SourceReading, mut taken: BTreeSet<BeadId>) -> BTreeSet<BeadId> {
        if !(reading.whole && reading.vanished) {
            taken.extend(self.state().contested.get(&reading.rig).into_iter().flatten().cloned());
            for gone in &reading.gone {
                taken.remove(gone);
            }
        }
        taken
    }

    /// The beads as their workspace shows them, except those that belong to somebody else already, whose ids it answers
    /// with. A first reading is taken over as a whole.
    fn observe_all(&mut self, reading: &SourceReading) -> BTreeSet<BeadId> {
        if self.state().are_unheard_of(&reading.beads) {
            self.observe_arrivals(&reading.beads);
            return BTreeSet::new();
        }
        let theirs = |bead: &&Arc<Bead>| {
            let known = self.state().bead(&bead.id);
            known.is_some_and(|entry| entry.bead.source.as_ref() != Some(&reading.rig))
        };
        let taken: BTreeSet<BeadId> =
            reading.beads.iter().filter(theirs).map(|bead| bead.id.clone()).collect();
        let shown = reading.beads.iter().filter(|bead| !taken.contains(&bead.id));
        let shown: Vec<Arc<Bead>> = shown.cloned().collect();
        if self.state().are_unheard_of(&shown) {
            self.observe_arrivals(&shown);
        } else {
            for bead in &shown {
                self.observe(&reading.rig, bead);
            }
        }
        taken
    }

    /// Beads of which nobody has heard.
    fn observe_arrivals(&mut self, beads: &[Arc<Bead>]) {
        self.emit_arrivals(beads);
        if !self.state().alerts.is_empty() {
            for bead in beads.iter().filter(|bead| bead.is_closed()) {
                self.end_alert(&bead_key(&bead.id));
            }
        }
    }

    /// One bead as its workspace shows it.
    fn observe(&mut self, rig: &RigName, bead: &Arc<Bead>) {
        let (id, actor) = (&bead.id, actor_of(rig));
        let Some(old) = self.state().bead(id).map(|entry| &entry.bead) else {
            let dropped = self.state().dropped_when_vanished(id).cloned();
            self.emit(BeadEvent::Observed { bead: Arc::clone(bead) });
            if let Some(context) = dropped.filter(|_| !bead.is_closed()) {
                // It was on the schedule when it vanished, and so it is again.
                self.open_successor(&actor, context);
            }
            return self.follow_observation(bead, &actor);
        };
        if old == bead {
            return;
        }
        let was_closed = old.is_closed();
        if bead.status == BeadStatus::Closed && !was_closed {
            let reason = bead.close_reason.clone().unwrap_or_default();
            let (id, actor, closed_at) = (id.clone(), actor.clone(), bead.closed_at);
            self.emit(BeadEvent::Closed { id, reason, actor, closed_at });
        } else if !bead.is_closed() && was_closed {
            self.emit(BeadEvent::Reopened { id: id.clone(), actor: actor.clone() });
        }
        if self.state().bead(id).is_none_or(|entry| entry.bead != *bead) {
            self.emit(BeadEvent::Observed { bead: Arc::clone(bead) });
        }
        if let Some(assignee) = &bead.assignee {
            // Whoever works in its tracker is alive.
            self.agent_called(assignee);
        }
        self.follow_observation(bead, &actor);
    }

    fn follow_observation(&mut self, bead: &Bead, actor: &str) {
        if bead.is_closed() {
            self.follow_close(&bead.id, actor);
        } else {
            self.close_stale_context(&Asker { actor, kitchen: &super::Kitchen::default() }, &bead.id);
        }
    }

    /// The beads that the workspace certainly shows no longer. Closed ones that were tidied away stay closed: whoever
    /// waited for them need not wait again.
    fn disappeared(&self, reading: &SourceReading) -> Vec<BeadId> {
        let of_rig =
            |id: &&BeadId| !self.state().is_closed(id) && self.state().shows(id) == Some(&reading.rig);
        if !(reading.whole && reading.vanished) {
            return reading.gone.iter().filter(of_rig).cloned().collect();
        }
        let mut known: Vec<&BeadId> = self.state().beads.keys().filter(of_rig).collect();
        if !known.is_empty() {
            let shown: BTreeSet<&BeadId> = reading.beads.iter().map(|bead| &bead.id).collect();
            known.retain(|id| !shown.contains(id));
        }
        known.into_iter().cloned().collect()
    }

    /// Tells a person of beads that are missed, once, until they are back.
    fn tell_vanished(&mut self, rig: &RigName, vanished: &[BeadId]) {
        let key = format!("vanished:{rig}");
        let told = self.state().alert_of(&key).and_then(|id| self.state().alerts.get(id));
        let back = |id: &String| self.state().beads.contains_key(id.as_str());
        if told.is_some_and(|alert| alert.ids.iter().all(back)) {
            self.end_alert(&key);
        }
        let missed: Vec<BeadId> = vanished.iter().filter(|id| self.state().is_missed(id)).cloned().collect();
        if missed.is_empty() {
            return;
        }
        let message = format!(
            "the workspace of rig {rig} shows these beads no longer, which are wanted: {}; they go on where they were \
             when they come back",
            list(&missed)
        );
        let ids = missed.iter().map(ToString::to_string).collect();
        self.raise(Condition { key, kind: AlertKind::Source, message, ids, watchers: Vec::new() });
    }

    /// Two owners of one id: the first keeps it, and a person is told, anew if it is about others.
    fn tell_conflicts(&mut self, rig: &RigName, contested: &BTreeSet<BeadId>) {
        let key = format!("source-conflict:{rig}");
        let told = self.state().alert_of(&key).and_then(|id| self.state().alerts.get(id));
        if told.is_some_and(|alert| !alert.ids.iter().eq(contested.iter().map(BeadId::as_str))) {
            self.end_alert(&key);
        }
        if contested.is_empty() {
            return;
        }
        let message = format!(
            "the workspace of rig {rig} has beads that belong to somebody else already: {}; \
             they are left as they are",
            list(&contested.iter().cloned().collect::<Vec<_>>())
        );
        let ids = contested.iter().map(ToString::to_string).collect();
        let kind = AlertKind::SourceConflict;
        self.raise(Condition { key, kind, message, ids, watchers: Vec::new() });
    }

    /// One alert while a workspace cannot be read as a whole, whatever is wrong with it.
    fn tell_trouble(&mut self, reading: &SourceReading) {
        let key = format!("source:{}", reading.rig);
        let Some(trouble) = &reading.trouble else { return self.end_alert(&key) };
        let message = format!(
            "rig {}: {trouble}; what can be read is taken over, the rest stays as it was",
            reading.rig
        );
        let ids = vec![reading.rig.to_string()];
        self.raise(Condition { key, kind: AlertKind::Source, message, ids, watchers: Vec::new() });
    }
}

impl State {
    /// Whether anybody would miss a bead that vanished: it was asked for, or somebody waits for it.
    fn is_missed(&self, id: &BeadId) -> bool {
        let asked =
            self.work(id).is_some_and(|work| work.live.is_some()) || self.dropped_when_vanished(id).is_some();
        let waited_for = self.dependents_of(id).any(|bead| !self.is_closed(bead));
        asked || waited_for || self.all_convoys_tracking(id).next().is_some()
    }

    /// The context that a bead lost by vanishing.
    fn dropped_when_vanished(&self, id: &BeadId) -> Option<&Context> {
        let work = &self.gone.get(id)?.work;
        let last = self.context(work.last_context.as_ref()?)?;
        let stale = last.closed.as_ref().is_some_and(|closed| closed.reason == CloseReason::StaleWorkBead);
        (stale && work.verdict.is_none() && work.context.is_none() && work.live.is_none()).then_some(last)
    }
}

/// Who is named as having done what a workspace shows.
fn actor_of(rig: &RigName) -> String {
    format!("beads:{rig}")
}
