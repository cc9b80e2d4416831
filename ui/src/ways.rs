//! Why a bead does not run, to the bottom of it: every guard with its answer, the chain of what it waits for, and the
//! cheapest ways out, each as a command.

use std::fmt::Write as _;

use std::collections::BTreeSet;

use yard_engine::agent::{Agent, AgentState};
use yard_engine::capacity::Limit;
use yard_engine::readiness::{Reason, ReasonCode};
use yard_engine::{AgentName, BeadId, Standing, State, Timestamp};

use crate::crew::{self, Held};
use crate::forecasts::Forecasts;
use crate::text::{shown, span_exact};

/// So deep is the chain of blockers followed.
const DEEPEST: usize = 6;
/// So many blockers of one bead are shown.
const WIDEST: usize = 5;

/// One guard and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    /// Which guard.
    pub guard: &'static str,
    /// It lets the bead pass.
    pub ok: bool,
    /// In words.
    pub words: String,
}

/// A bead in the chain of blockers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// How deep.
    pub depth: usize,
    /// Which.
    pub id: BeadId,
    /// How it stands.
    pub standing: Option<Standing>,
    /// What it waits for, or how long it will take.
    pub words: String,
}

/// A way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    /// In words.
    pub words: String,
    /// The command, without `ym`.
    pub line: Vec<String>,
}

/// Every guard of a bead, in the order in which they are asked.
pub(crate) fn checks(state: &State, id: &BeadId, now: Timestamp) -> Vec<Check> {
    use ReasonCode as C;
    let reasons = state.reasons(id);
    let mut checks = Vec::new();
    let mut check = |guard: &'static str, codes: &[ReasonCode], fine: String| {
        let mine: Vec<&Reason> = reasons.iter().filter(|reason| codes.contains(&reason.code)).collect();
        let words = match mine.as_slice() {
            [] => fine,
            some => some.iter().map(|reason| words_of(reason, now)).collect::<Vec<_>>().join("; "),
        };
        checks.push(Check { guard, ok: mine.is_empty(), words });
    };
    let entry = state.bead(id);
    let needs = entry.map_or(0, |e| e.bead.dependencies.iter().filter(|edge| edge.kind.blocks()).count());
    let closed = match needs {
        0 => "waits for nothing".to_owned(),
        1 => "what it waited for is closed".to_owned(),
        more => format!("all {more} it waited for are closed"),
    };
    let context = entry.and_then(|entry| entry.work.context.as_ref()).and_then(|id| state.context(id));
    let given_away = context.is_some_and(|context| context.assign.is_some());
    let holder = crew::holder(state, id);
    let work = match (state.standing(id), &holder) {
        (Some(Standing::Running), Some((agent, _))) => format!("agent {} has it", agent.name()),
        (Some(Standing::Running), None) => "a worker is on it".to_owned(),
        (Some(Standing::Closed), _) => "it is closed".to_owned(),
        _ if given_away => "it goes to a registered agent".to_owned(),
        _ => "a worker can be sent to it".to_owned(),
    };
    check("work", &[C::NotDispatchable, C::NoRig], work);
    check("blockers", &[C::BlockedBy, C::MissingDependency, C::Cycle], closed);
    check("gate", &[C::Gated, C::Deferred], "no gate".to_owned());
    check(
        "claim",
        &[C::ClaimedElsewhere, C::AwaitingClose, C::AwaitingMerge, C::MergeConflict],
        "nobody else has it".to_owned(),
    );
    let convoy =
        state.convoys_tracking(id).next().map(|convoy| format!("{} is {}", convoy.id, convoy.status()));
    check("convoy", &[C::Staged], convoy.unwrap_or_else(|| "in none".to_owned()));
    check("held", &[C::Held], "nobody holds it back".to_owned());
    check("time", &[C::NotBefore], "its time has come".to_owned());
    let goes_on = match state.pause() {
        Some(_) => "dispatch is paused; what runs is left alone",
        None => "dispatch is not paused",
    };
    check("paused", &[C::Paused], goes_on.to_owned());
    let rig = state.rig_of(id);
    let room = |limit: &Limit| {
        let room = state.room(limit);
        room.max.map_or_else(
            || format!("{} at work, no cap", room.active),
            |max| format!("{} of {max}", room.active),
        )
    };
    let of_rig = rig.map(|rig| room(&Limit::Rig(rig.name.clone()))).unwrap_or_default();
    check("rig", &[C::RigParked, C::RigDocked], format!("goes on; {of_rig}"));
    if given_away {
        // It takes no worker's place: what counts is who is free.
        check("agent", &[C::AwaitingAgent], "asked once the rest is settled".to_owned());
    } else {
        let full = state.room(&Limit::Town).free() == Some(0);
        let of_town = if full { "full now, and asked once the rest is settled" } else { "there is room" };
        check("capacity", &[C::Capacity], format!("{of_town}: town {}", room(&Limit::Town)));
    }
    check("host", &[C::HostLoad], "not too busy".to_owned());
    check("breaker", &[C::CircuitBroken, C::RetriesExhausted], "closed".to_owned());
    check("account", &[C::AccountCooldown], "none rests".to_owned());
    check("cost", &[C::CostLimit], "within the budgets".to_owned());
    if entry.is_some_and(|entry| entry.work.context.is_none() && entry.work.live.is_none()) {
        unasked(state, id, &mut checks);
    }
    checks
}

/// Of a bead that is not on the schedule readiness names only its own reasons: what would stop it then is said here.
fn unasked(state: &State, id: &BeadId, checks: &mut [Check]) {
    let rig = state.rig_of(id);
    let shut = |guard: &str| match guard {
        "paused" => state.pause().map(|pause| format!("dispatch is paused by {}", shown(&pause.by))),
        "rig" => rig.and_then(|rig| match (rig.parked, rig.docked) {
            (true, _) => Some(format!("rig {} is parked", rig.name)),
            (false, true) => Some(format!("rig {} is docked", rig.name)),
            (false, false) => None,
        }),
        "host" => state.host_gate().map(shown),
        _ => None,
    };
    for check in checks.iter_mut().filter(|check| check.ok) {
        if let Some(words) = shut(check.guard) {
            (check.ok, check.words) = (false, words);
        } else if matches!(check.guard, "account" | "cost") {
            "asked once it is on the schedule".clone_into(&mut check.words);
        }
    }
}

/// A reason in words for a person: a moment is how long it takes, not a date of twenty-four letters.
pub(crate) fn words_of(reason: &Reason, now: Timestamp) -> String {
    let message = shown(&reason.message);
    let Some(until) = reason.until else { return in_spans(&message, now) };
    let left = span_exact(until.as_millis() - now.as_millis());
    let said = in_spans(&message, now);
    if said == message { format!("{message} (in {left})") } else { said }
}

/// A text in which every moment that the engine wrote as a date is told as how long that is from now.
pub(crate) fn in_spans(text: &str, now: Timestamp) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let date = word.trim_end_matches([',', ';', ':', ')', '.']);
        let after = &word[date.len()..];
        let Ok(moment) = Timestamp::parse_rfc3339(date) else {
            words.push(word.to_owned());
            continue;
        };
        let before = words.pop().unwrap_or_default();
        let away = moment.as_millis() - now.as_millis();
        let span = span_exact(away.abs());
        let earlier = words.last().map(String::as_str);
        let told = match (before.as_str(), earlier) {
            ("until", Some("has")) => format!("another {span}"),
            ("before", Some("not")) | ("until", _) => format!("for another {span}"),
            ("since", _) => format!("for {span}"),
            ("at", _) if away >= 0 => format!("in {span}"),
            ("at", _) => format!("{span} ago"),
            _ => format!("{before} {date}"),
        };
        words.push(format!("{told}{after}"));
    }
    words.join(" ")
}

/// The chain of what a bead waits for, depth first.
pub(crate) fn chain(state: &State, forecasts: &Forecasts, id: &BeadId, now: Timestamp) -> Vec<Link> {
    let mut links = Vec::new();
    let mut seen = BTreeSet::from([id.clone()]);
    let mut pending: Vec<(usize, BeadId)> = blockers(state, id).into_iter().rev().map(|on| (1, on)).collect();
    while let Some((depth, on)) = pending.pop() {
        let standing = state.standing(&on);
        let again = !seen.insert(on.clone());
        let words = if again { "see above".to_owned() } else { how(state, forecasts, &on, standing, now) };
        links.push(Link { depth, id: on.clone(), standing, words });
        if !again && depth < DEEPEST {
            let further = blockers(state, &on);
            let more = further.len().saturating_sub(WIDEST);
            pending.extend(further.into_iter().take(WIDEST).rev().map(|next| (depth + 1, next)));
            if more > 0
                && let Some(link) = links.last_mut()
            {
                let _ = write!(link.words, ", and {more} more");
            }
        }
    }
    links
}

/// The open beads that a bead waits for.
fn blockers(state: &State, id: &BeadId) -> Vec<BeadId> {
    let reasons = state.reasons(id);
    let blocking = reasons.into_iter().filter(|reason| {
        matches!(reason.code, ReasonCode::BlockedBy | ReasonCode::Gated | ReasonCode::MissingDependency)
    });
    blocking.flat_map(|reason| reason.ids).collect()
}

fn how(
    state: &State,
    forecasts: &Forecasts,
    id: &BeadId,
    standing: Option<Standing>,
    now: Timestamp,
) -> String {
    match standing {
        None => "nobody has such a bead".to_owned(),
        Some(Standing::Running) => match forecasts.planned(id) {
            Some(planned) => {
                format!("done in about {}", span_exact(planned.end.as_millis() - now.as_millis()))
            }
            None => "at work".to_owned(),
        },
        Some(_) => {
            let reasons = state.reasons(id);
            reasons.first().map_or_else(|| "starts in a moment".to_owned(), |reason| words_of(reason, now))
        }
    }
}

/// The cheapest ways to have a bead run: what a person could do about it or about what it waits for.
pub(crate) fn ways_out(state: &State, forecasts: &Forecasts, id: &BeadId, now: Timestamp) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    let links = chain(state, forecasts, id, now);
    let beads = std::iter::once(id.clone()).chain(links.iter().map(|link| link.id.clone()));
    for bead in beads {
        for reason in state.reasons(&bead) {
            let way = way_out(state, &bead, &reason);
            if let Some(way) = way.filter(|way| ways.iter().all(|known| known.line != way.line)) {
                ways.push(way);
            }
        }
    }
    ways.truncate(6);
    ways
}

fn way_out(state: &State, bead: &BeadId, reason: &Reason) -> Option<Way> {
    use ReasonCode as C;
    let way = |words: String, line: &[&str]| {
        Some(Way { words, line: line.iter().map(|word| (*word).to_owned()).collect() })
    };
    let id = bead.as_str();
    let rig = state.rig_of(bead).map(|rig| rig.name.as_str()).unwrap_or_default();
    match reason.code {
        C::Held => way(format!("let {id} go"), &["unhold", id]),
        C::Paused => way("let dispatch go on".to_owned(), &["scheduler", "resume"]),
        C::RigParked => way(format!("let rig {rig} go on"), &["rig", "unpark", rig]),
        C::RigDocked => way(format!("let rig {rig} go on"), &["rig", "undock", rig]),
        // A task comes to one end, of which its client was told.
        C::CircuitBroken | C::RetriesExhausted if state.task(bead).is_some() => None,
        C::CircuitBroken | C::RetriesExhausted => {
            way(format!("retry {id}, once its cause is mended"), &["scheduler", "retry", id])
        }
        C::Staged => {
            let convoy = state.convoys_tracking(bead).find(|convoy| convoy.staged.is_some())?;
            way(format!("launch {}", convoy.id), &["convoy", "launch", convoy.id.as_str()])
        }
        C::Capacity => {
            let limits = state.limits_of(bead);
            let full = limits.iter().find(|limit| reason.limit.as_deref() == Some(limit.name().as_str()))?;
            let max = state.room(full).max?;
            way(
                format!("one more slot: {} {max} to {}", full.name(), max + 1),
                &["config", "set", &full.setting()?, &(max + 1).to_string()],
            )
        }
        C::MissingDependency => {
            let on = reason.ids.first()?;
            way(format!("drop the dependency on {on}"), &["bead", "dep", "remove", id, on.as_str()])
        }
        C::Gated => {
            let gate = reason.ids.first()?;
            way(format!("close the gate {gate}"), &["bead", "close", gate.as_str()])
        }
        C::Cycle => {
            let on = reason.ids.iter().find(|on| *on != bead)?;
            way(format!("break the cycle at {on}"), &["bead", "dep", "remove", id, on.as_str()])
        }
        C::MergeConflict => {
            way(format!("merge {id} again, once that is mended"), &["scheduler", "retry", id])
        }
        C::AwaitingAgent => {
            let agent = could_pass_on(state, bead)?;
            way(
                format!("offer {id} to others than {agent}"),
                &["agent", "release", id, "--as", agent.as_str()],
            )
        }
        C::NotBefore
        | C::AccountCooldown
        | C::BlockedBy
        | C::HostLoad
        | C::CostLimit
        | C::Deferred
        | C::AwaitingClose
        | C::AwaitingMerge
        | C::ClaimedElsewhere
        | C::Running
        | C::NotDispatchable
        | C::NoRig
        | C::Closed => None,
    }
}

/// The agent that was sent a bead and has not claimed it, if taking it back helps: it was meant for whoever is free, and
/// somebody else is. Otherwise nothing but one more agent helps, which is no command of ours.
fn could_pass_on<'s>(state: &'s State, bead: &BeadId) -> Option<&'s AgentName> {
    let (agent, held) = crew::holder(state, bead)?;
    let context = state.bead(bead)?.work.context.as_ref().and_then(|id| state.context(id))?;
    let for_anyone = context.assign.as_ref().is_some_and(|assign| assign.to.is_none());
    let is_free =
        |other: &Agent| other.state == AgentState::Idle && crew::held(state, other).next().is_none();
    let helps = matches!(held, Held::Order(..))
        && for_anyone
        && crew::track_owner(state, bead).is_none()
        && state.agents().any(is_free);
    helps.then(|| agent.name())
}

#[cfg(test)]
mod tests {
    use yard_engine::Command;
    use yard_engine::command::NewTask;

    use super::*;
    use crate::testing::Yard;

    fn submit(yard: &mut Yard, agent: &str) -> BeadId {
        let task = NewTask { agent: agent.to_owned(), action: "click".to_owned(), ..NewTask::default() };
        yard.command(&Command::TaskSubmit { tasks: vec![task] }).expect("it is taken in");
        yard.state.tasks().last().expect("a task").id.clone()
    }

    #[test]
    fn dates_in_a_text_are_told_as_spans() {
        let now = Timestamp::parse_rfc3339("2026-11-16T14:00:00Z").expect("a time");
        let cases = [
            ("silent since 2026-11-16T13:50:00.000Z", "silent for 10m00"),
            ("offered again at 2026-11-16T14:01:30.000Z; later", "offered again in 1m30; later"),
            ("has until 2026-11-16T14:05:00.000Z to claim it", "has another 5m00 to claim it"),
            ("not before 2026-11-16T14:00:45.000Z", "not for another 45s"),
            ("rests until 2026-11-16T14:00:45.000Z", "rests for another 45s"),
            ("no date at all, nor a time", "no date at all, nor a time"),
            ("2026-11-16T14:00:45.000Z", " 2026-11-16T14:00:45.000Z"),
        ];
        for (text, told) in cases {
            assert_eq!(in_spans(text, now).trim(), told.trim(), "{text}");
        }
    }

    #[test]
    fn a_full_limit_is_raised_by_its_own_setting() {
        let mut yard = Yard::new();
        yard.configure(|settings| {
            (settings.http.max_inflight, settings.http.max_per_agent_inflight) = (2, 1);
        });
        submit(&mut yard, "a");
        let second = submit(&mut yard, "a");
        yard.pass();
        let ways = |yard: &Yard, id: &BeadId| -> Vec<String> {
            let ways = ways_out(&yard.state, &Forecasts::default(), id, yard.now);
            ways.iter().map(|way| way.line.join(" ")).collect()
        };
        assert_eq!(ways(&yard, &second), ["config set http.max_per_agent_inflight 2"]);
        submit(&mut yard, "b");
        yard.pass();
        let third = submit(&mut yard, "c");
        yard.pass();
        assert_eq!(ways(&yard, &third), ["config set http.max_inflight 3"]);
    }
}
