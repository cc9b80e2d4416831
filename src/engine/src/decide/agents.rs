//! What agents ask for: to be known, to be told, to have a bead, and to be done with it.

use super::Asker;
use super::bounds::check_short;
use super::sling::{Accepted, sling_priority};
use crate::agent::{AgentEvent, Registration, Saying, Says, Withdrawal};
use crate::command::{AgentStatus, Answer, ClaimEnd, SlingRequest, WorkerSays};
use crate::context::Assign;
use crate::dispatch::{Category, Dispatch, DispatchEvent, Said, StopReason};
use crate::readiness::{Reason, ReasonCode, claimed_elsewhere};
use crate::refusal::Refusal;
use crate::state::State;
use crate::tx::Tx;
use crate::{AgentName, BeadId, ContextId, DispatchId};

impl Tx<'_> {
    pub(super) fn agent_register(
        &mut self,
        asker: &Asker<'_>,
        registration: &Registration,
    ) -> Result<Answer, Refusal> {
        if registration.program.trim().is_empty() {
            return Err(Refusal::new("no-program", "say what the agent is").hint("--program claude-code"));
        }
        check_short("program", &registration.program, 200)?;
        check_short("model", registration.model.as_deref().unwrap_or_default(), 200)?;
        check_short("skills", registration.skills.as_deref().unwrap_or_default(), 4000)?;
        let (name, actor) = (registration.name.clone(), asker.actor.to_owned());
        self.emit(AgentEvent::Registered { agent: Box::new(registration.clone()), actor });
        self.end_silence(&name);
        Ok(Answer::Agent { name })
    }

    pub(super) fn agent_retire(&mut self, asker: &Asker<'_>, text: &str) -> Result<Answer, Refusal> {
        let name = self.state().find_agent(text)?;
        if let Some(claim) = self.state().claims_of(&name).next() {
            let message = format!("{name} still has {}", claim.bead());
            return Err(Refusal::new("busy", message)
                .hint(format!("ym agent release {} --as {name} gives it back", claim.bead())));
        }
        self.withdraw_orders(&name);
        self.emit(AgentEvent::Retired { name: name.clone(), actor: asker.actor.to_owned() });
        self.end_silence(&name);
        let ids = vec![name.to_string()];
        Ok(Answer::Done { changed: true, message: format!("agent {name} is retired"), ids })
    }

    pub(super) fn agent_heartbeat(&mut self, text: &str) -> Result<Answer, Refusal> {
        let name = self.state().find_agent(text)?;
        self.agent_heard(&name);
        Ok(Answer::Agent { name })
    }

    pub(super) fn agent_status(
        &mut self,
        text: &str,
        status: AgentStatus,
        note: Option<&str>,
    ) -> Result<Answer, Refusal> {
        let name = self.state().find_agent(text)?;
        check_short("note", note.unwrap_or_default(), 500)?;
        let says = |what| Some(Says { what, note: note.map(str::to_owned) });
        let says = match status {
            AgentStatus::Idle => None,
            AgentStatus::Working => says(Saying::Working),
            AgentStatus::Blocked => says(Saying::Blocked),
            AgentStatus::Offline => return self.agent_leaves(name),
        };
        self.agent_heard(&name);
        if says.is_some() {
            // Somebody else may be free for what it has not claimed.
            self.withdraw_orders(&name);
        }
        if self.state().agents[&name].says != says {
            self.emit(AgentEvent::Said { name: name.clone(), says });
        }
        Ok(Answer::Agent { name })
    }

    fn agent_leaves(&mut self, name: AgentName) -> Result<Answer, Refusal> {
        if let Some(claim) = self.state().claims_of(&name).next() {
            let message = format!("{name} still has {}, and whoever has a bead is not offline", claim.bead());
            return Err(Refusal::new("busy", message)
                .hint(format!("ym agent release {} --as {name} gives it back", claim.bead())));
        }
        if self.state().agents[&name].is_there() {
            let now = self.now();
            self.leave(&name, now);
        }
        Ok(Answer::Agent { name })
    }

    pub(super) fn agent_inbox(&mut self, text: &str, keep: bool) -> Result<Answer, Refusal> {
        let agent = self.state().find_agent(text)?;
        let messages = self.state().inbox(&agent);
        self.agent_heard(&agent);
        let last = self.state().agents[&agent].notices.last().map(|notice| notice.id);
        if let Some(up_to) = last.filter(|_| !keep) {
            self.emit(AgentEvent::Read { name: agent.clone(), up_to });
        }
        Ok(Answer::Inbox { agent, messages })
    }

    /// One step: either the agent has the bead afterwards, or it is told who or what is in the way.
    pub(super) fn agent_claim(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        bead: &str,
    ) -> Result<Answer, Refusal> {
        let agent = self.state().find_agent(text)?;
        let bead = self.state().find_bead(bead)?;
        if let Some(live) = self.state().live_dispatch(&bead).cloned() {
            return self.claim_again(agent, &live);
        }
        self.state().may_claim(&agent, &bead)?;
        let context = match self.state().work(&bead).and_then(|work| work.context.clone()) {
            Some(context) => context,
            None => self.open_own_context(asker, &agent, &bead)?,
        };
        let Some(dispatch_id) = self.start_claim(&context, &agent) else {
            return Err(Refusal::new("not-claimable", format!("{bead} cannot be claimed")));
        };
        self.agent_heard(&agent);
        self.end_silence(&agent);
        // What else it was sent somebody else may be free for.
        self.withdraw_orders(&agent);
        Ok(Answer::Claimed { agent, dispatch_id, already: false })
    }

    /// Whoever has it already still has it; everybody else is told who does.
    fn claim_again(&mut self, agent: AgentName, live: &Dispatch) -> Result<Answer, Refusal> {
        let dispatch_id = live.id.clone();
        match &live.claim {
            Some(claim) if claim.agent == agent => {
                self.take_up(live);
                self.agent_heard(&agent);
                Ok(Answer::Claimed { agent, dispatch_id, already: true })
            }
            _ => Err(taken(live)),
        }
    }

    /// An agent shows that it knows of a claim that was made on its behalf.
    pub(super) fn take_up(&mut self, live: &Dispatch) {
        if live.claim.as_ref().is_some_and(|claim| claim.unseen().is_some()) {
            self.emit(DispatchEvent::TakenUp { id: live.id.clone() });
        }
    }

    /// A bead that nobody has asked for is taken by an agent of its own accord.
    fn open_own_context(
        &mut self,
        asker: &Asker<'_>,
        agent: &AgentName,
        bead: &BeadId,
    ) -> Result<ContextId, Refusal> {
        let state = self.state();
        let (Some(entry), Some(rig)) = (state.bead(bead), state.rig_of(bead)) else {
            return Err(Refusal::new("no-rig", format!("no rig owns the prefix of {bead}; see ym rig add")));
        };
        let accepted = Accepted {
            bead: bead.clone(),
            rig: rig.name.clone(),
            formula: None,
            priority: sling_priority(&entry.bead),
            task: None,
            assign: Some(Assign { to: Some(agent.clone()), own: true }),
        };
        // What it has in hand in its tracker is not somebody else's.
        let request = SlingRequest { force: true, ..SlingRequest::default() };
        let result = self.open_context(asker, &request, &accepted, None);
        result.context_id.ok_or_else(|| Refusal::new("not-claimable", format!("{bead} cannot be claimed")))
    }

    /// An agent says something about a bead it has: only about its own, and only as long as it has it.
    pub(super) fn agent_says(
        &mut self,
        asker: &Asker<'_>,
        text: &str,
        bead: &str,
        token: &str,
        says: &WorkerSays,
    ) -> Result<Answer, Refusal> {
        let agent = self.state().find_agent(text)?;
        let bead = self.state().find_bead(bead)?;
        let live = self.state().own_claim(&agent, &bead, Some(token))?;
        self.worker_says(asker, &live.to_string(), says)
    }

    /// An agent is done with a bead it has, or does not want one it was sent.
    pub(super) fn agent_ends(
        &mut self,
        text: &str,
        bead: &str,
        token: Option<&str>,
        how: &ClaimEnd,
    ) -> Result<Answer, Refusal> {
        let agent = self.state().find_agent(text)?;
        let bead = self.state().find_bead(bead)?;
        let words = match how {
            ClaimEnd::Done { reason } => reason.as_deref(),
            ClaimEnd::Failed { message, .. } => Some(message.as_str()),
            ClaimEnd::Released { note } => note.as_deref(),
        };
        check_short("text", words.unwrap_or_default(), 500)?;
        if let (ClaimEnd::Released { .. }, None) = (how, token)
            && let Some((context, _)) = self.orders_of(&agent, |_| true).into_iter().find(|it| it.1 == bead)
        {
            return Ok(self.decline(&agent, &context, &bead));
        }
        let live = self.state().own_claim(&agent, &bead, token)?;
        self.agent_heard(&agent);
        let done = self.end_claim(&live, how);
        let message = format!("{bead} {done}");
        Ok(Answer::Done { changed: true, message, ids: vec![bead.to_string()] })
    }

    /// Ends a claim as its agent says; answers with what that means for the bead.
    pub(super) fn end_claim(&mut self, live: &DispatchId, how: &ClaimEnd) -> &'static str {
        match how {
            ClaimEnd::Done { reason } => {
                let said = Said::Done { reason: reason.clone() };
                self.emit(DispatchEvent::Said { id: live.clone(), said });
                self.claim_succeeded(live);
                if self.state().is_closed(live.bead()) {
                    "is closed"
                } else {
                    "is done; its tracker is to close it"
                }
            }
            ClaimEnd::Failed { message, unavailable } => {
                let category = if *unavailable { Category::Unavailable } else { Category::Crash };
                self.claim_failed(live, message, category);
                "failed"
            }
            ClaimEnd::Released { note } => {
                if let Some(note) = note {
                    self.emit(DispatchEvent::Checkpoint {
                        id: live.clone(),
                        note: note.clone(),
                        session: None,
                    });
                }
                self.terminate(live, StopReason::Released, false, "agent");
                "is given back"
            }
        }
    }

    fn decline(&mut self, agent: &AgentName, context: &ContextId, bead: &BeadId) -> Answer {
        let until = self.now().after(self.state().settings.agents.claim_timeout.duration());
        self.agent_heard(agent);
        self.withdraw_order(context, bead, agent, Withdrawal::Declined, until);
        let message = format!("{bead} is declined");
        Answer::Done { changed: true, message, ids: vec![bead.to_string()] }
    }
}

/// Who has a bead already.
fn taken(live: &Dispatch) -> Refusal {
    let bead = live.id.bead();
    match &live.claim {
        Some(claim) => Refusal::new("claimed", format!("{bead} is claimed by {} ({})", claim.agent, live.id)),
        None => Refusal::new("running", format!("{bead} is being worked on by our own worker {}", live.id)),
    }
}

impl State {
    /// The live dispatch of a bead.
    pub fn live_dispatch(&self, bead: &BeadId) -> Option<&Dispatch> {
        self.dispatch(self.work(bead)?.live.as_ref()?)
    }

    /// Whether nothing speaks against a claim of this agent. Room is for workers, and who has the bead in hand already, or
    /// was sent it, is not in his own way.
    fn may_claim(&self, agent: &AgentName, bead: &BeadId) -> Result<(), Refusal> {
        let Some(entry) = self.beads.get(bead) else {
            return Err(Refusal::new("unknown-bead", format!("{bead} vanished from its workspace")));
        };
        if let Some(pause) = &self.pause {
            return Err(Refusal::new("paused", format!("dispatch is paused by {}", pause.by)));
        }
        if let Some(busy) = &self.host_gate {
            return Err(Refusal::new("host-load", busy.clone()));
        }
        let context = entry.work.context.as_ref().and_then(|id| self.context(id));
        let order = context.and_then(|context| context.sent.as_ref());
        if let Some(order) = order.filter(|order| order.agent != *agent) {
            let message =
                format!("{bead} was sent to {}, who has until {} to claim it", order.agent, order.expires_at);
            return Err(Refusal::new("claimed", message));
        }
        let named = context.and_then(|context| context.assign.as_ref()?.to.as_ref());
        if let Some(other) = named.filter(|other| *other != agent) {
            return Err(Refusal::new("claimed", format!("{bead} is meant for {other}")));
        }
        let own = entry.bead.assignee.as_deref() == Some(agent.as_str());
        let in_the_way = |reason: &Reason| match reason.code {
            ReasonCode::AwaitingAgent | ReasonCode::Capacity => false,
            ReasonCode::ClaimedElsewhere => !own,
            _ => true,
        };
        match self.reasons_of(entry, context).into_iter().find(in_the_way) {
            None => Ok(()),
            Some(reason) if reason.code == ReasonCode::ClaimedElsewhere => {
                let owner = claimed_elsewhere(entry).unwrap_or(reason.message);
                Err(Refusal::new("claimed-elsewhere", format!("{bead} cannot be claimed: {owner}")))
            }
            Some(reason) => {
                let code = serde_json::to_value(reason.code).ok();
                let code = code.as_ref().and_then(|code| code.as_str()).unwrap_or("not-ready").to_owned();
                Err(Refusal::new(&code, format!("{bead} cannot be claimed: {}", reason.message)))
            }
        }
    }

    /// The claim that an agent has on a bead, or what became of it.
    fn own_claim(
        &self,
        agent: &AgentName,
        bead: &BeadId,
        token: Option<&str>,
    ) -> Result<DispatchId, Refusal> {
        let live = self.live_dispatch(bead);
        let own = live.filter(|live| live.claim.as_ref().is_some_and(|claim| claim.agent == *agent));
        if let Some(own) = own.filter(|own| token.is_none_or(|token| own.id.to_string() == token)) {
            return Ok(own.id.clone());
        }
        Err(self.lost_claim(agent, bead).unwrap_or_else(|| {
            Refusal::new("not-claimed", format!("{agent} has not claimed {bead}"))
                .hint(format!("ym agent claim {bead} --as {agent}"))
        }))
    }

    /// What became of an agent's claim that it has no longer.
    pub(crate) fn lost_claim(&self, agent: &AgentName, bead: &BeadId) -> Option<Refusal> {
        let mut all = self.dispatches_of(bead).rev();
        let last =
            all.find(|it| it.claim.as_ref().is_some_and(|claim| claim.agent == *agent) && !it.is_live())?;
        let how = last.words_about_end();
        let now = self.live_dispatch(bead).map(|live| match &live.claim {
            Some(claim) => format!("; {} has it now ({})", claim.agent, live.id),
            None => format!("; {} runs it now", live.id),
        });
        let message = format!("the claim {} is over: it {how}{}", last.id, now.unwrap_or_default());
        let refusal = Refusal::new("stale-claim", message);
        let may = self.may_claim(agent, bead).is_ok();
        Some(if may {
            refusal.hint(format!("ym agent claim {bead} --as {agent} takes it again"))
        } else {
            refusal
        })
    }
}
