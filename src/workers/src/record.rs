//! The lines of a claim file: `<16 hex digits> <json>\n`, the digits being the xxh3 checksum of the JSON text.
//!
//! A line is believed only if its checksum fits, so a line torn by a full disk or a crash is as good as absent.

use std::io::Write as _;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;
use yard_engine::money::Usd;
use yard_engine::session::Session;
use yard_engine::worktree::Worktree;
use yard_engine::{Millis, Timestamp};

use crate::sys::process_realm;

/// The exit code by which a worker says that it gave way.
pub const YIELDED: i32 = 75;

/// Why a dispatch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitCause {
    /// Its program ended by itself.
    Exit,
    /// A step took longer than its timeout.
    Timeout,
    /// The whole dispatch took longer than its hard cap.
    HardCap,
    /// Somebody asked it to stop.
    Stopped,
    /// A later step's program could not be run.
    ExecFailed,
    /// It was asked to give way, and did between two steps.
    Yielded,
    /// Its steps ran well, but what is in its worktree cannot be put on its branch.
    Unfinished,
    /// Slurm ended it, and nobody here had asked for that.
    Slurm(SlurmEnd),
}

/// Why Slurm ended a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlurmEnd {
    /// It ran as long as it may.
    TimeLimit,
    /// It used more memory than it may.
    OutOfMemory,
    /// Other work needed its place.
    Preempted,
    /// Its node is gone.
    NodeFailed,
    /// Somebody cancelled it.
    Cancelled,
}

/// How a dispatch ended. Written once, after everything it started is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Exit code of the last program, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended the last program, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The step that ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Why it ended.
    pub cause: ExitCause,
    /// When the shim took the claim.
    pub started_at: Timestamp,
    /// When everything was gone.
    pub ended_at: Timestamp,
    /// How long it ran, by a clock that nobody sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Millis>,
    /// What its output said it cost.
    #[serde(default, skip_serializing_if = "Usd::is_zero")]
    pub usd: Usd,
    /// Tokens it used, as its output said.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// The session its output named last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The worktree it worked in, as it left it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<Worktree>>,
    /// How the agent's service refused, in words: its exit says nothing about the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// More about it, for a person: the reason given with a stop request, why a program could not be run, or what could not be ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// One line of a claim file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    /// A shim took the claim; from here on something may run.
    Claimed {
        shim: u32,
        at: Timestamp,
        /// The worker's `YM_TOWN`, by which a sweep knows its processes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        town: Option<String>,
        /// The control group that holds the shim and all it starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Where the number of the shim means something, unless that is where the claim was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        realm: Option<String>,
    },
    /// It works in a worktree.
    Worktree { worktree: Worktree, at: Timestamp },
    /// A step's program runs.
    Running { pid: u32, step: String, at: Timestamp },
    /// A step finished well.
    Step { id: String, at: Timestamp },
    /// The daemon asks for an end.
    Stop { grace_ms: Millis, reason: String, at: Timestamp },
    /// The daemon asks it to give way between two steps, or no longer does.
    Yield { wanted: bool, at: Timestamp },
    /// It is over.
    Exit(ExitRecord),
    /// The first program could not be run; it is over.
    Failed { error: String, at: Timestamp },
    /// Nobody may start this any more.
    Revoked { why: String, at: Timestamp },
}

impl Line {
    /// Appends the line's text to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(b"0000000000000000 ");
        let body = out.len();
        if serde_json::to_writer(&mut *out, self).is_err() {
            // Only a map with odd keys can fail to become JSON, and there is none.
            out.truncate(start);
            return;
        }
        let sum = xxh3_64(&out[body..]);
        // Writing into a slice of the right length does not fail.
        let _ = write!(&mut out[start..body - 1], "{sum:016x}");
        out.push(b'\n');
    }

    /// Reads one line without its newline; `None` if it is torn, altered or of an unknown kind.
    pub(crate) fn decode(text: &[u8]) -> Option<Self> {
        let (sum, body) = (text.get(..17)?, text.get(17..)?);
        // Compared as it is written: reading it as a number would forgive a sign and capital letters.
        let mut expected = [0; 17];
        write!(expected.as_mut_slice(), "{:016x} ", xxh3_64(body)).ok()?;
        if sum != expected {
            return None;
        }
        serde_json::from_slice(body).ok()
    }
}

/// Everything a claim file says, in one place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Story {
    /// Process id of the shim that took it.
    pub shim: Option<u32>,
    /// The worker's `YM_TOWN`.
    pub town: Option<String>,
    /// The control group of the shim and all it started.
    pub group: Option<String>,
    /// Where the shim's number means something, if that may be elsewhere.
    pub realm: Option<String>,
    /// The first program's process id and when it began.
    pub running: Option<(u32, Timestamp)>,
    /// The worktree it works in.
    pub worktree: Option<Worktree>,
    /// Steps finished, in order.
    pub steps: Vec<String>,
    /// It should give way.
    pub yield_wanted: bool,
    /// The last stop request.
    pub stop: Option<(Millis, String)>,
    /// How it ended.
    pub exit: Option<ExitRecord>,
    /// Why it could not start.
    pub failed: Option<String>,
    /// Nobody may start it any more.
    pub revoked: bool,
}

impl Story {
    /// The shim that took it, if its number means a process of this machine.
    pub(crate) fn shim_here(&self) -> Option<u32> {
        self.shim.filter(|_| self.realm.as_ref().is_none_or(|realm| *realm == process_realm()))
    }

    /// Whether no shim has taken it, and none ever has.
    pub(crate) fn is_untaken(&self) -> bool {
        self.shim.is_none() && self.exit.is_none() && self.failed.is_none()
    }

    /// Folds the lines of a claim file; bad lines are skipped.
    pub(crate) fn read(text: &[u8]) -> Self {
        let mut story = Self::default();
        for line in text.split(|&b| b == b'\n').filter_map(Line::decode) {
            match line {
                Line::Claimed { shim, town, group, realm, .. } => {
                    story.shim = Some(shim);
                    story.realm = realm;
                    story.group = group;
                    story.town = town;
                }
                Line::Running { pid, at, .. } => {
                    story.running.get_or_insert((pid, at));
                }
                Line::Worktree { worktree, .. } => story.worktree = Some(worktree),
                Line::Step { id, .. } => story.steps.push(id),
                Line::Stop { grace_ms, reason, .. } => story.stop = Some((grace_ms, reason)),
                Line::Yield { wanted, .. } => story.yield_wanted = wanted,
                Line::Exit(exit) => story.exit = Some(exit),
                Line::Failed { error, .. } => story.failed = Some(error),
                Line::Revoked { .. } => story.revoked = true,
            }
        }
        story
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Line]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in lines {
            line.encode(&mut out);
        }
        out
    }

    #[test]
    fn a_torn_last_line_is_ignored() {
        let at = Timestamp::from_millis(5);
        let claimed = Line::Claimed { shim: 7, at, town: None, group: None, realm: None };
        let exit = Line::Failed { error: "no".into(), at };
        let whole = text(&[claimed, exit]);
        for cut in 1..whole.len() {
            let story = Story::read(&whole[..cut]);
            assert!(story.failed.is_none() || cut + 1 == whole.len(), "cut at {cut}");
        }
        assert_eq!(Story::read(&whole).failed.as_deref(), Some("no"));
    }

    #[test]
    fn an_altered_line_is_ignored() {
        let mut line = text(&[Line::Revoked { why: "test".into(), at: Timestamp::from_millis(5) }]);
        assert!(Story::read(&line).revoked);
        let place = line.iter().position(|&b| b == b't').expect("a t");
        line[place] = b'x';
        assert!(!Story::read(&line).revoked);
    }

    #[test]
    fn a_line_with_any_byte_changed_is_ignored() {
        for pid in 0..40 {
            let line = text(&[Line::Running { pid, step: "work".into(), at: Timestamp::from_millis(5) }]);
            assert!(Story::read(&line).running.is_some());
            for place in 0..line.len() - 1 {
                for changed in [b'+', b' ', b'_', b'0', line[place] ^ 0x20, line[place] ^ 1] {
                    let mut altered = line.clone();
                    altered[place] = changed;
                    let is_same = altered == line;
                    assert!(is_same || Story::read(&altered).running.is_none(), "{place} of {line:?}");
                }
            }
        }
    }

    #[test]
    fn a_line_after_a_torn_one_is_found() {
        let mut bytes = b"0123 torn".to_vec();
        bytes.push(b'\n');
        bytes.extend(text(&[Line::Step { id: "build".into(), at: Timestamp::from_millis(1) }]));
        assert_eq!(Story::read(&bytes).steps, ["build"]);
    }
}
