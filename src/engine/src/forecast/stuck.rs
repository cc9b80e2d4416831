//! Beads that never run as things stand, and why.

use super::model::Model;
use crate::bead::Verdict;
use crate::readiness::{ReasonCode, list};
use crate::state::State;
use crate::{BeadId, Timestamp};

/// Why a bead that was wanted never ends, in words.
pub(super) fn why(model: &Model<'_>, bead: &BeadId, launched: bool) -> String {
    let state = model.state;
    let Some(entry) = state.beads.get(bead) else { return "nobody has it".to_owned() };
    let context = entry.work.context.as_ref().and_then(|id| state.context(id));
    if let Some(reason) = state.prospect(entry, context, launched).never {
        return reason.message;
    }
    let waits = state.reasons_of(entry, context).into_iter().find(|reason| {
        matches!(reason.code, ReasonCode::BlockedBy | ReasonCode::MissingDependency | ReasonCode::Cycle)
    });
    if let Some(waits) = waits {
        let unasked: Vec<BeadId> = waits
            .ids
            .iter()
            .filter(|on| waits.code == ReasonCode::BlockedBy && model.unit_of(on).is_none())
            .cloned()
            .collect();
        return match unasked.as_slice() {
            [] => waits.message,
            [only] => format!("waits for {only}, which {}", nobody_runs(state, only)),
            _ => format!("waits for {}, which nobody runs", list(&unasked)),
        };
    }
    let Some(unit) = model.unit_of(bead).map(|unit| &model.units[unit as usize]) else {
        return format!("nobody has asked for it: ym sling {bead}");
    };
    if let Some(pause) = &state.pause {
        return format!("dispatch is paused by {}; ym scheduler resume", pause.by);
    }
    let mut limits = context.into_iter().flat_map(|context| context.limits(false));
    if let Some(limit) = limits.find(|limit| state.room(limit).max == Some(0)) {
        return format!("{} has no slots", limit.name());
    }
    match context.and_then(|context| context.deadline) {
        Some(deadline) if unit.deadline < super::model::NEVER => too_late(deadline),
        Some(_) | None => "nothing can be said about it".to_owned(),
    }
}

fn too_late(deadline: Timestamp) -> String {
    format!("there is no room for it before its deadline, {deadline}")
}

/// How a bead stands that is no work of ours.
fn nobody_runs(state: &State, bead: &BeadId) -> String {
    let Some(entry) = state.beads.get(bead) else { return "nobody has".to_owned() };
    match (entry.bead.not_work_because(), entry.work.verdict) {
        (Some(_), _) => format!("is no work for a worker ({})", entry.bead.kind),
        (None, Some(Verdict::Failed | Verdict::Unavailable)) => "failed".to_owned(),
        (None, Some(Verdict::CircuitBroken)) => "could not be started".to_owned(),
        (None, Some(Verdict::Cancelled)) => "was called off".to_owned(),
        (None, Some(Verdict::Done) | None) => "nobody has asked for".to_owned(),
    }
}
