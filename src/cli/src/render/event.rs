//! Events as lines: position, time, type, and what happened in a few words.

use serde_json::Value;
use yard_client::safe_line;
use yard_client::views::event_words;

/// One event, as it came.
pub(crate) fn event_line(value: &Value, width: usize) -> String {
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    let seq = value["seq"].as_u64().unwrap_or(0);
    let line = format!("{seq:>6} {} {} {}", text("at"), text("type"), event_words(value));
    safe_line(line.trim_end(), width)
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
            event_line(&paused, 120).ends_with("scheduler.paused dispatch is paused: lunch (ann)"),
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
