//! The tools: each turns its arguments into one request, under the agent's name, and remembers what the answer says about
//! the session. Asking the town blocks, so it happens on threads of its own.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use yard_client::Ask;
use yard_daemon::Answered;
use yard_engine::agent::{Process, Registration};
use yard_engine::command::{ClaimEnd, WorkerSays};
use yard_engine::money::Usd;
use yard_engine::{AgentName, Command, DispatchId};
use yard_workers::process_mark;

use super::answer::{Told, told};
use super::memory::Memory;
use super::params;
use crate::errors::Report;
use crate::session::{Town, actor, ask_town_as};

/// The longest a call waits, so that clients do not give it up.
const LONGEST_WAIT: u32 = 300;

const INSTRUCTIONS: &str = "\
Yardmaster hands out work: beads, which are pieces of work with an id such as gt-abc. The loop: \
register once with your name; inbox with wait_seconds until an order comes; claim its bead; do the work, calling \
checkpoint at every resting place and progress whenever what you are doing changes, and cost if you know it; \
then done (or fail, or release to give it back), and inbox again. \
A claim is yours alone. If a call says that it is over, somebody else may have the bead: stop working on it. \
If checkpoint answers yield: true, save your work, call release with a note, and take the next order. \
If no order comes, why says what is in the way. \
Where a hint names a ym command, the tool of that name does the same.";

/// The server.
pub(super) struct Tools {
    town: Town,
    memory: Mutex<Memory>,
    /// Whether the client is gone.
    is_closed: watch::Receiver<bool>,
    router: ToolRouter<Self>,
}

#[tool_handler(router = self.router)]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let name = Implementation::new("yardmaster", env!("CARGO_PKG_VERSION")).with_title("Yardmaster");
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(INSTRUCTIONS)
    }
}

#[tool_router]
impl Tools {
    #[tool(
        description = "Make yourself known, once at the start. From then on you are sent orders, and you count as alive as long as this session lasts. The answer shows the claims you already have."
    )]
    async fn register(
        &self,
        Parameters(args): Parameters<params::Register>,
        context: RequestContext<RoleServer>,
    ) -> Told {
        let name = self.agent(args.name.as_deref())?;
        let client = || context.client_info().map(|client| client.name);
        let pid = std::process::id();
        let registration = Registration {
            name: name.clone(),
            program: args.program.or_else(client).unwrap_or_else(|| "mcp".to_owned()),
            model: args.model,
            skills: args.skills,
            auto_claim: args.auto_claim,
            // The session lives as long as its server does.
            process: process_mark(pid).map(|mark| Process { pid, mark }),
        };
        let answered = self.command(&name, Command::AgentRegister(Box::new(registration))).await?;
        self.memory().registered(&read(&answered)?);
        told(&answered)
    }

    #[tool(
        description = "Say what you are doing where your claims do not show it: blocked while you wait for something, working if you are busy otherwise, idle when that is over, offline before you leave. Whoever is blocked or working is sent no orders."
    )]
    async fn set_status(&self, Parameters(args): Parameters<params::SetStatus>) -> Told {
        let agent = self.agent(args.agent.as_deref())?;
        let (status, note) = (args.status.into(), args.note);
        let command = Command::AgentStatus { agent: agent.to_string(), status, note };
        told(&self.command(&agent, command).await?)
    }

    #[tool(
        description = "Read what you are told: orders (DISPATCH_ORDER: claim the bead before expires_at, unless dispatch_id says that it is claimed already) and what is yours no longer (UNASSIGN: stop working on it). With wait_seconds the answer comes as soon as there is something; timed_out: true means that nothing came, so call it again."
    )]
    async fn inbox(
        &self,
        Parameters(args): Parameters<params::Inbox>,
        context: RequestContext<RoleServer>,
    ) -> Told {
        let agent = self.agent(args.agent.as_deref())?;
        if args.wait_seconds > 0 {
            // What is waited for is read afterwards, so that nobody's mail is lost if the client has left meanwhile.
            let mut is_closed = self.is_closed.clone();
            let waited = tokio::select! {
                waited = self.wait_for_mail(&agent, args.wait_seconds) => waited?,
                () = context.ct.cancelled() => return Err(client_is_gone()),
                _ = is_closed.wait_for(|closed| *closed) => return Err(client_is_gone()),
            };
            let view: yard_client::views::InboxView = read(&waited)?;
            if view.timed_out {
                return told(&waited);
            }
        }
        let command = Command::AgentInbox { agent: agent.to_string(), keep: false };
        let answered = self.command(&agent, command).await?;
        self.memory().read(&read(&answered)?);
        told(&answered)
    }

    #[tool(
        description = "Take a bead: one you were sent, or any that is ready. Either it is yours afterwards, or you are told who has it. The answer says what is to be done, and where whoever had it before was (checkpoint). Claiming again what you have changes nothing."
    )]
    async fn claim(&self, Parameters(args): Parameters<params::Claim>) -> Told {
        let agent = self.agent(args.agent.as_deref())?;
        let command = Command::AgentClaim { agent: agent.to_string(), bead: args.bead };
        let answered = self.command(&agent, command).await?;
        self.memory().claimed(&read(&answered)?);
        told(&answered)
    }

    #[tool(
        description = "Say that you are alive, which renews your claims. Every other call does so too, and so does this session itself once you have registered."
    )]
    async fn heartbeat(&self, Parameters(args): Parameters<params::Heartbeat>) -> Told {
        let agent = self.agent(args.agent.as_deref())?;
        let command = Command::AgentHeartbeat { agent: agent.to_string() };
        told(&self.command(&agent, command).await?)
    }

    #[tool(
        description = "Note where you are with a claimed bead, for whoever goes on after you. If the answer says yield: true, save your work and release the bead now; if it is refused as stale, the bead is yours no longer: stop."
    )]
    async fn checkpoint(&self, Parameters(args): Parameters<params::Checkpoint>) -> Told {
        let says = WorkerSays::Checkpoint { note: args.note, session: None };
        self.say(args.agent, args.bead, says).await
    }

    #[tool(
        description = "Say in a line what you are doing with a claimed bead; people watch it live. Replaces what you said before."
    )]
    async fn progress(&self, Parameters(args): Parameters<params::Progress>) -> Told {
        self.say(args.agent, args.bead, WorkerSays::Progress { text: args.text }).await
    }

    #[tool(
        description = "Say what the work on a claimed bead has cost since you last said so, or altogether (total: true). It counts against the budgets of the town."
    )]
    async fn cost(&self, Parameters(args): Parameters<params::Cost>) -> Told {
        let usd =
            Usd::from_dollars(args.usd).map_err(|error| Report::new("bad-amount", error.to_string()))?;
        let says = WorkerSays::Cost { usd, total: args.total, tokens: args.tokens };
        self.say(args.agent, args.bead, says).await
    }

    #[tool(
        description = "Say that the work on a claimed bead is done: it closes, and what waited for it may start. Then call inbox for the next order."
    )]
    async fn done(&self, Parameters(args): Parameters<params::Finished>) -> Told {
        self.end(args.agent, args.bead, ClaimEnd::Done { reason: args.reason }).await
    }

    #[tool(
        description = "Say that the work on a claimed bead failed; it is tried again by the town's retry policy. Set unavailable if a service was not there, which is not the work's fault."
    )]
    async fn fail(&self, Parameters(args): Parameters<params::Fail>) -> Told {
        let how = ClaimEnd::Failed { message: args.message, unavailable: args.unavailable };
        self.end(args.agent, args.bead, how).await
    }

    #[tool(
        description = "Give a claimed bead back unfinished, or decline an order. The note is what whoever has it next begins with."
    )]
    async fn release(&self, Parameters(args): Parameters<params::Release>) -> Told {
        self.end(args.agent, args.bead, ClaimEnd::Released { note: args.note }).await
    }

    #[tool(
        description = "Say why you are sent nothing and which beads wait for an agent; with bead, why that bead is not running.",
        annotations(read_only_hint = true)
    )]
    async fn why(&self, Parameters(args): Parameters<params::Why>) -> Told {
        let named = args.agent.filter(|name| !name.is_empty());
        let own = || self.memory().own_name().map(ToString::to_string);
        let agent = named.or_else(own);
        let asker = agent.clone().unwrap_or_else(actor);
        let ask = match args.bead {
            Some(id) => Ask::Why { id },
            None => Ask::AgentWhy { agent },
        };
        told(&self.ask(asker, ask).await?)
    }

    #[tool(
        description = "List all agents: what each is, what it is doing, and which beads it has.",
        annotations(read_only_hint = true)
    )]
    async fn list_agents(&self) -> Told {
        let own = self.memory().own_name().map(ToString::to_string);
        told(&self.ask(own.unwrap_or_else(actor), Ask::AgentList).await?)
    }
}

impl Tools {
    pub(super) fn new(town: Town, memory: Memory, is_closed: watch::Receiver<bool>) -> Self {
        Self { town, memory: Mutex::new(memory), is_closed, router: Self::tool_router() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn agent(&self, named: Option<&str>) -> Result<AgentName, Report> {
        self.memory().agent(named)
    }

    async fn wait_for_mail(&self, agent: &AgentName, seconds: u32) -> Result<Answered, Report> {
        let timeout_ms = Some(u64::from(seconds.min(LONGEST_WAIT)) * 1000);
        let ask = Ask::AgentWait { agent: agent.to_string(), keep: true, timeout_ms };
        self.ask(agent.to_string(), ask).await
    }

    /// Says something about a claim, with its token.
    async fn say(&self, agent: Option<String>, bead: Option<String>, says: WorkerSays) -> Told {
        let agent = self.agent(agent.as_deref())?;
        let token = self.memory().token(&agent, bead.as_deref())?;
        let (name, bead) = (agent.to_string(), token.bead().to_string());
        let command = Command::AgentSays { agent: name, bead, token: token.to_string(), says };
        let asked = self.command(&agent, command).await;
        told(&self.heed(&agent, &token, asked)?)
    }

    /// Ends a claim, with its token.
    async fn end(&self, agent: Option<String>, bead: Option<String>, how: ClaimEnd) -> Told {
        let agent = self.agent(agent.as_deref())?;
        let known = self.memory().token(&agent, bead.as_deref());
        let (bead, token) = match (known, &how, bead) {
            (Ok(token), _, _) => (token.bead().to_string(), Some(token)),
            // There is no token for an order that is declined.
            (Err(_), ClaimEnd::Released { .. }, Some(bead)) => (bead, None),
            (Err(report), _, _) => return Err(report),
        };
        let command = Command::AgentEnds {
            agent: agent.to_string(),
            bead,
            token: token.as_ref().map(ToString::to_string),
            how,
        };
        let mut asked = self.command(&agent, command).await;
        if let Some(token) = token {
            asked = self.heed(&agent, &token, asked);
            if asked.is_ok() {
                self.memory().forget(&agent, token.bead());
            }
        }
        told(&asked?)
    }

    /// Remembers if the town says that a claim is over.
    fn heed(
        &self,
        agent: &AgentName,
        token: &DispatchId,
        asked: Result<Answered, Report>,
    ) -> Result<Answered, Report> {
        asked.inspect_err(|report| {
            if matches!(report.code(), "stale-claim" | "stale-dispatch" | "unknown-dispatch") {
                self.memory().over(agent, token);
            }
        })
    }

    async fn command(&self, agent: &AgentName, command: Command) -> Result<Answered, Report> {
        self.ask(agent.to_string(), Ask::Command { command }).await
    }

    async fn ask(&self, asker: String, ask: Ask) -> Result<Answered, Report> {
        let town = self.town.clone();
        let asked = tokio::task::spawn_blocking(move || ask_town_as(&town, asker, ask, &mut |_| true));
        asked.await.map_err(|error| Report::new("internal", error.to_string()))?
    }
}

fn read<T: DeserializeOwned>(answered: &Answered) -> Result<T, Report> {
    Ok(serde_json::from_str(answered.document.get())?)
}

fn client_is_gone() -> Report {
    Report::new("cancelled", "the client does not wait any longer; nothing was read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_tells_an_agent_what_it_does_and_what_each_argument_means() {
        let tools = Tools::tool_router().list_all();
        assert_eq!(tools.len(), 13);
        for tool in tools {
            assert!(tool.description.is_some_and(|text| text.len() > 40), "{} says too little", tool.name);
            let arguments = tool.input_schema.get("properties").and_then(|it| it.as_object());
            for (name, argument) in arguments.into_iter().flatten() {
                assert!(argument.get("description").is_some(), "{}: {name} is not explained", tool.name);
                // Not every client follows references.
                assert!(argument.get("$ref").is_none(), "{}: {name} stands elsewhere", tool.name);
            }
        }
    }
}
