//! Recovery: finding what was left behind. Whatever is released goes through the same readiness and the same feeding
//! as everything else; nothing is ever started by force.

use super::Asker;
use super::alerts::{Condition, hook_key};
use crate::alert::AlertKind;
use crate::bead::{BeadChange, BeadEntry, BeadEvent, BeadStatus};
use crate::command::{Answer, Recovery, RecoveryKind};
use crate::readiness::is_our_actor;
use crate::state::State;
use crate::tx::Tx;
use crate::{BeadId, Timestamp};

/// Who releases what was left behind.
const RECOVERY: &str = "recovery";

/// What is to be done about a bead that is in progress and nobody we know is on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// Its worker was ours and is dead, or nobody is named: it is open again.
    Release,
    /// Somebody else is named: only a person's command releases it.
    Ask,
    /// It is not ours to change.
    Report,
}

impl State {
    /// A bead that has been in progress for too long without a live worker of ours, and what to do about it.
    fn stale_hook(&self, entry: &BeadEntry, now: Timestamp) -> Option<Remedy> {
        let (claimed, work) = (entry.claimed_since?, &entry.work);
        // Whatever runs, waits for its turn or for its tracker's close is looked after.
        if work.live.is_some() || work.context.is_some() || work.close_by.is_some() || entry.bead.is_closed()
        {
            return None;
        }
        let ended = self.dispatches_of(&entry.bead.id).filter_map(|d| d.ended.as_ref()).next_back();
        let since = ended.map_or(claimed, |ended| ended.at.max(claimed));
        if now.since(since) < self.settings.stale_after.duration() {
            return None;
        }
        Some(match (&entry.bead.source, &entry.bead.assignee) {
            (Some(_), _) => Remedy::Report,
            (None, Some(who)) if !is_our_actor(who) => Remedy::Ask,
            (None, _) => Remedy::Release,
        })
    }
}

fn words(entry: &BeadEntry) -> String {
    let by = entry.bead.assignee.as_ref().map(|who| format!(" by {who}")).unwrap_or_default();
    let since = entry.claimed_since.map(|since| format!(" since {since}")).unwrap_or_default();
    format!("{} is {}{by}{since}, and no worker we know is on it", entry.bead.id, entry.bead.status.as_str())
}

impl Tx<'_> {
    /// The safety scan on request. A dry run does the same to a copy.
    pub(super) fn recover(&mut self, asker: &Asker<'_>, dry_run: bool) -> Answer {
        let findings = if dry_run {
            let mut copy = self.state().clone();
            let now = self.now();
            Tx::new(&mut copy, now).recover_all(asker)
        } else {
            self.recover_all(asker)
        };
        Answer::Recovered { dry_run, findings }
    }

    fn recover_all(&mut self, asker: &Asker<'_>) -> Vec<Recovery> {
        self.tick();
        let mut findings = Vec::new();
        let open: Vec<(String, BeadId)> =
            self.state().open_contexts().map(|c| (c.id.to_string(), c.bead().clone())).collect();
        self.close_stale_contexts();
        for (id, bead) in open {
            if self.state().contexts.get(id.as_str()).is_some_and(|context| !context.is_open()) {
                let message = format!("{bead} was closed, taken or lost");
                findings.push(finding(RecoveryKind::StaleContext, &id, message, "closed"));
            }
        }
        for bead in self.state().beads.keys().cloned().collect::<Vec<_>>() {
            findings.extend(self.recover_hook(&bead, Some(asker.actor)));
        }
        for bead in self.state().hungry().cloned().collect::<Vec<_>>() {
            let message = format!("{bead} is ready, and its convoy wants it started");
            findings.push(finding(RecoveryKind::MissedBead, bead.as_str(), message, "scheduled"));
        }
        self.feed();
        for stranded in self.state().stranded(true) {
            let id = stranded.convoy.to_string();
            let message = format!("nothing of {id} can go on by itself: {} open", stranded.stuck.len());
            findings.push(finding(
                RecoveryKind::StrandedConvoy,
                &id,
                message,
                "reported; see ym convoy stranded",
            ));
        }
        findings
    }

    /// Looks at one bead in progress: releases it, or tells a person once. `asked_by` is the person who asked for it, whose
    /// word also releases what somebody else was said to be on.
    pub(crate) fn recover_hook(&mut self, bead: &BeadId, asked_by: Option<&str>) -> Option<Recovery> {
        let entry = self.state().bead(bead)?;
        let Some(remedy) = self.state().stale_hook(entry, self.now()) else {
            self.end_alert(&hook_key(bead));
            return None;
        };
        let message = words(entry);
        if remedy == Remedy::Release || (remedy == Remedy::Ask && asked_by.is_some()) {
            let actor = asked_by.unwrap_or(RECOVERY).to_owned();
            let change = BeadChange {
                status: Some(BeadStatus::Open),
                assignee: Some(String::new()),
                ..BeadChange::default()
            };
            self.emit(BeadEvent::Updated { id: bead.clone(), change: Box::new(change), actor });
            self.end_alert(&hook_key(bead));
            return Some(finding(RecoveryKind::StaleHook, bead.as_str(), message, "released"));
        }
        let advice = match remedy {
            Remedy::Report => {
                format!("release it in its tracker: br update {bead} --status open --assignee \"\"")
            }
            Remedy::Ask | Remedy::Release => "ym scheduler recover releases it".to_owned(),
        };
        let (key, ids) = (hook_key(bead), vec![bead.to_string()]);
        let alert = format!("{message}; {advice}");
        self.raise(Condition { key, kind: AlertKind::StaleHook, message: alert, ids, watchers: Vec::new() });
        Some(finding(RecoveryKind::StaleHook, bead.as_str(), message, "reported"))
    }
}

fn finding(kind: RecoveryKind, id: &str, message: String, action: &str) -> Recovery {
    Recovery { kind, id: id.to_owned(), message, action: action.to_owned() }
}
