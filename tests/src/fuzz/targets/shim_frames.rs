//! What pool and shim say to each other, cut anywhere.

use yard_workers::fuzzing::frames;

pub(super) const WORDS: &[&str] =
    &["\u{2}\0\0\0{}", "\0\0\u{10}\0", "refused", "running", "step-done", "metered", "ended", "y-1@1"];

pub(super) fn run(input: &[u8]) {
    let number = super::number(input);
    frames(input, 1 + number % 64).expect("frames arrive as they were sent");
    // Most inputs are no frames: what could be a body is sent as one.
    for line in input.split(|byte| *byte == b'\n').take(8) {
        let framed = [&(line.len() as u32).to_le_bytes(), line].concat();
        frames(&framed.repeat(2), 1 + number % 7).expect("frames arrive as they were sent");
    }
}
