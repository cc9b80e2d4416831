//! Events as lines: position, time, type, and what happened in a few words.

use serde_json::Value;
use yard_client::safe_line;
use yard_client::views::history_line;
use yard_engine::alert::AlertEvent;
use yard_engine::convoy::ConvoyEvent;
use yard_engine::dispatch::DispatchEvent;
use yard_engine::town::TownEvent;
use yard_engine::{Event, Recorded, Seq, Timestamp};

use crate::words::count;

/// One event, as it came.
pub(crate) fn event_line(value: &Value, width: usize) -> String {
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    let seq = value["seq"].as_u64().unwrap_or(0);
    let line = format!("{seq:>6} {} {} {}", text("at"), text("type"), summary(value));
    safe_line(line.trim_end(), width)
}

/// What happened. Events of a bead read like its history, those of convoys and alerts are sentences; of others, their
/// plain fields.
fn summary(value: &Value) -> String {
    let subject = subject(value);
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
        Event::Dispatch(DispatchEvent::Session { session, .. }) => {
            Some((format!("works in session {session}"), String::new()))
        }
        Event::Dispatch(DispatchEvent::Heard { .. }) => Some(("writes".to_owned(), String::new())),
        Event::Town(_)
        | Event::Rig(_)
        | Event::Bead(_)
        | Event::Context(_)
        | Event::Dispatch(_)
        | Event::Preemption(_) => None,
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

/// Whom it is about.
fn subject(value: &Value) -> String {
    let paths = [
        "/context/fields/work_bead_id",
        "/dispatch/id",
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_one_safe_line() {
        let closed = json!({"seq": 7, "at": "2026-11-16T09:30:00.000Z", "type": "bead.closed", "id": "gt-a",
            "reason": "done\u{1b}[31m\nby hand", "actor": "ann"});
        assert_eq!(
            event_line(&closed, 120),
            "     7 2026-11-16T09:30:00.000Z bead.closed gt-a done by hand (ann)"
        );
        let paused = json!({"seq": 8, "at": "2026-11-16T09:30:00.000Z", "type": "scheduler.paused",
            "pause": {"by": "ann", "at": "2026-11-16T09:30:00.000Z", "reason": "lunch"}});
        assert!(
            event_line(&paused, 120).ends_with("scheduler.paused by=ann reason=lunch"),
            "{}",
            event_line(&paused, 120)
        );
        let said = |event: Value| {
            let line = event_line(&event, 200);
            line.split_once(event["type"].as_str().unwrap_or_default()).expect("a type").1.trim().to_owned()
        };
        let at = "2026-11-16T09:30:00.000Z";
        let convoy = json!({"id": "hq-cv-abc12", "title": "Log\u{1b}[31min", "tracked": ["gt-a", "gt-b"], "waves": [1, 1],
            "created_at": at, "staged": "warnings"});
        let staged = json!({"seq": 1, "at": at, "type": "convoy.staged", "convoy": convoy, "actor": "ann"});
        assert_eq!(said(staged), "hq-cv-abc12 staged:warnings, 2 beads in 2 waves: Login (ann)");
        let read = json!({"seq": 1, "at": at, "type": "source.read", "rig": "shop", "stamp": "x"});
        assert_eq!(said(read), "the beads workspace of rig shop was read");
        let alert =
            json!({"id": "al-1", "key": "k", "kind": "stale-hook", "message": "gt-a hangs", "at": at});
        let raised = json!({"seq": 1, "at": at, "type": "alert.raised", "alert": alert});
        assert_eq!(said(raised), "al-1 stale-hook: gt-a hangs");
        let gone = json!({"seq": 1, "at": at, "type": "bead.vanished", "id": "gt-a"});
        assert_eq!(said(gone), "gt-a shown by its workspace no longer (beads)");
        let overdue =
            json!({"seq": 1, "at": at, "type": "dispatch.close_overdue", "id": "gt-a@1", "next": "requeued"});
        assert_eq!(said(overdue), "gt-a@1 finished, but its bead was not closed in time");
        let unknown = json!({"seq": 9, "at": "x", "type": "moon.rose", "id": "m", "phase": 3});
        assert!(
            event_line(&unknown, 120).ends_with("moon.rose id=m phase=3"),
            "{}",
            event_line(&unknown, 120)
        );
    }
}
