use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Whether it was read here; what was read must be what serde reads.
fn is_quick(json: &str) -> bool {
    let mut quick = Fields::default();
    if read(json, &mut quick).is_err() {
        return false;
    }
    let slow: Fields<'_> = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(format!("{quick:?}"), format!("{slow:?}"), "{json}");
    true
}

#[test]
fn what_trackers_write_is_read_here() {
    for json in [
        r#"{"id":"a-1","title":"T","status":"open","priority":2,"issue_type":"task","created_at":"2026-11-14T17:00:00.265560Z"}"#,
        r#"{"id":"a-1","description":"two\nlines \u00e9 \"quoted\" \\","compaction_level":0,"original_size":-1.5e3}"#,
        r#"{"id":"a-1","dependencies":[{"issue_id":"a-1","depends_on_id":"a-2","type":"blocks","metadata":"{}"},{"depends_on_id":"a-3"}]}"#,
        r#"{"id":"a-1","labels":["x","y"],"pinned":true,"ephemeral":false,"is_template":null,"assignee":null}"#,
        r#"{"_type":"issue","id":"ä","nested":{"a":[1,{"b":null}]},"dependency_count":3,"comments":[]}"#,
        r#" { "id" : "a-1" , "labels" : [ ] , "dependencies" : [ { } , { "type" : "blocks" } ] } "#,
        "{}",
    ] {
        assert!(is_quick(json), "{json}");
    }
}

#[test]
fn what_is_odd_is_left_to_serde() {
    for json in [
        r#"{"id":"a-1","id":"a-2"}"#,
        r#"{"id":"a-1","dependencies":[{"type":"blocks","type":"blocks"}]}"#,
        r#"{"id":"a-1","priority":"2"}"#,
        r#"{"id":"a-1","priority":02}"#,
        r#"{"id":"a-1","priority":2.0}"#,
        r#"{"id":"a-1","created_at":5}"#,
        r#"{"\u0069d":"a-1"}"#,
        r#"{"id":"a\u12"}"#,
        r#"{"id":"a","x":"\ud800"}"#,
        r#"{"id":"a","x":nul}"#,
        r#"{"id":"a","title":7}"#,
        r#"{"id":"a"} x"#,
        r#"{"id":"a",}"#,
        r#"{"id":"a"#,
        r#"{"id":"a\"#,
        "{\"id\":\"a\tb\"}",
        "[1]",
        "",
    ] {
        assert!(!is_quick(json), "{json}");
    }
}

/// Pieces of records, well-formed and not.
const KEYS: [&str; 14] = [
    "id",
    "title",
    "status",
    "priority",
    "labels",
    "dependencies",
    "dependency_count",
    "created_at",
    "updated_at",
    "pinned",
    "_type",
    "other",
    "defer_until",
    "description",
];
const VALUES: [&str; 30] = [
    "null",
    "true",
    "false",
    "0",
    "4",
    "10",
    "-1",
    "01",
    "1.5",
    "1e2",
    "\"\"",
    "\"a-1\"",
    "\"open\"",
    "\"a\\nb\"",
    "\"\\u00e4\"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"\\x\"",
    "\"ä€😀\"",
    "\"2026-11-14T17:00:00Z\"",
    "\"2026-11-14T17:00:00.123456789+01:00\"",
    "[]",
    "[\"x\",\"y\\t\"]",
    "[1]",
    "{}",
    "{\"a\":{\"b\":[]}}",
    "[{\"depends_on_id\":\"a-2\",\"type\":\"blocks\",\"metadata\":{\"gate\":\"any-children\"}}]",
    "[{\"depends_on_id\":null,\"type\":5}]",
    "[{\"issue_id\":\"a\",\"depends_on_id\":\"b\"},{}]",
];

proptest! {
    #[test]
    fn it_reads_what_serde_reads(
        pairs in vec((select(&KEYS[..]), select(&VALUES[..]), select(&["", " ", "\t "][..])), 0..6),
        cut in any::<prop::sample::Index>(), put in select(&["", "", "", "\"", "\\", "}", ",", "\u{1}", "ä"][..]),
    ) {
        let pair = |(key, value, gap): &(&str, &str, &str)| format!("{gap}\"{key}\"{gap}:{gap}{value}{gap}");
        let whole = format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(","));
        is_quick(&whole);
        let mut at = cut.index(whole.len());
        while !whole.is_char_boundary(at) {
            at -= 1;
        }
        is_quick(&whole[..at]);
        is_quick(&format!("{}{put}{}", &whole[..at], &whole[at..]));
    }
}
