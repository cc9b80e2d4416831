//! A workspace's file: whatever is in it, the quick reader says what serde says, pieces say what the whole says, and nothing
//! is told twice.

use yard_sources::fuzzing::{read_lines, readers_agree};

pub(super) const WORDS: &[&str] = &[
    r#"{"id":"a-1","title":"T"}"#,
    r#","status":"closed""#,
    r#","priority":2"#,
    r#","issue_type":"epic""#,
    r#","created_at":"2026-11-16T09:30:00Z""#,
    r#","updated_at":"2026-11-16T09:30:00.123456Z""#,
    r#","dependencies":[{"issue_id":"a-1","depends_on_id":"a-2","type":"blocks"}]"#,
    r#""type":"waits-for""#,
    r#""metadata":"{\"gate\":\"any-children\"}""#,
    r#","labels":["x"]"#,
    r#","pinned":true"#,
    r#","_type":"memory""#,
    r#","dependency_count":1"#,
    r#","defer_until":"""#,
    "external:p:c",
    "<<<<<<< HEAD",
    "=======",
    ">>>>>>> x",
    "\u{feff}",
];

pub(super) fn run(input: &[u8]) {
    for line in input.split(|byte| *byte == b'\n') {
        readers_agree(line.trim_ascii()).expect("both readers agree");
    }
    let beads = read_lines(input).expect("the ledger keeps its promises");
    for bead in beads {
        assert!(bead.title.chars().count() <= 500 && !bead.title.contains('\0'), "{bead:?}");
    }
}
