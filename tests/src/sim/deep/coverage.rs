//! What histories came across: types of events, refusals, and ways to recover.

use std::collections::BTreeMap;

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Durable events by type.
    pub events: BTreeMap<String, u64>,
    /// Refusals by code.
    pub refusals: BTreeMap<String, u64>,
    /// Ways to recover, by name.
    pub routes: BTreeMap<String, u64>,
}

/// Every way to recover, and every fault that needs one.
const ROUTES: [&str; 45] = [
    "absent-revoked",
    "adopted",
    "called-back",
    "called-back-too-late",
    "called-back-with-the-second",
    "checkpoint",
    "checkpoint-restored",
    "claim-unreadable",
    "crash",
    "crash-in-delete",
    "crash-in-folder-sync",
    "crash-in-rename",
    "crash-in-sync",
    "crash-in-truncate",
    "disk-failed-to-open",
    "disk-refused-reload",
    "failed-folder-sync",
    "failed-sync",
    "failed-write",
    "finished",
    "fsync-end",
    "left-in-good-order",
    "leftover-claim-removed",
    "line-ends-with-its-shim",
    "log-cut",
    "lost",
    "no-space-to-open",
    "not-called-back",
    "not-handed-on",
    "not-handed-over",
    "on-its-way",
    "past-copied",
    "past-copied-ahead",
    "power-cut",
    "rename-lost",
    "revoked",
    "revoked-before",
    "second-has-begun",
    "start-failed",
    "stop-not-passed-on",
    "tail-replayed",
    "torn-write",
    "two-in-line",
    "unfinished-copy-cleared-away",
    "writable-again",
];

/// Every refusal that the loop or the engine knows, besides those of [`ELSEWHERE`].
const REFUSALS: [&str; 86] = [
    "agent_forbidden",
    "already-launched",
    "ambiguous",
    "awaiting-merge",
    "bad-command",
    "bad-id",
    "bad-params",
    "bad-prefix",
    "bad-priority",
    "bad-status",
    "bad-text",
    "bad-time",
    "bad-title",
    "bad-var",
    "busy",
    "claimed",
    "claimed-elsewhere",
    "closed",
    "complete",
    "config-changed",
    "conflict",
    "cross-rig",
    "cycle",
    "draining",
    "empty-epic",
    "exists",
    "formula",
    "given-way",
    "has-room",
    "host-load",
    "idempotency_conflict",
    "journal",
    "mixed-sling",
    "mixed-targets",
    "no-bead",
    "no-explicit-rig",
    "no-program",
    "no-rig",
    "no-title",
    "no-use",
    "no-worker",
    "not-claimed",
    "not-dispatchable",
    "not-owned",
    "not-ready",
    "not-running",
    "not-scheduled",
    "not-staged",
    "not_found",
    "nothing-to-do",
    "nothing-to-redo",
    "nothing-to-retry",
    "nothing-to-undo",
    "nothing-waits",
    "open-beads",
    "past-deadline",
    "paused",
    "preemption-under-way",
    "queue_full",
    "read-only",
    "read-only-bead",
    "rig-docked",
    "rig-parked",
    "running",
    "staged",
    "stale-claim",
    "stale-dispatch",
    "stopping",
    "task",
    "task-ended",
    "too-long",
    "tracked-elsewhere",
    "unknown",
    "unknown-agent",
    "unknown-alert",
    "unknown-bead",
    "unknown-context",
    "unknown-convoy",
    "unknown-dispatch",
    "unknown-executor",
    "unknown-rig",
    "unknown-worktree",
    "in-use",
    "not-claimable",
    "no-log",
    "inside-worker",
];

/// What never occurs in a simulation, and why.
const ELSEWHERE: [(&str, &str); 16] = [
    ("scheduler.cluster_room", "there is no cluster; tests/tests/e2e/slurm.rs has a real one"),
    ("bad-actor", "histories' people have short names; tests/tests/e2e/hostile has the others"),
    ("store-moves", "nobody serves a town whose journal moves; tests/tests/e2e/postgres.rs moves one"),
    ("bad-path", "as bad-actor: histories' rigs have short paths"),
    ("town.repaired", "the safety scan found a difference: a broken promise, which ends the history"),
    ("internal", "a document that cannot be written, or a thread that cannot be made: defects"),
    ("no-daemon", "a passing command serves the town; histories have a daemon or a console"),
    ("passing", "as no-daemon"),
    ("inside-worker", "as no-daemon: only a passing command can run inside a worker"),
    ("no-config", "the engine without a loop that keeps a config file"),
    ("not-claimable", "what may be claimed is asked for first; the claim then succeeds"),
    ("bad-request", "the socket's edge, which the simulation does not have"),
    ("in-use", "worktrees on a real disk, which the simulated git does not make"),
    ("unknown-worktree", "as in-use"),
    ("unknown", "the last word of a reader on what was just found: a defect"),
    ("no-log", "logs on a real disk, which simulated workers do not write"),
];

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}

impl Coverage {
    pub(super) fn event(&mut self, kind: &str) {
        count(&mut self.events, kind);
    }

    pub(super) fn refusal(&mut self, code: &str) {
        count(&mut self.refusals, code);
    }

    pub(super) fn route(&mut self, name: &str) {
        count(&mut self.routes, name);
    }

    /// Whether a refusal is one that histories are to meet, or that cannot occur in them.
    pub fn is_known(code: &str) -> bool {
        REFUSALS.contains(&code) || ELSEWHERE.iter().any(|(known, _)| *known == code)
    }

    /// What should have been met and was not.
    pub fn missing(&self) -> Vec<String> {
        let wanted: [(&str, &[&str], &BTreeMap<String, u64>); 3] = [
            ("event", &yard_engine::event::KINDS, &self.events),
            ("refusal", &REFUSALS, &self.refusals),
            ("route", &ROUTES, &self.routes),
        ];
        let elsewhere = |name: &str| ELSEWHERE.iter().any(|(known, _)| *known == name);
        let missing = wanted.into_iter().flat_map(|(what, names, met)| {
            let unmet = names.iter().filter(move |name| !met.contains_key(**name) && !elsewhere(name));
            unmet.map(move |name| format!("{what} {name}"))
        });
        missing.collect()
    }

    /// All counts, in lines for people.
    pub fn lines(&self) -> Vec<String> {
        let parts = [("events", &self.events), ("refusals", &self.refusals), ("routes", &self.routes)];
        let mut lines: Vec<String> = parts
            .iter()
            .map(|(what, counts)| {
                let counts: Vec<String> =
                    counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
                format!("{what} ({} kinds): {}", counts.len(), counts.join(", "))
            })
            .collect();
        lines.push(match self.missing() {
            none if none.is_empty() => "every type of event, refusal and way to recover was met".to_owned(),
            missing => format!("not met: {}", missing.join(", ")),
        });
        lines.extend(ELSEWHERE.iter().map(|(name, why)| format!("not to be met here: {name} ({why})")));
        lines
    }

    /// Adds what another history came across.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.events, &other.events),
            (&mut self.refusals, &other.refusals),
            (&mut self.routes, &other.routes),
        ];
        for (sum, part) in pairs {
            for (name, count) in part {
                *sum.entry(name.clone()).or_default() += count;
            }
        }
    }
}
