//! What an operator does to work that is scheduled or runs.

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

pub(super) fn preempt(session: &mut Session, id: String, candidate: Option<String>) -> Done {
    change(session, Command::Preempt { id, candidate })
}

pub(super) fn undo(session: &mut Session) -> Done {
    change(session, Command::Undo)
}

pub(super) fn redo(session: &mut Session) -> Done {
    change(session, Command::Redo)
}
