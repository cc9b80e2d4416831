//! A town's `agents.toml`, and output that its signs are looked for in.

use yard_workers::fuzzing::{meter, presets};

pub(super) const WORDS: &[&str] = &[
    "[claude]\n",
    "start = [\"x\"]\n",
    "resume = [\"--resume\", \"{{session}}\"]\n",
    "prompt = [\"{{prompt}}\"]\n",
    "session = [\"/a/b\"]\n",
    "cost = [\"/c\"]\n",
    "tokens = [\"/t\", \"/~1\"]\n",
    "unavailable_codes = [1]\n",
    "cost_adds = true\n",
];

pub(super) fn run(input: &[u8]) {
    let parts = super::texts(input);
    let Some(known) = presets(&parts[0]) else { return };
    let output = parts.get(1).map_or("{\"a\":{\"b\":\"s\"},\"c\":1,\"t\":2}\n", String::as_str);
    let number = super::number(input);
    for preset in known {
        meter(Some(preset), output.as_bytes(), 1 + number % 97)
            .expect("output says the same however it is cut");
    }
}
