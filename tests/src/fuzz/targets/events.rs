//! Stored events, a type and a body a line: reading refuses or gives an event that survives being written down.

use yard_engine::Event;

pub(super) const WORDS: &[&str] = &[
    "bead.closed",
    "dispatch.ended",
    "context.opened",
    "town.settings_changed",
    "task.submitted",
    "merge.merged",
    "y-1@1",
    "2026-11-16T09:30:00Z",
    "ctx-1",
    "\"at\":",
    "\"bead\":",
    "\"reason\":",
];

pub(super) fn run(input: &[u8]) {
    for line in super::lines(input) {
        let (kind, body) = line.split_once('\t').unwrap_or((line, ""));
        let Ok(event) = Event::from_stored(kind, body) else { continue };
        let again = event.body();
        let read =
            Event::from_stored(event.kind(), &again).unwrap_or_else(|error| panic!("{error}: {again}"));
        assert_eq!(read, event, "{again}");
    }
}
