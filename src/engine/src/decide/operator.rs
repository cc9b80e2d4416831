//! What an operator does to single beads: hold, priority, cancel, kill.

use super::Asker;
use super::bounds::check_priority;
use crate::command::{Answer, Command};
use crate::context::{CloseReason, ContextEvent};
use crate::dispatch::StopReason;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::{BeadId, ContextId};

impl Tx<'_> {
    fn scheduled(&self, text: &str) -> Result<(BeadId, ContextId), Refusal> {
        let id = self.state().find_bead(text)?;
        let work = self.state().work(&id).cloned().unwrap_or_default();
        match (&work.context, &work.live) {
            (Some(context), None) => Ok((id, context.clone())),
            (_, Some(_)) => Err(Refusal::new("running", format!("{id} is running"))
                .hint("this applies to work that waits; ym cancel ends it")),
            (None, None) => Err(Refusal::new("not-scheduled", format!("{id} is not scheduled"))
                .hint(format!("ym sling {id} schedules it"))),
        }
    }

    pub(super) fn hold(&mut self, asker: &Asker<'_>, text: &str, held: bool) -> Result<Answer, Refusal> {
        let (bead, id) = self.scheduled(text)?;
        let word = if held { "held" } else { "let go" };
        if self.state().contexts[&id].held == held {
            return Ok(done(false, format!("{bead} is {word} already"), &bead));
        }
        self.emit(ContextEvent::Held { id, held, actor: asker.actor.to_owned() });
        let verb = if held { "hold" } else { "unhold" };
        let inverse = Command::Hold { id: bead.to_string(), held: !held };
        self.can_be_undone(asker, format!("{verb} {bead}"), vec![inverse]);
        Ok(done(true, format!("{bead} is {word}"), &bead))
    }

    pub(super) fn priority(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        priority: u8,
    ) -> Result<Answer, Refusal> {
        check_priority(priority)?;
        let (bead, id) = self.scheduled(text)?;
        if self.state().contexts[&id].task.is_some() {
            let message =
                format!("{bead} is a task: its place follows from the priority it was submitted with");
            return Err(Refusal::new("task", message).hint("cancel it and submit it again with another one"));
        }
        let before = self.state().contexts[&id].priority;
        if before == priority {
            return Ok(done(false, format!("{bead} has priority {priority} already"), &bead));
        }
        self.emit(ContextEvent::Prioritised { id, priority, actor: asker.actor.to_owned() });
        let inverse = Command::Priority { id: bead.to_string(), priority: before };
        self.can_be_undone(asker, format!("priority {bead} {priority}"), vec![inverse]);
        Ok(done(true, format!("{bead}: priority {before} -> {priority}"), &bead))
    }

    /// Calls work off. Waiting work leaves the schedule; a worker is asked to stop and its end settles the rest.
    pub(super) fn cancel(&mut self, asker: &Asker<'_>, text: &str, at_once: bool) -> Result<Answer, Refusal> {
        let bead = self.state().find_bead_to_end(text)?;
        let work = self.state().work(&bead).cloned().unwrap_or_default();
        if let Some(live) = work.live.clone() {
            let asked =
                self.state().dispatch(&live).is_some_and(|d| d.stop == Some(StopReason::UserCancelled));
            if asked && !at_once {
                return Ok(done(false, format!("{live} is being stopped already"), &bead));
            }
            self.terminate(&live, StopReason::UserCancelled, at_once, asker.actor);
            let did = format!("{} {bead}", if at_once { "kill" } else { "cancel" });
            let why = format!("{live} was told to stop; ym scheduler retry {bead} runs it anew");
            self.cannot_be_undone(asker, did, why);
            return Ok(done(true, format!("{live} is being stopped"), &bead));
        }
        if let Some(context) = work.context.clone() {
            if at_once {
                return Err(Refusal::new("not-running", format!("{bead} is not running"))
                    .hint(format!("ym cancel {bead} takes it off the schedule")));
            }
            self.close(asker, &context, &bead, CloseReason::Cancelled, None);
            self.can_be_undone(
                asker,
                format!("cancel {bead}"),
                vec![Command::Restore { contexts: vec![context] }],
            );
            return Ok(done(true, format!("{bead} is cancelled"), &bead));
        }
        if let Some(answer) = self.cancel_merge(asker, &bead)? {
            return Ok(answer);
        }
        Err(Refusal::new("not-scheduled", format!("{bead} is neither running nor scheduled")))
    }
}

fn done(changed: bool, message: String, bead: &BeadId) -> Answer {
    Answer::Done { changed, message, ids: vec![bead.to_string()] }
}
