//! `ym agent`: what agents call, and what people want to know about them.

use std::io;

use serde::de::DeserializeOwned;
use yard_client::Ask;
use yard_client::views::{AgentList, InboxView};
use yard_engine::agent::{Process, Registration};
use yard_engine::command::ClaimEnd;
use yard_engine::{AgentName, Command, Refusal};
use yard_workers::process_mark;

use super::{Done, change};
use crate::args::{AgentArgs, AgentCmd, AgentRegister};
use crate::errors::{FAILED, Report};
use crate::output::Out;
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
        AgentCmd::List => return show(session, Ask::AgentList, render::agents),
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
        AgentCmd::Claim { bead } => {
            let command = Command::AgentClaim { agent: agent()?, bead };
            return show(session, Ask::Command { command }, render::claimed);
        }
        AgentCmd::Why => return show(session, Ask::AgentWhy { agent: named }, render::agent_why),
        AgentCmd::Tracks => return show(session, Ask::AgentTracks, render::tracks),
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
    show(session, Ask::Command { command }, render::agent_line)
}

/// Prints what the town answers: the document, or as text.
fn show<T: DeserializeOwned>(
    session: &mut Session,
    ask: Ask,
    text: impl FnOnce(&mut Out, &T) -> io::Result<()>,
) -> Done {
    let document = session.ask(ask)?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        text(&mut session.out, &serde_json::from_str(document.get())?)?;
    }
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
