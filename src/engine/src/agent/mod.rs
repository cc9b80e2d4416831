//! Agents: registered, long-lived workers that are sent orders instead of being spawned. What an agent is doing follows
//! from its work: a bead it has claimed, or that any source shows in progress under its name, makes it work; with the last
//! of them it is idle again. Only what nothing else shows is taken from its own words.

mod event;
mod inbox;
mod matching;
mod offers;
mod roster;
mod track;
mod why;

use std::collections::BTreeSet;

pub use event::{AgentEvent, Withdrawal};
pub use inbox::{Message, Notice, Order};
pub(crate) use matching::Matcher;
pub(crate) use offers::Offers;
pub(crate) use roster::Roster;
use serde::{Deserialize, Serialize};
pub use track::Track;
pub use why::AgentReason;

use crate::refusal::Refusal;
use crate::state::State;
use crate::stored::is_default;
use crate::{AgentName, BeadId, DispatchId, Millis, Timestamp};

/// Beads an agent is remembered to have worked on.
const REMEMBERED: usize = 16;

/// What an agent says about itself when it registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Its name, which is also its name as an assignee.
    pub name: AgentName,
    /// What it is, such as `claude-code`.
    pub program: String,
    /// The model it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it is good at or busy with, in words that may appear in titles and labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<String>,
    /// Whether orders are claimed for it; otherwise as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_claim: Option<bool>,
    /// Its process on this machine, as long as which lives the agent does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
}

/// A process, told apart from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// What only this process has: when it started, as its system tells.
    pub mark: String,
}

/// A registered agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// What it said about itself.
    #[serde(flatten)]
    pub registration: Registration,
    /// When it first registered.
    pub registered_at: Timestamp,
    /// Position of its registration in the log; breaks ties.
    pub order: u64,
    /// When it was last heard of.
    pub heard_at: Timestamp,
    /// What it is doing.
    pub state: AgentState,
    /// Since when.
    pub since: Timestamp,
    /// Why it gets no orders until it is heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<Gone>,
    /// What it says it is doing, where its work does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<Says>,
    /// What it has not read yet, besides its orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// What it worked on last, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worked: Vec<BeadId>,
    /// The beads of the tracks that are its own.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub track: BTreeSet<BeadId>,
    /// What became of its orders.
    #[serde(default, skip_serializing_if = "is_default")]
    pub counts: Counts,
}

/// What an agent has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Orders it was sent.
    pub ordered: u64,
    /// The position of the last of them in the log.
    pub last_order: u64,
    /// Beads it claimed.
    pub claimed: u64,
    /// Beads it finished.
    pub done: u64,
    /// Orders it let lapse.
    pub lapsed: u64,
    /// Claims it lost by its silence.
    pub expired: u64,
    /// How long it was idle, until its present state began.
    pub idle: Millis,
    /// How long it worked, likewise.
    pub working: Millis,
}

/// What an agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum AgentState {
    /// Ready for work.
    Idle,
    /// It has a bead, or says that it is busy.
    Working,
    /// It says that it waits for something.
    Blocked,
    /// Nothing was heard of it for too long, or it said good-bye.
    Offline,
    /// It let an order lapse, and was not heard of since.
    Unresponsive,
}

impl AgentState {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::Working => "WORKING",
            Self::Blocked => "BLOCKED",
            Self::Offline => "OFFLINE",
            Self::Unresponsive => "UNRESPONSIVE",
        }
    }
}

/// Why an agent is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gone {
    /// Silent for too long, or it said good-bye.
    Offline,
    /// It let an order lapse.
    Unresponsive,
}

/// What an agent says it is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Says {
    /// What.
    pub what: Saying,
    /// In its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What an agent may say it is doing that its work does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Saying {
    /// Busy with something nobody else knows of.
    Working,
    /// Waiting for a dependency, a resource or a person.
    Blocked,
}

impl Agent {
    /// Its name.
    pub fn name(&self) -> &AgentName {
        &self.registration.name
    }

    /// Whether it is to be reckoned with.
    pub fn is_there(&self) -> bool {
        self.gone.is_none()
    }

    fn worked_on(&mut self, bead: &BeadId) {
        self.worked.retain(|known| known != bead);
        self.worked.push(bead.clone());
        let surplus = self.worked.len().saturating_sub(REMEMBERED);
        self.worked.drain(..surplus);
    }

    /// The time from the beginning of its present state, for its share of idle time.
    pub fn times(&self, now: Timestamp) -> (Millis, Millis) {
        let current = now.since(self.since);
        match self.state {
            AgentState::Idle => (self.counts.idle.plus(current), self.counts.working),
            AgentState::Working => (self.counts.idle, self.counts.working.plus(current)),
            AgentState::Blocked | AgentState::Offline | AgentState::Unresponsive => {
                (self.counts.idle, self.counts.working)
            }
        }
    }
}

impl State {
    /// An agent by name.
    pub fn agent(&self, name: &AgentName) -> Option<&Agent> {
        self.agents.get(name)
    }

    /// All agents, by name.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// How many of them are to be reckoned with.
    pub(crate) fn agents_there(&self) -> u64 {
        self.agents.values().filter(|agent| agent.is_there()).count() as u64
    }

    /// The order that an agent is to claim, and its bead.
    pub fn order_of(&self, name: &AgentName) -> Option<(&BeadId, &Order)> {
        let context = self.roster.ordered.get(name)?.first().and_then(|id| self.context(id))?;
        Some((context.bead(), context.sent.as_ref()?))
    }

    /// An agent that has registered, by what somebody typed.
    pub fn find_agent(&self, text: &str) -> Result<AgentName, Refusal> {
        let name = AgentName::parse(text)?;
        if self.agents.contains_key(&name) {
            return Ok(name);
        }
        Err(Refusal::new("unknown-agent", format!("there is no agent {name}"))
            .hint(format!("ym agent register {name} --program P makes it known")))
    }

    /// The claims that an agent holds.
    pub fn claims_of(&self, name: &AgentName) -> impl Iterator<Item = &DispatchId> {
        self.roster.held.get(name).into_iter().flatten()
    }

    /// The beads that some source shows in progress under its name, and that count as its.
    pub fn in_hand(&self, name: &AgentName) -> impl Iterator<Item = &BeadId> {
        let shown = self.roster.hands.of(name.as_str());
        shown.filter(|bead| self.beads.get(bead).is_some_and(|entry| !entry.was_left_by(name.as_str())))
    }

    /// Until when a claim holds without a sign of life.
    pub fn lease_until(&self, dispatch: &DispatchId) -> Option<Timestamp> {
        let dispatch = self.dispatch(dispatch)?;
        let agent = self.agents.get(&dispatch.claim.as_ref()?.agent)?;
        let heard = agent.heard_at.max(dispatch.started_at);
        Some(heard.after(self.settings.agents.lease.duration()))
    }

    /// What an agent is doing, from its work and its words.
    pub(crate) fn derive_agent_state(&self, agent: &Agent) -> AgentState {
        match (agent.gone, &agent.says) {
            (Some(Gone::Offline), _) => AgentState::Offline,
            (Some(Gone::Unresponsive), _) => AgentState::Unresponsive,
            (None, Some(Says { what: Saying::Blocked, .. })) => AgentState::Blocked,
            (None, Some(Says { what: Saying::Working, .. })) => AgentState::Working,
            (None, None) if self.has_work(agent.name()) => AgentState::Working,
            (None, None) => AgentState::Idle,
        }
    }

    fn has_work(&self, name: &AgentName) -> bool {
        self.claims_of(name).next().is_some() || self.in_hand(name).next().is_some()
    }

    /// When something about an agent becomes due: an order or its leases run out, or it counts as gone.
    pub(crate) fn derive_agent_look(&self, agent: &Agent) -> Option<Timestamp> {
        let settings = &self.settings.agents;
        let name = agent.name();
        let orders = self.roster.ordered.get(name).into_iter().flatten();
        let order = orders.filter_map(|id| Some(self.context(id)?.sent.as_ref()?.expires_at)).min();
        let lease = self.claims_of(name).filter_map(|id| self.lease_until(id)).min();
        let silent = (agent.gone != Some(Gone::Offline) && lease.is_none())
            .then(|| agent.heard_at.after(settings.offline_after.duration()));
        [order, lease, silent].into_iter().flatten().min()
    }

    /// Agents of which something becomes due at this time, and the processes by which they may be alive all the same.
    pub fn silent_agents(&self, now: Timestamp) -> Vec<(AgentName, Option<Process>)> {
        let due = self.roster.looks.due(now).filter_map(|name| self.agents.get(name));
        due.map(|agent| (agent.name().clone(), agent.registration.process.clone())).collect()
    }
}
