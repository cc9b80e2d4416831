//! The scheduler's own commands: run, pause, resume, clear, retry.

use std::sync::Arc;

use super::Asker;
use super::alerts::bead_key;
use super::sling::task_has_ended;
use crate::bead::{BeadEntry, Verdict};
use crate::command::{Answer, Command};
use crate::context::{CloseReason, Context, ContextEvent};
use crate::plan::{Pass, Scope};
use crate::readiness::{ReasonCode, claimed_elsewhere};
use crate::refusal::Refusal;
use crate::town::{Pause, TownEvent};
use crate::tx::Tx;
use crate::{BeadId, ContextId, Timestamp};

impl Tx<'_> {
    /// One planning pass by hand. Contexts that rest after a failed start are tried again at once.
    pub(super) fn run(&mut self, asker: &Asker<'_>, batch: Option<u32>, dry_run: bool) -> Answer {
        let Pass { starts, skipped, reason } = if dry_run {
            let mut copy = self.state().clone();
            Tx::new(&mut copy, self.now()).manual_pass(asker, batch)
        } else {
            self.manual_pass(asker, batch)
        };
        Answer::Passed { starts, skipped, reason, dry_run }
    }

    fn manual_pass(&mut self, asker: &Asker<'_>, batch: Option<u32>) -> Pass {
        self.tick();
        if self.state().pause.is_none() {
            self.end_rests(asker);
        }
        self.pass(Scope::Everything, batch)
    }

    fn end_rests(&mut self, asker: &Asker<'_>) {
        let now = self.now();
        let resting = self.state().open_contexts().filter(|c| c.rest_until.is_some_and(|t| t > now));
        for id in resting.map(|c| c.id.clone()).collect::<Vec<_>>() {
            self.emit(ContextEvent::Rearmed { id, fresh: false, actor: asker.actor.to_owned() });
        }
    }

    pub(super) fn pause(
        &mut self,
        asker: &Asker<'_>,
        reason: Option<String>,
        until: Option<Timestamp>,
    ) -> Result<Answer, Refusal> {
        if until.is_some_and(|t| t <= self.now()) {
            return Err(Refusal::new("bad-time", "the pause would end before it begins"));
        }
        super::bounds::check_reason(reason.as_deref())?;
        let before = self.state().pause.clone();
        let pause = Pause { by: asker.actor.to_owned(), at: self.now(), reason, until };
        if let Some(old) = &before
            && (&old.reason, old.until) == (&pause.reason, pause.until)
        {
            return Ok(done(false, format!("dispatch is paused already, by {}", old.by)));
        }
        self.emit(TownEvent::Paused { pause: pause.clone() });
        let inverse = before.map_or(Command::Resume, |pause| Command::PauseAgain { pause });
        let span = pause.until.map(|until| format!(" --for {}", as_typed(until.since(pause.at))));
        let did = format!("scheduler pause{}", span.unwrap_or_default());
        self.can_be_undone(asker, did, vec![inverse]);
        let until = pause.until.map(|t| format!(" until {t}")).unwrap_or_default();
        Ok(done(true, format!("dispatch paused by {}{until}", pause.by)))
    }

    pub(super) fn resume(&mut self, asker: &Asker<'_>) -> Answer {
        let Some(pause) = self.state().pause.clone() else {
            return done(false, "dispatch is not paused".to_owned());
        };
        self.emit(TownEvent::Resumed { actor: asker.actor.to_owned() });
        self.can_be_undone(asker, "scheduler resume".to_owned(), vec![Command::PauseAgain { pause }]);
        done(true, "dispatch resumed".to_owned())
    }

    /// Takes work that has not started off the schedule.
    pub(super) fn clear(&mut self, asker: &Asker<'_>, bead: Option<&str>) -> Result<Answer, Refusal> {
        let wanted = bead.map(|text| self.state().find_bead(text)).transpose()?;
        let fits = |c: &&Context| wanted.as_ref().is_none_or(|id| c.bead() == id);
        let waiting = |c: &&Context| self.state().work(c.bead()).is_none_or(|work| work.live.is_none());
        let cleared: Vec<(ContextId, BeadId)> = self
            .state()
            .open_contexts()
            .filter(fits)
            .filter(waiting)
            .map(|c| (c.id.clone(), c.bead().clone()))
            .collect();
        for (id, bead) in &cleared {
            self.close(asker, id, bead, CloseReason::Cleared, None);
        }
        let ids: Vec<String> = cleared.iter().map(|(_, bead)| bead.to_string()).collect();
        if !cleared.is_empty() {
            let contexts = cleared.into_iter().map(|(id, _)| id).collect();
            let did = bead.map_or("scheduler clear".to_owned(), |b| format!("scheduler clear --bead {b}"));
            self.can_be_undone(asker, did, vec![Command::Restore { contexts }]);
        }
        let message = match ids.len() {
            0 => "nothing was scheduled".to_owned(),
            n => format!("cleared {n} from the schedule"),
        };
        Ok(Answer::Done { changed: !ids.is_empty(), message, ids })
    }

    pub(super) fn close(
        &mut self,
        asker: &Asker<'_>,
        id: &ContextId,
        bead: &BeadId,
        reason: CloseReason,
        detail: Option<String>,
    ) {
        let (id, bead, actor) = (id.clone(), bead.clone(), asker.actor.to_owned());
        self.emit(ContextEvent::Closed { id, bead, reason, detail, taken_back: None, actor });
    }

    /// Opens successors of cleared contexts, with everything they had.
    pub(super) fn restore(&mut self, asker: &Asker<'_>, contexts: &[ContextId]) -> Answer {
        let mut ids = Vec::new();
        let mut opened: Vec<(Option<Verdict>, Vec<ContextId>)> = Vec::new();
        for id in contexts {
            let Some(old) = self.state().context(id).cloned() else { continue };
            if old.task.is_some() {
                // A task has come to its one end when it was taken off.
                continue;
            }
            let entry = self.state().bead(old.bead());
            let free =
                |e: &&BeadEntry| !e.bead.is_closed() && e.work.context.is_none() && e.work.live.is_none();
            let Some(verdict) = entry.filter(free).map(|e| e.work.verdict) else { continue };
            let bead = old.bead().clone();
            self.open_successor(asker.actor, old);
            let context = self.state().work(&bead).and_then(|work| work.context.clone());
            match opened.last_mut() {
                Some((same, list)) if *same == verdict => list.extend(context),
                _ => opened.push((verdict, context.into_iter().collect())),
            }
            self.close_stale_context(asker, &bead);
            ids.push(bead.to_string());
        }
        self.end_cost_alerts();
        if ids.is_empty() {
            let message = "what was taken off is closed, taken or scheduled again by now";
            return done(false, message.to_owned());
        }
        let withdraw = |(verdict, contexts)| Command::Withdraw { contexts, verdict };
        let did = format!("restore {}", ids.join(" "));
        self.can_be_undone(asker, did, opened.into_iter().map(withdraw).collect());
        let message = format!("{} back on the schedule", ids.len());
        Answer::Done { changed: true, message, ids }
    }

    /// Opens a context that keeps the fields, the time enqueued and the counters of the one it succeeds.
    pub(super) fn open_successor(&mut self, actor: &str, old: Context) {
        let predecessor = Some(old.id.clone());
        let id = self.state().next_context_id();
        let mut context = Context { id, closed: None, ..old };
        (context.predecessor, context.rest_until, context.sent) = (predecessor, None, None);
        self.end_alert(&bead_key(context.bead()));
        self.emit(ContextEvent::Opened { context: Arc::new(context), actor: actor.to_owned() });
    }

    pub(super) fn retry(&mut self, asker: &Asker<'_>, text: &str) -> Result<Answer, Refusal> {
        let id = self.state().find_bead(text)?;
        let Some(entry) = self.state().bead(&id) else {
            return Err(Refusal::new(
                "unknown-bead",
                format!("{id} vanished from the workspace it came from"),
            ));
        };
        let is_closed = entry.bead.is_closed();
        if let Some(answer) = self.retry_merge(asker, &id) {
            return Ok(answer);
        }
        if is_closed {
            return Err(
                Refusal::new("closed", format!("{id} is closed")).hint(format!("ym bead reopen {id}"))
            );
        }
        let Some(entry) = self.state().bead(&id) else {
            return Err(Refusal::new("unknown-bead", format!("there is no bead {id}")));
        };
        if self.state().tasks.get(&id).is_some_and(|task| task.ended.is_some()) {
            return Err(Refusal::new("task-ended", task_has_ended(&id)));
        }
        if entry.work.live.is_some() {
            return Ok(done(false, format!("{id} is running")));
        }
        if let Some(context) = entry.work.context.clone() {
            let used = self.state().contexts[&context].used();
            let actor = asker.actor.to_owned();
            self.emit(ContextEvent::Rearmed { id: context.clone(), fresh: true, actor });
            self.end_cost_alerts();
            if self.state().contexts[&context].used() != used {
                let inverse = Command::PutBudgetsBack { context, used };
                self.can_be_undone(asker, format!("scheduler retry {id}"), vec![inverse]);
            }
            let still =
                self.state().reasons(&id).into_iter().find(|reason| reason.code == ReasonCode::CostLimit);
            let still = still.map(|reason| format!("; but {}", reason.message)).unwrap_or_default();
            return Ok(about(&id, format!("{id} is scheduled, with fresh budgets of its own{still}")));
        }
        let again = matches!(
            entry.work.verdict,
            Some(Verdict::Failed | Verdict::Unavailable | Verdict::Cancelled | Verdict::CircuitBroken)
        );
        let last = entry.work.last_context.as_ref().and_then(|c| self.state().context(c)).cloned();
        match last {
            Some(mut old) if again => {
                if let Some(owner) = claimed_elsewhere(entry).filter(|_| !old.forced) {
                    return Err(Refusal::new("claimed-elsewhere", format!("{id}: {owner}"))
                        .hint(format!("ym sling {id} --force takes it")));
                }
                old.renew_budgets();
                old.fields.last_failure = None;
                (old.deadline, old.held, old.held_by) = (None, false, None);
                let verdict = entry.work.verdict;
                self.open_successor(asker.actor, old);
                self.end_cost_alerts();
                let context = self.state().work(&id).and_then(|work| work.context.clone());
                let inverse = Command::Withdraw { contexts: context.into_iter().collect(), verdict };
                self.can_be_undone(asker, format!("scheduler retry {id}"), vec![inverse]);
                Ok(about(&id, format!("{id} is scheduled again, with fresh budgets")))
            }
            _ => Err(Refusal::new("nothing-to-retry", format!("{id} has not failed"))
                .hint(format!("ym sling {id} asks for it to be run; ym why {id} says how it stands"))),
        }
    }
}

/// A span as a person would have typed it.
fn as_typed(span: std::time::Duration) -> String {
    match span.as_secs_f64().round() as u64 {
        0 => format!("{}ms", span.as_millis()),
        hours if hours.is_multiple_of(3600) => format!("{}h", hours / 3600),
        minutes if minutes.is_multiple_of(60) => format!("{}m", minutes / 60),
        seconds => format!("{seconds}s"),
    }
}

fn done(changed: bool, message: String) -> Answer {
    Answer::Done { changed, message, ids: Vec::new() }
}

fn about(id: &BeadId, message: String) -> Answer {
    Answer::Done { changed: true, message, ids: vec![id.to_string()] }
}
