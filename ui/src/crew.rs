//! Who works: registered agents by name, each with what it holds below it, then live workers. An agent's claim is a
//! dispatch without a worker, so it stands under its agent and nowhere else. Rows are found on demand; only those that
//! are seen are put into words.

use yard_engine::agent::{Agent, AgentState, Order};
use yard_engine::dispatch::Dispatch;
use yard_engine::money::Usd;
use yard_engine::{AgentName, BeadId, State, Timestamp};

use crate::console::Subject;
use crate::glyphs::Glyphs;
use crate::text::shown;
use crate::theme::Role;
use crate::ways::in_spans;

/// A row of the agents view.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Row<'s> {
    /// An agent, with the first thing it holds.
    Agent(&'s Agent),
    /// Something more that it holds.
    More(&'s Agent, Held<'s>),
    /// The heading of the workers; the cursor steps over it.
    Workers,
    /// A live worker.
    Worker(&'s Dispatch),
}

impl Row<'_> {
    /// What the cursor is on in this row.
    pub(crate) fn subject(&self) -> Option<Subject> {
        match self {
            Row::Agent(agent) => Some(Subject::Agent(agent.name().clone())),
            Row::More(_, held) => Some(Subject::Bead(held.bead().clone())),
            Row::Workers => None,
            Row::Worker(dispatch) => Some(Subject::Bead(dispatch.id.bead().clone())),
        }
    }
}

/// Something an agent has, or is to have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Held<'s> {
    /// It has claimed the bead.
    Claim(&'s Dispatch),
    /// Its tracker shows the bead in progress under its name.
    InHand(&'s BeadId),
    /// It was sent the bead, and is to claim it.
    Order(&'s BeadId, &'s Order),
}

impl<'s> Held<'s> {
    /// Which bead.
    pub(crate) fn bead(&self) -> &'s BeadId {
        match self {
            Held::Claim(dispatch) => dispatch.id.bead(),
            Held::InHand(bead) | Held::Order(bead, _) => bead,
        }
    }

    /// What it is to the agent, in a word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Held::Claim(_) => "claimed",
            Held::InHand(_) => "in hand",
            Held::Order(..) => "to claim",
        }
    }

    /// Milliseconds until the claim runs out without a sign of life, or the order is taken back.
    pub(crate) fn left(&self, state: &State, now: Timestamp) -> Option<i64> {
        let until = match self {
            Held::Claim(dispatch) => state.lease_until(&dispatch.id),
            Held::InHand(_) => None,
            Held::Order(_, order) => Some(order.expires_at),
        };
        until.map(|until| until.as_millis() - now.as_millis())
    }
}

/// The rows of the agents view.
pub(crate) fn rows(state: &State) -> impl Iterator<Item = Row<'_>> {
    let of_agent = |agent| {
        let more = held(state, agent).skip(1).map(move |held| Row::More(agent, held));
        std::iter::once(Row::Agent(agent)).chain(more)
    };
    let both = state.agents().next().is_some() && workers(state).next().is_some();
    let heading = both.then_some(Row::Workers);
    state.agents().flat_map(of_agent).chain(heading).chain(workers(state).map(Row::Worker))
}

/// Live workers: dispatches that no agent has claimed.
pub(crate) fn workers(state: &State) -> impl Iterator<Item = &Dispatch> {
    state.live_dispatches().filter(|dispatch| dispatch.claim.is_none())
}

/// What an agent has, then what it is to claim.
pub(crate) fn held<'s>(state: &'s State, agent: &'s Agent) -> impl Iterator<Item = Held<'s>> {
    let name = agent.name();
    let claimed = state.claims_of(name).filter_map(|id| state.dispatch(id));
    let in_hand = state.in_hand(name).filter(|bead| state.claims_of(name).all(|id| id.bead() != *bead));
    let order = state.order_of(name).map(|(bead, order)| Held::Order(bead, order));
    claimed.map(Held::Claim).chain(in_hand.map(Held::InHand)).chain(order)
}

/// The agent that has a bead or is to claim it, and which of both.
pub(crate) fn holder<'s>(state: &'s State, bead: &BeadId) -> Option<(&'s Agent, Held<'s>)> {
    let work = &state.bead(bead)?.work;
    let claim = work.live.as_ref().and_then(|id| state.dispatch(id)).and_then(|live| live.claim.as_ref());
    let sent = || work.context.as_ref().and_then(|id| state.context(id))?.sent.as_ref();
    let name = claim.map(|claim| &claim.agent).or_else(|| sent().map(|order| &order.agent))?;
    let agent = state.agent(name)?;
    held(state, agent).find(|held| held.bead() == bead).map(|held| (agent, held))
}

/// Whether an agent has claimed a bead.
pub(crate) fn is_claimed(state: &State, bead: &BeadId) -> bool {
    matches!(holder(state, bead), Some((_, Held::Claim(_))))
}

/// The agent to whom a bead's track belongs, where whole tracks are given away.
pub(crate) fn track_owner<'s>(state: &'s State, bead: &BeadId) -> Option<&'s AgentName> {
    let mut agents = state.agents().filter(|agent| agent.is_there() && agent.track.contains(bead));
    agents.next().filter(|_| state.settings().agents.tracks).map(Agent::name)
}

/// The sign and the role of a state; the word is its own.
pub(crate) fn sign(glyphs: &Glyphs, state: AgentState) -> (&'static str, Role) {
    match state {
        AgentState::Idle => (glyphs.queued, Role::Queued),
        AgentState::Working => (glyphs.running, Role::Running),
        AgentState::Blocked => (glyphs.blocked, Role::Warning),
        AgentState::Offline => (glyphs.cancelled, Role::Dim),
        AgentState::Unresponsive => (glyphs.warning, Role::Bad),
    }
}

/// How much of its time an agent had nothing to do, in percent; none before it had any time.
pub(crate) fn idle_share(agent: &Agent, now: Timestamp) -> Option<u64> {
    let (idle, working) = agent.times(now);
    (idle.0 * 100).checked_div(idle.0 + working.0)
}

/// What the work that an agent has at hand has cost so far; none if it has cost nothing.
pub(crate) fn cost(state: &State, agent: &Agent) -> Option<Usd> {
    let mut cost = Usd::default();
    for claim in state.claims_of(agent.name()).filter_map(|id| state.dispatch(id)) {
        cost += claim.cost;
    }
    (!cost.is_zero()).then_some(cost)
}

/// Every reason why an agent has no order, in words for a person.
pub(crate) fn why(state: &State, name: &AgentName, now: Timestamp) -> Vec<String> {
    let reasons = state.why_no_order(name);
    reasons.iter().map(|reason| in_spans(&shown(&reason.message), now)).collect()
}

/// What an agent says now: how far it is, or its note. Of one that neither works nor says why not, why it has no order.
pub(crate) fn says(state: &State, agent: &Agent, now: Timestamp) -> String {
    let note = agent.says.as_ref().and_then(|says| says.note.as_deref());
    let own = match agent.state {
        AgentState::Working => held(state, agent).next().and_then(|held| progress(&held)).or(note),
        AgentState::Blocked => note,
        AgentState::Idle | AgentState::Offline | AgentState::Unresponsive => None,
    };
    own.map_or_else(|| why(state, agent.name(), now).join("; "), shown)
}

/// What an agent says about something it has.
pub(crate) fn progress<'s>(held: &Held<'s>) -> Option<&'s str> {
    match held {
        Held::Claim(dispatch) => dispatch.progress.as_deref().or(dispatch.step.as_deref()),
        Held::InHand(_) => Some("in progress in its tracker"),
        Held::Order(_, order) => Some(&order.reason),
    }
}
