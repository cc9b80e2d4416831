//! What programs are measured with: the raw limit of starting processes, tasks that note when they ran, and the disk's
//! own rate of commits. A program of its own, because it must be small: a task that takes long to load hides what its
//! scheduler takes.

mod graph;
mod stamp;
mod sync;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// What keeps a measurement from being made, in words.
type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "usage: yardstick graph FILE SLOTS | stamp LOG LABEL MICROSECONDS | sync FILE SECONDS";

fn main() -> ExitCode {
    // The first thing a stamp does is to look at the clock.
    let began = stamp::now();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words, began) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "yardstick: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str], began: u128) -> Fallible<()> {
    match *words {
        ["stamp", log, label, micros] => stamp::stamp(Path::new(log), label, began, micros.parse()?),
        ["graph", file, slots] => tell(graph::run(Path::new(file), slots.parse()?)?),
        ["sync", file, seconds] => tell(sync::rate(Path::new(file), seconds.parse()?)?),
        _ => Err(USAGE.into()),
    }
}

fn tell(figure: f64) -> Fallible<()> {
    Ok(writeln!(std::io::stdout(), "{figure:.6}")?)
}
