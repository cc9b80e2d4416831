//! Plays seeded histories of the yard until one breaks a promise.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Parser;
use yard_tests::sim::{Coverage, Failure, Mutant, Play, Scenario, Told, stream};

mod mutants;

/// Plays seeded histories of the real engine in a simulated world and checks every promise.
#[derive(Parser)]
struct Args {
    /// How many histories; one if only a seed is given.
    #[arg(long, visible_alias = "runs")]
    histories: Option<u64>,
    /// Plays races by name (dual-feed, recovered-bead, duplicate-contexts, cancel-against-end, preempt-against-end,
    /// retry-against-cancel) instead of whatever may happen.
    #[arg(long, value_delimiter = ',')]
    scenario: Vec<Scenario>,
    /// Plays streams of urgent work over work that is not urgent, which must get on all the same.
    #[arg(long, conflicts_with_all = ["scenario", "mutant", "tell"])]
    stream: bool,
    /// The seed of the first history; the others follow it.
    #[arg(long)]
    seed: Option<u64>,
    /// How many at once.
    #[arg(long)]
    threads: Option<usize>,
    /// Breaks a rule on purpose, to see it noticed.
    #[arg(long)]
    mutant: Option<Mutant>,
    /// Plays deep histories: the real loop on the real journal code, over a simulated disk.
    #[arg(long)]
    deep: bool,
    /// Goes on until it is interrupted, or a promise is broken.
    #[arg(long, conflicts_with = "histories")]
    soak: bool,
    /// Goes on for so many seconds.
    #[arg(long, conflicts_with_all = ["histories", "soak"])]
    seconds: Option<u64>,
    /// Fails if some type of event, refusal or way to recover was never met. Only deep histories count them.
    #[arg(long, requires = "deep")]
    require_coverage: bool,
    /// Takes only these steps of a history, as a shortened one names them.
    #[arg(long, value_parser = hexadecimal, requires = "seed")]
    steps: Option<u64>,
    /// Builds known-bad copies of the program, one after the other, and plays histories until each is noticed; of those
    /// whose names hold this text.
    #[arg(long, num_args = 0..=1, default_missing_value = "")]
    mutants: Option<String>,
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
    coverage: Mutex<Coverage>,
}

fn hexadecimal(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|error| error.to_string())
}

thread_local! {
    static PLAYED: std::cell::Cell<Play> = const { std::cell::Cell::new(Play::FIRST) };
}

fn main() -> ExitCode {
    let args = Args::parse();
    // A panic in the engine is a broken promise too, and must name its seed.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        say(&format!("a history panicked; {}", how_to_tell(PLAYED.get())));
    }));
    if args.stream {
        return play_streams(&args);
    }
    if let Some(wanted) = &args.mutants {
        return mutants::hunt(wanted);
    }
    let scenarios = args.scenario.iter().copied().map(Some);
    let scenarios = if args.scenario.is_empty() { vec![None] } else { scenarios.collect() };
    let kept = scenarios.into_iter().filter(|scenario| play_all(&args, *scenario)).count();
    if kept == args.scenario.len().max(1) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays streams of urgent work one after the other, and says in a line how they went.
fn play_streams(args: &Args) -> ExitCode {
    let first = args.seed.unwrap_or(0);
    let runs = args.histories.unwrap_or(if args.seed.is_some() { 1 } else { 100 });
    let began = Instant::now();
    let (mut urgent, mut preemptions, mut slowest) = (0, 0, 0);
    for seed in first..first + runs {
        match stream(seed) {
            Ok(told) => {
                urgent += told.urgent;
                preemptions += told.preemptions;
                slowest = slowest.max(told.slowest);
            }
            Err(broken) => {
                say(&format!("seed {seed}: {}; again with: simulate --stream --seed {seed}", broken.0));
                return ExitCode::FAILURE;
            }
        }
    }
    say(&format!(
        "streams of urgent work, seeds {first} to {}, {:.1} s: {urgent} urgent beads, {preemptions} preemptions, nobody \
         starved; the slowest took {slowest} times as long as it needed",
        first + runs - 1,
        began.elapsed().as_secs_f64()
    ));
    ExitCode::SUCCESS
}

/// Plays all histories of one kind, and says in a line how it went; whether every promise was kept.
fn play_all(args: &Args, scenario: Option<Scenario>) -> bool {
    let usual = if scenario.is_some() { 1_000 } else { 10_000 };
    let histories = args.histories.unwrap_or(if args.seed.is_some() { 1 } else { usual });
    let first = Play {
        seed: args.seed.unwrap_or(0),
        scenario,
        mutant: args.mutant,
        deep: args.deep,
        steps: args.steps.unwrap_or(u64::MAX),
    };
    let open_end = args.soak || args.seconds.is_some();
    let histories = if open_end { u64::MAX / 2 } else { histories };
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from));
    let shared = Shared {
        next: AtomicU64::new(first.seed),
        played: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        failure: Mutex::new(None),
        sums: [const { AtomicU64::new(0) }; 3],
        coverage: Mutex::default(),
    };
    if args.soak {
        stop_when_interrupted();
    }
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(usize::try_from(histories).unwrap_or(usize::MAX)).max(1) {
            scope.spawn(|| work(&shared, first, first.seed + histories));
        }
        let mut shown = Instant::now();
        while shared.played.load(Ordering::Relaxed) < histories && !shared.stop.load(Ordering::Relaxed) {
            let over = args.seconds.is_some_and(|seconds| began.elapsed().as_secs() >= seconds);
            if over || INTERRUPTED.load(Ordering::Relaxed) {
                shared.stop.store(true, Ordering::Relaxed);
            }
            std::thread::park_timeout(std::time::Duration::from_millis(50));
            if shown.elapsed().as_secs() >= 5 {
                shown = Instant::now();
                let played = shared.played.load(Ordering::Relaxed);
                let of = if open_end { String::new() } else { format!(" of {histories}") };
                say(&format!("{played}{of} histories"));
            }
        }
    });
    let played = shared.played.load(Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    let [events, dispatches, restarts] = shared.sums.map(AtomicU64::into_inner);
    let failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    let coverage = shared.coverage.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut covered = true;
    if args.deep && failure.is_none() && !args.tell {
        coverage.lines().iter().for_each(|line| say(line));
        covered = coverage.missing().is_empty() || !args.require_coverage;
        if !covered {
            say(&format!("never met: {}", coverage.missing().join(", ")));
        }
    }
    if args.tell {
        first.story().iter().for_each(|line| say(line));
    } else if let Some(failure) = &failure {
        report(failure, Play { seed: failure.seed, ..first });
    }
    let verdict = if failure.is_some() { "1 broken promise" } else { "no broken promise" };
    let what = if args.deep { "deep: " } else { "" }.to_owned()
        + &scenario.map_or(String::new(), |scenario| format!("{}: ", scenario.name()));
    say(&format!(
        "{what}simulated {played} histories in {seconds:.1} s ({:.0}/s): {events} events, {dispatches} dispatches, {restarts} restarts, {verdict}",
        played as f64 / seconds.max(0.001)
    ));
    failure.is_none() && covered
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ctrl-C ends a soak with its summary.
fn stop_when_interrupted() {
    let wait = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime
            && runtime.block_on(tokio::signal::ctrl_c()).is_ok()
        {
            INTERRUPTED.store(true, Ordering::Relaxed);
        }
    };
    std::thread::spawn(wait);
}

fn work(shared: &Shared, first: Play, end: u64) {
    let mut sum = Told::default();
    while !shared.stop.load(Ordering::Relaxed) {
        let seed = shared.next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            break;
        }
        let play = Play { seed, ..first };
        PLAYED.set(play);
        match play.play() {
            Ok(told) => {
                sum.events += told.events;
                sum.dispatches += told.dispatches;
                sum.restarts += told.restarts;
                sum.coverage.add(&told.coverage);
            }
            Err(failure) => {
                shared.stop.store(true, Ordering::Relaxed);
                shared.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
            }
        }
        shared.played.fetch_add(1, Ordering::Relaxed);
    }
    shared.coverage.lock().unwrap_or_else(PoisonError::into_inner).add(&sum.coverage);
    for (total, part) in shared.sums.iter().zip([sum.events, sum.dispatches, sum.restarts]) {
        total.fetch_add(part, Ordering::Relaxed);
    }
}

fn report(failure: &Failure, play: Play) {
    say(&format!("seed {}: {}", failure.seed, failure.broken.0));
    say("looking for a shorter history …");
    let (shortest, shortened) = play.shrink();
    let story = shortest.story();
    let from = story.len().saturating_sub(120);
    story[from..].iter().for_each(|line| say(line));
    if let Some(shortened) = shortened {
        say(&format!("shortened to {} steps: {}", shortest.steps.count_ones(), shortened.broken.0));
    }
    say(&how_to_tell(shortest));
}

fn how_to_tell(play: Play) -> String {
    let scenario = play.scenario.map(|s| format!(" --scenario {}", s.name())).unwrap_or_default();
    let mutant = play.mutant.map(|m| format!(" --mutant {}", m.name())).unwrap_or_default();
    let deep = if play.deep { " --deep" } else { "" };
    let steps = if play.steps == u64::MAX { String::new() } else { format!(" --steps {:x}", play.steps) };
    format!("tell it again with: simulate{deep} --seed {}{scenario}{mutant}{steps} --tell", play.seed)
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
