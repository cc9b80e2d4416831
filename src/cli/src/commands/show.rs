//! `ym show` and `ym why`.

use serde_json::Value;
use yard_client::Ask;
use yard_client::views::{ContextView, ConvoyView, DispatchView, ShowView, WhyView};

use super::Done;
use crate::render;
use crate::session::Session;

pub(super) fn why(session: &mut Session, id: String) -> Done {
    let document = session.ask(Ask::Why { id })?;
    if session.out.json() {
        session.out.document(&document)?;
    } else {
        let view: WhyView = serde_json::from_str(document.get())?;
        render::why(&mut session.out, &view)?;
    }
    Ok(0)
}

/// What comes back depends on what the id names; each document has a key of its own.
pub(super) fn show(session: &mut Session, id: String) -> Done {
    let document = session.ask(Ask::Show { id })?;
    if session.out.json() {
        session.out.document(&document)?;
        return Ok(0);
    }
    let value: Value = serde_json::from_str(document.get())?;
    let has = |key: &str| value.get(key).is_some();
    if has("tracked") {
        let view: ConvoyView = serde_json::from_value(value)?;
        render::convoy(&mut session.out, &view)?;
    } else if has("dispatches") {
        let view: ShowView = serde_json::from_value(value)?;
        render::bead(&mut session.out, &view)?;
    } else if has("work_bead_id") {
        let view: ContextView = serde_json::from_value(value)?;
        render::context(&mut session.out, &view)?;
    } else {
        let view: DispatchView = serde_json::from_value(value)?;
        render::dispatch(&mut session.out, &view)?;
    }
    Ok(0)
}
