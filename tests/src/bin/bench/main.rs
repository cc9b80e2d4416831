//! Measures what the product promises about time and memory, on the real release binary and the real crates.
//!
//! Promises: tables with medians and the load they were measured under; a duration is printed beside its bar, and
//! fails nothing unless `--strict` says so.

mod agents;
mod bare;
mod console;
mod export;
mod layered;
mod ours;
mod rename;
mod screen;
mod seed2;
mod stage;
mod starts;
mod table;
mod tasks;
mod whole;
mod yard;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use table::{load, say};
use yard_tests::town::{kill_nine, parent_of, processes};

/// What keeps a measurement from being made, in words.
type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Measures the release binary `YM_BIN` and the crates behind it.
#[derive(Parser)]
struct Args {
    /// Exit 1 when a bar is missed.
    #[arg(long, global = true)]
    strict: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Everything.
    All,
    /// Every row of seed 2, section 7, that states a delay, next to ours.
    Seed2 {
        /// How often each row is measured.
        #[arg(long, default_value_t = seed2::ROUNDS)]
        rounds: usize,
    },
    /// From the rename of a workspace's file to the start of the workers it unblocks.
    Rename {
        /// How many beads the file has.
        #[arg(long, value_delimiter = ',', default_values_t = rename::SIZES)]
        beads: Vec<usize>,
    },
    /// Staging a file of beads, next to a bare parse and topological sort of it.
    Stage {
        /// How many beads the file has.
        #[arg(long, value_delimiter = ',', default_values_t = stage::SIZES)]
        beads: Vec<usize>,
    },
    /// What the user of the console waits for.
    Console {
        /// How many beads the town has.
        #[arg(long, default_value_t = console::BEADS)]
        beads: usize,
    },
    /// Durable `POST /tasks` under load, next to bare programs and a queue in memory.
    Tasks {
        /// How many write at the same time.
        #[arg(long, value_delimiter = ',', default_values_t = tasks::WRITERS)]
        writers: Vec<usize>,
    },
    /// Orders sent to agents, next to agents that look for work every 30 seconds.
    Agents,
    /// One measurement of `stage`, in a process of its own for the sake of its peak memory.
    #[command(hide = true)]
    StageCase { case: stage::Case, file: PathBuf },
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).take(2).collect();
    if let [verb, socket] = words.as_slice()
        && verb == OsStr::new(starts::WORKER)
    {
        return starts::work(Path::new(socket));
    }
    leave_no_daemon_behind();
    let args = Args::parse();
    match run(args.what) {
        Ok(missed) if missed > 0 => {
            say(&format!("\nbars missed: {missed}"));
            if args.strict { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs what is wanted; returns how many bars were missed.
fn run(what: What) -> Fallible<usize> {
    match what {
        What::StageCase { case, file } => return stage::case(case, &file).map(|()| 0),
        What::All
        | What::Seed2 { .. }
        | What::Rename { .. }
        | What::Stage { .. }
        | What::Console { .. }
        | What::Agents
        | What::Tasks { .. } => {
            load("at the start");
        }
    }
    let missed = match what {
        What::All => {
            seed2::run(seed2::ROUNDS)?
                + rename::run(&rename::SIZES)?
                + stage::run(&stage::SIZES)?
                + console::run(console::BEADS)?
                + screen::run(console::BEADS)?
                + tasks::run(&tasks::WRITERS)?
                + agents::run()
        }
        What::Seed2 { rounds } => seed2::run(rounds)?,
        What::Rename { beads } => rename::run(&beads)?,
        What::Stage { beads } => stage::run(&beads)?,
        What::Console { beads } => console::run(beads)? + screen::run(beads)?,
        What::Tasks { writers } => tasks::run(&writers)?,
        What::Agents => agents::run(),
        What::StageCase { .. } => 0,
    };
    load("at the end");
    Ok(missed)
}

/// The release build aborts on a panic, so no destructor would stop the daemons. Their workers end by themselves.
fn leave_no_daemon_behind() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        let me = std::process::id();
        processes().into_iter().filter(|pid| parent_of(*pid) == Some(me)).for_each(kill_nine);
    }));
}
