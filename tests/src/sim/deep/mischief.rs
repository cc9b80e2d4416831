//! Commands that are wrong because of how things stand just now: what somebody else has, what is over, what is under way.

use yard_engine::command::{ClaimEnd, NewBead, SlingRequest};
use yard_engine::{Command, DispatchId};

use super::people::AGENTS;
use crate::sim::daemon::Halt;
use crate::sim::history::World;

impl World {
    /// Somebody does what he had better not, given how things stand.
    pub(in crate::sim) fn mischief(&mut self) -> Result<(), Halt> {
        if self.dice.one_in(12) {
            return self.asks_for_what_is_no_work();
        }
        if self.dice.one_in(4) {
            return self.thinks_better_of_it();
        }
        if self.dice.one_in(6) {
            return self.takes_back();
        }
        if self.dice.one_in(4) {
            return self.regrets_a_retry();
        }
        let commands = self.bad_ideas();
        let Some((actor, command)) = self.dice.pick(&commands).cloned() else { return self.idle() };
        self.deep_ask(&actor, &command).map(|_| ())
    }

    /// Somebody has a worker give way, and takes it back, which may be too late.
    fn thinks_better_of_it(&mut self) -> Result<(), Halt> {
        let victims = self.state().live_workers().filter(|it| it.running_at.is_some() && it.stop.is_none());
        let victims: Vec<String> = victims.map(|it| it.id.bead().to_string()).collect();
        let Some(id) = self.dice.pick(&victims).cloned() else { return self.idle() };
        if self.deep_ask("op", &Command::Preempt { id, candidate: None })? {
            self.shims_go_on(4)?;
            self.all_reports_arrive();
            self.idle()?;
            self.takes_back()?;
        }
        Ok(())
    }

    /// Somebody gives new budgets to what has failed and waits, so that it does not start meanwhile, and takes it back.
    fn regrets_a_retry(&mut self) -> Result<(), Halt> {
        let state = self.state();
        let waits = state.open_contexts().filter(|context| {
            let used = context.crashes + context.unavailables + context.fields.dispatch_failures;
            let idle = state.bead(context.bead()).is_some_and(|entry| entry.work.live.is_none());
            idle && (used > 0 || context.not_before.is_some())
        });
        let waits: Vec<String> = waits.map(|context| context.bead().to_string()).collect();
        let Some(id) = self.dice.pick(&waits).cloned() else { return self.idle() };
        self.deep_ask("op", &Command::Hold { id: id.clone(), held: true })?;
        self.deep_ask("op", &Command::Retry { bead: id.clone() })?;
        self.takes_back()?;
        if self.dice.one_in(2) {
            self.deep_ask("op", &Command::Redo)?;
        }
        self.deep_ask("op", &Command::Hold { id, held: false }).map(|_| ())
    }

    /// Somebody takes the last command back, or asks for each step of that himself.
    pub(super) fn takes_back(&mut self) -> Result<(), Halt> {
        if self.dice.one_in(2) {
            return self.deep_ask("op", &Command::Undo).map(|_| ());
        }
        let steps = self.state().undoable().map(|last| last.inverse.clone()).unwrap_or_default();
        steps.iter().try_for_each(|step| self.deep_ask("op", step).map(|_| ()))
    }

    /// A note is a bead, but nothing that could be worked on.
    fn asks_for_what_is_no_work(&mut self) -> Result<(), Halt> {
        let (id, title, kind) = (Some("a-note".to_owned()), "a note".to_owned(), "message".to_owned());
        let bead = Box::new(NewBead { id, title, kind, ..NewBead::default() });
        self.deep_ask("op", &Command::BeadAdd { bead })?;
        let request = SlingRequest { ids: vec!["a-note".to_owned()], ..SlingRequest::default() };
        self.deep_ask("op", &Command::Sling(Box::new(request))).map(|_| ())
    }

    fn bad_ideas(&self) -> Vec<(String, Command)> {
        let state = self.state();
        let mut ideas = Vec::new();
        let op = || "op".to_owned();
        let sling = |id: &str| {
            Command::Sling(Box::new(SlingRequest { ids: vec![id.to_owned()], ..SlingRequest::default() }))
        };
        let waiting: Vec<String> = state.open_contexts().map(|context| context.bead().to_string()).collect();
        for live in state.live_dispatches() {
            let id = live.id.bead().to_string();
            ideas.push((op(), Command::Preempt { id: id.clone(), candidate: None }));
            for candidate in waiting.iter().filter(|other| **other != id).cloned() {
                ideas.push((op(), Command::Preempt { id: id.clone(), candidate: Some(candidate) }));
            }
            for agent in AGENTS.iter().filter(|_| live.claim.is_some()) {
                let agent = (*agent).to_owned();
                ideas.push((agent.clone(), Command::AgentClaim { agent, bead: id.clone() }));
            }
        }
        for over in self.beads.iter().flat_map(|bead| state.dispatches_of(bead)) {
            let Some(claim) = over.claim.as_ref().filter(|_| !over.is_live()) else { continue };
            let agent = claim.agent.to_string();
            ideas.push((agent.clone(), ends(agent, &over.id)));
        }
        for task in state.tasks() {
            let id = task.id.to_string();
            ideas.push((op(), sling(&id)));
            ideas.push((op(), Command::Priority { id, priority: 60 }));
        }
        for convoy in state.convoys().filter(|convoy| convoy.staged.is_some()) {
            ideas.push((op(), sling(convoy.id.as_str())));
        }
        for convoy in state.convoys().filter(|convoy| convoy.closed.is_some()) {
            ideas.push((op(), Command::ConvoyReopen { id: convoy.id.to_string() }));
        }
        ideas
    }
}

fn ends(agent: String, over: &DispatchId) -> Command {
    let (bead, token) = (over.bead().to_string(), Some(over.to_string()));
    Command::AgentEnds { agent, bead, token, how: ClaimEnd::Done { reason: None } }
}
