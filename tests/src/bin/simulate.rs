//! Plays seeded histories of the yard until one breaks a promise.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Parser;
use yard_tests::sim::{Failure, Mutant, Told, play, play_telling};

/// Plays seeded histories of the real engine in a simulated world and checks every promise.
#[derive(Parser)]
struct Args {
    /// How many histories; one if only a seed is given.
    #[arg(long)]
    histories: Option<u64>,
    /// The seed of the first history; the others follow it.
    #[arg(long)]
    seed: Option<u64>,
    /// How many at once.
    #[arg(long)]
    threads: Option<usize>,
    /// Breaks a rule on purpose, to see it noticed.
    #[arg(long)]
    mutant: Option<Mutant>,
    /// Tells the whole story of a single history, also of one that keeps every promise.
    #[arg(long)]
    tell: bool,
}

/// What all threads share.
struct Shared {
    next: AtomicU64,
    played: AtomicU64,
    stop: AtomicBool,
    failure: Mutex<Option<Failure>>,
    sums: [AtomicU64; 3],
}

thread_local! {
    static SEED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn main() -> ExitCode {
    let args = Args::parse();
    let histories = args.histories.unwrap_or(if args.seed.is_some() { 1 } else { 10_000 });
    let first = args.seed.unwrap_or(0);
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from));
    // A panic in the engine is a broken promise too, and must name its seed.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        say(&format!("a history panicked; tell it again with: simulate --seed {}", SEED.get()));
    }));
    let shared = Shared {
        next: AtomicU64::new(first),
        played: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        failure: Mutex::new(None),
        sums: [const { AtomicU64::new(0) }; 3],
    };
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(usize::try_from(histories).unwrap_or(usize::MAX)).max(1) {
            scope.spawn(|| work(&shared, first + histories, args.mutant));
        }
        let mut shown = Instant::now();
        while shared.played.load(Ordering::Relaxed) < histories && !shared.stop.load(Ordering::Relaxed) {
            std::thread::park_timeout(std::time::Duration::from_millis(50));
            if shown.elapsed().as_secs() >= 5 {
                shown = Instant::now();
                let played = shared.played.load(Ordering::Relaxed);
                say(&format!("{played} of {histories} histories"));
            }
        }
    });
    let played = shared.played.load(Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    let [events, dispatches, restarts] = shared.sums.map(AtomicU64::into_inner);
    let failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(failure) = &failure {
        report(failure, args.mutant);
    } else if args.tell {
        let told = play_telling(first, args.mutant);
        say(&format!("{told:?}"));
    }
    let verdict = if failure.is_some() { "1 broken promise" } else { "no broken promise" };
    say(&format!(
        "simulated {played} histories in {seconds:.1} s ({:.0}/s): {events} events, {dispatches} dispatches, {restarts} restarts, {verdict}",
        played as f64 / seconds.max(0.001)
    ));
    if failure.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn work(shared: &Shared, end: u64, mutant: Option<Mutant>) {
    let mut sum = Told::default();
    while !shared.stop.load(Ordering::Relaxed) {
        let seed = shared.next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            break;
        }
        SEED.set(seed);
        match play(seed, mutant) {
            Ok(told) => {
                sum.events += told.events;
                sum.dispatches += told.dispatches;
                sum.restarts += told.restarts;
            }
            Err(failure) => {
                shared.stop.store(true, Ordering::Relaxed);
                shared.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
            }
        }
        shared.played.fetch_add(1, Ordering::Relaxed);
    }
    for (total, part) in shared.sums.iter().zip([sum.events, sum.dispatches, sum.restarts]) {
        total.fetch_add(part, Ordering::Relaxed);
    }
}

fn report(failure: &Failure, mutant: Option<Mutant>) {
    let story = play_telling(failure.seed, mutant).err().map(|f| f.story).unwrap_or_default();
    let from = story.len().saturating_sub(60);
    story[from..].iter().for_each(|line| say(line));
    say(&format!("seed {}: {}", failure.seed, failure.broken.0));
    let mutant = mutant.map(|m| format!(" --mutant {}", m.name())).unwrap_or_default();
    say(&format!("tell it again with: simulate --seed {}{mutant}", failure.seed));
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
