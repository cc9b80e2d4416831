//! What is known about agents at a glance: who is free, who has which orders, claims and beads in hand, and when something
//! about one becomes due. All of it follows from the records.

use std::collections::{BTreeMap, BTreeSet};

use super::{AgentState, Offers};
use crate::bead::BeadStatus;
use crate::queue::OrderKey;
use crate::state::State;
use crate::watch::Looks;
use crate::{AgentName, BeadId, ContextId, DispatchId};

/// Fewest orders first, then the one served longest ago.
pub(crate) type FreeKey = (u64, u64, u64, AgentName);

/// The indexes of agents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Roster {
    pub(crate) offers: Offers,
    /// Those to whom an order can be sent.
    pub(crate) free: BTreeSet<FreeKey>,
    /// Their places among the free.
    places: BTreeMap<AgentName, FreeKey>,
    /// Orders that are not claimed yet.
    pub(crate) ordered: BTreeMap<AgentName, BTreeSet<ContextId>>,
    /// Live claims.
    pub(crate) held: BTreeMap<AgentName, BTreeSet<DispatchId>>,
    /// What sources show in progress.
    pub(crate) hands: Hands,
    /// Whose track a bead belongs to.
    pub(crate) track_of: BTreeMap<BeadId, AgentName>,
    /// When something about an agent becomes due.
    pub(crate) looks: Looks<AgentName>,
    /// Of whom the hook has not been told everything.
    pub(crate) untold: BTreeSet<AgentName>,
}

impl Roster {
    fn set_free(&mut self, name: &AgentName, key: Option<FreeKey>) {
        if self.places.get(name) == key.as_ref() {
            return;
        }
        if let Some(old) = self.places.remove(name) {
            self.free.remove(&old);
        }
        if let Some(key) = key {
            self.free.insert(key.clone());
            self.places.insert(name.clone(), key);
        }
    }

    pub(crate) fn is_free(&self, name: &AgentName) -> bool {
        self.places.contains_key(name)
    }

    /// Where a free agent stands among the free.
    pub(crate) fn place(&self, name: &AgentName) -> Option<&FreeKey> {
        self.places.get(name)
    }
}

/// Beads in progress, by the names they are in progress under.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hands {
    by_name: BTreeMap<String, BTreeSet<BeadId>>,
    by_bead: BTreeMap<BeadId, String>,
}

impl Hands {
    /// The beads in progress under a name.
    pub(crate) fn of(&self, name: &str) -> impl Iterator<Item = &BeadId> {
        self.by_name.get(name).into_iter().flatten()
    }

    /// Notes who has a bead in hand; answers with who had it before.
    fn set(&mut self, bead: &BeadId, name: Option<&str>) -> Option<String> {
        if self.by_bead.get(bead).map(String::as_str) == name {
            return None;
        }
        let before = self.by_bead.remove(bead);
        if let Some(before) = &before
            && let Some(beads) = self.by_name.get_mut(before)
        {
            beads.remove(bead);
            if beads.is_empty() {
                self.by_name.remove(before);
            }
        }
        if let Some(name) = name {
            self.by_bead.insert(bead.clone(), name.to_owned());
            self.by_name.entry(name.to_owned()).or_default().insert(bead.clone());
        }
        before
    }
}

impl State {
    /// Brings everything that follows from an agent's record and work up to date.
    pub(crate) fn refresh_agent(&mut self, name: &AgentName) {
        let Some(agent) = self.agents.get(name) else {
            self.roster.set_free(name, None);
            self.roster.looks.set(name, None);
            self.roster.untold.remove(name);
            return;
        };
        let (state, look, clock) =
            (self.derive_agent_state(agent), self.derive_agent_look(agent), self.clock);
        let has_order = self.roster.ordered.contains_key(name);
        let counts = &agent.counts;
        let key = (counts.ordered, counts.last_order, agent.order, name.clone());
        self.roster.set_free(name, Some(key).filter(|_| state == AgentState::Idle && !has_order));
        self.roster.looks.set(name, look);
        if let Some(agent) = self.agents.get_mut(name).filter(|agent| agent.state != state) {
            (agent.counts.idle, agent.counts.working) = agent.times(clock);
            (agent.state, agent.since) = (state, clock);
            self.touch_agent(name);
        }
    }

    /// The same for whoever may be an agent.
    fn refresh_agent_called(&mut self, name: &str) {
        if let Some(agent) = self.agents.get(name) {
            let name = agent.name().clone();
            self.refresh_agent(&name);
        }
    }

    /// Notes under whose name a bead is in progress, after something about it changed.
    pub(crate) fn note_hands(&mut self, bead: &BeadId) {
        let entry = self.beads.get(bead);
        let claimed = entry.filter(|e| matches!(e.bead.status, BeadStatus::InProgress | BeadStatus::Hooked));
        let name = claimed.and_then(|entry| entry.bead.assignee.clone());
        let open = entry.is_some_and(|entry| !entry.bead.is_closed());
        let before = self.roster.hands.set(bead, name.as_deref());
        for name in before.iter().chain(&name) {
            self.refresh_agent_called(name);
        }
        if !open {
            self.leave_track(bead);
        }
    }

    /// A closed bead belongs to no track.
    fn leave_track(&mut self, bead: &BeadId) {
        if let Some(owner) = self.roster.track_of.remove(bead)
            && let Some(agent) = self.agents.get_mut(&owner)
        {
            agent.track.remove(bead);
            self.touch_agent(&owner);
        }
    }

    /// Whom a context waits for by name: as it was asked for, or because its track is somebody's.
    pub(crate) fn offered_to(&self, context: &crate::context::Context) -> Option<AgentName> {
        let named = context.assign.as_ref().and_then(|assign| assign.to.clone());
        named.or_else(|| self.track_owner(context.bead()).cloned())
    }

    /// Whose track a bead belongs to, if that agent is there.
    pub(crate) fn track_owner(&self, bead: &BeadId) -> Option<&AgentName> {
        let owner = self.roster.track_of.get(bead).filter(|_| self.settings.agents.tracks)?;
        self.agents.get(owner).filter(|agent| agent.is_there()).map(|_| owner)
    }

    /// Lines a context up for an agent, or takes it out, according to the one readiness function.
    pub(crate) fn refresh_offer(&mut self, id: &ContextId) {
        let Some(context) = self.context(id) else { return };
        if context.sent.is_none() && self.could_start(context) {
            let key = OrderKey::of(context, &self.settings, self.clock);
            let to = self.offered_to(context);
            self.roster.offers.insert(id, to, key);
        } else {
            self.roster.offers.remove(id);
        }
    }

    /// Whoever owns tracks came or went: what waits for them waits for somebody else, or the other way round.
    pub(crate) fn refresh_track_of(&mut self, name: &AgentName) {
        let beads = self.agents.get(name).map(|agent| agent.track.clone()).unwrap_or_default();
        for bead in beads {
            if let Some(context) = self.work(&bead).and_then(|work| work.context.clone()) {
                self.refresh_context(&context);
            }
        }
    }

    /// Who has which bead in hand, from scratch.
    pub(crate) fn rebuild_hands(&mut self) {
        self.roster.hands = Hands::default();
        let claimed = self.beads.awake().filter(|entry| entry.claimed_since.is_some());
        for bead in claimed.map(|entry| entry.bead.id.clone()).collect::<Vec<_>>() {
            self.note_hands(&bead);
        }
    }

    /// The other indexes, from scratch, but for the offers, which follow with the contexts.
    pub(crate) fn rebuild_roster(&mut self) {
        let hands = std::mem::take(&mut self.roster.hands);
        self.roster = Roster { hands, ..Roster::default() };
        for context in self.contexts.values().filter(|context| context.is_open()) {
            if let Some(order) = &context.sent {
                self.roster.ordered.entry(order.agent.clone()).or_default().insert(context.id.clone());
            }
        }
        for dispatch in self.dispatches.values().filter(|dispatch| dispatch.is_live()) {
            if let Some(claim) = &dispatch.claim {
                self.roster.held.entry(claim.agent.clone()).or_default().insert(dispatch.id.clone());
            }
        }
        for agent in self.agents.values() {
            let owned = agent.track.iter().map(|bead| (bead.clone(), agent.name().clone()));
            self.roster.track_of.extend(owned);
        }
        for name in self.agents.keys().cloned().collect::<Vec<_>>() {
            self.refresh_agent(&name);
            self.refresh_untold(&name);
        }
    }
}
