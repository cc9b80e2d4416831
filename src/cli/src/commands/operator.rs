//! What an operator does to work that is scheduled or runs.

use serde_json::Value;
use yard_client::Ask;
use yard_engine::Command;

use super::{Done, change};
use crate::session::Session;

pub(super) fn cancel(session: &mut Session, id: String, at_once: bool) -> Done {
    change(session, Command::Cancel { id, at_once })
}

pub(super) fn hold(session: &mut Session, id: String, held: bool) -> Done {
    change(session, Command::Hold { id, held })
}

pub(super) fn priority(session: &mut Session, id: String, priority: u8) -> Done {
    change(session, Command::Priority { id, priority })
}

pub(super) fn undo(session: &mut Session) -> Done {
    change(session, Command::Undo)
}

/// Has config and sources read again; alerts are what came of it.
pub(super) fn poke(session: &mut Session) -> Done {
    let document = session.ask(Ask::Poke)?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let answer: Value = serde_json::from_str(document.get())?;
    for alert in answer["alerts"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        session.out.notice(alert);
    }
    if !session.out.quiet() {
        session.out.line("Config and sources read again")?;
    }
    Ok(0)
}
