//! The programs that run the same tasks: ours, the raw limit, and the peers that are installed. Each brings its own way
//! of taking tasks in; what it is asked for, and how that is timed, is the same for all.

mod foreground;
pub(crate) mod hyperqueue;
mod parallel;
mod pueue;
mod raw;
mod slurm;
mod tsp;
mod ym;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use crate::Fallible;
use crate::graph::Graph;
use crate::site::Site;

/// A program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    /// Bare posix_spawn.
    Raw,
    /// Ours.
    Ym,
    /// Ours, with the town in memory.
    YmTmpfs,
    Xargs,
    Make,
    Ninja,
    Parallel,
    Tsp,
    Pueue,
    /// `HyperQueue` from its wheel: server and worker in one process, nothing stored.
    Hyperqueue,
    /// `HyperQueue`'s own program, with its journal.
    HqJournal,
    Slurm,
}

/// What a program keeps of what it was given, should it be killed or the machine lose power.
const NOTHING: &str = "nothing";

impl Program {
    /// All that can be compared with.
    pub(crate) const PEERS: [Self; 9] = [
        Self::Xargs,
        Self::Make,
        Self::Ninja,
        Self::Parallel,
        Self::Tsp,
        Self::Pueue,
        Self::Hyperqueue,
        Self::HqJournal,
        Self::Slurm,
    ];

    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Ym => "ym",
            Self::YmTmpfs => "ym, tmpfs",
            Self::Xargs => "xargs",
            Self::Make => "make",
            Self::Ninja => "ninja",
            Self::Parallel => "GNU parallel",
            Self::Tsp => "task-spooler",
            Self::Pueue => "pueue",
            Self::Hyperqueue => "HyperQueue (wheel)",
            Self::HqJournal => "HyperQueue + journal",
            Self::Slurm => "Slurm",
        }
    }

    /// What survives, and how.
    pub(crate) fn keeps(self) -> &'static str {
        match self {
            Self::Raw | Self::Xargs | Self::Make | Self::Parallel | Self::Tsp | Self::Hyperqueue => NOTHING,
            Self::Ym => "all, synced",
            Self::YmTmpfs => "all, in memory",
            Self::Ninja => "what ended, not synced",
            Self::Pueue => "state file, not synced",
            Self::HqJournal => "journal, flushed each second",
            Self::Slurm => "state files, every few seconds",
        }
    }

    /// Whether anything survives.
    pub(crate) fn keeps_something(self) -> bool {
        self.keeps() != NOTHING
    }

    /// Whether it is here.
    pub(crate) fn is_here(self) -> bool {
        match self {
            Self::Raw | Self::Ym => true,
            Self::YmTmpfs => crate::machine::memory().is_some(),
            Self::Xargs => is_found("xargs"),
            Self::Make => is_found("make"),
            Self::Ninja => is_found("ninja"),
            Self::Parallel => is_found("parallel"),
            Self::Tsp => is_found("tsp"),
            Self::Pueue => is_found("pueue") && is_found("pueued"),
            Self::Hyperqueue => hyperqueue::version().is_some(),
            Self::HqJournal => is_found("hq"),
            Self::Slurm => ["slurmctld", "slurmd", "sbatch"].into_iter().all(is_found),
        }
    }

    /// How many dependencies a task of it may have.
    pub(crate) fn most_dependencies(self) -> usize {
        match self {
            Self::Xargs | Self::Parallel => 0,
            Self::Tsp => 1,
            Self::Raw
            | Self::Ym
            | Self::YmTmpfs
            | Self::Make
            | Self::Ninja
            | Self::Pueue
            | Self::Hyperqueue
            | Self::HqJournal
            | Self::Slurm => usize::MAX,
        }
    }

    /// How many tasks it is given at most: slow ones would take hours.
    pub(crate) fn most_tasks(self, slots: usize) -> usize {
        match self {
            Self::Parallel => 500,
            Self::Tsp => 1000,
            Self::Pueue => 50 * slots,
            Self::Slurm => 12 * slots,
            Self::Raw
            | Self::Ym
            | Self::YmTmpfs
            | Self::Xargs
            | Self::Make
            | Self::Ninja
            | Self::Hyperqueue
            | Self::HqJournal => usize::MAX,
        }
    }

    /// Whether tasks can be handed over one by one, and the queue looked at.
    pub(crate) fn has_a_queue(self) -> bool {
        match self {
            Self::Ym | Self::YmTmpfs | Self::Tsp | Self::Pueue | Self::HqJournal | Self::Slurm => true,
            Self::Raw | Self::Xargs | Self::Make | Self::Ninja | Self::Parallel | Self::Hyperqueue => false,
        }
    }

    /// Ready to be measured.
    pub(crate) fn runner(self) -> Box<dyn Runner> {
        match self {
            Self::Raw => Box::new(raw::Raw),
            Self::Ym | Self::YmTmpfs => Box::<ym::Ym>::default(),
            Self::Xargs => Box::new(parallel::Xargs),
            Self::Parallel => Box::new(parallel::Parallel),
            Self::Make => Box::new(foreground::Make),
            Self::Ninja => Box::new(foreground::Ninja),
            Self::Tsp => Box::new(tsp::Tsp),
            Self::Pueue => Box::<pueue::Pueue>::default(),
            Self::Hyperqueue => Box::new(hyperqueue::Wheel),
            Self::HqJournal => Box::<hyperqueue::Hq>::default(),
            Self::Slurm => Box::<slurm::Slurm>::default(),
        }
    }
}

/// How long a program took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    /// To take all tasks in.
    pub(crate) submit: Duration,
    /// To run them, from then on.
    pub(crate) drain: Duration,
}

impl Spent {
    /// Of a program that began to take tasks in at a moment, took so long for that, and has just run the last.
    fn since(began: Instant, submit: Duration) -> Self {
        Self { submit, drain: began.elapsed().saturating_sub(submit) }
    }

    /// Of a program that takes tasks in while it runs them.
    pub(crate) fn at_once(drain: Duration) -> Self {
        Self { submit: Duration::ZERO, drain }
    }
}

/// What a program can be asked for.
pub(crate) trait Runner {
    /// Starts what must run before tasks can be handed over.
    fn start(&mut self, _site: &mut Site) -> Fallible<()> {
        Ok(())
    }

    /// Takes all tasks in, then runs them.
    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent>;

    /// The command that hands one task over.
    fn submission(&self, _site: &Site) -> Fallible<Vec<String>> {
        Err("it has no queue".into())
    }

    /// The command that shows the queue.
    fn status(&self, _site: &Site) -> Fallible<Vec<String>> {
        Err("it has no queue".into())
    }

    /// Puts tasks into the queue that do not run; answers how many.
    fn queue_up(&mut self, _site: &Site, _tasks: usize) -> Fallible<usize> {
        Err("it has no queue".into())
    }

    /// Ends what was started. Whatever is left is ended by the one that measures.
    fn stop(&mut self, _site: &Site) -> Fallible<()> {
        Ok(())
    }
}

/// Where programs are looked for: also where `tests/bench` installs them.
pub(crate) fn search_path() -> OsString {
    let usual = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let own = target().map(|target| target.join("peers/bin"));
    let all = own.into_iter().chain(std::env::split_paths(&usual));
    std::env::join_paths(all).unwrap_or(usual)
}

/// Where cargo builds.
pub(crate) fn target() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.ancestors().nth(2)?.to_owned())
}

fn is_found(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|dir| dir.join(program).is_file())
}

/// A command line for a shell.
fn shell_line(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:@%+,".contains(c);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    argv.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Words as text.
fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
