//! Taking the operator's commands back, doing them again, and the commands that only this needs.

use super::Asker;
use crate::bead::Verdict;
use crate::command::{Answer, Command};
use crate::context::{Before, CloseReason, ContextEvent};
use crate::preempt::Method;
use crate::refusal::Refusal;
use crate::spending::Budget;
use crate::town::{Pause, TownEvent, Undoable};
use crate::tx::Tx;
use crate::undo::ConfigEdit;
use crate::used::Used;
use crate::{ContextId, DispatchId};

/// What became of the commands that lead back.
#[derive(Default)]
struct WayBack {
    /// What leads forth again.
    forth: Vec<Command>,
    /// Whom it concerned.
    ids: Vec<String>,
    /// What did not work, in words.
    refused: Vec<String>,
}

impl Tx<'_> {
    /// Remembers how to take a command back; while one is taken back, how to do it again.
    pub(super) fn can_be_undone(&mut self, asker: &Asker<'_>, did: String, inverse: Vec<Command>) {
        if let Some(forth) = &mut self.way_back {
            // The last step is the first to be taken back.
            forth.splice(0..0, inverse);
            return;
        }
        let undoable = Undoable { did, inverse, cannot: None };
        self.emit(TownEvent::OperatorDid { undoable, actor: asker.actor.to_owned() });
    }

    /// Remembers a command that nothing takes back, so that `undo` says so instead of reaching for an older one.
    pub(super) fn cannot_be_undone(&mut self, asker: &Asker<'_>, did: String, why: String) {
        let known = self.state().undoable().is_some_and(|last| last.did == did && last.cannot.is_some());
        if self.way_back.is_some() || known {
            return;
        }
        let undoable = Undoable { did, inverse: Vec::new(), cannot: Some(why) };
        self.emit(TownEvent::OperatorDid { undoable, actor: asker.actor.to_owned() });
    }

    /// Takes the last operator command back. One that cannot be, or no longer, is said and forgotten.
    pub(super) fn undo(&mut self, asker: &Asker<'_>) -> Result<Answer, Refusal> {
        let Some(last) = self.state().undoable().cloned() else {
            return Err(Refusal::new("nothing-to-undo", "there is no command to take back").hint(
                "pause, resume, hold, unhold, priority, clear, retry, cancel of waiting work, park, dock and config can be",
            ));
        };
        let WayBack { forth, ids, refused } = self.go_back(asker, &last.inverse);
        let (changed, did) = (!forth.is_empty(), last.did);
        self.emit(TownEvent::OperatorUndid { did: did.clone(), again: forth, actor: asker.actor.to_owned() });
        let message = match (last.cannot, changed, refused.is_empty()) {
            (Some(why), ..) => {
                let next =
                    self.state().undoable().map(|next| format!("; the next undo is for: {}", next.did));
                format!("{did:?} cannot be taken back: {why}{}", next.unwrap_or_default())
            }
            (None, true, true) => format!("took back: {did}"),
            (None, true, false) => format!("took back: {did}; but {}", refused.join("; ")),
            (None, false, _) => format!("{did:?} can no longer be taken back: {}", refused.join("; ")),
        };
        Ok(Answer::Done { changed, message, ids })
    }

    /// Does again what was taken back last.
    pub(super) fn redo(&mut self, asker: &Asker<'_>) -> Result<Answer, Refusal> {
        let Some(last) = self.state().redoable().cloned() else {
            return Err(Refusal::new("nothing-to-redo", "nothing was taken back that could be done again")
                .hint("a new command ends what ym redo could do"));
        };
        let WayBack { forth, ids, refused } = self.go_back(asker, &last.inverse);
        let (changed, did) = (!forth.is_empty(), last.did);
        let (inverse, actor) = (forth, asker.actor.to_owned());
        self.emit(TownEvent::OperatorRedid { did: did.clone(), inverse, actor });
        let message = match (changed, refused.is_empty()) {
            (true, true) => format!("done again: {did}"),
            (true, false) => format!("done again: {did}; but {}", refused.join("; ")),
            (false, _) => format!("{did:?} can no longer be done again: {}", refused.join("; ")),
        };
        Ok(Answer::Done { changed, message, ids })
    }

    /// Carries out what leads back, each step for itself, and finds out what leads forth again.
    fn go_back(&mut self, asker: &Asker<'_>, commands: &[Command]) -> WayBack {
        let mut way = WayBack::default();
        self.way_back = Some(Vec::new());
        for command in commands {
            match self.decide(asker, command) {
                Ok(Answer::Done { changed: false, message, .. }) => way.refused.push(message),
                Ok(Answer::Done { ids, .. }) => way.ids.extend(ids),
                Ok(_) => {}
                Err(refusal) => way.refused.push(refusal.message),
            }
        }
        way.forth = self.way_back.take().unwrap_or_default();
        way
    }

    pub(super) fn pause_again(&mut self, asker: &Asker<'_>, pause: &Pause) -> Result<Answer, Refusal> {
        if let Some(end) = pause.until.filter(|until| *until <= self.now()) {
            return Err(Refusal::new("bad-time", format!("the pause would have ended at {end}")));
        }
        let before = self.state().pause.clone();
        if before.as_ref() == Some(pause) {
            return Ok(done(false, format!("dispatch is paused already, by {}", pause.by), Vec::new()));
        }
        self.emit(TownEvent::Paused { pause: pause.clone() });
        let inverse = before.map_or(Command::Resume, |pause| Command::PauseAgain { pause });
        self.can_be_undone(asker, "scheduler pause".to_owned(), vec![inverse]);
        Ok(done(true, format!("dispatch paused by {}", pause.by), Vec::new()))
    }

    /// Takes contexts off the schedule that have not started, as if they had never been opened.
    pub(super) fn withdraw(
        &mut self,
        asker: &Asker<'_>,
        contexts: &[ContextId],
        verdict: Option<Verdict>,
    ) -> Result<Answer, Refusal> {
        let mut withdrawn = Vec::new();
        for id in contexts {
            let Some(context) = self.state().context(id).filter(|context| context.is_open()) else {
                continue;
            };
            let bead = context.bead().clone();
            let Some(work) = self.state().work(&bead).filter(|work| work.live.is_none()) else { continue };
            let taken_back = Some(Before { verdict, last_context: work.last_context.clone() });
            let (id, actor) = (id.clone(), asker.actor.to_owned());
            let (reason, detail) = (CloseReason::Cleared, None);
            self.emit(ContextEvent::Closed {
                id: id.clone(),
                bead: bead.clone(),
                reason,
                detail,
                taken_back,
                actor,
            });
            self.alert_if_given_up(&bead);
            withdrawn.push((id, bead));
        }
        if withdrawn.is_empty() {
            return Err(self.not_withdrawn(contexts));
        }
        let ids: Vec<String> = withdrawn.iter().map(|(_, bead)| bead.to_string()).collect();
        let inverse = Command::Restore { contexts: withdrawn.into_iter().map(|(id, _)| id).collect() };
        self.can_be_undone(asker, format!("withdraw {}", ids.join(" ")), vec![inverse]);
        Ok(done(true, format!("{} off the schedule again", ids.len()), ids))
    }

    fn not_withdrawn(&self, contexts: &[ContextId]) -> Refusal {
        let known = contexts.iter().find_map(|id| self.state().context(id));
        let Some(context) = known else {
            return Refusal::new("unknown-context", "nobody remembers these requests any more");
        };
        let bead = context.bead();
        match context.closed.as_ref().map(|closed| closed.reason) {
            None | Some(CloseReason::Dispatched) => {
                Refusal::new("running", format!("{bead} has started meanwhile"))
                    .hint(format!("ym cancel {bead} ends it"))
            }
            Some(_) => Refusal::new("not-scheduled", format!("{bead} has left the schedule meanwhile")),
        }
    }

    pub(super) fn put_budgets_back(
        &mut self,
        asker: &Asker<'_>,
        id: &ContextId,
        used: &Used,
    ) -> Result<Answer, Refusal> {
        let Some(context) = self.state().context(id) else {
            return Err(Refusal::new("unknown-context", "nobody remembers this request any more"));
        };
        let (bead, now) = (context.bead().clone(), context.used());
        let waits = context.is_open() && self.state().work(&bead).is_some_and(|work| work.live.is_none());
        if !waits {
            return Err(self.not_withdrawn(std::slice::from_ref(id)));
        }
        if now == *used {
            return Ok(done(false, format!("{bead} has these budgets already"), vec![bead.to_string()]));
        }
        let (used, actor) = (used.clone(), asker.actor.to_owned());
        self.emit(ContextEvent::BudgetsPutBack { id: id.clone(), used, actor });
        self.end_cost_alerts();
        self.mind_budget(&Budget::Bead(bead.clone()), asker.actor);
        let inverse = Command::PutBudgetsBack { context: id.clone(), used: now };
        self.can_be_undone(asker, format!("scheduler retry {bead}"), vec![inverse]);
        Ok(done(true, format!("{bead} has its old budgets again"), vec![bead.to_string()]))
    }

    pub(super) fn preempt_no_more(
        &mut self,
        asker: &Asker<'_>,
        victim: &DispatchId,
    ) -> Result<Answer, Refusal> {
        let bead = victim.bead();
        let live = self.state().dispatch(victim).filter(|dispatch| dispatch.is_live());
        let Some(dispatch) = live.filter(|dispatch| dispatch.stop.is_none()) else {
            let message = format!(
                "{bead} has given way; a preemption cannot be taken back, its bead is queued again by itself"
            );
            return Err(Refusal::new("given-way", message));
        };
        let (victim, bead) = (dispatch.id.clone(), bead.clone());
        let Some(cycle) = self.state().preemption().filter(|cycle| cycle.victim == victim).cloned() else {
            return Ok(done(false, format!("{victim} runs, and is not to give way any more"), Vec::new()));
        };
        self.end_preemption(&cycle, Method::Withdrawn, format!("{} took it back", asker.actor));
        let inverse = Command::Preempt { id: victim.to_string(), candidate: Some(cycle.bead.to_string()) };
        self.can_be_undone(asker, format!("preempt {bead}"), vec![inverse]);
        Ok(done(true, format!("{victim} may go on"), vec![bead.to_string()]))
    }

    /// Whoever serves has edited the config file, or found out why not.
    pub(super) fn configure(
        &mut self,
        asker: &Asker<'_>,
        key: &str,
        value: Option<&str>,
    ) -> Result<Answer, Refusal> {
        let edit = asker.kitchen.edits.get(key).cloned().unwrap_or_else(|| {
            Err(Refusal::new("no-config", "nobody here keeps a config file")
                .hint("ym config edits it from a shell"))
        })?;
        if edit.before == edit.after {
            return Ok(done(false, format!("{key} was so already"), Vec::new()));
        }
        let did = match value {
            Some(value) => format!("config set {key} {value}"),
            None => format!("config unset {key}"),
        };
        self.can_be_undone(asker, did, vec![Command::ConfigPutBack { edit: edit.reversed() }]);
        Ok(done(true, format!("{key} is changed"), Vec::new()))
    }

    /// The same for an edit that is taken back or done again.
    pub(super) fn config_put_back(
        &mut self,
        asker: &Asker<'_>,
        edit: &ConfigEdit,
    ) -> Result<Answer, Refusal> {
        let key = &edit.key;
        if let Some(Err(refusal)) = asker.kitchen.edits.get(key) {
            return Err(refusal.clone());
        }
        let inverse = Command::ConfigPutBack { edit: edit.reversed() };
        self.can_be_undone(asker, format!("config set {key}"), vec![inverse]);
        Ok(done(true, format!("{key} is as it was"), Vec::new()))
    }
}

fn done(changed: bool, message: String, ids: Vec<String>) -> Answer {
    Answer::Done { changed, message, ids }
}
