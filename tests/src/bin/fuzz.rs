//! Fuzzes the doors that take bytes from outside.
//!
//! `cargo run -p yard-tests --bin fuzz -- TARGET|all [--count N] [--for 10m] [--seed S]`

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use yard_tests::fuzz::{self, Corpus, Limits, TARGETS, Target};

/// Feeds targets with saved inputs and with what can be made of them. A failing input is made smaller and saved in
/// tests/data/fuzz, where every test run tries it again.
#[derive(Parser)]
struct Arguments {
    /// A target, `all`, or `list`
    target: String,
    /// So many inputs for each target [default: 20000, or as many as fit into --for]
    #[arg(long)]
    count: Option<u64>,
    /// For so long, for each target
    #[arg(long = "for", value_parser = span)]
    time: Option<Duration>,
    /// Another seed tries other inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// `90s`, `10m` or `2h`.
fn span(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a duration: write it like 90s, 10m or 2h");
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        _ => return Err(bad()),
    };
    text[..text.len() - 1].parse::<u64>().map(|n| Duration::from_secs(n * unit)).map_err(|_| bad())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "--child" || word == "--one") {
        fuzz::child(&words);
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::parse();
    let targets: Vec<&Target> = match arguments.target.as_str() {
        "list" => {
            for target in TARGETS {
                say(target.name);
            }
            return ExitCode::SUCCESS;
        }
        "all" => TARGETS.iter().collect(),
        name => fuzz::target(name).into_iter().collect(),
    };
    if targets.is_empty() {
        say("there is no such target; `list` names them");
        return ExitCode::from(2);
    }
    let count = arguments.count.unwrap_or(if arguments.time.is_some() { u64::MAX } else { 20_000 });
    let limits = Limits { count, time: arguments.time, seed: arguments.seed };
    if all_pass(&targets, limits) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// As many targets at a time as there are processors.
fn all_pass(targets: &[&'static Target], limits: Limits) -> bool {
    let (next, failures, tried) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(0));
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let (count, failed) = fuzzed(target, limits);
                    *tried.lock().expect("nobody panics with it") += count;
                    failures.fetch_add(failed, Ordering::SeqCst);
                }
            });
        }
    });
    let tried: u64 = *tried.lock().expect("nobody panics with it");
    let failures = failures.into_inner();
    say(&format!(
        "{} targets, {tried} inputs, {failures} failures in {} s",
        targets.len(),
        began.elapsed().as_secs()
    ));
    failures == 0
}

/// Runs a target to the end of its limits or to its first failure; how many inputs were tried and how many failed.
fn fuzzed(target: &'static Target, limits: Limits) -> (u64, usize) {
    let began = Instant::now();
    match fuzz::run(target, limits) {
        Ok(tried) => {
            say(&format!("{}: {tried} inputs in {:.1} s", target.name, began.elapsed().as_secs_f64()));
            (tried, 0)
        }
        Err(failure) => {
            let saved = Corpus::load(target.name).save("found", &failure.input);
            let place = saved.map_or_else(|why| why, |path| path.display().to_string());
            let shown = String::from_utf8_lossy(&failure.input);
            let shown: String = shown.chars().take(400).flat_map(char::escape_debug).collect();
            say(&format!("{}: FAILED: {}\n  input: {shown}\n  saved: {place}", target.name, failure.what));
            (0, 1)
        }
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
