//! `ym worker`: called from inside a dispatch.

use yard_client::views::HeardView;
use yard_engine::Command;
use yard_engine::command::WorkerSays;

use super::Done;
use crate::args::{WorkerArgs, WorkerCmd};
use crate::errors::Report;
use crate::session::Session;

pub(super) fn run(session: &mut Session, args: WorkerArgs) -> Done {
    let own = || std::env::var("YM_DISPATCH").ok().filter(|id| !id.is_empty());
    let Some(dispatch) = args.dispatch.or_else(own) else {
        return Err(Report::new("no-dispatch", "this is not a worker: YM_DISPATCH is not set")
            .hint("call it from inside a dispatch, or name one with --dispatch ID"));
    };
    let asks = matches!(args.command, WorkerCmd::Checkpoint { .. });
    let says = match args.command {
        WorkerCmd::Checkpoint { note, session } => WorkerSays::Checkpoint { note, session },
        WorkerCmd::Cost { usd, total, tokens } => WorkerSays::Cost { usd, total, tokens },
        WorkerCmd::Progress { text } => WorkerSays::Progress { text },
        WorkerCmd::Done { reason } => WorkerSays::Done { reason },
        WorkerCmd::Fail { message, unavailable } => WorkerSays::Fail { message, unavailable },
    };
    let document = session.command(Command::Worker { dispatch, says }).inspect_err(|report| {
        if asks && report.code() == "stale-dispatch" && !session.out.json() {
            // Whoever only looks at the word should end as well. Who cannot be told is told by the exit code.
            let _ = session.out.line("yield");
        }
    })?;
    if session.out.json() {
        session.out.document(&document)?;
    } else if asks {
        let heard: HeardView = serde_json::from_str(document.get())?;
        session.out.line(if heard.should_yield { "yield" } else { "continue" })?;
    }
    Ok(0)
}
