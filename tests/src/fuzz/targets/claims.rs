//! Claim files: a torn or changed line is never believed.

use yard_workers::fuzzing::{claim_file, claim_line};

pub(super) const WORDS: &[&str] = &[
    r#"{"claimed":{"shim":7,"at":"2026-11-16T09:30:00Z"}}"#,
    r#"{"revoked":{"why":"x","at":"2026-11-16T09:30:00Z"}}"#,
    r#"{"step":{"id":"a","at":"2026-11-16T09:30:00Z"}}"#,
    "0000000000000000 ",
];

pub(super) fn run(input: &[u8]) {
    claim_file(input);
    let number = super::number(input);
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let line = lines[number % lines.len()];
    for turn in 0..8_usize {
        let place = number.wrapping_mul(turn + 1) >> 8;
        claim_line(line, place, (number >> turn) as u8).expect("only what was written is believed");
    }
    // The sum and what divides it from the rest, with the changes that numbers forgive.
    for place in 0..17 {
        for change in [0x20, b'0' ^ b'+', b'0' ^ b' '] {
            claim_line(line, place, change).expect("only what was written is believed");
        }
    }
}
