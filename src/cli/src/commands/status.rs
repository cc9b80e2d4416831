//! `ym status`.

use yard_client::Ask;
use yard_client::views::StatusView;

use super::Done;
use crate::render;
use crate::session::{Session, Town};

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
    let name = match session.asked()? {
        Town::Here(town) => town.root().to_string_lossy().into_owned(),
        Town::There(place) => place.to_string(),
    };
    render::status(&mut session.out, &view, &name)?;
    Ok(0)
}
