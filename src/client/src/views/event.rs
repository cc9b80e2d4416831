//! Events in words: whom each is about, and what happened in a few words.

use serde_json::Value;
use yard_engine::agent::AgentEvent;
use yard_engine::alert::AlertEvent;
use yard_engine::convoy::ConvoyEvent;
use yard_engine::dispatch::DispatchEvent;
use yard_engine::task::TaskEvent;
use yard_engine::town::TownEvent;
use yard_engine::{Event, Recorded, Seq, Timestamp};

use super::history::history_line;
use super::show::outcome_words;

/// What happened, from an event as it stands in the log's JSON. Events of a bead read like its history, most others are
/// sentences; of the rest, their plain fields.
pub fn event_words(value: &Value) -> String {
    let subject = event_subject(value);
    let Some((reason, actor)) = words(value) else {
        let facts = fields(value).join(" ");
        return if facts.contains(&subject) { facts } else { format!("{subject} {facts}") };
    };
    let who = if actor.is_empty() { actor } else { format!(" ({actor})") };
    if reason.starts_with(&subject) { format!("{reason}{who}") } else { format!("{subject} {reason}{who}") }
}

fn words(value: &Value) -> Option<(String, String)> {
    let kind = value["type"].as_str()?;
    let event = Event::from_stored(kind, &value.to_string()).ok()?;
    if let Some(said) = sentence(&event) {
        return Some(said);
    }
    let at = Timestamp::parse_rfc3339(value["at"].as_str()?).ok()?;
    let line = history_line(&Recorded { seq: Seq(value["seq"].as_u64()?), at, event })?;
    let actor =
        if matches!(line.actor.as_str(), "scheduler" | "worker") { String::new() } else { line.actor };
    Some((line.reason, actor))
}

/// What happened to a convoy, an alert or a workspace, and who did it.
fn sentence(event: &Event) -> Option<(String, String)> {
    match event {
        Event::Convoy(event) => Some(convoy_sentence(event)),
        Event::Alert(event) => Some(alert_sentence(event)),
        Event::Town(TownEvent::SourceRead { rig, .. }) => {
            Some((format!("the beads workspace of rig {rig} was read"), String::new()))
        }
        Event::Town(TownEvent::AccountCooling { account, until, dispatch }) => {
            let words =
                format!("account {account} rests until {until}: {dispatch} found its service unavailable");
            Some((words, String::new()))
        }
        Event::Town(TownEvent::OperatorDid { undoable, actor }) => {
            Some((undoable.did.clone(), actor.clone()))
        }
        Event::Town(TownEvent::OperatorUndid { did, again, actor }) => {
            let words = if again.is_empty() { "could not be taken back" } else { "taken back" };
            Some((format!("{words}: {did}"), actor.clone()))
        }
        Event::Town(TownEvent::OperatorRedid { did, inverse, actor }) => {
            let words = if inverse.is_empty() { "could not be done again" } else { "done again" };
            Some((format!("{words}: {did}"), actor.clone()))
        }
        Event::Dispatch(DispatchEvent::Progress { text, .. }) => {
            Some((format!("says: {text}"), String::new()))
        }
        Event::Dispatch(DispatchEvent::LastLine { line, .. }) => {
            Some((format!("writes: {line}"), String::new()))
        }
        Event::Dispatch(DispatchEvent::Steps { steps, .. }) => {
            Some((format!("goes through {}", steps.join(", ")), String::new()))
        }
        Event::Dispatch(DispatchEvent::Session { session, .. }) => {
            Some((format!("works in session {session}"), String::new()))
        }
        Event::Dispatch(DispatchEvent::LinedUp { dispatch, after }) => {
            Some((format!("{} is next in line after {after}", dispatch.id), "scheduler".to_owned()))
        }
        Event::Dispatch(DispatchEvent::CalledBack { id }) => {
            Some((format!("{id} is in line no longer"), "scheduler".to_owned()))
        }
        Event::Dispatch(DispatchEvent::Heard { .. }) => Some(("writes".to_owned(), String::new())),
        Event::Dispatch(DispatchEvent::Ended { id, outcome, .. }) => {
            Some((format!("{id} {}", outcome_words(outcome)), String::new()))
        }
        Event::Town(TownEvent::Paused { pause }) => {
            let reason = pause.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            Some((format!("dispatch is paused{reason}"), pause.by.clone()))
        }
        Event::Town(TownEvent::Resumed { actor }) => Some(("dispatch goes on".to_owned(), actor.clone())),
        Event::Town(TownEvent::ClockAdvanced {}) => Some(("something became due".to_owned(), String::new())),
        Event::Town(TownEvent::Retired { beads, convoys, .. }) => {
            let what = [(beads.len(), "closed bead"), (convoys.len(), "closed convoy")];
            let what: Vec<String> =
                what.iter().filter(|(n, _)| *n > 0).map(|(n, word)| count(*n, word)).collect();
            Some((format!("{} forgotten: their time is up", what.join(" and ")), String::new()))
        }
        Event::Town(TownEvent::SettingsChanged { .. }) => {
            Some(("the settings were read anew".to_owned(), String::new()))
        }
        Event::Town(TownEvent::ClusterRoom { jobs }) => {
            Some((format!("the cluster has room for {}", count(*jobs as usize, "job")), String::new()))
        }
        Event::Town(TownEvent::HostGate { closed_because: Some(why) }) => {
            Some((format!("the host takes no new work: {why}"), String::new()))
        }
        Event::Town(TownEvent::HostGate { closed_because: None }) => {
            Some(("the host takes new work again".to_owned(), String::new()))
        }
        Event::Town(TownEvent::Repaired { .. })
        | Event::Rig(_)
        | Event::Bead(_)
        | Event::Context(_)
        | Event::Dispatch(_)
        | Event::Merge(_)
        | Event::Preemption(_) => None,
        Event::Task(event) => Some((task_sentence(event), String::new())),
        Event::Agent(event) => Some(agent_sentence(event)),
    }
}

fn agent_sentence(event: &AgentEvent) -> (String, String) {
    let nobody = String::new();
    match event {
        AgentEvent::Registered { agent, actor } => {
            (format!("agent {} registered: {}", agent.name, agent.program), actor.clone())
        }
        AgentEvent::Retired { name, actor } => (format!("agent {name} is retired"), actor.clone()),
        AgentEvent::Heard { name, .. } => (format!("agent {name} gave a sign of life"), nobody),
        AgentEvent::Said { name, says: Some(says) } => {
            let note = says.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            (format!("agent {name} says it is {}{note}", says.what.as_str()), nobody)
        }
        AgentEvent::Said { name, says: None } => (format!("agent {name} is free for its work"), nobody),
        AgentEvent::WentOffline { name, since } => {
            (format!("agent {name} is offline: nothing heard since {since}"), nobody)
        }
        AgentEvent::Read { name, .. } => (format!("agent {name} read its notices"), nobody),
        AgentEvent::Told { name, error, .. } => {
            let how = error.as_ref().map(|error| format!(", which failed: {error}")).unwrap_or_default();
            (format!("the hook was told what agent {name} is told{how}"), nobody)
        }
        AgentEvent::TrackGiven { name, beads } => {
            (format!("agent {name} was given a track of {}", count(beads.len(), "bead")), nobody)
        }
        AgentEvent::Sent { bead, order, .. } => {
            (format!("{bead} was sent to agent {} ({})", order.agent, order.reason), nobody)
        }
        AgentEvent::Withdrawn { bead, name, why, .. } => {
            (format!("{bead} was taken back from agent {name}: {}", why.words()), nobody)
        }
    }
}

fn task_sentence(event: &TaskEvent) -> String {
    match event {
        TaskEvent::Submitted { task } => {
            format!("{} submitted by agent {}: {}", task.id, task.agent, task.action)
        }
        TaskEvent::Rejected { task } => {
            let why = task.ended.as_ref().and_then(|end| end.error.as_deref()).unwrap_or("rejected");
            format!("{} of agent {} {why}", task.id, task.agent)
        }
        TaskEvent::Answered { id, .. } => format!("{id} has its answer"),
        TaskEvent::Ended { id, state, error, .. } => {
            let why = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            format!("{id} is {}{why}", state.as_str())
        }
        TaskEvent::Kept { id } => format!("{id} is kept: other work needs it"),
        TaskEvent::Retired { ids, .. } => format!("{} forgotten: their time is up", count(ids.len(), "task")),
        TaskEvent::WebhookDelivered { id } => format!("the client of {id} was told of its end"),
        TaskEvent::WebhookFailed { id, error, next_at } => {
            let then = next_at.map_or("given up".to_owned(), |at| format!("again at {at}"));
            format!("the client of {id} could not be told: {error}; {then}")
        }
    }
}

fn convoy_sentence(event: &ConvoyEvent) -> (String, String) {
    let of = |beads: usize, waves: usize| {
        let waves = if waves > 0 { format!(" in {}", count(waves, "wave")) } else { String::new() };
        format!("{}{waves}", count(beads, "bead"))
    };
    let (said, actor) = match event {
        ConvoyEvent::Created { convoy, actor } => {
            (format!("made of {}: {}", of(convoy.tracked.len(), 0), convoy.title), actor)
        }
        ConvoyEvent::Staged { convoy, actor } => {
            let size = of(convoy.tracked.len(), convoy.waves.len());
            (format!("{}, {size}: {}", convoy.status(), convoy.title), actor)
        }
        ConvoyEvent::Launched { tracked, waves, actor, .. } => {
            (format!("launched, {}", of(tracked.len(), waves.len())), actor)
        }
        ConvoyEvent::Added { beads, actor, .. } => (format!("tracks {} more", beads.len()), actor),
        ConvoyEvent::Reopened { actor, .. } => ("open again".to_owned(), actor),
        ConvoyEvent::Watched { watcher, wants: true, actor, .. } => {
            (format!("{watcher} is told when it closes"), actor)
        }
        ConvoyEvent::Watched { watcher, wants: false, actor, .. } => {
            (format!("{watcher} is told no longer"), actor)
        }
        ConvoyEvent::Closed { reason, actor, .. } => (format!("closed: {reason}"), actor),
    };
    (said, actor.clone())
}

fn alert_sentence(event: &AlertEvent) -> (String, String) {
    match event {
        AlertEvent::Raised { alert } => {
            (format!("{}: {}", alert.kind.as_str(), alert.message), String::new())
        }
        AlertEvent::Told { error: None, .. } => ("told".to_owned(), String::new()),
        AlertEvent::Told { error: Some(error), .. } => (format!("could not be told: {error}"), String::new()),
        AlertEvent::Acked { actor, .. } => ("seen".to_owned(), actor.clone()),
        AlertEvent::Ended { .. } => ("over".to_owned(), String::new()),
    }
}

/// Whom an event is about.
pub fn event_subject(value: &Value) -> String {
    let paths = [
        "/context/fields/work_bead_id",
        "/dispatch/id",
        "/task/id",
        "/cycle/victim",
        "/victim",
        "/bead/id",
        "/bead",
        "/rig/name",
        "/convoy/id",
        "/alert/id",
        "/id",
        "/name",
    ];
    let found = paths.into_iter().find_map(|path| value.pointer(path)?.as_str());
    found.unwrap_or_default().to_owned()
}

/// Its plain fields.
fn fields(value: &Value) -> Vec<String> {
    let skip = |key: &str| matches!(key, "seq" | "at" | "type");
    let field = |(key, value): (&String, &Value)| match value {
        Value::String(text) => Some(format!("{key}={text}")),
        Value::Number(_) | Value::Bool(_) => Some(format!("{key}={value}")),
        Value::Object(inner) => {
            let by = inner.get("by").and_then(Value::as_str).map(|by| format!("by={by}"));
            let did = inner.get("did").and_then(Value::as_str).map(|did| format!("did={did}"));
            let reason = inner.get("reason").and_then(Value::as_str).map(|why| format!("reason={why}"));
            let words: Vec<String> = [by, did, reason].into_iter().flatten().collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        Value::Null | Value::Array(_) => None,
    };
    value.as_object().into_iter().flatten().filter(|(key, _)| !skip(key)).filter_map(field).collect()
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
