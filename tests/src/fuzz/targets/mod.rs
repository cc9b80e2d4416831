//! The targets, one file each.

mod add_file;
mod checkpoint;
mod claims;
mod commands;
mod config;
mod events;
mod filter;
mod formula;
mod http;
mod ids;
mod import;
mod jsonl;
mod meter;
mod presets;
mod requests;
mod safe;
mod shim_frames;
mod theme;
mod words;

use super::Target;

/// Every target there is.
pub const TARGETS: &[Target] = &[
    Target { name: "add-file", run: add_file::run, words: add_file::WORDS },
    Target { name: "checkpoint", run: checkpoint::run, words: checkpoint::WORDS },
    Target { name: "claims", run: claims::run, words: claims::WORDS },
    Target { name: "commands", run: commands::run, words: commands::WORDS },
    Target { name: "config", run: config::run, words: config::WORDS },
    Target { name: "events", run: events::run, words: events::WORDS },
    Target { name: "filter", run: filter::run, words: filter::WORDS },
    Target { name: "formula", run: formula::run, words: formula::WORDS },
    Target { name: "http", run: http::run, words: http::WORDS },
    Target { name: "ids", run: ids::run, words: ids::WORDS },
    Target { name: "import", run: import::run, words: jsonl::WORDS },
    Target { name: "jsonl", run: jsonl::run, words: jsonl::WORDS },
    Target { name: "meter", run: meter::run, words: meter::WORDS },
    Target { name: "presets", run: presets::run, words: presets::WORDS },
    Target { name: "requests", run: requests::run, words: commands::WORDS },
    Target { name: "safe", run: safe::run, words: safe::WORDS },
    Target { name: "shim-frames", run: shim_frames::run, words: shim_frames::WORDS },
    Target { name: "theme", run: theme::run, words: theme::WORDS },
    Target { name: "words", run: words::run, words: words::WORDS },
];

/// Texts that stand in an input one after the other, with a NUL between them.
fn texts(input: &[u8]) -> Vec<String> {
    input.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// The lines of an input that are text and not empty.
fn lines(input: &[u8]) -> impl Iterator<Item = &str> {
    let lines = input.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter(|line| !line.trim().is_empty())
}

/// A number that follows from the input, for choices a target makes.
fn number(input: &[u8]) -> usize {
    input.iter().fold(7, |number: usize, byte| number.wrapping_mul(31).wrapping_add(usize::from(*byte)))
}
