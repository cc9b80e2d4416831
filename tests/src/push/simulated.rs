//! Agents on the real engine, with a clock that is turned forward.

use std::collections::BTreeSet;
use std::time::Duration;

use yard_engine::agent::Registration;
use yard_engine::command::{AssignTo, ClaimEnd, NewBead, SlingRequest};
use yard_engine::plan::Scope;
use yard_engine::rig::Rig;
use yard_engine::{
    AgentName, Answer, Asker, BeadId, Command, Kitchen, Refusal, RigName, State, Timestamp, Tx,
};

use super::{Figures, Job, Span, Way};

/// How long an agent takes from seeing work to claiming it.
const THINKS: u64 = 2_000;
/// How often an agent says that it is alive.
const BEATS: u64 = 120_000;

/// What an agent does next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Claims(usize),
    Ends(usize),
    Beats,
    Looks,
}

struct World<'a> {
    state: State,
    jobs: &'a [Job],
    way: Way,
    now: u64,
    steps: BTreeSet<(u64, u64, usize, Step)>,
    count: u64,
    agents: Vec<AgentName>,
    /// What each agent has, and since when it has nothing.
    busy: Vec<Option<usize>>,
    free_since: Vec<u64>,
    idle: Vec<Vec<Span>>,
    /// The order that each is about to claim.
    minding: Vec<Option<usize>>,
    done_at: Vec<Option<u64>>,
    claimed_by: Vec<Option<usize>>,
    waits: Vec<Span>,
    refused: usize,
    doubled: usize,
}

/// Has the backlog done by so many agents.
pub fn simulate(jobs: &[Job], agents: usize, way: Way) -> Figures {
    let names = (0..agents).map(|number| AgentName::parse(&format!("agent-{number:02}")).expect("a name"));
    let mut world = World {
        state: State::default(),
        jobs,
        way,
        now: 0,
        steps: BTreeSet::new(),
        count: 0,
        agents: names.collect(),
        busy: vec![None; agents],
        free_since: vec![0; agents],
        idle: vec![Vec::new(); agents],
        minding: vec![None; agents],
        done_at: vec![None; jobs.len()],
        claimed_by: vec![None; jobs.len()],
        waits: Vec::new(),
        refused: 0,
        doubled: 0,
    };
    world.begin();
    while let Some((at, _, agent, step)) = world.steps.pop_first() {
        world.now = at;
        world.happens(agent, step);
    }
    let finish = world.done_at.iter().copied().max().flatten().unwrap_or(0);
    for agent in 0..agents {
        if world.busy[agent].is_none() {
            let last = (Duration::from_millis(world.free_since[agent]), Duration::from_millis(finish));
            world.idle[agent].push(last);
        }
    }
    Figures {
        finish: Duration::from_millis(finish),
        idle: world.idle,
        waits: world.waits,
        refused: world.refused,
        doubled: world.doubled,
    }
}

impl World<'_> {
    fn time(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + self.now as i64)
    }

    fn ask(&mut self, command: &Command) -> Result<Answer, Refusal> {
        let (now, kitchen) = (self.time(), Kitchen::default());
        Tx::new(&mut self.state, now).decide(&Asker { actor: "test", kitchen: &kitchen }, command)
    }

    fn does(&mut self, command: &Command) {
        self.ask(command).expect("the command is accepted");
    }

    fn later(&mut self, after: u64, agent: usize, step: Step) {
        self.count += 1;
        self.steps.insert((self.now + after, self.count, agent, step));
    }

    fn begin(&mut self) {
        let rig = Rig {
            name: RigName::parse("yard").expect("a name"),
            prefix: "y".to_owned(),
            path: "/yard".to_owned(),
            parked: false,
            docked: false,
            max_polecats: None,
            executor: None,
            formula: None,
            source: None,
        };
        self.does(&Command::RigAdd { rig });
        for name in self.agents.clone() {
            let program = "simulated".to_owned();
            let agent =
                Registration { name, program, model: None, skills: None, auto_claim: None, process: None };
            self.does(&Command::AgentRegister(Box::new(agent)));
        }
        let jobs = self.jobs;
        for job in jobs {
            let needs = job.needs.iter().map(|need| {
                let on = BeadId::parse(&jobs[*need].id).expect("an id");
                yard_engine::bead::Dependency::new(on, yard_engine::bead::DepKind::Blocks)
            });
            let bead = NewBead {
                id: Some(job.id.clone()),
                title: job.id.clone(),
                priority: Some(job.priority),
                dependencies: needs.collect(),
                ..NewBead::default()
            };
            self.does(&Command::BeadAdd { bead: Box::new(bead) });
        }
        for agent in 0..self.agents.len() {
            self.later(BEATS, agent, Step::Beats);
        }
        if self.way == Way::Push {
            let ids = jobs.iter().map(|job| job.id.clone()).collect();
            let request = SlingRequest {
                ids,
                assign: Some(AssignTo::Anyone),
                no_convoy: true,
                ..SlingRequest::default()
            };
            self.does(&Command::Sling(Box::new(request)));
            self.pass();
        } else {
            for agent in 0..self.agents.len() {
                // They did not all begin at the same moment.
                let phase = agent as u64 * 3_700;
                self.later(phase, agent, Step::Looks);
            }
        }
    }

    /// What the daemon does after every change: orders go out, and those who get one think about it.
    fn pass(&mut self) {
        let now = self.time();
        Tx::new(&mut self.state, now).pass(Scope::Everything, None);
        for agent in 0..self.agents.len() {
            let order = self.state.order_of(&self.agents[agent]).map(|(bead, _)| bead.to_string());
            let job = order.and_then(|bead| self.jobs.iter().position(|job| job.id == bead));
            if job.is_some() && self.minding[agent] != job && self.busy[agent].is_none() {
                self.minding[agent] = job;
                self.later(THINKS, agent, Step::Claims(job.unwrap_or_default()));
            }
        }
    }

    fn happens(&mut self, agent: usize, step: Step) {
        match step {
            Step::Looks => match self.first_ready().filter(|_| self.busy[agent].is_none()) {
                Some(job) => self.later(THINKS, agent, Step::Claims(job)),
                None => self.look_again(agent),
            },
            Step::Claims(job) => self.claims(agent, job),
            Step::Beats => {
                let name = self.agents[agent].to_string();
                self.does(&Command::AgentHeartbeat { agent: name });
                if self.done_at.iter().any(Option::is_none) {
                    self.later(BEATS, agent, Step::Beats);
                }
            }
            Step::Ends(job) => self.ends(agent, job),
        }
    }

    fn look_again(&mut self, agent: usize) {
        let Some(every) = self.way.interval() else { return };
        if self.done_at.iter().any(Option::is_none) {
            self.later(every.as_millis() as u64, agent, Step::Looks);
        }
    }

    /// What somebody who looks finds first: the most urgent, then the oldest.
    fn first_ready(&self) -> Option<usize> {
        let ready = |job: &usize| {
            let id = BeadId::parse(&self.jobs[*job].id).expect("an id");
            self.done_at[*job].is_none() && self.state.reasons(&id).is_empty()
        };
        (0..self.jobs.len()).filter(ready).min_by_key(|job| (self.jobs[*job].priority, *job))
    }

    fn claims(&mut self, agent: usize, job: usize) {
        self.minding[agent] = None;
        let (name, bead) = (self.agents[agent].to_string(), self.jobs[job].id.clone());
        if self.ask(&Command::AgentClaim { agent: name, bead }).is_err() {
            self.refused += 1;
            if self.way != Way::Push {
                // It looks again at once, as whoever was told so would.
                self.later(0, agent, Step::Looks);
            }
            return;
        }
        self.doubled += usize::from(self.claimed_by[job].is_some());
        self.claimed_by[job] = Some(agent);
        let ready_at = self.jobs[job].needs.iter().filter_map(|need| self.done_at[*need]).max().unwrap_or(0);
        let span = |from| (Duration::from_millis(from), Duration::from_millis(self.now));
        let (waited, was_idle) = (span(ready_at), span(self.free_since[agent]));
        self.waits.push(waited);
        self.idle[agent].push(was_idle);
        self.busy[agent] = Some(job);
        let takes = self.jobs[job].takes.as_millis() as u64;
        self.later(takes, agent, Step::Ends(job));
    }

    fn ends(&mut self, agent: usize, job: usize) {
        let (name, bead) = (self.agents[agent].to_string(), self.jobs[job].id.clone());
        let how = ClaimEnd::Done { reason: None };
        self.does(&Command::AgentEnds { agent: name, bead, token: None, how });
        self.done_at[job] = Some(self.now);
        (self.busy[agent], self.free_since[agent]) = (None, self.now);
        match self.way {
            Way::Push => self.pass(),
            Way::PollWhenDone(_) => self.later(0, agent, Step::Looks),
            Way::Poll(every) => {
                // The next of its looks, which come by the clock.
                let every = every.as_millis() as u64;
                self.later(every - (self.now + agent as u64 * 3_700) % every, agent, Step::Looks);
            }
        }
    }
}
