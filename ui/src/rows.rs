//! One row per bead: its sign, its words, and the shortest reason why it does not run. Built only for what is seen.

use yard_client::views::doing;
use yard_engine::context::Context;
use yard_engine::dispatch::Dispatch;
use yard_engine::readiness::{Reason, ReasonCode};
use yard_engine::{BeadId, Standing, State, Timestamp};

use crate::console::{Console, Mode};
use crate::look::Look;
use crate::text::{shown, span, span_exact};
use crate::theme::Role;

/// What a row shows of a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its sign.
    pub glyph: &'static str,
    /// How it looks.
    pub role: Role,
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its wave.
    pub wave: String,
    /// Its state, in a word.
    pub state: &'static str,
    /// How long it is like this.
    pub age: String,
    /// How long it may wait.
    pub slack: String,
    /// Why it does not run, or what it says.
    pub why: String,
}

/// Builds the row of a bead.
pub(crate) fn row(console: &Console, id: &BeadId) -> Row {
    let state = console.state();
    let now = console.shown_now();
    let standing = state.standing(id);
    let entry = state.bead(id);
    let context = entry.and_then(|entry| entry.work.context.as_ref()).and_then(|id| state.context(id));
    let (glyph, word, role) = words(console, id, standing, context, now);
    let planned = console.shown_forecasts().planned(id);
    Row {
        glyph,
        role,
        id: shown(id.as_str()),
        title: entry.map(|entry| shown(&entry.bead.title)).unwrap_or_default(),
        wave: console.waves().of(id).map(|wave| wave.to_string()).unwrap_or_default(),
        state: word,
        age: age(state, id, standing, context, now),
        slack: planned.map(|planned| span(planned.slack.0 as i64)).unwrap_or_default(),
        why: since_then(console, id, standing).unwrap_or_else(|| why(state, id, standing, context, now)),
    }
}

/// In a replay that shows what is different now: how the bead stands now, if that differs.
fn since_then(console: &Console, id: &BeadId, then: Option<Standing>) -> Option<String> {
    let Mode::Replay(replay) = &console.mode else { return None };
    let now = console.town.state.standing(id);
    let word = now.map_or("gone", Standing::as_str);
    (replay.diff && now != then).then(|| format!("{} now {word}", console.look.glyphs.arrow))
}

/// The sign, the word and the role of a bead, finer than its standing where that helps.
fn words(
    console: &Console,
    id: &BeadId,
    standing: Option<Standing>,
    context: Option<&Context>,
    now: Timestamp,
) -> (&'static str, &'static str, Role) {
    let glyphs = &console.look.glyphs;
    let state = console.state();
    let (glyph, role) = (glyphs.standing(standing), Look::role_of(standing));
    match standing {
        None => (glyph, "gone", role),
        Some(Standing::Running) => {
            let live = live(state, id);
            match live {
                Some(dispatch) if dispatch.stuck => (glyphs.warning, "stalled", Role::Warning),
                Some(dispatch) if dispatch.stop.is_some() => (glyph, "stopping", Role::Warning),
                Some(dispatch) if dispatch.yield_asked.is_some() => {
                    (glyphs.preempted, "yielding", Role::Warning)
                }
                Some(dispatch) if dispatch.running_at.is_none() => (glyph, "starting", role),
                _ => (glyph, "running", role),
            }
        }
        Some(Standing::Queued | Standing::Blocked) => match context {
            Some(context) if context.held => (glyphs.held, "held", Role::Warning),
            Some(context) if context.not_before.is_some_and(|until| until > now) && context.crashes > 0 => {
                (glyphs.retry, "retry", Role::Warning)
            }
            Some(context) if was_preempted(state, context) => (glyphs.preempted, "preempt", Role::Warning),
            _ => (glyph, if standing == Some(Standing::Queued) { "queued" } else { "blocked" }, role),
        },
        Some(Standing::CircuitBroken) => (glyph, "BROKEN", role),
        Some(Standing::Failed) => (glyph, "FAILED", role),
        Some(Standing::Cancelled) => (glyph, "cancel'd", role),
        Some(Standing::Assigned) => (glyph, "assigned", role),
        Some(Standing::Staged) => (glyph, "staged", role),
        Some(Standing::Open) => (glyph, "open", role),
        Some(Standing::Done) => (glyph, "done", role),
        Some(Standing::Closed) => (glyph, "closed", role),
    }
}

/// The dispatch that runs a bead.
fn live<'s>(state: &'s State, id: &BeadId) -> Option<&'s Dispatch> {
    state.bead(id)?.work.live.as_ref().and_then(|id| state.dispatch(id))
}

/// Whether the last attempt of a waiting bead was made to give way.
fn was_preempted(state: &State, context: &Context) -> bool {
    use yard_engine::dispatch::{Outcome, StopReason};
    let last = state.dispatches_of(context.bead()).next_back();
    last.and_then(|dispatch| dispatch.ended.as_ref()).is_some_and(|ended| {
        let gave_way = [StopReason::CooperativePreemption, StopReason::PreemptionTimeout];
        matches!(&ended.outcome, Outcome::Stopped { reason } if gave_way.contains(reason))
    })
}

fn age(
    state: &State,
    id: &BeadId,
    standing: Option<Standing>,
    context: Option<&Context>,
    now: Timestamp,
) -> String {
    let Some(entry) = state.bead(id) else { return String::new() };
    let since = match standing {
        Some(Standing::Running) => {
            let live = live(state, id);
            live.map(|dispatch| dispatch.running_at.unwrap_or(dispatch.started_at))
        }
        Some(Standing::Queued | Standing::Assigned | Standing::Blocked) => {
            context.map(|context| context.fields.enqueued_at)
        }
        Some(Standing::Closed) => entry.bead.closed_at,
        Some(Standing::Failed | Standing::CircuitBroken | Standing::Cancelled | Standing::Done) => {
            let last = state.dispatches_of(id).next_back();
            last.and_then(|dispatch| dispatch.ended.as_ref()).map(|ended| ended.at)
        }
        Some(Standing::Open | Standing::Staged) | None => None,
    };
    since.map_or_else(|| "-".to_owned(), |since| span(now.as_millis() - since.as_millis()))
}

fn why(
    state: &State,
    id: &BeadId,
    standing: Option<Standing>,
    context: Option<&Context>,
    now: Timestamp,
) -> String {
    match standing {
        None | Some(Standing::Closed | Standing::Open) => String::new(),
        Some(Standing::Running) => {
            let live = live(state, id);
            live.map(|dispatch| shown(&doing(dispatch))).unwrap_or_default()
        }
        Some(Standing::CircuitBroken) => {
            let last = context.or_else(|| {
                state
                    .bead(id)
                    .and_then(|entry| entry.work.last_context.as_ref())
                    .and_then(|id| state.context(id))
            });
            last.and_then(|context| context.fields.last_failure.as_deref()).map(shown).unwrap_or_default()
        }
        Some(
            Standing::Queued
            | Standing::Assigned
            | Standing::Blocked
            | Standing::Staged
            | Standing::Failed
            | Standing::Cancelled
            | Standing::Done,
        ) => {
            let reasons = state.reasons(id);
            reasons.first().map(|reason| short(reason, now)).unwrap_or_default()
        }
    }
}

/// A reason in as few words as possible.
pub(crate) fn short(reason: &Reason, now: Timestamp) -> String {
    use ReasonCode as C;
    let until = || {
        let left = reason.until.map(|until| span_exact(until.as_millis() - now.as_millis()));
        left.unwrap_or_default()
    };
    let ids = || match reason.ids.as_slice() {
        [] => String::new(),
        [one] => shown(one.as_str()),
        [first, rest @ ..] => format!("{} +{}", shown(first.as_str()), rest.len()),
    };
    match reason.code {
        C::BlockedBy => format!("after {}", ids()),
        C::MissingDependency => format!("unknown {}", ids()),
        C::Gated => format!("gate {}", ids()),
        C::Staged => "not launched".to_owned(),
        C::RigParked => "rig parked".to_owned(),
        C::RigDocked => "rig docked".to_owned(),
        C::Paused => "paused".to_owned(),
        C::Capacity => format!("full: {}", reason.limit.as_deref().unwrap_or("town")),
        C::NotBefore => format!("in {}", until()),
        C::Deferred => "put off".to_owned(),
        C::HostLoad => "host busy".to_owned(),
        C::CircuitBroken => "cannot start".to_owned(),
        C::CostLimit => "budget spent".to_owned(),
        C::AccountCooldown => format!("account rests {}", until()),
        C::AwaitingAgent if reason.until.is_some() => format!("agent to claim {}", until()),
        C::AwaitingAgent => "no free agent".to_owned(),
        C::AwaitingClose => "close awaited".to_owned(),
        C::AwaitingMerge => "merge awaited".to_owned(),
        C::MergeConflict => "merge conflict".to_owned(),
        C::Held => "held".to_owned(),
        C::ClaimedElsewhere => "taken".to_owned(),
        C::RetriesExhausted => shown(&reason.message),
        C::Running => "running".to_owned(),
        C::NotDispatchable => "not work".to_owned(),
        C::NoRig => "no rig".to_owned(),
        C::Cycle => "waits for itself".to_owned(),
        C::Closed => "closed".to_owned(),
    }
}
