//! `ym mcp`: the town as a server of the Model Context Protocol, for agents that speak it. It decides nothing: every tool
//! asks the town what a command of the same name would ask. Standard output belongs to the protocol alone, and the end of
//! standard input is the end of the server, whatever it is waiting for.

mod answer;
mod memory;
mod params;
mod reader;
mod tools;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::sync::watch;
use yard_engine::{AgentName, Refusal};

use super::Done;
use crate::args::McpArgs;
use crate::errors::Report;
use crate::session::Session;
use memory::Memory;
use reader::Reader;
use tools::Tools;

pub(super) fn serve(session: &mut Session, args: McpArgs) -> Done {
    let own = || std::env::var("YM_AGENT").ok().filter(|name| !name.is_empty());
    let named = args.name.or_else(own);
    let name = named.as_deref().map(AgentName::parse).transpose().map_err(Refusal::from)?;
    let town = session.asked()?;
    log_to_stderr(session);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (closed, is_closed) = watch::channel(false);
    let served = runtime.block_on(async {
        let transport = (Reader::new(tokio::io::stdin(), closed), tokio::io::stdout());
        let tools = Tools::new(town, Memory::new(name), is_closed);
        match tools.serve(transport).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
            // Whoever only looked whether we start has seen that.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    });
    // What still waits for the town has nobody left to tell.
    runtime.shutdown_background();
    served.map_err(|message| Report::new("mcp", message))?;
    Ok(0)
}

fn log_to_stderr(session: &Session) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("YM_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    log.with_ansi(session.out.colours_errors()).with_target(false).init();
}
