//! Documents as text for people: within 80 columns, nothing from outside unless it went through `Safe`.

mod bead;
mod convoy;
mod event;
mod scheduler;
mod show;
mod status;
mod table;
mod wrap;

pub(crate) use bead::{beads, sling_results};
pub(crate) use convoy::{convoy, convoys};
pub(crate) use event::event_line;
pub(crate) use scheduler::{first_queued, pass, scheduler_list, scheduler_status};
pub(crate) use show::{bead, context, dispatch, why};
pub(crate) use status::{status, waited};
pub(crate) use table::Table;

use yard_engine::Standing;
use yard_engine::readiness::Reason;

use crate::output::Tone;

/// The colour of a state.
fn tone_of(state: Standing) -> Tone {
    match state {
        Standing::Open | Standing::Queued => Tone::Bold,
        Standing::Blocked | Standing::Cancelled => Tone::Warn,
        Standing::Running | Standing::Done | Standing::Closed => Tone::Good,
        Standing::Failed | Standing::CircuitBroken => Tone::Bad,
    }
}

/// The first reason, and how many more there are.
fn in_short(reasons: &[Reason]) -> String {
    match reasons {
        [] => String::new(),
        [only] => only.message.clone(),
        [first, rest @ ..] => format!("{} (+{})", first.message, rest.len()),
    }
}
