//! Running targets, each in a process of its own: what ends the process (a panic, the stack, the memory) or never returns is
//! a finding like any other, and the input that did it lies in a file.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};

use super::{Corpus, Target, mutate};
use crate::dice::Dice;

/// An input that takes the processor for longer than this hangs: the slowest take some milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// One that takes none, but never returns.
const LONG_PATIENCE: Duration = Duration::from_mins(10);
/// Address space of a process that runs targets.
const MEMORY: u64 = 2 << 30;
/// The stack that the daemon's own threads have.
const STACK: usize = 2 << 20;
/// Tries to make a failing input smaller.
const TRIES: usize = 300;
/// Before the input in its file: how many came before it, and its length.
const HEAD: usize = 16;

/// How much is to be tried.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// So many inputs.
    pub count: u64,
    /// For no longer than this.
    pub time: Option<Duration>,
    /// What the inputs follow from.
    pub seed: u64,
}

/// An input that a target could not deal with.
#[derive(Debug)]
pub struct Failure {
    /// What happened: the panic, the signal, or that it took too long.
    pub what: String,
    /// The input, made smaller.
    pub input: Vec<u8>,
}

/// Where a child writes what it is about to try.
struct Scratch(File);

impl Scratch {
    fn note(&self, number: u64, input: &[u8]) -> std::io::Result<()> {
        let head = [number.to_le_bytes(), (input.len() as u64).to_le_bytes()].concat();
        self.0.write_all_at(&[&head, input].concat(), 0)
    }

    fn number(&self) -> u64 {
        self.head().0
    }

    fn head(&self) -> (u64, u64) {
        let mut head = [0; HEAD];
        let _ = self.0.read_exact_at(&mut head, 0);
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&head[at..at + 8]);
            u64::from_le_bytes(word)
        };
        (word(0), word(8))
    }

    fn input(&self) -> Vec<u8> {
        let mut input = vec![0; self.head().1 as usize];
        let _ = self.0.read_exact_at(&mut input, HEAD as u64);
        input
    }
}

/// Tries saved inputs and new ones on a target; the number tried, or the first failure.
pub fn run(target: &Target, limits: Limits) -> Result<u64, Failure> {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("input");
    let scratch = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
    let scratch = Scratch(scratch);
    let mut arguments = vec!["--child".to_owned(), target.name.to_owned(), path.display().to_string()];
    arguments.extend([limits.seed.to_string(), limits.count.to_string()]);
    arguments.push(limits.time.map_or(u64::MAX, |time| time.as_secs()).to_string());
    let failed = outcome(&arguments, folder.path(), || scratch.number());
    let Some(what) = failed else { return Ok(scratch.number()) };
    let input = smaller(target, scratch.input(), &what);
    Err(Failure { what, input })
}

/// Tries one input in a process of its own; what happened, if it did harm.
pub fn try_one(target: &Target, input: &[u8]) -> Option<String> {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("input");
    std::fs::write(&path, input).expect("the input can be written");
    let arguments = ["--one".to_owned(), target.name.to_owned(), path.display().to_string()];
    outcome(&arguments, folder.path(), || 0)
}

/// Runs a child; none if it ended well.
fn outcome(arguments: &[String], folder: &Path, progress: impl Fn() -> u64) -> Option<String> {
    let said: PathBuf = folder.join("stderr");
    let stderr = File::create(&said).expect("a file");
    let own = std::env::current_exe().expect("the program has a path");
    let mut command = Command::new(own);
    command.env("RUST_BACKTRACE", "0");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let mut child = command.spawn().expect("the program can be run");
    let ended = wait(&mut child, progress);
    let mut words = String::new();
    let _ = File::open(&said).and_then(|mut file| file.read_to_string(&mut words));
    match ended {
        None => Some("it hangs".to_owned()),
        Some(status) if status.success() => None,
        Some(status) => {
            let panic = words.lines().skip_while(|line| !line.contains("panicked at")).take(3);
            let panic: Vec<&str> = panic.collect();
            let signal = status.signal().map_or(String::new(), |signal| format!(" (signal {signal})"));
            let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it ended");
            Some(if panic.is_empty() { format!("{last}{signal}") } else { panic.join("\n") })
        }
    }
}

/// Waits until a child has ended; none if it made no progress for too long.
fn wait(child: &mut Child, progress: impl Fn() -> u64) -> Option<ExitStatus> {
    let (mut known, mut since, mut spent) = (progress(), Instant::now(), Duration::ZERO);
    loop {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            return Some(status);
        }
        let now = progress();
        if now != known {
            (known, since, spent) = (now, Instant::now(), processor_time(child.id()));
        }
        let hangs = since.elapsed() > PATIENCE && processor_time(child.id()).saturating_sub(spent) > PATIENCE;
        if hangs || since.elapsed() > LONG_PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// What a process has used of the processor.
fn processor_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    // A tick is a hundredth of a second on every Linux.
    Duration::from_millis(10 * ticks.sum::<u64>())
}

/// Where it panicked, or what ended it: a smaller input must fail in the same way.
fn kind(what: &str) -> &str {
    let first = what.lines().next().unwrap_or_default();
    first.split_once("panicked at").map_or(first, |(_, place)| place)
}

/// Leaves out of a failing input whatever is not needed to fail.
fn smaller(target: &Target, mut input: Vec<u8>, what: &str) -> Vec<u8> {
    if what == "it hangs" {
        return input;
    }
    let (mut tries, mut size) = (0, input.len() / 2);
    while size > 0 && tries < TRIES {
        let mut at = 0;
        while at < input.len() && tries < TRIES {
            let mut less = input.clone();
            less.drain(at..(at + size).min(input.len()));
            tries += 1;
            if try_one(target, &less).is_some_and(|same| kind(&same) == kind(what)) {
                input = less;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    input
}

/// The child's side: tries inputs until it has tried enough. Words are those that [`run`] and [`try_one`] pass.
pub fn child(words: &[String]) {
    let number = |nth: usize| words.get(nth).and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
    let target = words.get(1).and_then(|name| super::target(name)).expect("a target");
    let path = PathBuf::from(words.get(2).expect("a file"));
    setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY).expect("a limit can be lowered");
    let tries: Box<dyn FnOnce() + Send> = if words[0] == "--one" {
        let input = std::fs::read(path).expect("the input");
        Box::new(move || (target.run)(&input))
    } else {
        let scratch = Scratch(File::options().read(true).write(true).open(path).expect("the file"));
        let time = Duration::from_secs(number(5).min(u64::from(u32::MAX)));
        let limits = Limits { seed: number(3), count: number(4), time: Some(time) };
        Box::new(move || many(target, limits, &scratch))
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(tries).expect("a thread");
    if thread.join().is_err() {
        std::process::exit(101);
    }
}

fn many(target: &Target, limits: Limits, scratch: &Scratch) {
    let corpus = Corpus::load(target.name);
    let mut dice = Dice::seeded(limits.seed);
    let until = limits.time.map(|time| Instant::now() + time);
    for number in 0..limits.count {
        let saved = corpus.inputs().get(number as usize).cloned();
        let input = saved.unwrap_or_else(|| mutate::make(&mut dice, corpus.inputs(), target.words));
        scratch.note(number + 1, &input).expect("the input can be noted");
        (target.run)(&input);
        if number.is_multiple_of(64) && until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
    }
}
