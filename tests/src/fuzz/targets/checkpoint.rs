//! Rows of a checkpoint, a kind and a body a line: a state or a refusal, never a panic.

use yard_engine::{Seq, State};

pub(super) const WORDS: &[&str] = &[
    "town", "rig", "bead", "context", "dispatch", "convoy", "alert", "task", "agent", "merge", "y-1",
    "y-1@1", "ctx-1",
];

pub(super) fn run(input: &[u8]) {
    let rows = super::lines(input).filter_map(|line| line.split_once('\t'));
    let _ = State::restore(Seq(1), rows.map(|(kind, body)| (kind, "id", body)));
}
