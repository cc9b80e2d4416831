//! What a figure was measured on: the machine, its disk, and how busy it was.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use nix::sys::statfs::statfs;
use serde::Serialize;
use yard_engine::Timestamp;

use crate::Fallible;

/// Where figures without a disk are measured, if it is there.
const MEMORY: &str = "/dev/shm";

/// The machine at hand.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    cores: usize,
    processor: String,
    memory_mib: u64,
    kernel: String,
    file_system: String,
    commits_per_second: Option<f64>,
    commits_per_second_tmpfs: Option<f64>,
    versions: Vec<String>,
}

impl Machine {
    /// Looks at it, and lets the disk commit for a second.
    pub(crate) fn here() -> Self {
        let scratch = scratch();
        Self {
            cores: cores(),
            processor: line_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            memory_mib: line_of("/proc/meminfo", "MemTotal")
                .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
                .map_or(0, |kib| kib / 1024),
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            file_system: format!("{} at {}", file_system(&scratch), scratch.display()),
            commits_per_second: commit_rate(&scratch).ok(),
            commits_per_second_tmpfs: memory().and_then(|memory| commit_rate(&memory).ok()),
            versions: versions(),
        }
    }

    /// When, how busy, and which of our commits.
    pub(crate) fn moment() -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = Timestamp::from_millis(i64::try_from(now.as_millis()).unwrap_or_default()).to_string();
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load: Vec<&str> = load.split_whitespace().take(3).collect();
        let commit = said(Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR")]).args([
            "rev-parse",
            "--short",
            "HEAD",
        ]));
        let day = now.split('.').next().unwrap_or(&now);
        format!("Measured {day}Z, commit {}, load {}.", commit.unwrap_or_default(), load.join(" "))
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |rate: Option<f64>| rate.map_or("unknown".to_owned(), |rate| format!("{rate:.0}"));
        writeln!(f, "| | |\n|---|---|")?;
        writeln!(f, "| processor | {} cores, {} |", self.cores, self.processor)?;
        writeln!(f, "| memory | {} MiB |", self.memory_mib)?;
        writeln!(f, "| kernel | {} |", self.kernel)?;
        writeln!(f, "| file system | {} |", self.file_system)?;
        writeln!(
            f,
            "| commits a second (4 KiB overwritten, fdatasync) | {}; on tmpfs {} |",
            rate(self.commits_per_second),
            rate(self.commits_per_second_tmpfs)
        )?;
        write!(f, "| programs | {} |", self.versions.join(", "))
    }
}

/// How many processors there are.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Where towns and peers are put that are measured on a disk.
pub(crate) fn scratch() -> PathBuf {
    std::env::temp_dir()
}

/// Where they are put that are measured in memory; none if there is no such place.
pub(crate) fn memory() -> Option<PathBuf> {
    let place = PathBuf::from(MEMORY);
    (file_system(&place) == "tmpfs").then_some(place)
}

/// The kind of file system a place lies on.
fn file_system(place: &Path) -> String {
    let Ok(about) = statfs(place) else { return "unknown".to_owned() };
    let kind = about.filesystem_type();
    let known = [
        (nix::sys::statfs::EXT4_SUPER_MAGIC, "ext4"),
        (nix::sys::statfs::TMPFS_MAGIC, "tmpfs"),
        (nix::sys::statfs::XFS_SUPER_MAGIC, "xfs"),
        (nix::sys::statfs::BTRFS_SUPER_MAGIC, "btrfs"),
        (nix::sys::statfs::OVERLAYFS_SUPER_MAGIC, "overlayfs"),
    ];
    let name = known.iter().find(|(magic, _)| *magic == kind);
    name.map_or_else(|| format!("{kind:?}"), |(_, name)| (*name).to_owned())
}

/// Commits a second of the disk that a directory lies on.
pub(crate) fn commit_rate(dir: &Path) -> Fallible<f64> {
    let file = tempfile::Builder::new().prefix("ym-sync-").tempfile_in(dir)?;
    let said = said(Command::new(yardstick()?).arg("sync").arg(file.path()).arg("1"));
    Ok(said.ok_or("the yardstick failed")?.parse()?)
}

/// What one commit of that disk takes.
pub(crate) fn commit_span(dir: &Path) -> Fallible<Duration> {
    Ok(Duration::from_secs_f64(1.0 / commit_rate(dir)?))
}

/// The program that everything is measured with, built beside this one.
pub(crate) fn yardstick() -> Fallible<PathBuf> {
    let beside = std::env::current_exe()?.with_file_name("yardstick");
    if beside.exists() {
        return Ok(beside);
    }
    Err(format!("{} is missing: tests/bench builds it", beside.display()).into())
}

fn line_of(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The first line a command prints.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(|line| line.trim().to_owned())
}

fn versions() -> Vec<String> {
    let ym = yard_tests::town::ym_binary().display().to_string();
    let asked: [(&str, &[&str]); 8] = [
        (&ym, &["--version"]),
        ("xargs", &["--version"]),
        ("make", &["--version"]),
        ("ninja", &["--version"]),
        ("parallel", &["--version"]),
        ("tsp", &["-V"]),
        ("pueue", &["--version"]),
        ("slurmctld", &["-V"]),
    ];
    let answers = asked.iter().filter_map(|(program, args)| {
        let mut command = Command::new(program);
        command.env("PATH", crate::peers::search_path());
        let line = said(command.args(*args))?;
        let name = program.rsplit('/').next().unwrap_or(program);
        Some(if line.to_lowercase().contains(name) { line } else { format!("{name} {line}") })
    });
    answers.chain(crate::peers::hyperqueue::version()).collect()
}
