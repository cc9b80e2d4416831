//! Agents as documents: who is there, what each is told, who has which bead, and why nothing is assigned.

use serde::{Deserialize, Serialize};
use yard_engine::agent::{Agent, AgentReason, AgentState, Message};
use yard_engine::readiness::{Reason, ReasonCode};
use yard_engine::{AgentName, BeadId, DispatchId, Refusal, Standing, State, Timestamp};

/// `ym agent list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentList {
    /// By name.
    pub agents: Vec<AgentView>,
}

/// One agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentView {
    /// Its name, which is also its name as an assignee.
    pub name: AgentName,
    /// What it is.
    pub program: String,
    /// The model it runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it is good at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<String>,
    /// What it is doing.
    pub state: AgentState,
    /// Since when.
    pub since: Timestamp,
    /// When it was last heard of.
    pub heard_at: Timestamp,
    /// When it first registered.
    pub registered_at: Timestamp,
    /// What it says about its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether orders are claimed for it.
    pub auto_claim: bool,
    /// Its process on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The beads it has: claimed, or in progress under its name.
    pub beads: Vec<BeadId>,
    /// Its claims.
    pub claims: Vec<HeldView>,
    /// The order it is to claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderedView>,
    /// The open beads of the tracks that are its own.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub track: Vec<BeadId>,
    /// Orders it was sent.
    pub ordered: u64,
    /// Beads it claimed.
    pub claimed: u64,
    /// Beads it finished.
    pub done: u64,
    /// Orders it let lapse.
    pub lapsed: u64,
    /// Claims it lost by its silence.
    pub expired: u64,
    /// How long it was idle altogether.
    pub idle_ms: u64,
    /// How long it worked.
    pub working_ms: u64,
}

/// A claim that an agent has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeldView {
    /// Which bead.
    pub bead_id: BeadId,
    /// The claim's token.
    pub dispatch_id: DispatchId,
    /// Until when it holds without a sign of life.
    pub lease_until: Option<Timestamp>,
    /// What the agent says it is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

/// An order that is not claimed yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderedView {
    /// Which bead.
    pub bead_id: BeadId,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// When it is withdrawn.
    pub expires_at: Timestamp,
    /// Why this bead went to this agent.
    pub reason: String,
}

/// `ym agent claim`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClaimView {
    /// It has it.
    pub claimed: bool,
    /// It had it before.
    pub already: bool,
    /// Which bead.
    pub bead_id: BeadId,
    /// What is to be done.
    pub title: String,
    /// More about it, of a native bead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whose it is.
    pub agent: AgentName,
    /// The token: what carries an older one is refused.
    pub dispatch_id: DispatchId,
    /// Until when it holds without a sign of life.
    pub lease_until: Option<Timestamp>,
    /// Where whoever had it before was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
}

/// `ym agent inbox`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InboxView {
    /// Whose.
    pub agent: AgentName,
    /// The time to wait was over before anything came.
    pub timed_out: bool,
    /// The oldest first.
    pub messages: Vec<MessageView>,
}

/// One message to an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MessageView {
    /// Its number; the same message always has the same.
    pub id: u64,
    /// When it was sent.
    pub at: Timestamp,
    /// In a line.
    pub subject: String,
    /// How important it is.
    pub importance: String,
    /// What it says.
    pub body: BodyView,
}

/// What a message says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum BodyView {
    /// A bead is given to the agent.
    #[serde(rename = "DISPATCH_ORDER")]
    Order {
        /// Which bead.
        bead_id: BeadId,
        /// What is to be done.
        title: String,
        /// `P0` to `P4`.
        priority: String,
        /// How important it is.
        importance: String,
        /// Why this bead, and why this agent.
        reason: String,
        /// It was claimed for the agent.
        auto_claim: bool,
        /// Without a claim by then it goes to somebody else.
        expires_at: Timestamp,
        /// The claim's token, if it was made.
        #[serde(skip_serializing_if = "Option::is_none")]
        dispatch_id: Option<DispatchId>,
        /// The command that takes it.
        claim_command: String,
    },
    /// A bead is the agent's no longer.
    #[serde(rename = "UNASSIGN")]
    Unassign {
        /// Which bead.
        bead_id: BeadId,
        /// Why.
        reason: String,
        /// The claim that is over, if there was one.
        #[serde(skip_serializing_if = "Option::is_none")]
        dispatch_id: Option<DispatchId>,
    },
}

/// `ym agent why`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentWhyView {
    /// Each agent without work, or the one that was asked about.
    pub agents: Vec<AgentWhy>,
    /// Each ready bead that waits for an agent.
    pub beads: Vec<BeadWhy>,
}

/// Why an agent has no order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentWhy {
    /// Which agent.
    pub name: AgentName,
    /// What it is doing.
    pub state: AgentState,
    /// Why.
    pub reasons: Vec<AgentReason>,
}

/// Why a bead is with no agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BeadWhy {
    /// Which bead.
    pub id: BeadId,
    /// What is to be done.
    pub title: String,
    /// 0 to 4.
    pub priority: u8,
    /// Where it stands.
    pub state: Option<Standing>,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// `ym agent tracks`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrackList {
    /// Whether whole tracks go to one agent.
    pub assigned_whole: bool,
    /// By their first bead.
    pub tracks: Vec<TrackView>,
}

/// A track: open beads that are joined by what they wait for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrackView {
    /// `track-A` and so on.
    pub track_id: String,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Its beads, by priority.
    pub items: Vec<TrackItem>,
}

/// A bead of a track.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrackItem {
    /// Which bead.
    pub id: BeadId,
    /// What is to be done.
    pub title: String,
    /// 0 to 4.
    pub priority: u8,
    /// Where it stands.
    pub state: Option<Standing>,
}

/// All agents.
pub fn agents(state: &State) -> AgentList {
    AgentList { agents: state.agents().map(|one| agent(state, one)).collect() }
}

/// One agent.
pub fn agent(state: &State, agent: &Agent) -> AgentView {
    let name = agent.name();
    let claims: Vec<HeldView> = state.claims_of(name).map(|id| held(state, id)).collect();
    let mut beads: Vec<BeadId> = claims.iter().map(|claim| claim.bead_id.clone()).collect();
    beads.extend(state.in_hand(name).filter(|bead| !claims.iter().any(|c| c.bead_id == **bead)).cloned());
    let order = state.order_of(name).map(|(bead, order)| OrderedView {
        bead_id: bead.clone(),
        sent_at: order.sent_at,
        expires_at: order.expires_at,
        reason: order.reason.clone(),
    });
    let (idle, working) = agent.times(state.clock());
    let registration = &agent.registration;
    AgentView {
        name: name.clone(),
        program: registration.program.clone(),
        model: registration.model.clone(),
        skills: registration.skills.clone(),
        state: agent.state,
        since: agent.since,
        heard_at: agent.heard_at,
        registered_at: agent.registered_at,
        note: agent.says.as_ref().and_then(|says| says.note.clone()),
        auto_claim: registration.auto_claim.unwrap_or(state.settings().agents.auto_claim),
        pid: registration.process.as_ref().map(|process| process.pid),
        beads,
        claims,
        order,
        track: agent.track.iter().cloned().collect(),
        ordered: agent.counts.ordered,
        claimed: agent.counts.claimed,
        done: agent.counts.done,
        lapsed: agent.counts.lapsed,
        expired: agent.counts.expired,
        idle_ms: idle.0,
        working_ms: working.0,
    }
}

fn held(state: &State, id: &DispatchId) -> HeldView {
    HeldView {
        bead_id: id.bead().clone(),
        dispatch_id: id.clone(),
        lease_until: state.lease_until(id),
        progress: state.dispatch(id).and_then(|dispatch| dispatch.progress.clone()),
    }
}

/// What an agent that has claimed a bead is told.
pub fn claim(state: &State, agent: &AgentName, id: &DispatchId, already: bool) -> ClaimView {
    let entry = state.bead(id.bead());
    let context = state.dispatch(id).and_then(|dispatch| state.context(&dispatch.context));
    let asked = context.and_then(|context| context.resume.note.clone());
    // What an agent took of its own accord and gave back has no request that would carry its note on.
    let before = || {
        state.dispatches_of(id.bead()).rev().filter(|it| it.id != *id).find_map(|it| it.checkpoint.clone())
    };
    ClaimView {
        claimed: true,
        already,
        bead_id: id.bead().clone(),
        title: title_of(state, id.bead()),
        description: entry.and_then(|entry| entry.bead.description.clone()),
        agent: agent.clone(),
        dispatch_id: id.clone(),
        lease_until: state.lease_until(id),
        checkpoint: asked.or_else(before),
    }
}

fn title_of(state: &State, bead: &BeadId) -> String {
    state.bead(bead).map(|entry| entry.bead.title.clone()).unwrap_or_default()
}

/// What is in an agent's inbox.
pub fn inbox(state: &State, agent: &AgentName, messages: &[Message], timed_out: bool) -> InboxView {
    let messages = messages.iter().map(|one| message(state, agent, one)).collect();
    InboxView { agent: agent.clone(), timed_out, messages }
}

/// One message, as it is delivered everywhere.
pub fn message(state: &State, agent: &AgentName, message: &Message) -> MessageView {
    let (at, subject, body) = match message {
        Message::Order { order, bead, claim } => {
            let priority = state.bead(bead).map_or(2, |entry| entry.bead.priority);
            let body = BodyView::Order {
                bead_id: bead.clone(),
                title: title_of(state, bead),
                priority: format!("P{priority}"),
                importance: "high".to_owned(),
                reason: order.reason.clone(),
                auto_claim: order.auto_claim,
                expires_at: order.expires_at,
                dispatch_id: claim.clone(),
                claim_command: format!("ym agent claim {bead} --as {agent}"),
            };
            (order.sent_at, format!("[DISPATCH] Assigned: {bead}"), body)
        }
        Message::Notice(notice) => {
            let body = BodyView::Unassign {
                bead_id: notice.bead.clone(),
                reason: notice.why.clone(),
                dispatch_id: notice.dispatch.clone(),
            };
            (notice.at, format!("[UNASSIGN] {}", notice.bead), body)
        }
    };
    MessageView { id: message.id(), at, subject, importance: "high".to_owned(), body }
}

/// Why nothing is assigned: to one agent, or to anybody.
pub fn agent_why(state: &State, only: Option<&str>) -> Result<AgentWhyView, Refusal> {
    let only = only.map(|text| state.find_agent(text)).transpose()?;
    let wanted = |agent: &&Agent| match &only {
        Some(name) => agent.name() == name,
        None => agent.state != AgentState::Working,
    };
    let agents = state.agents().filter(wanted).map(|agent| AgentWhy {
        name: agent.name().clone(),
        state: agent.state,
        reasons: state.why_no_order(agent.name()),
    });
    let waiting = state.open_contexts().filter(|context| context.assign.is_some());
    let beads = waiting.filter_map(|context| {
        let entry = state.bead(context.bead())?;
        let reasons = state.reasons_of(entry, Some(context));
        let is_ready = reasons.iter().any(|reason| reason.code == ReasonCode::AwaitingAgent);
        is_ready.then(|| BeadWhy {
            id: entry.bead.id.clone(),
            title: entry.bead.title.clone(),
            priority: entry.bead.priority,
            state: state.standing(&entry.bead.id),
            reasons,
        })
    });
    Ok(AgentWhyView { agents: agents.collect(), beads: beads.collect() })
}

/// The tracks of what agents do or are to do.
pub fn tracks(state: &State) -> TrackList {
    let named = state.tracks().into_iter().enumerate().map(|(number, track)| {
        let mut items: Vec<TrackItem> = track.beads.iter().map(|id| item(state, id)).collect();
        items.sort_by(|one, other| (one.priority, &one.id).cmp(&(other.priority, &other.id)));
        TrackView { track_id: format!("track-{}", letters(number)), agent: track.agent, items }
    });
    TrackList { assigned_whole: state.settings().agents.tracks, tracks: named.collect() }
}

fn item(state: &State, id: &BeadId) -> TrackItem {
    TrackItem {
        id: id.clone(),
        title: title_of(state, id),
        priority: state.bead(id).map_or(2, |entry| entry.bead.priority),
        state: state.standing(id),
    }
}

/// A to Z, then AA and so on.
fn letters(mut number: usize) -> String {
    let mut text = Vec::new();
    loop {
        text.push(char::from(b'A' + (number % 26) as u8));
        if number < 26 {
            break;
        }
        number = number / 26 - 1;
    }
    text.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_are_lettered_without_end() {
        let all = [0, 25, 26, 51, 52, 701, 702].map(letters);
        assert_eq!(all, ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]);
    }
}
