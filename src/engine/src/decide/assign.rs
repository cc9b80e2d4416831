//! Orders: giving beads to agents, and taking back what they do not claim or lose by their silence.

use super::alerts::Condition;
use crate::agent::{AgentEvent, AgentState, Gone, Matcher, Order, Withdrawal};
use crate::alert::AlertKind;
use crate::dispatch::{Claim, Dispatch, DispatchEvent, StopReason};
use crate::tx::Tx;
use crate::{AgentName, BeadId, ContextId, DispatchId, Timestamp};

/// The executor of what agents have.
const AGENT_EXECUTOR: &str = "agent";

/// The key of an agent that is silent.
fn silent_key(agent: &AgentName) -> String {
    format!("agent:{agent}")
}

impl Tx<'_> {
    /// Takes back what is not ready any more, or is with somebody who has other work.
    fn withdraw_unfit(&mut self) {
        let state = self.state();
        let sent = state.roster.ordered.values().flatten().filter_map(|id| state.context(id));
        let unfit = sent.filter_map(|context| {
            let agent = &context.sent.as_ref()?.agent;
            let idle = state.agents.get(agent).is_some_and(|agent| agent.state == AgentState::Idle);
            let why = match (state.is_stopped() || !state.could_start(context), idle) {
                (true, _) => Withdrawal::NotReady,
                (false, false) => Withdrawal::Unavailable,
                (false, true) => return None,
            };
            Some((context.id.clone(), context.bead().clone(), agent.clone(), why))
        });
        for (context, bead, agent, why) in unfit.collect::<Vec<_>>() {
            let until = self.now();
            self.withdraw_order(&context, &bead, &agent, why, until);
        }
    }

    /// Gives every bead that waits for an agent to a free one, as far as there are any.
    pub(crate) fn assign(&mut self) {
        self.withdraw_unfit();
        let state = self.state();
        if state.is_stopped() || state.roster.offers.len() == 0 || state.roster.free.is_empty() {
            return;
        }
        // During this only fewer agents become free, so what the free ones know is found out once.
        let matcher = Matcher::of(state);
        while let Some(found) = self.state().next_match(&matcher) {
            let bead = self.state().contexts[&found.context].bead().clone();
            if self.give_track(&found.agent, &found.context, &bead) != found.agent {
                continue;
            }
            self.send_order(&found.context, &bead, found.agent, found.reason);
        }
    }

    /// Whole tracks go to one agent where that is configured; answers with the one whose it is.
    fn give_track(&mut self, agent: &AgentName, context: &ContextId, bead: &BeadId) -> AgentName {
        let state = self.state();
        let by_name = state.contexts[context].assign.as_ref().is_some_and(|assign| assign.to.is_some());
        if !state.settings.agents.tracks || by_name || state.track_owner(bead).is_some() {
            return agent.clone();
        }
        let beads = state.track_of(bead);
        if beads.len() < 2 {
            return agent.clone();
        }
        let owner = beads.iter().find_map(|bead| state.track_owner(bead)).unwrap_or(agent).clone();
        self.emit(AgentEvent::TrackGiven { name: owner.clone(), beads });
        owner
    }

    fn send_order(&mut self, context: &ContextId, bead: &BeadId, agent: AgentName, reason: String) {
        let settings = &self.state().settings.agents;
        let own_wish = self.state().agents.get(&agent).and_then(|agent| agent.registration.auto_claim);
        let auto_claim = own_wish.unwrap_or(settings.auto_claim);
        let order = Order {
            id: self.state().seq().next().0,
            agent: agent.clone(),
            sent_at: self.now(),
            expires_at: self.now().after(settings.claim_timeout.duration()),
            reason,
            auto_claim,
            told: settings.hook.is_none(),
        };
        self.emit(AgentEvent::Sent { bead: bead.clone(), context: context.clone(), order });
        if auto_claim {
            self.start_claim(context, &agent);
        }
    }

    /// An agent has a bead from now on, as a dispatch of its own.
    pub(super) fn start_claim(&mut self, context: &ContextId, agent: &AgentName) -> Option<DispatchId> {
        let order = self.state().context(context)?.sent.clone();
        let dispatch = self.state().start_of(context, self.now())?;
        let id = dispatch.id.clone();
        let seen = order.as_ref().is_none_or(|order| !order.auto_claim);
        let claim = Some(Claim { agent: agent.clone(), order, seen });
        let dispatch = Dispatch { claim, executor: AGENT_EXECUTOR.to_owned(), ..dispatch };
        self.emit(DispatchEvent::Started { dispatch: Box::new(dispatch) });
        self.emit(DispatchEvent::Running { id: id.clone(), pid: None });
        Some(id)
    }

    /// An agent gave a sign of life. Those that come thick and fast are not all recorded.
    pub fn agent_heard(&mut self, name: &AgentName) {
        let settings = &self.state().settings.agents;
        let often = settings.lease.min(settings.offline_after).duration() / 20;
        let Some(agent) = self.state().agents.get(name) else { return };
        if agent.is_there() && self.now().since(agent.heard_at) < often {
            return;
        }
        self.emit(AgentEvent::Heard { name: name.clone(), process: false });
        self.end_alert(&silent_key(name));
    }

    /// An agent's process lives. That keeps it from counting as gone, but who let an order lapse has to call by itself.
    pub fn agent_lives(&mut self, name: &AgentName) {
        if self.state().agents.contains_key(name) {
            self.emit(AgentEvent::Heard { name: name.clone(), process: true });
        }
    }

    /// The same of somebody who may be an agent.
    pub(crate) fn agent_called(&mut self, name: &str) {
        if let Some(agent) = self.state().agents.get(name) {
            let name = agent.name().clone();
            self.agent_heard(&name);
        }
    }

    /// Does what has become due of agents. Whatever one of them says after its time is up comes too late, so this is done
    /// before anybody is listened to.
    pub fn mind_agents(&mut self) {
        let now = self.now();
        for name in self.state().roster.looks.due(now).cloned().collect::<Vec<_>>() {
            self.look_at_agent(&name);
        }
    }

    /// Does what has become due of an agent.
    fn look_at_agent(&mut self, name: &AgentName) {
        let now = self.now();
        let lapsed = |order: &Order| order.expires_at <= now;
        for (context, bead) in self.orders_of(name, lapsed) {
            self.withdraw_order(&context, &bead, name, Withdrawal::Lapsed, now);
            let message = format!(
                "agent {name} did not claim {bead} in time; ym why {bead} says whom it waits for now"
            );
            self.tell_silence(name, message, vec![bead.to_string()]);
        }
        let claims: Vec<DispatchId> = self.state().claims_of(name).cloned().collect();
        for id in claims {
            if self.state().lease_until(&id).is_some_and(|until| until <= now) {
                self.terminate(&id, StopReason::LeaseExpired, false, "scheduler");
                let message = format!("nothing was heard of agent {name}, which had {id}; its claim is over");
                self.tell_silence(name, message, vec![id.bead().to_string()]);
            }
        }
        self.mind_silence(name);
    }

    /// An agent that holds nothing and was silent for too long counts as gone.
    fn mind_silence(&mut self, name: &AgentName) {
        let Some(agent) = self.state().agents.get(name) else { return };
        let since = agent.heard_at;
        let patience = self.state().settings.agents.offline_after.duration();
        let holds = self.state().claims_of(name).next().is_some();
        if agent.gone == Some(Gone::Offline) || holds || since.after(patience) > self.now() {
            return;
        }
        self.leave(name, since);
    }

    /// An agent counts as gone; what it has not claimed goes to others.
    pub(super) fn leave(&mut self, name: &AgentName, since: Timestamp) {
        self.withdraw_orders(name);
        self.emit(AgentEvent::WentOffline { name: name.clone(), since });
    }

    /// Takes back every order that an agent has not claimed, because it cannot.
    pub(super) fn withdraw_orders(&mut self, name: &AgentName) {
        for (context, bead) in self.orders_of(name, |_| true) {
            let until = self.now();
            self.withdraw_order(&context, &bead, name, Withdrawal::Unavailable, until);
        }
    }

    pub(super) fn orders_of(
        &self,
        name: &AgentName,
        which: impl Fn(&Order) -> bool,
    ) -> Vec<(ContextId, BeadId)> {
        let state = self.state();
        let contexts = state.roster.ordered.get(name).into_iter().flatten();
        let contexts = contexts.filter_map(|id| state.context(id));
        let fit = contexts.filter(|context| context.sent.as_ref().is_some_and(&which));
        fit.map(|context| (context.id.clone(), context.bead().clone())).collect()
    }

    pub(super) fn withdraw_order(
        &mut self,
        context: &ContextId,
        bead: &BeadId,
        name: &AgentName,
        why: Withdrawal,
        until: Timestamp,
    ) {
        let (context, bead, name) = (context.clone(), bead.clone(), name.clone());
        self.emit(AgentEvent::Withdrawn { bead, context, name, why, until });
    }

    fn tell_silence(&mut self, name: &AgentName, message: String, ids: Vec<String>) {
        let (key, kind) = (silent_key(name), AlertKind::AgentSilent);
        self.raise(Condition { key, kind, message, ids, watchers: Vec::new() });
    }

    /// Whatever was said about an agent is over, because it is.
    pub(super) fn end_silence(&mut self, name: &AgentName) {
        self.end_alert(&silent_key(name));
    }

    /// The hook was told of a message, or could not be.
    pub fn message_told(&mut self, name: &AgentName, message: u64, error: Option<String>) {
        if self.state().roster.untold.contains(name) {
            self.emit(AgentEvent::Told { name: name.clone(), message, error });
        }
    }
}
