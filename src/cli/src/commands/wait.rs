//! `ym wait`

use std::time::Duration;

use yard_client::Ask;
use yard_client::views::WaitView;
use yard_daemon::TownDir;
use yard_journal::Role;

use super::Done;
use crate::errors::FAILED;
use crate::render;
use crate::session::{Session, Town};

pub(super) fn wait(session: &mut Session, ids: Vec<String>, all: bool, timeout: Option<Duration>) -> Done {
    let timeout_ms = timeout.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let summary = all && !session.out.json() && !session.out.quiet();
    let document = session.ask(Ask::Wait { ids, all, timeout_ms, summary })?;
    let view: WaitView = serde_json::from_str(document.get())?;
    if session.out.json() {
        session.out.document(&document)?;
    } else if session.out.quiet() {
        for id in &view.done {
            session.out.line(id)?;
        }
    } else {
        let served = match session.asked()? {
            Town::Here(town) => is_served(&town),
            Town::There(_) => true,
        };
        render::waited(&mut session.out, &view, served)?;
    }
    let well = view.failed.is_empty() && view.stuck.is_empty() && !view.timed_out;
    Ok(if well { 0 } else { FAILED })
}

/// Whether somebody is there who starts waiting work by itself.
fn is_served(town: &TownDir) -> bool {
    let role = town.holder().and_then(|holder| holder.role);
    matches!(role, Some(Role::Daemon | Role::Console))
}
