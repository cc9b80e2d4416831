//! People, agents and clients who do what quick histories do not know of: registered agents with their claims, tasks of the
//! HTTP API, branches that are merged, storms of commands in one round, and all kinds of nonsense, which must be refused.

use yard_client::Ask;
use yard_engine::agent::{Process, Registration};
use yard_engine::bead::{BeadChange, BeadStatus};
use yard_engine::command::{
    AddItem, AgentStatus, AssignTo, ClaimEnd, NewBead, NewConvoy, NewTask, SlingRequest, WorkerSays,
};
use yard_engine::money::Usd;
use yard_engine::rig::Rig;
use yard_engine::task::IdempotencyKey;
use yard_engine::{AgentName, Command, DispatchId, FormulaName, Millis, RigName, Timestamp};

use crate::sim::Broken;
use crate::sim::daemon::Halt;
use crate::sim::history::World;

/// The agents there may be.
pub(super) const AGENTS: [&str; 3] = ["ann", "ben", "cleo"];

pub(super) fn agent_name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a valid name")
}

fn bead(id: &str) -> NewBead {
    let argv = Some(vec!["work".to_owned()]);
    NewBead { id: Some(id.to_owned()), title: "odd".to_owned(), argv, ..NewBead::default() }
}

fn rig(name: &str, prefix: &str) -> Command {
    let rig = Rig {
        name: RigName::parse(name).expect("a valid name"),
        prefix: prefix.to_owned(),
        path: ".".to_owned(),
        parked: false,
        docked: false,
        max_polecats: None,
        executor: None,
        formula: None,
        source: None,
    };
    Command::RigAdd { rig }
}

impl World {
    /// Something only the real loop is asked.
    pub(in crate::sim) fn deep_operator(&mut self) -> Result<(), Halt> {
        match self.dice.below(20) {
            0..6 => self.agents_are_busy(),
            6..10 => self.client_acts(),
            10..12 => self.storm(),
            12 => self.somebody_waits(),
            13 => self.edits_the_config(),
            14..17 => self.mischief(),
            _ => self.nonsense(),
        }
    }

    fn some_agent(&mut self) -> String {
        AGENTS[self.dice.below(AGENTS.len())].to_owned()
    }

    /// Agents seldom come for one thing only.
    fn agents_are_busy(&mut self) -> Result<(), Halt> {
        (0..self.dice.between(1, 6)).try_for_each(|_| self.agent_acts())
    }

    /// A registered agent, or somebody who says so, does something.
    fn agent_acts(&mut self) -> Result<(), Halt> {
        let agent = self.some_agent();
        let mut bead = self.some_bead().to_string();
        let claims: Vec<DispatchId> = self.state().claims_of(&agent_name(&agent)).cloned().collect();
        let claim = self.dice.pick(&claims).cloned();
        if let Some(claim) = claim.as_ref().filter(|_| !self.dice.one_in(4)) {
            bead = claim.bead().to_string();
        }
        let token = claim.map_or_else(|| format!("{bead}@1"), |claim| claim.to_string());
        let command = match self.dice.below(22) {
            0..4 => {
                let mark = if self.dice.one_in(2) { "alive" } else { "dead" };
                let process = self.dice.one_in(2).then(|| Process { pid: 7, mark: mark.to_owned() });
                let auto_claim = self.dice.one_in(3).then(|| self.dice.one_in(2));
                let program = if self.dice.one_in(20) { String::new() } else { "claude-code".to_owned() };
                Command::AgentRegister(Box::new(Registration {
                    name: agent_name(&agent),
                    program,
                    model: None,
                    skills: None,
                    auto_claim,
                    process,
                }))
            }
            4 => Command::AgentRetire { agent: agent.clone() },
            5 => Command::AgentHeartbeat { agent: agent.clone() },
            6 | 7 => {
                let status =
                    [AgentStatus::Idle, AgentStatus::Working, AgentStatus::Blocked, AgentStatus::Offline]
                        [self.dice.below(4)];
                Command::AgentStatus { agent: agent.clone(), status, note: None }
            }
            8 | 9 => Command::AgentInbox { agent: agent.clone(), keep: self.dice.one_in(3) },
            10..13 => Command::AgentClaim { agent: agent.clone(), bead },
            13..15 => {
                let says = match self.dice.below(3) {
                    0 => WorkerSays::Progress { text: "at it".to_owned() },
                    1 => WorkerSays::Cost {
                        usd: Usd::from_dollars(1.0).unwrap_or_default(),
                        total: false,
                        tokens: Some(5),
                    },
                    _ => WorkerSays::Checkpoint { note: "half".to_owned(), session: None },
                };
                Command::AgentSays { agent: agent.clone(), bead, token, says }
            }
            15..18 => {
                let how = match self.dice.below(4) {
                    0 | 1 => ClaimEnd::Done { reason: None },
                    2 => ClaimEnd::Failed { message: "no".to_owned(), unavailable: self.dice.one_in(2) },
                    _ => ClaimEnd::Released { note: None },
                };
                let token = self.dice.one_in(2).then_some(token);
                Command::AgentEnds { agent: agent.clone(), bead, token, how }
            }
            18 => {
                // Somebody waits for mail, and may be gone before there is any.
                let ask = Ask::AgentWait { agent: agent.clone(), keep: false, timeout_ms: Some(3_000) };
                return self.put(&agent, ask, String::new()).map(|_| ());
            }
            _ => {
                let assign =
                    if self.dice.one_in(2) { AssignTo::Anyone } else { AssignTo::Agent(agent_name(&agent)) };
                let request =
                    SlingRequest { ids: vec![bead], assign: Some(assign), ..SlingRequest::default() };
                Command::Sling(Box::new(request))
            }
        };
        self.deep_ask(&agent, &command).map(|_| ())
    }

    /// A client of the HTTP API submits tasks, or calls one off.
    fn client_acts(&mut self) -> Result<(), Halt> {
        let tasks: Vec<String> = self.state().tasks().map(|task| task.id.to_string()).collect();
        if self.dice.one_in(4) {
            let id = self.dice.pick(&tasks).cloned().unwrap_or_else(|| "tsk_0".to_owned());
            let agent = self.dice.one_in(4).then(|| self.some_agent());
            return self.deep_ask("http", &Command::TaskCancel { id, agent }).map(|_| ());
        }
        let count = self.dice.between(1, 3);
        let submitted = (0..count).map(|_| self.some_task(&tasks)).collect();
        self.deep_ask("http", &Command::TaskSubmit { tasks: submitted }).map(|_| ())
    }

    fn some_task(&mut self, known: &[String]) -> NewTask {
        let now = self.now;
        let soon = Millis(self.dice.between(500, 20_000)).duration();
        let deadline = match self.dice.below(8) {
            0 => Some(Timestamp::from_millis(now.as_millis() - 1)),
            1..4 => Some(now.after(soon)),
            _ => None,
        };
        let formula = match self.dice.below(6) {
            0 | 1 => FormulaName::parse("steps").ok(),
            2 if self.dice.one_in(4) => FormulaName::parse("spoiled").ok(),
            _ => None,
        };
        let mut after: Vec<String> = Vec::new();
        if self.dice.one_in(5) {
            after.extend(self.dice.pick(known).cloned());
        }
        if self.dice.one_in(16) {
            after.push("a-nobody".to_owned());
        }
        let fingerprint = format!("f{}", self.dice.below(2));
        let key = self.dice.one_in(4).then(|| IdempotencyKey { key: "again".to_owned(), fingerprint });
        let line = serde_json::json!({"text": "two\nlines"});
        let params = self.dice.one_in(10).then(|| line.as_object().cloned()).flatten();
        NewTask {
            agent: self.some_agent(),
            action: if self.dice.one_in(20) { String::new() } else { "click".to_owned() },
            tab: Some("tab-1".to_owned()),
            params,
            priority: self.dice.between(0, 9) as i64,
            deadline,
            callback: self.dice.one_in(3).then(|| "https://example.org/hook".to_owned()),
            max_attempts: self.dice.below(3) as u32,
            formula,
            after,
            key,
            ..NewTask::default()
        }
    }

    /// Several commands in one round: one commit for all of them.
    fn storm(&mut self) -> Result<(), Halt> {
        for _ in 0..self.dice.between(2, 8) {
            let id = self.some_bead().to_string();
            let command = match self.dice.below(9) {
                0 | 1 => Command::Pause { reason: Some("storm".to_owned()), until: None },
                2 | 3 => Command::Resume,
                4 => Command::Hold { id, held: self.dice.one_in(2) },
                5 => Command::Cancel { id, at_once: false },
                6 => Command::Undo,
                7 => Command::Run { batch: None, dry_run: false },
                _ => Command::Sling(Box::new(SlingRequest { ids: vec![id], ..SlingRequest::default() })),
            };
            self.put_in_line("op", &command);
        }
        if self.dice.one_in(2) {
            self.all_reports_arrive();
        }
        self.idle()
    }

    fn somebody_waits(&mut self) -> Result<(), Halt> {
        let id = self.some_bead().to_string();
        let ask = match self.dice.below(6) {
            0 => Ask::Wait { ids: vec![id], all: false, timeout_ms: Some(2_000), summary: false },
            1 => Ask::Wait { ids: Vec::new(), all: true, timeout_ms: Some(5_000), summary: true },
            2 => Ask::Wait { ids: vec!["x-none".to_owned()], all: false, timeout_ms: None, summary: false },
            3 => Ask::SchedulerList,
            4 => Ask::AgentList,
            _ => Ask::RigList,
        };
        self.put("op", ask, String::new()).map(|_| ())
    }

    /// `ym config set`: whoever serves the town writes the file.
    fn edits_the_config(&mut self) -> Result<(), Halt> {
        let (key, value) = match self.dice.below(10) {
            0..3 => ("scheduler.max_polecats", Some("4")),
            3 => ("scheduler.batch_size", None),
            4..6 => ("limits.stuck_after", Some("5s")),
            6 => ("scheduler.max_polecat", Some("2")),
            7 => ("scheduler.batch_size", Some("many")),
            _ => ("agents.auto_claim", Some("true")),
        };
        let (key, value) = (key.to_owned(), value.map(str::to_owned));
        self.deep_ask("op", &Command::Configure { key, value })?;
        let meddles = self.dice.one_in(2);
        if meddles {
            // Somebody else edits the same entry: taking it back is refused.
            self.reconfigure()?;
        }
        if meddles || self.dice.one_in(2) {
            self.takes_back()?;
        }
        if self.dice.one_in(2) {
            self.deep_ask("op", &Command::Redo)?;
        }
        Ok(())
    }

    /// What makes no sense, at least not now.
    fn nonsense(&mut self) -> Result<(), Halt> {
        let id = self.some_bead().to_string();
        let convoys: Vec<String> = self.state().convoys().map(|convoy| convoy.id.to_string()).collect();
        let convoy = self.dice.pick(&convoys).cloned().unwrap_or_else(|| "hq-cv-none".to_owned());
        let past = Timestamp::from_millis(self.now.as_millis() - 1);
        let sling = |request: SlingRequest| Command::Sling(Box::new(request));
        let of = |ids: &[&str]| SlingRequest {
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..SlingRequest::default()
        };
        let add = |bead: NewBead| Command::BeadAdd { bead: Box::new(bead) };
        let item = |id: Option<&str>, after: &[&str]| AddItem {
            argv: vec!["work".to_owned()],
            id: id.map(str::to_owned),
            after: after.iter().map(|id| (*id).to_owned()).collect(),
            ..AddItem::default()
        };
        let update = |id: String, change: BeadChange| Command::BeadUpdate { id, change };
        let formula = |name: &str| FormulaName::parse(name).ok();
        let commands: Vec<Command> = vec![
            add(bead(&id)),
            add(NewBead { title: String::new(), ..bead("a-odd") }),
            add(NewBead { title: "a\0b".to_owned(), ..bead("a-odd") }),
            add(NewBead { priority: Some(9), ..bead("a-odd") }),
            add(NewBead { rig: RigName::parse("mule").ok(), ..bead("a-odd") }),
            add(NewBead { argv: Some(Vec::new()), ..bead("a-odd") }),
            add(NewBead { id: Some("q-odd".to_owned()), ..bead("q-odd") }),
            add(NewBead { id: None, ..bead("a-odd") }),
            add(NewBead { id: Some("a odd".to_owned()), ..bead("a-odd") }),
            update(id.clone(), BeadChange { status: Some(BeadStatus::Closed), ..BeadChange::default() }),
            update("x-none".to_owned(), BeadChange::default()),
            update("a-".to_owned(), BeadChange::default()),
            Command::BeadReopen { id: "a".to_owned() },
            Command::ConvoyReopen { id: "hq-cv-".to_owned() },
            sling(SlingRequest::default()),
            sling(of(&["x-none"])),
            sling(of(&[&id, &convoy])),
            sling(of(&[&convoy])),
            sling(SlingRequest { rig: RigName::parse("ox").ok(), ..of(&[&convoy]) }),
            sling(SlingRequest { deadline: Some(past), ..of(&[&id]) }),
            sling(SlingRequest { executor: Some("moon".to_owned()), ..of(&[&id]) }),
            sling(SlingRequest { formula: formula("spoiled"), ..of(&[&id]) }),
            sling(SlingRequest { formula: formula("nowhere"), ..of(&[&id]) }),
            sling(SlingRequest { formula: formula("steps"), ..of(&[&id]) }),
            sling(SlingRequest { hook_raw_bead: true, ..of(&[&id]) }),
            sling(SlingRequest { rig: RigName::parse("moon").ok(), ..of(&[&id]) }),
            sling(SlingRequest { rig: RigName::parse("mule").ok(), ..of(&[&id]) }),
            sling(SlingRequest { vars: [("1=x".to_owned(), "y".to_owned())].into(), ..of(&[&id]) }),
            sling(SlingRequest { priority: Some(0), ..of(&[&id]) }),
            sling(SlingRequest { args: Some("a\0b".to_owned()), ..of(&[&id]) }),
            rig("ox", "o"),
            rig("elk", "a"),
            rig("elk", "E E"),
            rig("elk", "e-"),
            rig("elk", "e"),
            Command::RigRemove { name: RigName::parse("elk").expect("a valid name") },
            Command::RigRemove { name: RigName::parse("ox").expect("a valid name") },
            Command::RigRemove { name: RigName::parse("moon").expect("a valid name") },
            Command::ConvoyCreate(Box::default()),
            Command::ConvoyCreate(Box::new(NewConvoy {
                from_epic: Some(id.clone()),
                ..NewConvoy::default()
            })),
            Command::ConvoyLand { id: convoy.clone(), force: false, dry_run: false },
            Command::ConvoyClose { id: convoy.clone(), reason: None, force: false },
            Command::ConvoyWatch { id: convoy.clone(), watcher: "bob".to_owned(), wants: true },
            Command::ConvoyWatch { id: convoy.clone(), watcher: String::new(), wants: true },
            Command::ConvoyCheck { id: None, dry_run: false },
            Command::ConvoyUnstage { id: convoy.clone() },
            Command::ConvoyReopen { id: convoy.clone() },
            Command::ConvoyAdd { id: "hq-cv-none".to_owned(), beads: vec![id.clone()] },
            Command::ConvoyStage { targets: vec![convoy.clone(), id.clone()], title: None, launch: false },
            Command::ConvoyStage { targets: vec![id.clone()], title: None, launch: true },
            Command::ConvoyLaunch { targets: vec![convoy], force: false },
            Command::AlertAck { id: "al-none".to_owned() },
            Command::Worker {
                dispatch: "x-none@1".to_owned(),
                says: WorkerSays::Progress { text: "x".to_owned() },
            },
            Command::Worker {
                dispatch: format!("{id}@1"),
                says: WorkerSays::Progress { text: "x".repeat(70_000) },
            },
            Command::Cancel { id: format!("{id}@1"), at_once: false },
            Command::Preempt { id: id.clone(), candidate: None },
            Command::Priority { id: id.clone(), priority: 0 },
            Command::Hold { id: "ctx-none".to_owned(), held: true },
            Command::Clear { bead: Some(id.clone()) },
            Command::Pause { reason: None, until: Some(past) },
            Command::Add { items: vec![AddItem { argv: Vec::new(), ..AddItem::default() }] },
            Command::Add { items: vec![item(Some("a-twin"), &[]), item(Some("a-twin"), &[])] },
            Command::Add { items: vec![item(Some("a-m"), &["a-n"]), item(Some("a-n"), &["a-m"])] },
            Command::Add { items: vec![item(Some(&id), &[])] },
            Command::Add { items: vec![item(None, &["x-none"])] },
            Command::Add { items: vec![item(Some("q-x"), &[])] },
            Command::DependencyAdd {
                id: id.clone(),
                on: id.clone(),
                kind: yard_engine::bead::DepKind::Blocks,
            },
            Command::BeadImport { beads: vec![bead(&id)] },
            Command::Withdraw { contexts: Vec::new(), verdict: None },
            Command::Retry { bead: id.clone() },
            Command::Redo,
            Command::BeadClose { ids: vec![id.clone()], reason: None },
            Command::BeadReopen { id },
        ];
        let nth = self.dice.below(commands.len() + 4);
        let Some(command) = commands.into_iter().nth(nth) else { return self.acks_an_alert() };
        self.deep_ask("op", &command)?;
        self.gains_what_is_new();
        Ok(())
    }

    fn acks_an_alert(&mut self) -> Result<(), Halt> {
        let alerts: Vec<String> = self.state().alerts().map(|alert| alert.id.to_string()).collect();
        let Some(id) = self.dice.pick(&alerts).cloned() else { return self.idle() };
        self.deep_ask("op", &Command::AlertAck { id }).map(|_| ())
    }

    /// With the faults over, agents are done with what they have, and nothing waits for one.
    pub(in crate::sim) fn agents_go_home(&mut self) -> Result<(), Halt> {
        self.nothing_waits_for_agents()?;
        for agent in AGENTS {
            // Whoever lets go of one may be given the next.
            for round in 0.. {
                let claim = self.state().claims_of(&agent_name(agent)).next().cloned();
                let Some(claim) = claim else { break };
                Broken::unless(round < 100, || format!("{agent} cannot let go of {claim}"))?;
                // By its own id, because its bead may have vanished.
                let (agent, bead) = (agent.to_owned(), claim.to_string());
                let how = ClaimEnd::Released { note: None };
                self.deep_ask(&agent.clone(), &Command::AgentEnds { agent, bead, token: None, how })?;
                self.nothing_waits_for_agents()?;
            }
            self.deep_ask(agent, &Command::AgentRetire { agent: agent.to_owned() })?;
        }
        Ok(())
    }

    fn nothing_waits_for_agents(&mut self) -> Result<(), Halt> {
        let given = self.state().open_contexts().filter(|context| context.assign.is_some());
        let given: Vec<String> = given.map(|context| context.bead().to_string()).collect();
        for bead in given {
            self.deep_ask("op", &Command::Clear { bead: Some(bead) })?;
        }
        Ok(())
    }
}
