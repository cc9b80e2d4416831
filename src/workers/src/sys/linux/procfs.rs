//! Finding processes in `/proc`: our descendants, and those that carry a dispatch's marks in their environment.
//!
//! A process is signalled through a descriptor that was opened first and compared with what was seen afterwards, so
//! that a number that changed hands meanwhile hits nobody.

use std::collections::{HashMap, HashSet};
use std::io;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::Handle;
use crate::sys::Reached;

/// What tells a process from all others that ever had or will have its number, and whose child it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    parent: u32,
    begun: u64,
}

/// Reads `/proc/<pid>/stat`; `None` if the process is gone or only waits to be reaped.
fn look(pid: u32) -> Option<Seen> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, also parentheses.
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(15)?.parse().ok()?;
    let begun = fields.nth(1)?.parse().ok()?;
    // A process whose first thread has left looks like a zombie too, but lives in its other threads.
    let gone = matches!(state, "Z" | "X") && threads <= 1;
    (!gone).then_some(Seen { parent, begun })
}

fn all_pids() -> io::Result<impl Iterator<Item = u32>> {
    let entries = std::fs::read_dir("/proc")?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

/// Signals the very process that was seen.
fn signal_seen(pid: u32, seen: Seen, signal: Signal, reached: &mut Reached) {
    let Ok(handle) = Handle::open(pid) else {
        return;
    };
    if look(pid).is_none_or(|now| now.begun != seen.begun) {
        return;
    }
    match handle.signal(signal) {
        Ok(()) => reached.signalled += 1,
        Err(e) if e.raw_os_error() == Some(Errno::EPERM as i32) => reached.forbidden += 1,
        Err(_) => {}
    }
    if signal == Signal::SIGTERM {
        // A stopped process would not see it.
        let _ = handle.signal(Signal::SIGCONT);
    }
}

/// Signals every process below this one, once. `groups` are the process groups of the steps, which is all one knows
/// where there is no `/proc`.
pub(crate) fn signal_descendants(groups: &[u32], signal: Signal) -> Reached {
    let mut reached = Reached::default();
    let Ok(pids) = all_pids() else {
        for &group in groups {
            let sent = nix::sys::signal::killpg(Pid::from_raw(group as i32), signal);
            reached.signalled += usize::from(sent.is_ok());
        }
        return reached;
    };
    let mut children: HashMap<u32, Vec<(u32, Seen)>> = HashMap::new();
    for pid in pids {
        if let Some(seen) = look(pid) {
            children.entry(seen.parent).or_default().push((pid, seen));
        }
    }
    let mut visited = HashSet::new();
    let mut parents = vec![std::process::id()];
    while let Some(parent) = parents.pop() {
        for &(pid, seen) in children.get(&parent).into_iter().flatten() {
            if visited.insert(pid) {
                signal_seen(pid, seen, signal, &mut reached);
                parents.push(pid);
            }
        }
    }
    reached
}

/// Whether nothing is left once `waitpid` says so: here always, because we are the reaper of all descendants.
pub(crate) fn tree_is_gone(_groups: &[u32]) -> bool {
    true
}

/// Kills every process of this user whose environment holds all of `marks` (whole `NAME=value` entries), except
/// those in `spare`, and says how many it found.
pub(crate) fn end_marked(marks: &[String], spare: &[u32]) -> io::Result<usize> {
    let mut found = 0;
    let mut reached = Reached::default();
    for pid in all_pids()?.filter(|pid| !spare.contains(pid)) {
        let Some(seen) = look(pid) else { continue };
        // Other users' processes and kernel threads cannot be read, and are not ours.
        let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) else {
            continue;
        };
        let carries = |mark: &String| environ.split(|&b| b == 0).any(|entry| entry == mark.as_bytes());
        if marks.iter().all(carries) {
            found += 1;
            signal_seen(pid, seen, Signal::SIGKILL, &mut reached);
        }
    }
    Ok(found)
}
