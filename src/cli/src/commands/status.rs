//! `ym status`, and plain `ym` until there is a console.

use yard_client::Ask;
use yard_client::views::StatusView;

use super::Done;
use crate::render;
use crate::session::Session;

/// A longer queue is only counted.
const SHORT_QUEUE: usize = 200;

pub(super) fn status(session: &mut Session) -> Done {
    if session.out.json() {
        let document = session.ask(Ask::Status { summary: false })?;
        session.out.document(&document)?;
        return Ok(0);
    }
    let mut view: StatusView = session.ask_for(Ask::Status { summary: true })?;
    if (1..=SHORT_QUEUE).contains(&view.scheduler.queued_total) {
        view = session.ask_for(Ask::Status { summary: false })?;
    }
    let town = session.town()?;
    render::status(&mut session.out, &view, &town.root().to_string_lossy())?;
    Ok(0)
}

/// What `ym` alone shows for now.
pub(super) fn console(session: &mut Session) -> Done {
    let code = status(session)?;
    if !session.out.json() && !session.out.quiet() {
        session.out.notice("the console comes with a later version; until then this is ym status, and ym --help lists the commands");
    }
    Ok(code)
}
