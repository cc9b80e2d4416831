//! Measures what the product promises about time and memory, on the real release binary and the real crates, next to the
//! raw limit and to the peers that are installed.
//!
//! Promises: tables with medians and the load they were measured under; a figure is printed beside its bar, and fails
//! nothing unless `--strict` says so; whatever a measurement starts ends with it.

mod accounts;
mod agents;
mod bare;
mod cluster;
mod cold;
mod console;
mod contest;
mod effort;
mod export;
mod graph;
mod latency;
mod layered;
mod leader;
mod machine;
mod memory;
mod ours;
mod pass;
mod past;
mod peers;
mod rename;
mod report;
mod restart;
mod scaling;
mod screen;
mod seed2;
mod served;
mod site;
mod soak;
mod stage;
mod starts;
mod stores;
mod table;
mod tasks;
mod throughput;
mod whole;
mod work;
mod yard;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use effort::Effort;
use peers::Program;
use table::{load, say};
use yard_tests::town::{kill_nine, parent_of, processes};

/// What keeps a measurement from being made, in words.
type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Measures the release binary `YM_BIN` and the crates behind it.
#[derive(Parser)]
#[command(name = "tests/bench", bin_name = "tests/bench")]
struct Args {
    /// Exit 1 when a bar is missed.
    #[arg(long, global = true)]
    strict: bool,
    /// Small sizes, one pass: to see that everything works.
    #[arg(long, global = true)]
    quick: bool,
    /// How often each program is measured; 3, or 1 if it is to be quick.
    #[arg(long, global = true)]
    passes: Option<usize>,
    /// How many seconds one pass of one program may take.
    #[arg(long, global = true, default_value_t = 180)]
    timeout: u64,
    /// Only these peers, besides ours.
    #[arg(long, global = true, value_delimiter = ',')]
    peers: Option<Vec<Program>>,
    /// Writes every figure into this file.
    #[arg(long, global = true)]
    json: Option<PathBuf>,
    /// Puts what was measured into assets/BENCHMARKS.md.
    #[arg(long, global = true, conflicts_with = "quick")]
    write: bool,
    #[command(subcommand)]
    what: Option<What>,
}

impl Args {
    fn effort(&self) -> Effort {
        Effort {
            quick: self.quick,
            passes: self.passes.unwrap_or(if self.quick { 1 } else { 3 }).max(1),
            timeout: self.timeout,
            only: self.peers.clone(),
        }
    }
}

#[derive(Subcommand)]
enum What {
    /// Everything but scaling, leader and soak; the same as no word at all.
    All,
    /// The machine, and how often its disk can commit.
    Machine,
    /// 5,000 × /bin/true with 2 and 8 slots: rate and processor time per task.
    Bulk,
    /// 10 × 100 tasks and 1,000 × 100 tasks, each waiting for two.
    Dag,
    /// 100 tasks wait for one: when they start.
    FanOut,
    /// From the end of a task to the start of the next in its slot.
    Refill,
    /// One task handed over by a cold command.
    Submit,
    /// 10,000 and 100,000 queued tasks shown by a cold command.
    Status,
    /// A daemon that comes back over 1,000,000 events and 100,000 live beads.
    Restart,
    /// Resident memory: idle, and for each live and closed bead.
    Memory,
    /// How every operation grows with the number of beads.
    Scaling {
        /// How many beads.
        #[arg(long, value_delimiter = ',', default_values_t = scaling::SIZES)]
        beads: Vec<usize>,
    },
    /// What one leader can carry, with up to 10,000 simulated workers.
    Leader,
    /// Full speed for a long time: whether anything grows.
    Soak {
        /// For how long.
        #[arg(long = "for", value_parser = humantime::parse_duration, default_value = "1h")]
        span: Duration,
        /// How often everything is looked at; 10 s.
        #[arg(long, value_parser = humantime::parse_duration)]
        every: Option<Duration>,
    },
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
    /// How often a second the journal commits, in a file and in PostgreSQL.
    Stores,
    /// Jobs on a Slurm cluster, next to a bare script that submits the same to it.
    Cluster,
    /// Orders sent to agents, next to agents that look for work every 30 seconds.
    Agents,
    /// One measurement of `stage`, in a process of its own for the sake of its peak memory.
    #[command(hide = true)]
    StageCase { case: stage::Case, file: PathBuf },
    /// One pass of one program, in a process of its own.
    #[command(hide = true)]
    Pass(pass::Spec),
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
    match run(&args) {
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
fn run(args: &Args) -> Fallible<usize> {
    let what = args.what.as_ref().unwrap_or(&What::All);
    if let What::StageCase { case, file } = what {
        return stage::case(*case, file).map(|()| 0);
    }
    if let What::Pass(spec) = what {
        return pass::make(spec).map(|()| 0);
    }
    load("at the start");
    let effort = args.effort();
    let mut missed = 0;
    let all = [
        What::Bulk,
        What::Dag,
        What::FanOut,
        What::Refill,
        What::Submit,
        What::Status,
        What::Stage { beads: stage::SIZES.to_vec() },
        What::Restart,
        What::Memory,
        What::Seed2 { rounds: seed2::ROUNDS },
        What::Rename { beads: rename::SIZES.to_vec() },
        What::Console { beads: console::BEADS },
        What::Tasks { writers: tasks::WRITERS.to_vec() },
        What::Agents,
    ];
    match what {
        What::All => {
            for what in &all {
                missed += one(what, &effort)?;
            }
        }
        what => missed = one(what, &effort)?,
    }
    load("at the end");
    report::print_bars();
    if let Some(path) = &args.json {
        report::write_json(path)?;
    }
    if args.write {
        report::write_page(&report::page())?;
    }
    Ok(missed)
}

/// Measures one thing, in a section of its own.
fn one(what: &What, effort: &Effort) -> Fallible<usize> {
    report::section(title(what));
    match what {
        What::Machine => {
            say(&machine::Machine::here().to_string());
            Ok(0)
        }
        What::Bulk => throughput::bulk(effort),
        What::Dag => throughput::dag(effort),
        What::FanOut => latency::fan_out(effort),
        What::Refill => latency::refill(effort),
        What::Submit => cold::submit(effort),
        What::Status => cold::status(effort),
        What::Restart => restart::run(effort),
        What::Memory => memory::run(effort),
        What::Scaling { beads } => scaling::run(beads, effort),
        What::Leader => leader::run(effort),
        What::Soak { span, every } => soak::run(*span, *every),
        What::Seed2 { rounds } => seed2::run(*rounds),
        What::Rename { beads } => rename::run(beads),
        What::Stage { beads } => stage::run(&beads.iter().map(|n| effort.size(*n)).collect::<Vec<_>>()),
        What::Console { beads } => Ok(console::run(*beads)? + screen::run(*beads)?),
        What::Tasks { writers } => tasks::run(writers),
        What::Stores => stores::run(effort),
        What::Cluster => cluster::run(effort),
        What::Agents => Ok(agents::run()),
        What::All | What::StageCase { .. } | What::Pass(_) => Ok(0),
    }
}

/// The heading of a measure's section.
fn title(what: &What) -> &'static str {
    match what {
        What::Bulk => "Dispatch: tasks that wait for nothing",
        What::Dag => "Dispatch: graphs of tasks",
        What::FanOut => "Latency: fan-out",
        What::Refill => "Latency: a free slot",
        What::Submit => "Cold commands: one submission",
        What::Status => "Cold commands: a long queue shown",
        What::Stage { .. } => "Staging a file of beads",
        What::Restart => "Restart",
        What::Memory => "Memory",
        What::Scaling { .. } => "Scaling",
        What::Leader => "One leader",
        What::Soak { .. } => "Soak",
        What::Seed2 { .. } => "Delays of seed 2",
        What::Rename { .. } => "From a tracker's rename to the start",
        What::Console { .. } => "The console",
        What::Tasks { .. } => "Tasks over HTTP",
        What::Stores => "The journal in a file and in PostgreSQL",
        What::Cluster => "Jobs on Slurm",
        What::Agents => "Agents: push next to polling",
        What::Machine => "The machine",
        What::All | What::StageCase { .. } | What::Pass(_) => "",
    }
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
