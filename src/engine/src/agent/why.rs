//! Why nothing is assigned: for every agent without work, and for every bead that waits for one.

use serde::{Deserialize, Serialize};

use super::{Agent, AgentState, Saying};
use crate::context::Context;
use crate::readiness::{list, list_names};
use crate::state::State;
use crate::{AgentName, BeadId, Timestamp};

/// Beads that are named as examples.
const EXAMPLES: usize = 5;

/// A reason why an agent has no order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReason {
    /// Which reason; a contract with scripts.
    pub code: String,
    /// In words.
    pub message: String,
    /// The beads concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<BeadId>,
}

fn reason(code: &str, message: impl Into<String>, ids: Vec<BeadId>) -> AgentReason {
    AgentReason { code: code.to_owned(), message: message.into(), ids }
}

impl State {
    /// Every reason why an agent is not sent an order now; never empty, because whoever could be sent one is.
    pub fn why_no_order(&self, name: &AgentName) -> Vec<AgentReason> {
        let Some(agent) = self.agents.get(name) else {
            let message = format!("there is no agent {name}; ym agent register {name} --program P");
            return vec![reason("unknown-agent", message, Vec::new())];
        };
        let mut reasons = Vec::new();
        reasons.extend(self.why_not_free(agent));
        if let Some(pause) = &self.pause {
            reasons.push(reason("paused", format!("dispatch is paused by {}", pause.by), Vec::new()));
        }
        if let Some(busy) = &self.host_gate {
            reasons.push(reason("host-load", busy.clone(), Vec::new()));
        }
        if reasons.is_empty() {
            reasons.push(self.why_nothing_fits(name));
        }
        reasons
    }

    fn why_not_free(&self, agent: &Agent) -> Option<AgentReason> {
        let name = agent.name();
        let ordered = self.roster.ordered.get(name).into_iter().flatten();
        let ordered: Vec<BeadId> = ordered.filter_map(|id| Some(self.context(id)?.bead().clone())).collect();
        let note = agent.says.as_ref().and_then(|says| says.note.as_ref());
        let note = note.map(|note| format!(": {note}")).unwrap_or_default();
        Some(match agent.state {
            AgentState::Idle if ordered.is_empty() => return None,
            AgentState::Idle => {
                reason("ordered", format!("has been sent {}, and is to claim it", list(&ordered)), ordered)
            }
            AgentState::Working => {
                let mut beads: Vec<BeadId> = self.claims_of(name).map(|id| id.bead().clone()).collect();
                beads.extend(self.in_hand(name).cloned());
                beads.sort_unstable();
                beads.dedup();
                if beads.is_empty() {
                    let message = format!("says it is working{note}; ym agent status idle --as {name}");
                    reason("working", message, beads)
                } else {
                    reason("working", format!("works on {}", list(&beads)), beads)
                }
            }
            AgentState::Blocked => {
                let message = format!("says it is blocked{note}; ym agent status idle --as {name}");
                reason("blocked", message, Vec::new())
            }
            AgentState::Offline => {
                let message = format!("is offline; it was last heard of at {}", agent.heard_at);
                reason("offline", message, Vec::new())
            }
            AgentState::Unresponsive => {
                let message = format!("did not answer, and has not called since {}", agent.since);
                reason("unresponsive", message, Vec::new())
            }
        })
    }

    /// Nothing keeps the agent from working but what there is to do.
    fn why_nothing_fits(&self, name: &AgentName) -> AgentReason {
        let waiting = self.roster.offers.len();
        if waiting == 0 {
            let message = "no ready bead waits for an agent; ym sling BEAD --assign gives one away";
            return reason("no-work", message, Vec::new());
        }
        let all = self.roster.offers.ids().filter_map(|id| self.context(id));
        let (mut ids, mut words) = (Vec::new(), Vec::new());
        for context in all.take(EXAMPLES) {
            let why = match self.roster.offers.reserved_for(&context.id) {
                Some(other) if other != name => format!("{} is for {other}", context.bead()),
                Some(_) | None => match context.passed_until(name) {
                    Some(until) if until > self.clock => {
                        format!("{} was given back and is offered again at {until}", context.bead())
                    }
                    Some(_) | None => format!("{} is about to be sent", context.bead()),
                },
            };
            ids.push(context.bead().clone());
            words.push(why);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        reason("not-for-it", format!("{waiting} wait for an agent: {}", list_names(&words)), ids)
    }

    /// Why a bead that is to be given to an agent has not been, and until when that lasts at most.
    pub(crate) fn why_no_agent(&self, context: &Context) -> (String, Option<Timestamp>) {
        if let Some(order) = &context.sent {
            let message =
                format!("{} has been sent it, and has until {} to claim it", order.agent, order.expires_at);
            return (message, Some(order.expires_at));
        }
        if let Some(name) = self.offered_to(context) {
            let track = context.assign.as_ref().is_some_and(|assign| assign.to.is_none());
            let whose = if track { format!("its track is {name}'s") } else { format!("it is for {name}") };
            let Some(agent) = self.agents.get(&name) else {
                return (format!("{whose}, and no agent of that name is registered"), None);
            };
            let given_back = context.passed_until(&name).filter(|until| *until > self.clock);
            if let Some(until) = given_back {
                return (format!("{whose}, who gave it back; it is offered again at {until}"), Some(until));
            }
            let doing = self.why_not_free(agent).map_or("is free".to_owned(), |reason| reason.message);
            return (format!("{whose}, who is {}: {doing}", agent.state.as_str()), None);
        }
        self.why_nobody(context)
    }

    fn why_nobody(&self, context: &Context) -> (String, Option<Timestamp>) {
        if self.agents.is_empty() {
            let message = "no agent is registered; ym agent register NAME --program P";
            return (message.to_owned(), None);
        }
        let willing = |name: &AgentName| context.may_be_offered(name, self.clock);
        if let Some((.., name)) = self.roster.free.iter().find(|(.., name)| willing(name)) {
            return (format!("{name} is free; it is sent in the next pass"), None);
        }
        if !self.roster.free.is_empty() {
            let soon = context.passed.iter().map(|passed| passed.until).filter(|until| *until > self.clock);
            let soon = soon.min();
            let at = soon.map(|at| format!("; offered again at {at}")).unwrap_or_default();
            return (format!("every free agent has given it back{at}"), soon);
        }
        let mut counts: Vec<String> = Vec::new();
        for state in [
            AgentState::Working,
            AgentState::Idle,
            AgentState::Blocked,
            AgentState::Unresponsive,
            AgentState::Offline,
        ] {
            let count = self.agents.values().filter(|agent| agent.state == state).count();
            if count > 0 {
                let word = if state == AgentState::Idle { "to claim an order" } else { state.as_str() };
                counts.push(format!("{count} {word}"));
            }
        }
        (format!("no agent is free: {}", counts.join(", ")), None)
    }
}

impl Saying {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Blocked => "blocked",
        }
    }
}
