//! Jobs through ours on a real Slurm cluster, next to a bare script that submits the same jobs to the same cluster, with as
//! many submissions and as many jobs at a time.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use yard_tests::slurm::CPUS_IN_ALL;
use yard_tests::town::Town;

use crate::Fallible;
use crate::contest::middle;
use crate::effort::Effort;
use crate::report::{Verdict, figure, progress, verdict};
use crate::table::{Table, met, ratio};

/// Jobs in one pass, and what each of them does before it notes its end.
const LOADS: [(usize, &str, &str); 2] = [
    (300, "Slurm: jobs that do nothing: rate vs a bare script", ":"),
    (160, "Slurm: jobs of a second: rate vs a bare script", "sleep 1"),
];
/// Commands that hand jobs over at the same time, in both cases.
const SUBMITTERS: &str = "4";
/// What ours has to reach of Slurm's own rate.
const BAR: f64 = 0.9;

/// Measures both loads; returns how many miss the bar.
pub(crate) fn run(effort: &Effort) -> Fallible<usize> {
    let mut town = Town::with_executor("slurm");
    town.set("scheduler.max_polecats", &CPUS_IN_ALL.to_string());
    town.start_daemon();
    let title =
        format!("{CPUS_IN_ALL} jobs at a time, {SUBMITTERS} submitters, medians of {} passes", effort.passes);
    let mut table = Table::new(
        &title,
        &["each job", "jobs", "bare script, jobs/s", "ours, jobs/s", "ours : script", "at least 0.9"],
    );
    let mut missed = 0;
    for (jobs, measure, script) in LOADS {
        let jobs = effort.size(jobs);
        let mut passes = Vec::new();
        for pass in 1..=effort.passes {
            let bare = jobs as f64 / bare(&mut town, jobs, script, effort)?.as_secs_f64();
            let ours = jobs as f64 / ours(&town, pass, jobs, script)?.as_secs_f64();
            progress(&format!("  {measure}, pass {pass}: script {bare:.1}/s, ours {ours:.1}/s"));
            let figures = [("pass", pass as f64), ("script_rate", bare), ("rate", ours)];
            figure("cluster", measure, figures.map(|(key, value)| (key.to_owned(), value)).into());
            passes.push((bare, ours));
        }
        let of = |value: fn(&(f64, f64)) -> f64| middle(passes.iter().map(value)).unwrap_or_default();
        let share = of(|(bare, ours)| ours / bare);
        missed += verdict(Verdict {
            measure,
            raw: "–".to_owned(),
            peer: "a bare script 1.00".to_owned(),
            ours: ratio(share),
            bar: "≥ 0.9",
            held: share >= BAR,
        });
        table.row([
            measure.to_owned(),
            jobs.to_string(),
            format!("{:.1}", of(|pass| pass.0)),
            format!("{:.1}", of(|pass| pass.1)),
            ratio(share),
            met(share >= BAR).to_owned(),
        ]);
    }
    table.print();
    town.stop_daemon();
    Ok(missed)
}

/// How long a script takes from its first submission until the last job has noted its end.
fn bare(town: &mut Town, jobs: usize, script: &str, effort: &Effort) -> Fallible<Duration> {
    let folder = tempfile::tempdir()?;
    let (job, ends) = (folder.path().join("job"), folder.path().join("ends"));
    std::fs::write(&job, format!("#!/bin/sh\n{script}\nprintf . >> '{}'\n", ends.display()))?;
    let submit = "seq \"$2\" | xargs -P \"$3\" -I '{}' sbatch -Q --ntasks=1 -i /dev/null -o /dev/null \"$1\"";
    let began = Instant::now();
    let submitted = Command::new("sh")
        .args(["-c", submit, "sh"])
        .arg(&job)
        .args([&jobs.to_string(), SUBMITTERS])
        .env("SLURM_CONF", town.cluster().config())
        .stdin(Stdio::null())
        .status()?;
    if !submitted.success() {
        return Err(format!("the script cannot submit: {submitted}").into());
    }
    while length(&ends) < jobs as u64 {
        if began.elapsed() > Duration::from_secs(effort.timeout) {
            return Err(format!("{} of {jobs} jobs of the bare script have ended", length(&ends)).into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(began.elapsed())
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |it| it.len())
}

/// How long ours takes from the command that adds the beads until it knows the end of the last.
fn ours(town: &Town, pass: usize, jobs: usize, script: &str) -> Fallible<Duration> {
    let ends = town.root().join("ends");
    let script = format!("{script}\nprintf . >> '{}'", ends.display());
    let items: Vec<String> = (0..jobs)
        .map(|_| json!({"name": format!("pass {pass}"), "argv": ["sh", "-c", script]}).to_string())
        .collect();
    let before = length(&ends);
    let began = Instant::now();
    town.run_with_input(["add", "--file", "-"], items.join("\n").as_bytes()).ok();
    town.run(["wait", "--all"]).ok();
    let took = began.elapsed();
    if length(&ends) != before + jobs as u64 {
        return Err("not every bead has run once".into());
    }
    Ok(took)
}
