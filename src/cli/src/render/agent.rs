//! Agents, what they are told, and why nothing is assigned.

use std::io;

use yard_client::views::{AgentList, AgentView, AgentWhyView, BodyView, ClaimView, InboxView, TrackList};
use yard_client::{Safe, safe_line};
use yard_engine::agent::AgentState;

use super::{Table, in_short, word};
use crate::output::{Out, Tone};
use crate::words::{now, short};

fn tone(state: AgentState) -> Tone {
    match state {
        AgentState::Idle => Tone::Bold,
        AgentState::Working => Tone::Good,
        AgentState::Blocked | AgentState::Unresponsive => Tone::Warn,
        AgentState::Offline => Tone::Dim,
    }
}

/// What an agent has: beads, or an order it is to claim.
fn has(view: &AgentView) -> String {
    let beads: Vec<&str> = view.beads.iter().map(yard_engine::BeadId::as_str).collect();
    let order = view.order.as_ref().map(|order| format!("sent {}", order.bead_id));
    let all: Vec<String> = beads.iter().map(ToString::to_string).chain(order).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(" ") }
}

/// Agents, by name.
pub(crate) fn agents(out: &mut Out, list: &AgentList) -> io::Result<()> {
    let agents = &list.agents;
    if out.quiet() {
        return agents.iter().try_for_each(|agent| out.line(&agent.name));
    }
    if agents.is_empty() {
        return out.line("No agent is registered; ym agent register NAME --program P");
    }
    let mut table = Table::new(&["AGENT", "STATE", "FOR", "BEADS", "HEARD", "DONE", "PROGRAM"]);
    for agent in agents {
        table.row(vec![
            agent.name.to_string(),
            agent.state.as_str().to_owned(),
            short(now().since(agent.since)),
            has(agent),
            format!("{} ago", short(now().since(agent.heard_at))),
            agent.done.to_string(),
            safe_line(&agent.program, 30),
        ]);
    }
    table.print(out)
}

/// One agent, in a line.
pub(crate) fn agent_line(out: &mut Out, agent: &AgentView) -> io::Result<()> {
    if out.quiet() {
        return out.line(&agent.name);
    }
    let state = out.paint(tone(agent.state), agent.state.as_str());
    let note = agent.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
    let has = match has(agent).as_str() {
        "-" => String::new(),
        beads => format!(", {beads}"),
    };
    out.line(format!("{} is {state}{}{has}", agent.name, Safe(&note)))
}

/// What an agent is told.
pub(crate) fn inbox(out: &mut Out, view: &InboxView) -> io::Result<()> {
    if out.quiet() {
        return view.messages.iter().try_for_each(|message| match &message.body {
            BodyView::Order { bead_id, .. } | BodyView::Unassign { bead_id, .. } => out.line(bead_id),
        });
    }
    if view.messages.is_empty() {
        return out.line(if view.timed_out { "Nothing came" } else { "Nothing new" });
    }
    for message in &view.messages {
        let subject = out.paint(Tone::Bold, &message.subject);
        out.line(subject)?;
        match &message.body {
            BodyView::Order { title, priority, reason, dispatch_id, expires_at, claim_command, .. } => {
                out.line(format!("  {priority}  {}", Safe(title)))?;
                out.line(format!("  {}", Safe(reason)))?;
                match dispatch_id {
                    Some(token) => out.line(format!("  claimed for you as {token}"))?,
                    None => out.line(format!("  {claim_command}    (until {expires_at})"))?,
                }
            }
            BodyView::Unassign { reason, .. } => out.line(format!("  {}", Safe(reason)))?,
        }
    }
    Ok(())
}

/// A claim that was made.
pub(crate) fn claimed(out: &mut Out, view: &ClaimView) -> io::Result<()> {
    if out.quiet() {
        return out.line(&view.dispatch_id);
    }
    let already = if view.already { " already" } else { "" };
    let until = view.lease_until.map(|at| format!(", lease until {at}")).unwrap_or_default();
    out.line(format!("{} has {}{already} as {}{until}", view.agent, view.bead_id, view.dispatch_id))?;
    out.line(format!("  {}", Safe(&view.title)))?;
    if let Some(note) = &view.checkpoint {
        out.line(format!("  whoever had it before: {}", Safe(note)))?;
    }
    Ok(())
}

/// Why nothing is assigned.
pub(crate) fn agent_why(out: &mut Out, view: &AgentWhyView) -> io::Result<()> {
    if view.agents.is_empty() && view.beads.is_empty() {
        return out.line("No agent is without work, and no bead waits for one");
    }
    let mut table = Table::wrapping();
    for agent in &view.agents {
        let reasons: Vec<&str> = agent.reasons.iter().map(|reason| reason.message.as_str()).collect();
        table.row(vec![agent.name.to_string(), agent.state.as_str().to_owned(), reasons.join("; ")]);
    }
    for bead in &view.beads {
        let state = bead.state.map(|state| word(&state)).unwrap_or_default();
        table.row(vec![bead.id.to_string(), state, in_short(&bead.reasons)]);
    }
    table.print(out)
}

/// Tracks and whose they are.
pub(crate) fn tracks(out: &mut Out, view: &TrackList) -> io::Result<()> {
    if view.tracks.is_empty() {
        return out.line("Nothing waits for an agent or is with one");
    }
    for track in &view.tracks {
        let whose = match (&track.agent, view.assigned_whole) {
            (Some(agent), _) => format!(" is {agent}'s"),
            (None, true) => " is nobody's yet".to_owned(),
            (None, false) => String::new(),
        };
        let name = out.paint(Tone::Bold, &track.track_id);
        out.line(format!("{name}{whose}"))?;
        let mut table = Table::plain();
        for item in &track.items {
            let state = item.state.map(|state| word(&state)).unwrap_or_default();
            table.row(vec![
                item.id.to_string(),
                format!("P{}", item.priority),
                state,
                safe_line(&item.title, 200),
            ]);
        }
        table.print(out)?;
    }
    if !view.assigned_whole {
        out.line("ym config set agents.tracks true gives whole tracks to one agent")?;
    }
    Ok(())
}
