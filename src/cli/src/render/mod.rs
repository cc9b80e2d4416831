//! Documents as text for people: within 80 columns, nothing from outside unless it went through `Safe`.

mod agent;
mod alert;
mod bead;
mod convoy;
mod event;
mod forecast;
mod recover;
mod scheduler;
mod show;
mod stage;
mod status;
mod table;
mod tree;
mod worktree;
mod wrap;

pub(crate) use agent::{agent_line, agent_why, agents, claimed, inbox, tracks};
pub(crate) use alert::alerts;
pub(crate) use bead::{beads, sling_results};
pub(crate) use convoy::{convoy, convoy_trees, convoys, stranded};
pub(crate) use event::event_line;
pub(crate) use forecast::forecast;
pub(crate) use recover::recovered;
pub(crate) use scheduler::{first_queued, pass, scheduler_list, scheduler_status};
pub(crate) use show::{bead, context, dispatch, why};
pub(crate) use stage::{launched, staged};
pub(crate) use status::{status, waited};
pub(crate) use table::Table;
pub(crate) use worktree::worktrees;

use yard_engine::Standing;
use yard_engine::readiness::Reason;

use crate::output::Tone;

/// The colour of a state.
fn tone_of(state: Standing) -> Tone {
    match state {
        Standing::Open | Standing::Queued | Standing::Assigned => Tone::Bold,
        Standing::Staged => Tone::Dim,
        Standing::Blocked | Standing::Cancelled => Tone::Warn,
        Standing::Running | Standing::Done | Standing::Closed => Tone::Good,
        Standing::Failed | Standing::CircuitBroken => Tone::Bad,
    }
}

/// The word by which a document names something.
fn word<T: serde::Serialize>(value: &T) -> String {
    let named = serde_json::to_value(value).ok();
    named.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

/// The first reason, and how many more there are.
fn in_short(reasons: &[Reason]) -> String {
    match reasons {
        [] => String::new(),
        [only] => only.message.clone(),
        [first, rest @ ..] => format!("{} (+{})", first.message, rest.len()),
    }
}
