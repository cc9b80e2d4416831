//! Processor time of everything a program starts, whoever its parent becomes. Children's usage as `wait` tells it would
//! miss whatever is never waited for, so a control group around all of it counts, or else the whole machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

use crate::Fallible;
use crate::stage::span_of;

/// Where groups of the first version lie that only count.
const FIRST: &str = "/sys/fs/cgroup/cpuacct";
/// Where groups of the second version lie: alone, or beside the first.
const SECOND: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// Ticks a second in `/proc/stat`, on every Linux there is.
const TICKS: u64 = 100;

/// The processor time of everything this process starts.
pub(crate) struct Account {
    how: How,
    /// Our own before it was opened.
    own: Duration,
}

/// How the time is told.
enum How {
    /// A group of the first version.
    Counted(PathBuf),
    /// A group of the second.
    Unified(PathBuf),
    /// All processors, whoever used them.
    Machine { before: Duration },
}

impl Account {
    /// Puts this process, and so everything it will start, into a group of its own if one can be made.
    pub(crate) fn open() -> Fallible<Self> {
        let counted = || join(Path::new(FIRST), "cpuacct.usage").map(How::Counted);
        let unified = || SECOND.iter().find_map(|home| join(Path::new(home), "cpu.stat")).map(How::Unified);
        let how = match counted().or_else(unified) {
            Some(how) => how,
            None => How::Machine { before: machine_time()? },
        };
        Ok(Self { how, own: own_time()? })
    }

    /// How, in words.
    pub(crate) fn word(&self) -> &'static str {
        match self.how {
            How::Counted(_) => "cgroup v1 cpuacct",
            How::Unified(_) => "cgroup v2 cpu.stat",
            How::Machine { .. } => "the whole machine, /proc/stat",
        }
    }

    /// The processor time of everything started so far, without our own.
    pub(crate) fn spent(&self) -> Fallible<Duration> {
        let own = own_time()?.saturating_sub(self.own);
        let all = match &self.how {
            How::Counted(group) => {
                Duration::from_nanos(fs::read_to_string(group.join("cpuacct.usage"))?.trim().parse()?)
            }
            How::Unified(group) => {
                let text = fs::read_to_string(group.join("cpu.stat"))?;
                let micros = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
                Duration::from_micros(micros.ok_or("cpu.stat has no usage_usec")?.trim().parse()?)
            }
            How::Machine { before } => machine_time()?.saturating_sub(*before),
        };
        Ok(all.saturating_sub(own))
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        // An emptied group can be removed; one that is not yet empty is found by its name.
        if let How::Counted(group) | How::Unified(group) = &self.how {
            let home = group.parent().map(|home| home.join("cgroup.procs"));
            let _ = home.and_then(|home| fs::write(home, std::process::id().to_string()).ok());
            remove(group);
        }
    }
}

/// Removes a group and those that were made in it.
fn remove(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

fn join(home: &Path, figure: &str) -> Option<PathBuf> {
    let group = home.join(format!("ym-bench-{}", std::process::id()));
    fs::create_dir(&group).ok()?;
    let joined = group.join(figure).exists()
        && fs::write(group.join("cgroup.procs"), std::process::id().to_string()).is_ok();
    if !joined {
        let _ = fs::remove_dir(&group);
    }
    joined.then_some(group)
}

/// Our own processor time.
fn own_time() -> Fallible<Duration> {
    span_of(&getrusage(UsageWho::RUSAGE_SELF)?)
}

/// What all processors did so far, idling and waiting aside.
fn machine_time() -> Fallible<Duration> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().ok_or("/proc/stat is empty")?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map(str::parse).collect::<Result<_, _>>()?;
    let busy: u64 = ticks.iter().take(8).sum::<u64>() - ticks.iter().skip(3).take(2).sum::<u64>();
    Ok(Duration::from_millis(busy * 1000 / TICKS))
}
