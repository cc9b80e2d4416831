//! What a worker says while it works: checkpoints, costs, progress, and how its work came out. Its dispatch id is its
//! token: what carries an old one changes nothing, and is noted as late.

use super::Asker;
use super::alerts::{Condition, stuck_key};
use crate::alert::AlertKind;
use crate::command::{Answer, ClaimEnd, WorkerSays};
use crate::dispatch::{Category, DispatchEvent, Said, StopReason};
use crate::money::Usd;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::tx::Tx;
use crate::watch::Due;
use crate::{DispatchId, Timestamp};

/// Longest text that a worker may note.
const LONGEST_NOTE: usize = 64 * 1024;
/// Longest text about what it is doing.
const LONGEST_PROGRESS: usize = 500;

/// What a worker used.
struct Bill {
    usd: Usd,
    tokens: Option<u64>,
    metered: bool,
}

impl Tx<'_> {
    pub(super) fn worker_says(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        says: &WorkerSays,
    ) -> Result<Answer, Refusal> {
        let id = DispatchId::parse(text)?;
        let Some(dispatch) = self.state().dispatch(&id) else {
            return Err(Refusal::new("unknown-dispatch", format!("there is no dispatch {id}"))
                .hint("a worker finds its own in YM_DISPATCH"));
        };
        check_texts(says)?;
        if !dispatch.is_live() {
            let report = says.as_str().to_owned();
            self.emit(DispatchEvent::LateReport { id: id.clone(), report });
            return Ok(Answer::Heard { dispatch_id: id, accepted: false, should_yield: true, reason: None });
        }
        let dispatch = dispatch.clone();
        if let Some(claim) = &dispatch.claim {
            self.take_up(&dispatch);
            self.agent_heard(&claim.agent);
        }
        self.heed(&id, says, asker.actor);
        let dispatch = self.state().dispatch(&id);
        let should_yield = dispatch.is_some_and(crate::dispatch::Dispatch::should_yield);
        let stop = dispatch.and_then(|dispatch| dispatch.stop);
        let reason = should_yield.then(|| stop.unwrap_or(StopReason::CooperativePreemption));
        Ok(Answer::Heard { dispatch_id: id, accepted: true, should_yield, reason })
    }

    fn heed(&mut self, id: &DispatchId, says: &WorkerSays, actor: &str) {
        let own = id.clone();
        match says {
            WorkerSays::Checkpoint { note, session } => {
                let (note, session) = (note.clone(), session.clone());
                self.emit(DispatchEvent::Checkpoint { id: own, note, session });
            }
            WorkerSays::Cost { usd, total, tokens } => {
                let known = self.state().dispatch(id).map_or(Usd::ZERO, |dispatch| dispatch.cost);
                let usd = if *total { usd.less(known) } else { *usd };
                self.worker_cost(id, Bill { usd, tokens: *tokens, metered: false }, actor);
            }
            WorkerSays::Progress { text } => {
                self.emit(DispatchEvent::Progress { id: own, text: text.clone() });
            }
            WorkerSays::Done { reason } if self.is_claim(id) => {
                self.end_claim(id, &ClaimEnd::Done { reason: reason.clone() });
            }
            WorkerSays::Fail { message, unavailable } if self.is_claim(id) => {
                let (message, unavailable) = (message.clone(), *unavailable);
                self.end_claim(id, &ClaimEnd::Failed { message, unavailable });
            }
            WorkerSays::Done { reason } => {
                let said = Said::Done { reason: reason.clone() };
                self.emit(DispatchEvent::Said { id: own, said });
            }
            WorkerSays::Fail { message, unavailable } => {
                let category = if *unavailable { Category::Unavailable } else { Category::Crash };
                let said = Said::Failed { message: message.clone(), category };
                self.emit(DispatchEvent::Said { id: own, said });
            }
        }
        self.end_alert(&stuck_key(id));
    }

    /// Whether an agent has it: no exit will follow its last word.
    fn is_claim(&self, id: &DispatchId) -> bool {
        self.state().dispatch(id).is_some_and(|dispatch| dispatch.claim.is_some())
    }

    /// What a live worker's own output told so far. The same may be told again.
    pub fn worker_metered(&mut self, id: &DispatchId, total: Usd, tokens: u64, session: Option<&Session>) {
        let Some(dispatch) = self.state().dispatch(id).filter(|dispatch| dispatch.is_live()) else { return };
        let usd = total.less(dispatch.metered);
        let tokens = Some(tokens.saturating_sub(dispatch.metered_tokens)).filter(|more| *more > 0);
        let session = session.filter(|session| dispatch.session.as_ref() != Some(session)).cloned();
        if let Some(session) = session {
            self.emit(DispatchEvent::Session { id: id.clone(), session });
        }
        self.worker_cost(id, Bill { usd, tokens, metered: true }, "scheduler");
    }

    /// A live worker's output has another last line, which also proves that it lives.
    pub fn worker_wrote(&mut self, id: &DispatchId, line: &str) {
        let Some(dispatch) = self.state().dispatch(id).filter(|dispatch| dispatch.is_live()) else { return };
        if dispatch.last_line.as_deref() != Some(line) {
            self.emit(DispatchEvent::LastLine { id: id.clone(), line: line.to_owned() });
            self.end_alert(&stuck_key(id));
        }
    }

    /// Which steps a live worker goes through; of a single one nobody needs to know.
    pub fn worker_steps(&mut self, id: &DispatchId, steps: &[String]) {
        let Some(dispatch) = self.state().dispatch(id).filter(|dispatch| dispatch.is_live()) else { return };
        if steps.len() > 1 && dispatch.steps != steps {
            self.emit(DispatchEvent::Steps { id: id.clone(), steps: steps.to_vec() });
        }
    }

    /// A worker cost something, which may use a budget up.
    fn worker_cost(&mut self, id: &DispatchId, bill: Bill, actor: &str) {
        let Bill { usd, tokens, metered } = bill;
        if usd.is_zero() && tokens.is_none() {
            return;
        }
        self.emit(DispatchEvent::Cost { id: id.clone(), usd, tokens, metered });
        // A new day may have begun since a person was last told.
        self.end_cost_alerts();
        for budget in self.state().budgets_of(id.bead()) {
            self.mind_budget(&budget, actor);
        }
    }

    /// A worker wrote something, which proves that it lives.
    pub fn worker_heard(&mut self, id: &DispatchId, heard_at: Timestamp) {
        let news = self.state().dispatch(id).is_some_and(|d| d.is_live() && d.heard_at < Some(heard_at));
        if news {
            self.emit(DispatchEvent::Heard { id: id.clone(), heard_at });
            self.end_alert(&stuck_key(id));
        }
    }

    /// Does what has become due of a running dispatch.
    pub(super) fn look_at(&mut self, id: &DispatchId) {
        let now = self.now();
        let Some(dispatch) = self.state().dispatch(id) else { return };
        let due = self.state().dues(dispatch).into_iter().find(|(at, _)| *at <= now);
        let since = dispatch.heard_at.or(dispatch.running_at).unwrap_or(dispatch.started_at);
        match due.map(|(_, due)| due) {
            Some(Due::Deadline) => {
                self.terminate(id, StopReason::DeadlineExceeded, false, "scheduler");
            }
            Some(Due::HardCap) => {
                self.terminate(id, StopReason::HardCapExceeded, false, "scheduler");
            }
            Some(Due::Silence) => {
                self.emit(DispatchEvent::Stuck { id: id.clone(), since });
                let bead = id.bead();
                let message =
                    format!("{id} has given no sign of life since {since}; ym logs {bead}, ym cancel {bead}");
                let ids = vec![bead.to_string()];
                let (key, kind) = (stuck_key(id), AlertKind::Stuck);
                self.raise(Condition { key, kind, message, ids, watchers: Vec::new() });
                // Something else may be due as well.
                self.look_at(id);
            }
            None => {}
        }
    }
}

fn check_texts(says: &WorkerSays) -> Result<(), Refusal> {
    let (text, most) = match says {
        WorkerSays::Checkpoint { note, .. } => (note.as_str(), LONGEST_NOTE),
        WorkerSays::Progress { text } => (text.as_str(), LONGEST_PROGRESS),
        WorkerSays::Done { reason } => (reason.as_deref().unwrap_or_default(), LONGEST_PROGRESS),
        WorkerSays::Fail { message, .. } => (message.as_str(), LONGEST_PROGRESS),
        WorkerSays::Cost { .. } => return Ok(()),
    };
    if text.len() > most {
        return Err(Refusal::new("too-long", format!("the text is too long: at most {most} bytes")));
    }
    if text.contains('\0') {
        return Err(Refusal::new("bad-text", "the text holds a NUL byte, which no program can be given"));
    }
    Ok(())
}
