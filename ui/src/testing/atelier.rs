//! A town whose work is done by registered agents: one in each state, an order on its way, claims, beads that wait, and
//! tracks with an owner, beside one worker of the ordinary kind.

use yard_engine::agent::{Process, Registration};
use yard_engine::command::{AgentStatus, AssignTo, ClaimEnd, SlingRequest, WorkerSays};
use yard_engine::money::Usd;
use yard_engine::{AgentName, Command, Millis};

use super::Yard;

impl Yard {
    /// Makes an agent known.
    pub(crate) fn agent(&mut self, name: &str, program: &str, change: impl FnOnce(&mut Registration)) {
        let mut agent = Registration {
            name: AgentName::parse(name).expect("a name"),
            program: program.to_owned(),
            model: None,
            skills: None,
            auto_claim: None,
            process: None,
        };
        change(&mut agent);
        self.must(&Command::AgentRegister(Box::new(agent)));
    }

    /// An agent says what it is doing.
    pub(crate) fn agent_says(&mut self, name: &str, status: AgentStatus, note: &str) {
        let note = (!note.is_empty()).then(|| note.to_owned());
        self.must(&Command::AgentStatus { agent: name.to_owned(), status, note });
    }

    /// An agent is alive.
    pub(crate) fn beats(&mut self, name: &str) {
        self.must(&Command::AgentHeartbeat { agent: name.to_owned() });
    }

    /// An agent takes a bead.
    pub(crate) fn claims(&mut self, name: &str, bead: &str) {
        self.must(&Command::AgentClaim { agent: name.to_owned(), bead: bead.to_owned() });
    }

    /// An agent has done a bead.
    pub(crate) fn agent_done(&mut self, name: &str, bead: &str) {
        self.must(&Command::AgentEnds {
            agent: name.to_owned(),
            bead: bead.to_owned(),
            token: None,
            how: ClaimEnd::Done { reason: None },
        });
    }

    /// Gives a bead to this agent, or to whoever fits.
    pub(crate) fn gives(&mut self, bead: &str, to: Option<&str>) {
        let to = to.map_or(AssignTo::Anyone, |name| AssignTo::Agent(AgentName::parse(name).expect("a name")));
        self.must(&Command::Sling(Box::new(SlingRequest {
            ids: vec![bead.to_owned()],
            assign: Some(to),
            no_convoy: true,
            ..SlingRequest::default()
        })));
    }
}

/// Five states, at 14:15: `ash` is unresponsive, `fern` has two beads and a track, `moss` is blocked, `reed` is idle, `rue`
/// is to claim an order, `sage` is offline.
pub(crate) fn atelier() -> Yard {
    let mut yard = Yard::with_cap(2);
    yard.configure(|settings| {
        settings.agents.tracks = true;
        settings.agents.offline_after = Millis::minutes(30);
    });
    beads(&mut yard);
    yard.agent("fern", "claude-code", |agent| {
        agent.model = Some("opus".to_owned());
        agent.skills = Some("sql, migrations".to_owned());
        agent.process = Some(Process { pid: 4_711, mark: "1".to_owned() });
    });
    first_quarter(&mut yard);
    yard.sling("gt-20");
    yard.all_run();
    yard.says("gt-20", WorkerSays::Progress { text: "building the image, layer 7 of 11".to_owned() });
    yard.later(100);
    for name in ["fern", "moss", "reed"] {
        yard.beats(name);
    }
    yard.later(4);
    yard
}

fn beads(yard: &mut Yard) {
    for (id, title) in [
        ("gt-10", "orders-table"),
        ("gt-11", "orders-backfill"),
        ("gt-12", "orders-report"),
        ("gt-13", "login-form"),
        ("gt-14", "readme-pass"),
        ("gt-15", "api-reference"),
        ("gt-16", "release-note"),
        ("gt-17", "search-index"),
        ("gt-18", "search-facets"),
        ("gt-20", "deploy-docs"),
    ] {
        yard.bead(id, title, |_| {});
    }
    yard.needs("gt-11", "gt-10");
    yard.needs("gt-12", "gt-11");
    yard.needs("gt-18", "gt-17");
}

fn first_quarter(yard: &mut Yard) {
    // A track of three: its first bead is done, the second is under way, and the third will be fern's as well.
    yard.gives("gt-10", None);
    yard.claims("fern", "gt-10");
    yard.gives("gt-11", None);
    yard.gives("gt-12", None);
    yard.later(240);
    yard.agent_done("fern", "gt-10");
    yard.claims("fern", "gt-11");
    yard.says("gt-11", WorkerSays::Progress { text: "rewriting orders: 61% of the rows".to_owned() });
    let usd = Usd::from_dollars(1.42).expect("an amount");
    yard.says("gt-11", WorkerSays::Cost { usd, total: true, tokens: None });
    yard.claims("fern", "gt-15");
    yard.says("gt-15", WorkerSays::Progress { text: "waits for the schema of orders".to_owned() });
    // One lets its order lapse, one leaves.
    yard.agent("ash", "codex", |_| {});
    yard.gives("gt-13", Some("ash"));
    yard.agent("sage", "codex", |_| {});
    yard.agent_says("sage", AgentStatus::Offline, "");
    for _ in 0..4 {
        yard.later(90);
        yard.beats("fern");
    }
    yard.agent("moss", "claude-code", |agent| agent.model = Some("sonnet".to_owned()));
    yard.agent("reed", "codex", |agent| agent.skills = Some("docs, readme".to_owned()));
    yard.agent_says("moss", AgentStatus::Blocked, "waiting for a review of the login form");
    yard.gives("gt-14", Some("reed"));
    yard.claims("reed", "gt-14");
    yard.later(200);
    for name in ["fern", "moss"] {
        yard.beats(name);
    }
    yard.agent_done("reed", "gt-14");
    yard.later(20);
    yard.agent("rue", "gemini", |agent| agent.model = Some("pro".to_owned()));
    // Whoever had the fewest orders gets the track of two; the other sees only what is for somebody else.
    yard.gives("gt-17", None);
    yard.gives("gt-18", None);
    yard.gives("gt-16", Some("moss"));
}
