//! What an agent is told: orders, until they are claimed or taken back, and notices, until they are read. Both are part of
//! the state, so neither a crash nor a slow reader loses any, and the same order is never two.

use serde::{Deserialize, Serialize};

use crate::state::State;
use crate::{AgentName, BeadId, ContextId, DispatchId, Timestamp};

/// Notices that are kept for one agent; older ones are in the log.
const MOST_NOTICES: usize = 100;

/// A bead given to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its number: the position in the log at which it was sent.
    pub id: u64,
    /// To whom.
    pub agent: AgentName,
    /// When.
    pub sent_at: Timestamp,
    /// Not claimed by then: withdrawn.
    pub expires_at: Timestamp,
    /// Why this bead, and why this agent.
    pub reason: String,
    /// It was claimed for the agent when it was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_claim: bool,
    /// The hook has been told of it, or there is none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

/// Something taken from an agent that it should know of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Its number: the position in the log at which it came about.
    pub id: u64,
    /// When.
    pub at: Timestamp,
    /// Which bead is its no longer.
    pub bead: BeadId,
    /// Why.
    pub why: String,
    /// The claim it had, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<DispatchId>,
    /// The hook has been told of it, or there is none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
}

/// Something in an agent's inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    /// A bead is given to it.
    Order {
        /// The order.
        order: Order,
        /// Which bead.
        bead: BeadId,
        /// The claim, if it was made on its behalf.
        claim: Option<DispatchId>,
    },
    /// A bead is taken from it.
    Notice(Notice),
}

impl Message {
    /// Its number.
    pub fn id(&self) -> u64 {
        match self {
            Self::Order { order, .. } => order.id,
            Self::Notice(notice) => notice.id,
        }
    }

    fn is_told(&self) -> bool {
        match self {
            Self::Order { order, .. } => order.told,
            Self::Notice(notice) => notice.told,
        }
    }
}

impl State {
    /// Everything an agent is to know, the oldest first.
    pub fn inbox(&self, name: &AgentName) -> Vec<Message> {
        let Some(agent) = self.agents.get(name) else { return Vec::new() };
        let ordered = self.roster.ordered.get(name).into_iter().flatten();
        let ordered = ordered.filter_map(|id| {
            let context = self.context(id)?;
            let (order, bead) = (context.sent.clone()?, context.bead().clone());
            Some(Message::Order { order, bead, claim: None })
        });
        let claimed = self.claims_of(name).filter_map(|id| {
            let order = self.dispatch(id)?.claim.as_ref()?.unseen()?.clone();
            Some(Message::Order { order, bead: id.bead().clone(), claim: Some(id.clone()) })
        });
        let notices = agent.notices.iter().cloned().map(Message::Notice);
        let mut all: Vec<Message> = ordered.chain(claimed).chain(notices).collect();
        all.sort_by_key(Message::id);
        all
    }

    /// Whether an agent has anything to read.
    pub fn has_mail(&self, name: &AgentName) -> bool {
        let unseen = |id: &DispatchId| {
            let claim = self.dispatch(id).and_then(|dispatch| dispatch.claim.as_ref());
            claim.is_some_and(|claim| claim.unseen().is_some())
        };
        self.roster.ordered.contains_key(name)
            || self.agents.get(name).is_some_and(|agent| !agent.notices.is_empty())
            || self.claims_of(name).any(unseen)
    }

    /// What the hook has not been told yet, the oldest first.
    pub fn untold_messages(&self) -> Vec<(AgentName, Message)> {
        let mut untold = Vec::new();
        for name in &self.roster.untold {
            let messages = self.inbox(name).into_iter().filter(|message| !message.is_told());
            untold.extend(messages.map(|message| (name.clone(), message)));
        }
        untold.sort_by_key(|(_, message)| message.id());
        untold
    }

    /// Tells an agent that a bead is its no longer.
    pub(crate) fn notify(
        &mut self,
        name: &AgentName,
        bead: &BeadId,
        dispatch: Option<&DispatchId>,
        why: String,
        at: Timestamp,
    ) {
        let (id, told) = (self.seq.0, self.settings.agents.hook.is_none());
        let Some(agent) = self.agents.get_mut(name) else { return };
        agent.notices.push(Notice { id, at, bead: bead.clone(), why, dispatch: dispatch.cloned(), told });
        let surplus = agent.notices.len().saturating_sub(MOST_NOTICES);
        agent.notices.drain(..surplus);
        self.touch_agent(name);
        self.refresh_untold(name);
    }

    /// The hook was told of a message.
    pub(crate) fn mark_told(&mut self, name: &AgentName, message: u64) {
        let contexts = self.roster.ordered.get(name).cloned().unwrap_or_default();
        for id in contexts {
            self.mark_order_told(&id, message);
        }
        for id in self.claims_of(name).cloned().collect::<Vec<_>>() {
            let claim = self.dispatch_mut(&id).and_then(|dispatch| dispatch.claim.as_mut());
            if let Some(order) = claim.and_then(|claim| claim.order.as_mut()).filter(|it| it.id == message) {
                order.told = true;
                self.touch_dispatch(&id);
            }
        }
        if let Some(agent) = self.agents.get_mut(name) {
            for notice in agent.notices.iter_mut().filter(|notice| notice.id == message) {
                notice.told = true;
            }
        }
        self.refresh_untold(name);
    }

    fn mark_order_told(&mut self, context: &ContextId, message: u64) {
        let order = self.context_mut(context).and_then(|context| context.sent.as_mut());
        if let Some(order) = order.filter(|order| order.id == message) {
            order.told = true;
            self.touch_context(context);
        }
    }

    /// Keeps the list of those up to date of whom the hook has not been told everything.
    pub(crate) fn refresh_untold(&mut self, name: &AgentName) {
        if self.inbox(name).iter().any(|message| !message.is_told()) {
            self.roster.untold.insert(name.clone());
        } else {
            self.roster.untold.remove(name);
        }
    }
}
