//! What can happen to an agent and to its orders.

use serde::{Deserialize, Serialize};

use super::{Agent, AgentState, Counts, Gone, Order, Registration, Says};
use crate::context::{CloseReason, Passed};
use crate::dispatch::{Dispatch, Outcome, StopReason};
use crate::state::State;
use crate::{AgentName, BeadId, ContextId, Timestamp};

/// What can happen to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum AgentEvent {
    /// It came, or told anew what it is.
    #[serde(rename = "agent.registered")]
    Registered {
        /// What it said about itself.
        agent: Box<Registration>,
        /// Who did it.
        actor: String,
    },
    /// It will not come back.
    #[serde(rename = "agent.retired")]
    Retired {
        /// Which agent.
        name: AgentName,
        /// Who did it.
        actor: String,
    },
    /// It gave a sign of life.
    #[serde(rename = "agent.heard")]
    Heard {
        /// Which agent.
        name: AgentName,
        /// Only its process lives: whether it listens nobody knows.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        process: bool,
    },
    /// It says what it is doing; none when its work alone is to tell.
    #[serde(rename = "agent.said")]
    Said {
        /// Which agent.
        name: AgentName,
        /// What it says.
        says: Option<Says>,
    },
    /// It counts as gone.
    #[serde(rename = "agent.offline")]
    WentOffline {
        /// Which agent.
        name: AgentName,
        /// Since when it is silent.
        since: Timestamp,
    },
    /// It read its notices.
    #[serde(rename = "agent.read")]
    Read {
        /// Which agent.
        name: AgentName,
        /// Up to this one.
        up_to: u64,
    },
    /// The hook was told of a message, or could not be.
    #[serde(rename = "agent.told")]
    Told {
        /// To whom the message is.
        name: AgentName,
        /// Which message.
        message: u64,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// It was given a whole track.
    #[serde(rename = "agent.track_given")]
    TrackGiven {
        /// Which agent.
        name: AgentName,
        /// The open beads of the track.
        beads: Vec<BeadId>,
    },
    /// A bead was given to it.
    #[serde(rename = "order.sent")]
    Sent {
        /// Which bead.
        bead: BeadId,
        /// The request.
        context: ContextId,
        /// The order.
        order: Order,
    },
    /// An order that was not claimed was taken back.
    #[serde(rename = "order.withdrawn")]
    Withdrawn {
        /// Which bead.
        bead: BeadId,
        /// The request.
        context: ContextId,
        /// From whom.
        name: AgentName,
        /// Why.
        why: Withdrawal,
        /// It is not offered to that agent again before this time.
        until: Timestamp,
    },
}

/// Why an order was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Withdrawal {
    /// It was not claimed in time.
    Lapsed,
    /// The agent does not want it.
    Declined,
    /// The agent is gone, or cannot work.
    Unavailable,
    /// The bead is not ready any more, or nothing may start.
    NotReady,
}

impl Withdrawal {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Lapsed => "it was not claimed in time",
            Self::Declined => "it was declined",
            Self::Unavailable => "its agent is gone or has other work",
            Self::NotReady => "it is not ready any more",
        }
    }
}

impl State {
    pub(crate) fn apply_agent(&mut self, event: &AgentEvent, at: Timestamp) {
        match event {
            AgentEvent::Registered { agent, .. } => self.enlist(agent, at),
            AgentEvent::Retired { name, .. } => {
                if let Some(agent) = self.agents.remove(name) {
                    self.touch_agent(name);
                    self.refresh_agent(name);
                    for bead in &agent.track {
                        self.roster.track_of.remove(bead);
                        self.refresh_bead(bead);
                    }
                }
            }
            AgentEvent::Heard { name, process: false } => self.hear_agent(name, at),
            AgentEvent::Heard { name, process: true } => self.change_agent(name, |agent| agent.heard_at = at),
            AgentEvent::Said { name, says } => {
                self.change_agent(name, |agent| agent.says.clone_from(says));
            }
            AgentEvent::WentOffline { name, .. } => self.agent_is_gone(name, Gone::Offline),
            AgentEvent::Read { name, up_to } => {
                self.change_agent(name, |agent| agent.notices.retain(|notice| notice.id > *up_to));
                self.refresh_untold(name);
            }
            AgentEvent::Told { name, message, .. } => {
                self.touch_agent(name);
                self.mark_told(name, *message);
            }
            AgentEvent::TrackGiven { name, beads } => self.give_track(name, beads),
            AgentEvent::Sent { bead, context, order } => self.send_order(bead, context, order),
            AgentEvent::Withdrawn { bead, context, name, why, until } => {
                self.end_order(context, name);
                if let Some(context) = self.context_mut(context) {
                    context.sent = None;
                    if *why != Withdrawal::NotReady {
                        context.passed.retain(|passed| passed.agent != *name);
                        context.passed.push(Passed { agent: name.clone(), until: *until });
                    }
                }
                self.touch_context(context);
                if *why != Withdrawal::Declined {
                    self.notify(name, bead, None, why.words().to_owned(), at);
                }
                if *why == Withdrawal::Lapsed {
                    self.change_agent(name, |agent| agent.counts.lapsed += 1);
                    if self.agents.get(name).is_some_and(Agent::is_there) {
                        self.agent_is_gone(name, Gone::Unresponsive);
                    }
                }
                self.refresh_context(context);
                self.remember(bead);
            }
        }
    }

    fn enlist(&mut self, registration: &Registration, at: Timestamp) {
        let name = &registration.name;
        if self.agents.contains_key(name) {
            self.change_agent(name, |agent| {
                agent.registration = registration.clone();
                agent.says = None;
            });
            return self.hear_agent(name, at);
        }
        let agent = Agent {
            registration: registration.clone(),
            registered_at: at,
            order: self.seq.0,
            heard_at: at,
            state: AgentState::Idle,
            since: at,
            gone: None,
            says: None,
            notices: Vec::new(),
            worked: Vec::new(),
            track: std::collections::BTreeSet::new(),
            counts: Counts::default(),
        };
        self.agents.insert(name.clone(), agent);
        self.touch_agent(name);
        self.refresh_agent(name);
    }

    fn hear_agent(&mut self, name: &AgentName, at: Timestamp) {
        let was_gone = self.agents.get(name).is_some_and(|agent| !agent.is_there());
        self.change_agent(name, |agent| {
            agent.heard_at = at;
            agent.gone = None;
        });
        if was_gone {
            self.refresh_track_of(name);
        }
    }

    fn agent_is_gone(&mut self, name: &AgentName, how: Gone) {
        self.change_agent(name, |agent| agent.gone = Some(how));
        self.refresh_track_of(name);
    }

    fn change_agent(&mut self, name: &AgentName, change: impl FnOnce(&mut Agent)) {
        let Some(agent) = self.agents.get_mut(name) else { return };
        change(agent);
        self.touch_agent(name);
        self.refresh_agent(name);
    }

    fn give_track(&mut self, name: &AgentName, beads: &[BeadId]) {
        for bead in beads {
            if let Some(before) = self.roster.track_of.insert(bead.clone(), name.clone()) {
                self.change_agent(&before, |agent| {
                    agent.track.remove(bead);
                });
            }
        }
        self.change_agent(name, |agent| agent.track.extend(beads.iter().cloned()));
        for bead in beads {
            self.refresh_bead(bead);
        }
    }

    fn send_order(&mut self, bead: &BeadId, id: &ContextId, order: &Order) {
        self.roster.offers.remove(id);
        let Some(context) = self.context_mut(id) else { return };
        context.sent = Some(order.clone());
        self.touch_context(id);
        self.roster.ordered.entry(order.agent.clone()).or_default().insert(id.clone());
        self.change_agent(&order.agent, |agent| {
            agent.counts.ordered += 1;
            agent.counts.last_order = order.id;
        });
        self.refresh_untold(&order.agent);
        self.remember(bead);
    }

    /// An order is none any more.
    fn end_order(&mut self, context: &ContextId, name: &AgentName) {
        if let Some(orders) = self.roster.ordered.get_mut(name) {
            orders.remove(context);
            if orders.is_empty() {
                self.roster.ordered.remove(name);
            }
        }
        self.refresh_agent(name);
        self.refresh_untold(name);
    }

    /// A request closed whose order was not claimed; unless that is what closed it, its agent is told.
    pub(crate) fn order_is_over(&mut self, id: &ContextId, reason: CloseReason, at: Timestamp) {
        let Some(context) = self.context_mut(id) else { return };
        let Some(order) = context.sent.take() else { return };
        let bead = context.bead().clone();
        self.end_order(id, &order.agent);
        let why = match reason {
            CloseReason::Dispatched => return,
            CloseReason::StaleWorkBead => {
                let mine = self.roster.hands.of(order.agent.as_str()).any(|shown| *shown == bead);
                if mine {
                    return;
                }
                "it was closed or taken meanwhile".to_owned()
            }
            CloseReason::Cleared
            | CloseReason::CircuitBroken
            | CloseReason::Cancelled
            | CloseReason::Expired
            | CloseReason::InvalidContext => format!("its request is over ({})", reason.as_str()),
        };
        self.notify(&order.agent, &bead, None, why, at);
    }

    /// An agent has a bead.
    pub(crate) fn claim_began(&mut self, dispatch: &Dispatch) {
        let Some(claim) = &dispatch.claim else { return };
        let (name, bead) = (&claim.agent, dispatch.id.bead());
        if let Some(entry) = self.beads.get_mut(bead) {
            entry.work.holder = Some(Box::new(name.clone()));
            if entry.claimed_since.is_some() && entry.bead.assignee.as_deref() == Some(name.as_str()) {
                entry.claimed_for = Some(Box::new(name.clone()));
            }
        }
        self.roster.held.entry(name.clone()).or_default().insert(dispatch.id.clone());
        self.change_agent(name, |agent| {
            agent.counts.claimed += 1;
            agent.says = None;
            agent.worked_on(bead);
        });
        self.refresh_untold(name);
    }

    /// An agent has it no longer.
    pub(crate) fn claim_ended(&mut self, dispatch: &Dispatch, outcome: &Outcome, at: Timestamp) {
        let Some(claim) = &dispatch.claim else { return };
        let name = &claim.agent;
        if let Some(held) = self.roster.held.get_mut(name) {
            held.remove(&dispatch.id);
            if held.is_empty() {
                self.roster.held.remove(name);
            }
        }
        if let Some(work) = self.work_mut(dispatch.id.bead()) {
            work.holder = None;
        }
        let done = *outcome == Outcome::Succeeded;
        let lost = match outcome {
            Outcome::Stopped { reason } if *reason != StopReason::Released => Some(*reason),
            _ => None,
        };
        self.change_agent(name, |agent| {
            agent.counts.done += u64::from(done);
            agent.counts.expired += u64::from(lost == Some(StopReason::LeaseExpired));
        });
        self.refresh_untold(name);
        if lost == Some(StopReason::LeaseExpired) && self.agents.get(name).is_some_and(Agent::is_there) {
            // It does not answer: what is claimed for it would be lost again.
            self.agent_is_gone(name, Gone::Unresponsive);
        }
        if let Some(reason) = lost {
            let why = format!("the claim {}", reason.words());
            self.notify(name, dispatch.id.bead(), Some(&dispatch.id), why, at);
        }
    }
}
