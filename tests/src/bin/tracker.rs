//! A stand-in for `br` in tests: claims and closes beads by rewriting the workspace's file exactly as `br` does.
//!
//! `tracker close ID`, `tracker claim ID WHO`, `tracker release ID`, in the project's directory.

use std::path::Path;
use std::process::ExitCode;

use yard_tests::workspace::Workspace;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let workspace = Workspace::at(Path::new("."));
    match words.as_slice() {
        ["close", id] => workspace.close(id),
        ["claim", id, who] => workspace.claim(id, who),
        ["release", id] => workspace.release(id),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}
