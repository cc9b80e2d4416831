//! Agents' output: figures and sentences are the same however it is cut.

use yard_workers::Presets;
use yard_workers::fuzzing::meter;

pub(super) const WORDS: &[&str] = &[
    r#"{"type":"result","total_cost_usd":0.5,"session_id":"s-1"}"#,
    r#""usage":{"input_tokens":3,"output_tokens":4}"#,
    "\u{1b}[1;31m",
    "\r",
    "rate limit",
    "Tokens: 1k sent, 2k received. Cost: $0.01 message, $0.02 session.",
    "429",
];

pub(super) fn run(input: &[u8]) {
    let presets = Presets::built_in();
    let number = super::number(input);
    let all: Vec<_> = presets.iter().cloned().map(Some).chain([None]).collect();
    let preset = all[number % all.len()].clone();
    meter(preset, input, 1 + number % 97).expect("output says the same however it is cut");
}
