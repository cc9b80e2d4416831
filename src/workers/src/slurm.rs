//! Slurm: where the process of a worker is made, never the truth about it.
//!
//! A job is known by its name, which carries the town and the dispatch. Its number alone is never trusted, because a
//! controller that was killed forgets jobs and gives their numbers to others. Slurm is given words of ours and few
//! variables, never text from outside; whatever a worker reads lies in files beside its claim.

mod words;

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;
use yard_engine::DispatchId;
use yard_engine::slurm::SlurmRequest;

use crate::ask::ask;
pub(crate) use words::{JobState, Jobs, NotTaken};
use words::{last_complaint, read_idle, read_jobs};

/// The script of every job. What it runs are its arguments.
pub(crate) const SCRIPT: &str = "#!/bin/sh\nexec \"$@\"\n";

/// How long a command of Slurm's may take: longer than it waits for a controller by itself.
const PATIENCE: Duration = Duration::from_mins(1);

/// All of our environment that Slurm gets: it keeps what it is given on the controller's disk.
const ENVIRONMENT: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "SLURM_CONF"];

/// The names of a town's jobs.
#[derive(Debug, Clone)]
pub(crate) struct JobNames {
    prefix: String,
}

impl JobNames {
    /// Those of the town with this run directory. Its path is unique on the storage that all nodes share.
    pub(crate) fn of(run_dir: &Path) -> Self {
        Self { prefix: format!("ym-{:016x}-", xxh3_64(run_dir.as_os_str().as_bytes())) }
    }

    /// The name of a dispatch's job: an id holds neither blanks nor anything that separates names.
    pub(crate) fn name(&self, dispatch: &DispatchId) -> String {
        format!("{}{dispatch}", self.prefix)
    }

    fn dispatch(&self, name: &str) -> Option<DispatchId> {
        DispatchId::parse(name.strip_prefix(&self.prefix)?).ok()
    }
}

/// Hands a job over. Its environment is only what a shim needs to find its way; its standard streams lead nowhere.
pub(crate) fn submit(
    script: &Path,
    name: &str,
    request: &SlurmRequest,
    argv: &[OsString],
) -> Result<(), NotTaken> {
    let mut command = command("sbatch");
    command.args(["--parsable", "--no-requeue", "--export=ALL", "--nodes=1", "--ntasks=1"]);
    command.args(["--chdir=/", "--input=/dev/null", "--output=/dev/null"]);
    command.arg(format!("--job-name={name}")).args(options(request)).arg(script).args(argv);
    match ask(&mut command, PATIENCE) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(complaint)) => Err(NotTaken::read(&complaint)),
        Err(error) if crate::trouble::is_machines_fault(&error) => {
            Err(NotTaken::Unanswered(format!("sbatch cannot be run: {error}")))
        }
        Err(error) => Err(NotTaken::Refused(format!(
            "sbatch cannot be run: {error}; install Slurm's client or use --executor local"
        ))),
    }
}

/// What a job asks for, as options whose values cannot be taken for others.
fn options(request: &SlurmRequest) -> Vec<String> {
    let SlurmRequest { partition, account, time_limit, cpus, memory, gres } = request;
    let seconds = time_limit.map(|span| span.0.div_ceil(1000));
    let options = [
        partition.as_ref().map(|name| format!("--partition={name}")),
        account.as_ref().map(|name| format!("--account={name}")),
        seconds.map(|seconds| format!("--time={}:{:02}", seconds / 60, seconds % 60)),
        cpus.map(|cpus| format!("--cpus-per-task={cpus}")),
        memory.map(|bytes| format!("--mem={}K", bytes.div_ceil(1024))),
        gres.as_ref().map(|gres| format!("--gres={gres}")),
    ];
    options.into_iter().flatten().collect()
}

/// The jobs of a town, or why nobody knows.
pub(crate) fn jobs(names: &JobNames) -> Result<Jobs, String> {
    let mut command = command("squeue");
    command.args(["--noheader", "--states=all", "--format=%T|%j", &own()]);
    Ok(read_jobs(&answer(&mut command)?, names))
}

/// How many more jobs like this the partition has processors for, as Slurm says.
pub(crate) fn room(request: &SlurmRequest) -> Result<u64, String> {
    let mut command = command("sinfo");
    command.args(["--noheader", "--format=%P|%C"]);
    command.args(request.partition.as_ref().map(|name| format!("--partition={name}")));
    let idle = read_idle(&answer(&mut command)?, request.partition.is_some());
    let idle = idle.ok_or("Slurm does not say how many processors are free")?;
    Ok(idle / u64::from(request.cpus.unwrap_or(1).max(1)))
}

/// Signals the batch process of a job, which is its shim.
pub(crate) fn signal(name: &str) -> Result<(), String> {
    let mut command = command("scancel");
    command.args(["--batch", "--signal=USR1", &own()]).arg(format!("--name={name}"));
    answer(&mut command).map(drop)
}

/// Calls a job off: SIGTERM to all of it, and SIGKILL after Slurm's own grace.
pub(crate) fn cancel(name: &str) -> Result<(), String> {
    let mut command = command("scancel");
    command.arg(own()).arg(format!("--name={name}"));
    answer(&mut command).map(drop)
}

/// Kills all processes of a job.
pub(crate) fn kill(name: &str) -> Result<(), String> {
    let mut command = command("scancel");
    command.args(["--full", "--signal=KILL", &own()]).arg(format!("--name={name}"));
    answer(&mut command).map(drop)
}

/// Only jobs of our own user: others may use the same names.
fn own() -> String {
    format!("--user={}", nix::unistd::Uid::current())
}

fn command(program: &str) -> Command {
    let mut command = Command::new(located(program));
    command.env_clear().current_dir("/");
    command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}

/// Where a program lies. One that is named without its place, with an environment of its own, would be made by a fork of
/// the whole daemon.
fn located(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|place| place.join(program));
    places.find(|place| place.is_file()).unwrap_or_else(|| program.into())
}

fn answer(command: &mut Command) -> Result<String, String> {
    match ask(command, PATIENCE) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(complaint)) => Err(last_complaint(&complaint).to_owned()),
        Err(error) => Err(format!("{} cannot be run: {error}", command.get_program().display())),
    }
}

/// What Slurm calls itself, as `slurm-wlm 22.05.8`. An error if it cannot be run.
pub fn slurm_version() -> io::Result<String> {
    let answer = ask(command("sbatch").arg("--version"), PATIENCE)?;
    Ok(answer.map_or_else(|why| why, |version| version.trim().to_owned()))
}

/// How Slurm's controllers stand, in Slurm's words; an error if none answers.
pub fn controllers() -> Result<String, String> {
    let told = answer(command("scontrol").arg("ping"))?;
    let told = told.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    if told.contains(" UP") { Ok(told) } else { Err(told) }
}

#[cfg(test)]
mod tests {
    use yard_engine::Millis;

    use super::*;

    fn id(text: &str) -> DispatchId {
        DispatchId::parse(text).expect("an id")
    }

    #[test]
    fn a_job_is_found_again_by_its_name() {
        let names = JobNames::of(Path::new("/towns/a/.yardmaster/run"));
        let others = JobNames::of(Path::new("/towns/b/.yardmaster/run"));
        for text in ["gt-a@1", "gt-a.1@12", "gt_a-b.c_d@3", "A._2e@1", "x-_.@99"] {
            let name = names.name(&id(text));
            assert!(!name.contains([',', '|', ' ', '\n', '%']), "{name}");
            assert_eq!(names.dispatch(&name), Some(id(text)));
            assert_eq!(others.dispatch(&name), None);
        }
        assert_eq!(names.dispatch("interactive"), None);
    }

    #[test]
    fn a_request_becomes_options_of_one_word_each() {
        let request = SlurmRequest {
            partition: Some("main".to_owned()),
            account: Some("lab".to_owned()),
            time_limit: Some(Millis(90_500)),
            cpus: Some(4),
            memory: Some(1 << 30),
            gres: Some("gpu:1".to_owned()),
        };
        let wanted = [
            "--partition=main",
            "--account=lab",
            "--time=1:31",
            "--cpus-per-task=4",
            "--mem=1048576K",
            "--gres=gpu:1",
        ];
        assert_eq!(options(&request), wanted);
        assert!(options(&SlurmRequest::default()).is_empty());
    }
}
