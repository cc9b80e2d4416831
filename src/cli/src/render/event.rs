//! Events as lines: position, time, type, and what happened in a few words.

use serde_json::Value;
use yard_client::safe_line;
use yard_client::views::history_line;
use yard_engine::{Event, Recorded, Seq, Timestamp};

/// One event, as it came.
pub(crate) fn event_line(value: &Value, width: usize) -> String {
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    let seq = value["seq"].as_u64().unwrap_or(0);
    let line = format!("{seq:>6} {} {} {}", text("at"), text("type"), summary(value));
    safe_line(line.trim_end(), width)
}

/// What happened. Events of a bead read like its history; of others, their plain fields.
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
    let at = Timestamp::parse_rfc3339(value["at"].as_str()?).ok()?;
    let line = history_line(&Recorded { seq: Seq(value["seq"].as_u64()?), at, event })?;
    let actor =
        if matches!(line.actor.as_str(), "scheduler" | "worker") { String::new() } else { line.actor };
    Some((line.reason, actor))
}

/// Whom it is about.
fn subject(value: &Value) -> String {
    let paths = [
        "/context/fields/work_bead_id",
        "/dispatch/id",
        "/bead/id",
        "/bead",
        "/rig/name",
        "/convoy/id",
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
        let unknown = json!({"seq": 9, "at": "x", "type": "moon.rose", "id": "m", "phase": 3});
        assert!(
            event_line(&unknown, 120).ends_with("moon.rose id=m phase=3"),
            "{}",
            event_line(&unknown, 120)
        );
    }
}
