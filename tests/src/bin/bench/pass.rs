//! One program measured once, in a process of its own: everything the program starts is counted together, ends with the
//! pass, and is ended when it takes too long.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::Fallible;
use crate::accounts::Account;
use crate::graph::{Graph, Stamp, stamps};
use crate::machine::{memory, scratch};
use crate::peers::{Program, Runner};
use crate::site::{Site, end_descendants};
use crate::table::say;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// Tasks that wait for nothing.
    Bulk,
    /// Layers of a hundred, each task waiting for two of the layer before.
    Dag,
    /// One blocker, and many that wait for it.
    FanOut,
    /// From the end of a short task to the start of the next.
    Refill,
    /// One task handed over by a cold command.
    Submit,
    /// The queue shown by a cold command.
    Status,
}

/// How wide the layers are.
const WIDTH: usize = 100;
/// How often a cold command is run: submissions, and looks at a long queue.
const COLD: usize = 60;
const LOOKS: usize = 11;

/// How long a pass that took too long may take to clean up.
const TIDY: Duration = Duration::from_secs(30);

/// One pass.
#[derive(Debug, Clone, Args)]
pub(crate) struct Spec {
    #[arg(long)]
    pub(crate) program: Program,
    #[arg(long)]
    pub(crate) case: Case,
    /// How many tasks there are.
    #[arg(long)]
    pub(crate) tasks: usize,
    /// How many of them at a time.
    #[arg(long)]
    pub(crate) slots: usize,
    /// How many seconds it may take.
    #[arg(long)]
    pub(crate) timeout: u64,
}

/// What was found: figures by name, or why there are none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) figures: BTreeMap<String, f64>,
    /// How processor time was counted.
    pub(crate) counted: String,
    pub(crate) trouble: Option<String>,
}

impl Outcome {
    pub(crate) fn get(&self, figure: &str) -> Option<f64> {
        self.figures.get(figure).copied()
    }
}

/// Has one pass made by a process of its own.
pub(crate) fn measure(spec: &Spec) -> Fallible<Outcome> {
    let word = |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["pass", "--program", &word(spec.program.to_possible_value()).unwrap_or_default()]);
    command.args(["--case", &word(spec.case.to_possible_value()).unwrap_or_default()]);
    command.args(["--tasks", &spec.tasks.to_string(), "--slots", &spec.slots.to_string()]);
    command.args(["--timeout", &spec.timeout.to_string()]);
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| format!("a pass said {text:?}: {error}").into())
}

/// The pass itself: prints what it found.
pub(crate) fn make(spec: &Spec) -> Fallible<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    let until = Instant::now() + Duration::from_secs(spec.timeout);
    let limit = spec.timeout;
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(limit));
        // Whoever waits for them goes on with an error, and cleans up.
        end_descendants();
        thread::sleep(TIDY);
        tell(&Outcome { trouble: Some(too_long(limit)), ..Outcome::default() });
        std::process::exit(0);
    });
    let account = Account::open()?;
    let dir = tempfile::Builder::new().prefix("ym-pass-").tempdir_in(home_of(spec.program))?;
    let mut site = Site::new(dir.path(), spec.slots, until);
    let mut runner = spec.program.runner();
    let found = runner.start(&mut site).and_then(|()| figures(spec, &mut *runner, &site));
    let stopped = runner.stop(&site);
    let mut outcome = Outcome { counted: account.word().to_owned(), ..Outcome::default() };
    match found.and_then(|figures| stopped.map(|()| figures)) {
        Ok(figures) => outcome.figures = figures,
        Err(_) if Instant::now() >= until => outcome.trouble = Some(too_long(limit)),
        Err(error) => outcome.trouble = Some(error.to_string()),
    }
    end_descendants();
    let per_task = account.spent()?.as_secs_f64() / spec.tasks.max(1) as f64;
    outcome.figures.insert("cpu_us".to_owned(), per_task * 1e6);
    drop(account);
    tell(&outcome);
    Ok(())
}

fn too_long(limit: u64) -> String {
    format!("took more than {limit} s")
}

fn tell(outcome: &Outcome) {
    say(&serde_json::to_string(outcome).unwrap_or_default());
}

fn figures(spec: &Spec, runner: &mut dyn Runner, site: &Site) -> Fallible<BTreeMap<String, f64>> {
    let log = site.path("stamps");
    let graph = match spec.case {
        Case::Bulk => Graph::bulk(spec.tasks),
        Case::Dag => Graph::layers(spec.tasks.div_ceil(WIDTH), WIDTH),
        Case::FanOut => Graph::fan_out(spec.tasks, &log)?,
        Case::Refill => Graph::short(spec.tasks, &log)?,
        Case::Submit => return cold(runner, site, Cold::Submission),
        Case::Status => {
            let queued = runner.queue_up(site, spec.tasks)?;
            let mut found = cold(runner, site, Cold::Look)?;
            found.insert("queued".to_owned(), queued as f64);
            return Ok(found);
        }
    };
    let spent = runner.run(site, &graph)?;
    let tasks = graph.tasks.len() as f64;
    let (submit, drain) = (spent.submit.as_secs_f64(), spent.drain.as_secs_f64());
    let mut found = BTreeMap::from([
        ("rate".to_owned(), tasks / (submit + drain)),
        ("drain_rate".to_owned(), tasks / drain),
        ("submit_s".to_owned(), submit),
    ]);
    match spec.case {
        Case::FanOut => found.extend(fan_out(&stamps(&log)?, spec.tasks)?),
        Case::Refill => found.extend(refill(&stamps(&log)?, spec.slots)?),
        Case::Bulk | Case::Dag | Case::Submit | Case::Status => {}
    }
    Ok(found)
}

/// From the blocker's end to the first and the last start.
fn fan_out(stamps: &[Stamp], width: usize) -> Fallible<[(String, f64); 2]> {
    let blocker = stamps.iter().find(|stamp| stamp.label == "blocker").ok_or("the blocker never ran")?;
    let mut starts: Vec<f64> = stamps
        .iter()
        .filter(|stamp| stamp.label == "freed")
        .map(|stamp| (stamp.began as f64 - blocker.ended as f64) / 1e6)
        .collect();
    starts.sort_by(f64::total_cmp);
    match (starts.first(), starts.last()) {
        (Some(first), Some(last)) if starts.len() == width => {
            Ok([("first_ms".to_owned(), *first), ("last_ms".to_owned(), *last)])
        }
        _ => Err(format!("{} of {width} ran", starts.len()).into()),
    }
}

/// From the end that frees a slot to the start that takes it: with k slots, the n-th end to the (n+k)-th start.
fn refill(stamps: &[Stamp], slots: usize) -> Fallible<[(String, f64); 2]> {
    let mut starts: Vec<u64> = stamps.iter().map(|stamp| stamp.began).collect();
    let mut ends: Vec<u64> = stamps.iter().map(|stamp| stamp.ended).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let gaps = starts.iter().skip(slots).zip(&ends).map(|(start, end)| (*start as f64 - *end as f64) / 1e6);
    let mut gaps: Vec<f64> = gaps.collect();
    gaps.sort_by(f64::total_cmp);
    let at = |share: usize| gaps.get((gaps.len() * share / 100).min(gaps.len().saturating_sub(1))).copied();
    let (p50, p99) = at(50).zip(at(99)).ok_or("too few tasks ran")?;
    Ok([("p50_ms".to_owned(), p50), ("p99_ms".to_owned(), p99)])
}

/// Which command is run cold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cold {
    Submission,
    Look,
}

/// A command as its user waits for it, each run next to one of `/bin/true`.
fn cold(runner: &mut dyn Runner, site: &Site, which: Cold) -> Fallible<BTreeMap<String, f64>> {
    let (argv, runs) = match which {
        Cold::Submission => (runner.submission(site)?, COLD),
        Cold::Look => (runner.status(site)?, LOOKS),
    };
    let (mut bare, mut spans) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        bare.push(site.foreground(&[crate::graph::TRUE], Stdio::null())?);
        spans.push(site.foreground(&argv, Stdio::null())?);
    }
    let middle = |spans: &mut Vec<Duration>| {
        spans.sort();
        spans[spans.len() / 2].as_secs_f64() * 1e3
    };
    let worst = spans.iter().max().map_or(0.0, Duration::as_secs_f64) * 1e3;
    Ok(BTreeMap::from([
        ("true_ms".to_owned(), middle(&mut bare)),
        ("p50_ms".to_owned(), middle(&mut spans)),
        ("worst_ms".to_owned(), worst),
    ]))
}

/// Where a program's files lie while it is measured.
pub(crate) fn home_of(program: Program) -> PathBuf {
    memory().filter(|_| program == Program::YmTmpfs).unwrap_or_else(scratch)
}
