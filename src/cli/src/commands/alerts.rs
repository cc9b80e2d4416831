//! `ym alerts` and `ym poke`.

use serde_json::Value;
use yard_client::Ask;
use yard_client::views::AlertList;
use yard_engine::Command;

use super::{Done, change};
use crate::render;
use crate::session::Session;

pub(super) fn alerts(session: &mut Session, all: bool, ack: Option<String>) -> Done {
    if let Some(id) = ack {
        return change(session, Command::AlertAck { id });
    }
    let document = session.ask(Ask::Alerts { all })?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        let view: AlertList = serde_json::from_str(document.get())?;
        render::alerts(&mut session.out, &view.alerts)?;
    }
    Ok(0)
}

/// Has config and sources read again; alerts are what came of it.
pub(super) fn poke(session: &mut Session, rig: Option<String>) -> Done {
    let said = match &rig {
        Some(rig) => format!("The workspace of rig {rig} was read again"),
        None => "Config and sources read again".to_owned(),
    };
    let document = session.ask(Ask::Poke { rig })?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let answer: Value = serde_json::from_str(document.get())?;
    for alert in answer["alerts"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        session.out.notice(alert);
    }
    if !session.out.quiet() {
        session.out.line(yard_client::Safe(&said))?;
    }
    Ok(0)
}
