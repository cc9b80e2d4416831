//! Looking over the whole journal: the store's own check, then every event's and entity's checksum.

use std::ops::ControlFlow;

use yard_engine::Seq;

use crate::JournalError;
use crate::load::{self, Link, Log};

/// Problems listed at most; a file with more is beyond listing.
pub(crate) const MOST: usize = 100;

/// What a check of the whole journal found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// How many events the log holds.
    pub events: u64,
    /// The first event that is still there; 0 if there is none.
    pub first_seq: Seq,
    /// The last event; 0 if there never was one.
    pub last_seq: Seq,
    /// The last event the checkpoint contains.
    pub checkpoint_seq: Seq,
    /// How many entities the checkpoint holds.
    pub entities: u64,
    /// What is wrong, one sentence each, at most a hundred.
    pub problems: Vec<String>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn note(&mut self, problem: String) {
        if self.problems.len() < MOST {
            self.problems.push(problem);
        }
    }
}

/// Checks everything. Damage is reported, never an error, however deep it goes.
pub(crate) fn check(log: &impl Log, noted: Option<Link>) -> CheckReport {
    let mut report = CheckReport::default();
    if let Err(error) = log.damages(|damage| report.note(damage)) {
        report.note(error.to_string());
    }
    if let Err(error) = check_events(log, noted, &mut report) {
        report.note(error.to_string());
    }
    if let Err(error) = check_entities(log, &mut report) {
        report.note(error.to_string());
    }
    report
}

fn check_events(log: &impl Log, noted: Option<Link>, report: &mut CheckReport) -> Result<(), JournalError> {
    let meta = log.meta()?;
    report.checkpoint_seq = meta.checkpoint;
    let end = load::walk(log, meta.base, |event, verdict| {
        if report.events == 0 {
            report.first_seq = event.seq;
        }
        report.events += 1;
        if let Err(error) = verdict.and_then(|()| event.to_row().map(|_| ())) {
            report.note(error.to_string());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    report.last_seq = end.seq;
    load::tip(log, &meta, noted).map(|_| ())
}

fn check_entities(log: &impl Log, report: &mut CheckReport) -> Result<(), JournalError> {
    let content = load::walk_entities(log, |entity, sealed| {
        report.entities += 1;
        if !sealed {
            let error = JournalError::CorruptEntity { kind: entity.kind, id: entity.id };
            report.note(error.to_string());
        }
        Ok(())
    })?;
    let sealed = log.meta()?.content;
    if sealed.is_some_and(|it| it != content) { Err(JournalError::CorruptCheckpoint) } else { Ok(()) }
}
