//! `ym add --file`: lines are refused or become scheduled work.

use yard_engine::Command;
use yard_engine::command::AddItem;

use super::commands::Town;

pub(super) const WORDS: &[&str] = &[
    r#"{"argv":["true"]}"#,
    r#""id":"y-9""#,
    r#""after":["y-1"]"#,
    r#""after":["y-9","y-8"]"#,
    r#""name":"n""#,
    r#""priority":100"#,
    r#""priority":0"#,
    r#""argv":[]"#,
    r#""argv":[""]"#,
];

pub(super) fn run(input: &[u8]) {
    let items: Vec<AddItem> =
        super::lines(input).filter_map(|line| serde_json::from_str(line).ok()).collect();
    for item in &items {
        let json = serde_json::to_string(item).expect("an item");
        assert_eq!(serde_json::from_str::<AddItem>(&json).ok().as_ref(), Some(item), "{json}");
    }
    if !items.is_empty() {
        Town::with_work().decide(&Command::Add { items });
    }
}
