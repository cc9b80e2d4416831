//! What a session knows by heart: who the agent is, and the token of each of its claims. A token is kept when its claim
//! is over, so that whatever still goes along with it is refused instead of reaching somebody else's claim.

use std::collections::BTreeMap;

use yard_client::views::{AgentView, BodyView, ClaimView, InboxView};
use yard_engine::{AgentName, BeadId, DispatchId, Refusal};

use crate::errors::Report;

/// A claim of this session.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim {
    token: DispatchId,
    /// The town has said that it holds no longer.
    is_over: bool,
}

/// What is remembered from call to call.
#[derive(Debug, Default)]
pub(super) struct Memory {
    name: Option<AgentName>,
    claims: BTreeMap<AgentName, BTreeMap<BeadId, Claim>>,
}

impl Memory {
    /// Nothing yet, except the name if there is one.
    pub(super) fn new(name: Option<AgentName>) -> Self {
        Self { name, claims: BTreeMap::new() }
    }

    /// The agent that a call is about: the one it names, else the session's.
    pub(super) fn agent(&self, named: Option<&str>) -> Result<AgentName, Report> {
        match named.filter(|name| !name.is_empty()) {
            Some(name) => Ok(AgentName::parse(name).map_err(Refusal::from)?),
            None => self.own_name().cloned().ok_or_else(|| {
                Report::new("no-agent", "this session does not know which agent it is")
                    .hint("call register with a name, pass agent, or start the server as ym mcp --as NAME")
            }),
        }
    }

    /// The session's own agent.
    pub(super) fn own_name(&self) -> Option<&AgentName> {
        self.name.as_ref()
    }

    /// The agent is registered. A session that comes back finds the claims it had.
    pub(super) fn registered(&mut self, view: &AgentView) {
        for held in &view.claims {
            self.remember(&view.name, &held.dispatch_id);
        }
        self.name = Some(view.name.clone());
    }

    /// The agent has a bead.
    pub(super) fn claimed(&mut self, view: &ClaimView) {
        self.remember(&view.agent, &view.dispatch_id);
    }

    /// The agent was told of claims that were made for it, and of such as are over.
    pub(super) fn read(&mut self, view: &InboxView) {
        for message in &view.messages {
            match &message.body {
                BodyView::Order { dispatch_id: Some(token), .. } => self.remember(&view.agent, token),
                // Nobody is sent what he has: an older claim is over, and declining the order needs no token.
                BodyView::Order { bead_id, dispatch_id: None, .. } => self.forget(&view.agent, bead_id),
                BodyView::Unassign { dispatch_id: Some(token), .. } => self.over(&view.agent, token),
                BodyView::Unassign { dispatch_id: None, .. } => {}
            }
        }
    }

    /// The town says that a claim is over.
    pub(super) fn over(&mut self, agent: &AgentName, token: &DispatchId) {
        let claim = self.claims.get_mut(agent).and_then(|claims| claims.get_mut(token.bead()));
        if let Some(claim) = claim.filter(|claim| claim.token == *token) {
            claim.is_over = true;
        }
    }

    /// The agent is done with a bead.
    pub(super) fn forget(&mut self, agent: &AgentName, bead: &BeadId) {
        if let Some(claims) = self.claims.get_mut(agent) {
            claims.remove(bead);
        }
    }

    /// The token of the claim that a call is about: on the bead it names, else the only one.
    pub(super) fn token(&self, agent: &AgentName, bead: Option<&str>) -> Result<DispatchId, Report> {
        let claims = || self.claims.get(agent).into_iter().flatten();
        if let Some(bead) = bead {
            let found = claims().find(|(id, _)| id.as_str() == bead);
            return found.map(|(_, claim)| claim.token.clone()).ok_or_else(|| {
                Report::new("not-claimed", format!("{agent} has not claimed {bead} in this session"))
                    .hint("call claim first, with the whole id; claiming what you have changes nothing")
            });
        }
        // What is over is asked about only if there is nothing else: the town then says what became of it.
        let holding: Vec<&Claim> = claims().map(|(_, claim)| claim).filter(|it| !it.is_over).collect();
        let all: Vec<&Claim> = claims().map(|(_, claim)| claim).collect();
        match (holding.as_slice(), all.as_slice()) {
            ([one], _) | ([], [one]) => Ok(one.token.clone()),
            ([], _) => {
                Err(Report::new("not-claimed", format!("{agent} has claimed nothing in this session"))
                    .hint("call claim first; claiming what you have changes nothing"))
            }
            (several, _) => {
                let beads: Vec<&str> = several.iter().map(|claim| claim.token.bead().as_str()).collect();
                Err(Report::new("which-bead", format!("{agent} has claimed {}", beads.join(", ")))
                    .hint("pass bead to say which one this is about"))
            }
        }
    }

    fn remember(&mut self, agent: &AgentName, token: &DispatchId) {
        let claim = Claim { token: token.clone(), is_over: false };
        self.claims.entry(agent.clone()).or_default().insert(token.bead().clone(), claim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn name(text: &str) -> AgentName {
        AgentName::parse(text).expect("a name")
    }

    fn token(text: &str) -> DispatchId {
        DispatchId::parse(text).expect("a token")
    }

    fn fern_with(tokens: &[&str]) -> Memory {
        let mut memory = Memory::new(Some(name("fern")));
        for text in tokens {
            memory.remember(&name("fern"), &token(text));
        }
        memory
    }

    fn told(memory: &mut Memory, body: Value) {
        let message =
            json!({"id": 1, "at": "2026-01-01T00:00:00Z", "subject": "", "importance": "high", "body": body});
        let inbox = json!({"agent": "fern", "timed_out": false, "messages": [message]});
        memory.read(&serde_json::from_value(inbox).expect("an inbox"));
    }

    fn order(dispatch_id: Option<&str>) -> Value {
        json!({
            "type": "DISPATCH_ORDER", "bead_id": "y-1", "title": "", "priority": "P2", "importance": "high",
            "reason": "", "auto_claim": dispatch_id.is_some(), "expires_at": "2026-01-01T00:00:00Z",
            "dispatch_id": dispatch_id, "claim_command": ""
        })
    }

    fn code_of(result: Result<DispatchId, Report>) -> String {
        result.expect_err("this should be refused").code().to_owned()
    }

    #[test]
    fn a_call_is_about_the_agent_it_names_and_otherwise_about_the_sessions() {
        let mut memory = Memory::default();
        assert_eq!(memory.agent(None).expect_err("nobody").code(), "no-agent");
        memory.name = Some(name("fern"));
        assert_eq!(memory.agent(None).expect("fern"), name("fern"));
        assert_eq!(memory.agent(Some("moss")).expect("moss"), name("moss"));
        assert!(memory.agent(Some("no such\nname")).is_err());
    }

    #[test]
    fn the_bead_need_be_named_only_if_there_are_several() {
        let fern = name("fern");
        assert_eq!(code_of(fern_with(&[]).token(&fern, None)), "not-claimed");
        assert_eq!(fern_with(&["y-1@1"]).token(&fern, None).expect("a token"), token("y-1@1"));
        let several = fern_with(&["y-1@1", "y-2@3"]);
        assert_eq!(code_of(several.token(&fern, None)), "which-bead");
        assert_eq!(several.token(&fern, Some("y-2")).expect("a token"), token("y-2@3"));
        assert_eq!(code_of(several.token(&fern, Some("y-3"))), "not-claimed");
        assert_eq!(code_of(several.token(&name("moss"), Some("y-1"))), "not-claimed");
    }

    #[test]
    fn a_token_whose_claim_is_over_still_goes_along_but_is_in_nobodys_way() {
        let fern = name("fern");
        let mut memory = fern_with(&["y-1@1"]);
        told(
            &mut memory,
            json!({"type": "UNASSIGN", "bead_id": "y-1", "reason": "", "dispatch_id": "y-1@1"}),
        );
        assert_eq!(memory.token(&fern, None).expect("the old one"), token("y-1@1"));
        memory.remember(&fern, &token("y-2@1"));
        assert_eq!(memory.token(&fern, None).expect("the one that holds"), token("y-2@1"));
        assert_eq!(memory.token(&fern, Some("y-1")).expect("the old one"), token("y-1@1"));
    }

    #[test]
    fn news_of_an_older_claim_does_not_end_the_present_one() {
        let mut memory = fern_with(&["y-1@2", "y-2@1"]);
        told(
            &mut memory,
            json!({"type": "UNASSIGN", "bead_id": "y-1", "reason": "", "dispatch_id": "y-1@1"}),
        );
        assert_eq!(code_of(memory.token(&name("fern"), None)), "which-bead");
    }

    #[test]
    fn an_order_brings_the_token_of_a_claim_that_was_made_for_the_agent() {
        let (fern, mut memory) = (name("fern"), fern_with(&["y-1@1"]));
        told(&mut memory, order(Some("y-1@2")));
        assert_eq!(memory.token(&fern, None).expect("the new one"), token("y-1@2"));
        told(&mut memory, order(None));
        assert_eq!(code_of(memory.token(&fern, Some("y-1"))), "not-claimed");
    }
}
