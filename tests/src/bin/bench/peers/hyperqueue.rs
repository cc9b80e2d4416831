//! HyperQueue, in the two shapes it comes in: the wheel on PyPI, whose Python API runs server and worker in one process
//! without a journal, and the program `hq`, if somebody has put it on the path, with its journal.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::{Runner, Spent, words};
use crate::Fallible;
use crate::graph::{Graph, TRUE};
use crate::site::{Site, ask_to_end, end};

/// Says a word when it has loaded everything, when all tasks are handed over, and when all have ended.
const SCRIPT: &str = "\
import json, os, sys
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
tasks = json.load(open('tasks.json'))
cluster = LocalCluster()
client = cluster.client()
print('loaded', flush=True)
job, made = Job(), []
for argv, after in tasks:
    made.append(job.program(argv, stdout=None, stderr=None, deps=[made[n] for n in after]))
submitted = client.submit(job)
print('submitted', flush=True)
cluster.start_worker(WorkerConfig(cores=int(sys.argv[1])))
client.wait_for_jobs([submitted])
print('ended', flush=True)
os._exit(0)
";

/// The Python that has it; `tests/bench` installs it there.
fn python() -> Option<PathBuf> {
    let python = super::target()?.join("test-tools/venv/bin/python");
    python.exists().then_some(python)
}

/// Which version of the wheel is here.
pub(crate) fn version() -> Option<String> {
    let ask =
        "import importlib.metadata as m; import hyperqueue; print('hyperqueue', m.version('hyperqueue'))";
    let output = Command::new(python()?).args(["-c", ask]).output().ok()?;
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}

pub(super) struct Wheel;

impl Runner for Wheel {
    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        let tasks: Vec<_> = graph.tasks.iter().map(|task| (&task.argv, &task.after)).collect();
        std::fs::write(site.path("tasks.json"), serde_json::to_string(&tasks)?)?;
        std::fs::write(site.path("run.py"), SCRIPT)?;
        let python = python().ok_or("its Python is not here")?.display().to_string();
        let mut command = site.command(&[&python, "run.py", &site.slots.to_string()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let said = child.stdout.take().ok_or("its output is piped")?;
        let mut moments = Vec::new();
        for line in BufReader::new(said).lines() {
            if ["loaded", "submitted", "ended"].contains(&line?.as_str()) {
                moments.push(Instant::now());
            }
        }
        child.wait()?;
        match moments[..] {
            [loaded, submitted, ended] => Ok(Spent { submit: submitted - loaded, drain: ended - submitted }),
            _ => Err("it did not come to its end".into()),
        }
    }
}

/// The command that hands a graph over: as an array, its fastest way, where all tasks are alike and wait for nothing.
fn job(site: &Site, graph: &Graph) -> Fallible<Vec<String>> {
    let quiet = ["hq", "submit", "--stdout=none", "--stderr=none"];
    if let Some(first) = graph.tasks.first()
        && graph.tasks.iter().all(|task| task.argv == first.argv && task.after.is_empty())
    {
        let array = format!("--array=1-{}", graph.tasks.len());
        return Ok(quiet.map(str::to_owned).into_iter().chain([array]).chain(first.argv.clone()).collect());
    }
    let mut text = String::new();
    for (number, task) in graph.tasks.iter().enumerate() {
        writeln!(text, "[[task]]\nid = {number}\nstdout = \"none\"\nstderr = \"none\"")?;
        writeln!(text, "command = {:?}\ndeps = {:?}", task.argv, task.after)?;
    }
    std::fs::write(site.path("job.toml"), text)?;
    Ok(words(["hq", "job", "submit-file", "job.toml"]))
}

#[derive(Default)]
pub(super) struct Hq {
    server: Option<Child>,
}

impl Runner for Hq {
    fn start(&mut self, site: &mut Site) -> Fallible<()> {
        site.set("HQ_SERVER_DIR", site.path("hq"));
        let journal = ["--journal", "journal", "--journal-flush-period", "1s"];
        let start = ["hq", "server", "start", "--host", "127.0.0.1"];
        self.server = Some(site.serve(&[&start[..], &journal].concat())?);
        site.until(&["hq", "server", "info"], |_| true)
    }

    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        let job = job(site, graph)?;
        let began = Instant::now();
        site.call(&job)?;
        let submit = began.elapsed();
        let slots = site.slots.to_string();
        let mut worker =
            site.serve(&["hq", "worker", "start", "--cpus", &slots, "--detect-resources", "none"])?;
        site.call(&["hq", "job", "wait", "all"])?;
        let spent = Spent::since(began, submit);
        ask_to_end(&worker);
        end(&mut worker)?;
        Ok(spent)
    }

    fn submission(&self, _site: &Site) -> Fallible<Vec<String>> {
        Ok(words(["hq", "submit", "--stdout=none", "--stderr=none", TRUE]))
    }

    fn status(&self, _site: &Site) -> Fallible<Vec<String>> {
        Ok(words(["hq", "job", "list", "--all"]))
    }

    /// A thousand jobs; what is more goes into their arrays.
    fn queue_up(&mut self, site: &Site, tasks: usize) -> Fallible<usize> {
        let jobs = tasks.min(1000);
        let array = format!("1-{}", (tasks / jobs.max(1)).max(1));
        for _ in 0..jobs {
            site.call(&["hq", "submit", "--stdout=none", "--stderr=none", "--array", &array, TRUE])?;
        }
        Ok(tasks)
    }

    fn stop(&mut self, site: &Site) -> Fallible<()> {
        drop(site.call(&["hq", "server", "stop"]));
        self.server.as_mut().map_or(Ok(()), end)
    }
}
