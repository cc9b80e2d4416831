//! Pushing work out for more urgent work: beginning a cycle, asking again, ending the victim, and noticing in time that
//! there is no reason for it any more.

use super::Asker;
use crate::command::{Answer, Command};
use crate::dispatch::{Dispatch, Outcome, StopReason};
use crate::preempt::{Cycle, Method, Outlook, PreemptionEvent, ROUNDS};
use crate::readiness::list;
use crate::refusal::Refusal;
use crate::state::State;
use crate::tx::Tx;
use crate::{BeadId, ContextId, DispatchId};

/// Who pushes work out without being asked.
const SCHEDULER: &str = "scheduler";

impl Tx<'_> {
    /// After a pass, for whoever dispatches by himself: goes on with the preemption under way, or begins one if what
    /// still waits is urgent enough.
    pub fn preempt(&mut self) {
        if let Some(cycle) = self.state().preemption.clone() {
            self.go_on_with(cycle);
        }
        if self.state().preemption.is_some() {
            return;
        }
        if let Outlook::Now(victim, context) = self.state().preemption_outlook(self.now()) {
            self.ask_to_yield(&victim, &context, 1, false, SCHEDULER);
        }
    }

    fn go_on_with(&mut self, cycle: Cycle) {
        let ending = self.state().dispatch(&cycle.victim).is_some_and(|victim| victim.stop.is_some());
        if ending {
            return;
        }
        if let Some(why) = self.state().is_moot(&cycle) {
            return self.end_preemption(&cycle, Method::Withdrawn, why);
        }
        if cycle.until > self.now() {
            return;
        }
        if cycle.round < ROUNDS {
            self.ask_to_yield(&cycle.victim, &cycle.context, cycle.round + 1, cycle.by_hand, SCHEDULER);
        } else {
            self.terminate(&cycle.victim, StopReason::PreemptionTimeout, false, SCHEDULER);
        }
    }

    fn ask_to_yield(
        &mut self,
        victim: &DispatchId,
        context: &ContextId,
        round: u8,
        by_hand: bool,
        actor: &str,
    ) {
        let state = self.state();
        let urgency = |id: &ContextId| state.context(id).map_or(0, |context| i16::from(context.priority));
        let (Some(dispatch), Some(waiting)) = (state.dispatch(victim), state.context(context)) else {
            return;
        };
        let delta = urgency(context) - urgency(&dispatch.context);
        let until = self.now().after(state.settings.preemption.timeout.duration());
        let cycle = Cycle {
            victim: victim.clone(),
            bead: waiting.bead().clone(),
            context: context.clone(),
            round,
            until,
            by_hand,
        };
        self.emit(PreemptionEvent::Requested { cycle, delta, actor: actor.to_owned() });
    }

    pub(super) fn end_preemption(&mut self, cycle: &Cycle, method: Method, why: String) {
        let (victim, bead) = (cycle.victim.clone(), cycle.bead.clone());
        self.emit(PreemptionEvent::Ended { victim, bead, method, why });
    }

    /// A dispatch is about to end: if it was to give way, that is over.
    pub(super) fn preemption_over(&mut self, id: &DispatchId, outcome: &Outcome) {
        let Some(cycle) = self.state().preemption.clone().filter(|cycle| cycle.victim == *id) else { return };
        let (method, why) = match outcome {
            Outcome::Stopped { reason: reason @ StopReason::CooperativePreemption } => {
                (Method::Cooperative, reason.words())
            }
            Outcome::Stopped { reason: reason @ StopReason::PreemptionTimeout } => {
                (Method::Forced, reason.words())
            }
            Outcome::Stopped { reason } => (Method::Finished, reason.words()),
            Outcome::Succeeded
            | Outcome::Failed { .. }
            | Outcome::StartFailed { .. }
            | Outcome::Lost { .. } => (Method::Finished, "came to its own end"),
            Outcome::NeverRan { .. } if self.state().dispatch(id).is_some_and(Dispatch::starts_elsewhere) => {
                (Method::Cooperative, "gave way before its turn came")
            }
            Outcome::NeverRan { .. } => (Method::Finished, "never ran"),
        };
        self.end_preemption(&cycle, method, format!("{id} {why}"));
    }

    /// A person wants a running bead to give way, now.
    pub(super) fn preempt_by_hand(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        candidate: Option<&str>,
    ) -> Result<Answer, Refusal> {
        let bead = self.state().find_bead_to_end(text)?;
        let live = self.state().work(&bead).and_then(|work| work.live.clone());
        let Some(victim) = live else {
            return Err(Refusal::new("not-running", format!("{bead} is not running"))
                .hint("ym status shows what runs"));
        };
        if self.state().dispatch(&victim).is_some_and(|dispatch| !dispatch.has_worker()) {
            return Err(Refusal::new(
                "no-worker",
                format!("{victim} is no worker of ours that could give way"),
            )
            .hint(format!("ym cancel {bead} ends it")));
        }
        if let Some(cycle) = self.state().preemption() {
            let message = format!("{} is being asked to give way to {} already", cycle.victim, cycle.bead);
            return Err(Refusal::new("preemption-under-way", message)
                .hint("one at a time; ym kill ends a worker at once"));
        }
        if let Some(reason) = self.state().dispatch(&victim).and_then(|dispatch| dispatch.stop) {
            let message = format!("{victim} is being ended already ({})", reason.as_str());
            return Err(Refusal::new("stopping", message));
        }
        let context = match candidate {
            Some(text) => self.state().named_candidate(&victim, text)?,
            None => self.state().best_candidate(&victim)?,
        };
        self.ask_to_yield(&victim, &context, 1, true, asker.actor);
        let inverse = Command::PreemptNoMore { victim: victim.clone() };
        self.can_be_undone(asker, format!("preempt {}", victim.bead()), vec![inverse]);
        let patience = humane(self.state().settings.preemption.timeout.0);
        let bead = self.state().context(&context).map(|c| c.bead().to_string()).unwrap_or_default();
        let message = format!(
            "{victim} is asked to give way to {bead}: it has {patience} to come to a checkpoint, is asked once more, then ended"
        );
        Ok(Answer::Done { changed: true, message, ids: vec![victim.bead().to_string(), bead] })
    }
}

/// Milliseconds for people.
fn humane(millis: u64) -> String {
    if millis.is_multiple_of(1000) { format!("{} s", millis / 1000) } else { format!("{millis} ms") }
}

impl State {
    /// The context of a bead that a victim's slot would let start.
    fn named_candidate(&self, victim: &DispatchId, text: &str) -> Result<ContextId, Refusal> {
        let bead = self.find_bead(text)?;
        let context = self.work(&bead).and_then(|work| work.context.as_ref()).and_then(|id| self.context(id));
        let ready = context.filter(|context| self.is_ready(&context.id));
        let Some(context) = ready else {
            let reasons = self.reasons(&bead).into_iter().map(|reason| reason.message);
            let why = reasons.collect::<Vec<_>>().join("; ");
            let why = if why.is_empty() { "nobody has asked for it".to_owned() } else { why };
            return Err(Refusal::new("not-ready", format!("{bead} could not take the slot: {why}"))
                .hint(format!("ym why {bead}")));
        };
        if self.is_stopped() {
            return Err(Refusal::new("paused", "nothing may start at present").hint("ym scheduler resume"));
        }
        let full = self.full_limits(context);
        if full.is_empty() {
            return Err(Refusal::new("has-room", format!("there is room for {bead} without it")));
        }
        let frees = self.dispatch(victim).is_some_and(|dispatch| self.would_free(dispatch, &full));
        if !frees {
            let names: Vec<String> = full.iter().map(crate::capacity::Limit::name).collect();
            let message = format!("the end of {victim} would not make room for {bead}: {}", names.join(", "));
            return Err(Refusal::new("no-use", message).hint(format!("ym why {bead}")));
        }
        Ok(context.id.clone())
    }

    /// The most urgent of those that a victim's slot would let start.
    fn best_candidate(&self, victim: &DispatchId) -> Result<ContextId, Refusal> {
        let fits = |id: &ContextId| {
            let (Some(context), Some(dispatch)) = (self.context(id), self.dispatch(victim)) else {
                return false;
            };
            let full = self.full_limits(context);
            !full.is_empty() && self.would_free(dispatch, &full)
        };
        let candidates = self.queue.most_urgent().into_iter().map(|(_, id)| id);
        let best = candidates.filter(fits).find(|_| !self.is_stopped());
        best.ok_or_else(|| {
            let message = format!("nothing else could take the slot of {victim}");
            let waiting: Vec<BeadId> = self.open_contexts().map(|c| c.bead().clone()).take(10).collect();
            let hint = if waiting.is_empty() {
                "nothing waits".to_owned()
            } else {
                format!("what waits does so for other reasons: {}", list(&waiting))
            };
            Refusal::new("nothing-waits", message).hint(hint)
        })
    }
}
