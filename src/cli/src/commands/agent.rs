//! `ym agent`: what agents call, and what people want to know about them.

use yard_client::Ask;
use yard_client::views::{AgentList, AgentView, AgentWhyView, ClaimView, InboxView, TrackList};
use yard_engine::agent::{Process, Registration};
use yard_engine::command::ClaimEnd;
use yard_engine::{AgentName, Command, Refusal};
use yard_workers::process_mark;

use super::{Done, change};
use crate::args::{AgentArgs, AgentCmd, AgentRegister};
use crate::errors::{FAILED, Report};
use crate::render;
use crate::session::Session;

pub(super) fn run(session: &mut Session, args: AgentArgs) -> Done {
    let own = || std::env::var("YM_AGENT").ok().filter(|name| !name.is_empty());
    let named = args.name.or_else(own);
    let agent = || {
        named.clone().ok_or_else(|| {
            Report::new("no-agent", "say which agent this is about").hint("--as NAME, or YM_AGENT")
        })
    };
    let ends = |bead, token, how| Ok(Command::AgentEnds { agent: agent()?, bead, token, how });
    let ended: Result<Command, Report> = match args.command {
        AgentCmd::Register(args) => return register(session, *args, named),
        AgentCmd::List => return list(session),
        AgentCmd::Heartbeat => return one(session, Command::AgentHeartbeat { agent: agent()? }),
        AgentCmd::Status { status: None, .. } => return status(session, &agent()?),
        AgentCmd::Status { status: Some(status), note } => {
            return one(session, Command::AgentStatus { agent: agent()?, status: status.into(), note });
        }
        AgentCmd::Inbox { wait, timeout, keep } => {
            let agent = agent()?;
            let timeout_ms = timeout.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
            let ask = if wait {
                Ask::AgentWait { agent, keep, timeout_ms }
            } else {
                Ask::Command { command: Command::AgentInbox { agent, keep } }
            };
            return inbox(session, ask);
        }
        AgentCmd::Claim { bead } => return claim(session, agent()?, bead),
        AgentCmd::Why => return why(session, named),
        AgentCmd::Tracks => return tracks(session),
        AgentCmd::Retire { agent: name } => {
            let agent = match name {
                Some(name) => name,
                None => agent()?,
            };
            Ok(Command::AgentRetire { agent })
        }
        AgentCmd::Release { bead, note, token } => ends(bead, token, ClaimEnd::Released { note }),
        AgentCmd::Done { bead, reason, token } => ends(bead, token, ClaimEnd::Done { reason }),
        AgentCmd::Fail { bead, message, unavailable, token } => {
            ends(bead, token, ClaimEnd::Failed { message, unavailable })
        }
    };
    change(session, ended?)
}

fn register(session: &mut Session, args: AgentRegister, named: Option<String>) -> Done {
    let Some(name) = args.agent.or(named) else {
        return Err(Report::new("no-agent", "say what the agent is called")
            .hint("ym agent register NAME --program P"));
    };
    let process = match args.pid {
        None => None,
        Some(pid) => {
            let mark = process_mark(pid)
                .ok_or_else(|| Report::new("no-process", format!("there is no process {pid}")))?;
            Some(Process { pid, mark })
        }
    };
    let registration = Registration {
        name: AgentName::parse(&name).map_err(Refusal::from)?,
        program: args.program,
        model: args.model,
        skills: args.skills,
        auto_claim: args.auto_claim,
        process,
    };
    one(session, Command::AgentRegister(Box::new(registration)))
}

/// Carries something out that answers with the agent.
fn one(session: &mut Session, command: Command) -> Done {
    let document = session.command(command)?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let view: AgentView = serde_json::from_str(document.get())?;
    render::agent_line(&mut session.out, &view)?;
    Ok(0)
}

fn list(session: &mut Session) -> Done {
    let document = session.ask(Ask::AgentList)?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let view: AgentList = serde_json::from_str(document.get())?;
    render::agents(&mut session.out, &view.agents)?;
    Ok(0)
}

fn status(session: &mut Session, name: &str) -> Done {
    let view: AgentList = session.ask_for(Ask::AgentList)?;
    let Some(agent) = view.agents.into_iter().find(|agent| agent.name.as_str() == name) else {
        return Err(Report::new("unknown-agent", format!("there is no agent {name}"))
            .hint(format!("ym agent register {name} --program P makes it known")));
    };
    if session.out.json() {
        let document = serde_json::value::to_raw_value(&agent)?;
        session.out.document(&document.into())?;
    } else {
        render::agent_line(&mut session.out, &agent)?;
    }
    Ok(0)
}

fn inbox(session: &mut Session, ask: Ask) -> Done {
    let document = session.ask(ask)?;
    let view: InboxView = serde_json::from_str(document.get())?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        render::inbox(&mut session.out, &view)?;
    }
    Ok(if view.timed_out { FAILED } else { 0 })
}

fn claim(session: &mut Session, agent: String, bead: String) -> Done {
    let document = session.command(Command::AgentClaim { agent, bead })?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let view: ClaimView = serde_json::from_str(document.get())?;
    render::claimed(&mut session.out, &view)?;
    Ok(0)
}

fn why(session: &mut Session, agent: Option<String>) -> Done {
    let document = session.ask(Ask::AgentWhy { agent })?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let view: AgentWhyView = serde_json::from_str(document.get())?;
    render::agent_why(&mut session.out, &view)?;
    Ok(0)
}

fn tracks(session: &mut Session) -> Done {
    let document = session.ask(Ask::AgentTracks)?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let view: TrackList = serde_json::from_str(document.get())?;
    render::tracks(&mut session.out, &view)?;
    Ok(0)
}
