//! The simulated operator: a small town, and people who do all they may with it.

use yard_engine::bead::{BeadChange, BeadStatus, DepKind, Dependency};
use yard_engine::command::{AddItem, NewBead, NewConvoy, SlingRequest, WorkerSays};
use yard_engine::money::Usd;
use yard_engine::rig::{Rig, RigSwitch};
use yard_engine::settings::{AccountSettings, CostSettings, Fairness, PreemptionSettings, RetryPolicy};
use yard_engine::{AccountName, BeadId, Command, Millis, RigName, Standing};

use super::Broken;
use super::daemon::Halt;
use super::history::World;
use super::workers::Program;

const KINDS: [DepKind; 5] = [
    DepKind::Blocks,
    DepKind::WaitsFor,
    DepKind::ConditionalBlocks,
    DepKind::MergeBlocks,
    DepKind::ParentChild,
];

fn rig_name(text: &str) -> RigName {
    RigName::parse(text).expect("a valid name")
}

fn bead_id(text: &str) -> BeadId {
    BeadId::parse(text).expect("a valid id")
}

fn dollars(n: u64) -> Usd {
    Usd::from_dollars(n as f64).expect("an amount")
}

impl World {
    /// Rigs, settings and a handful of beads with edges between them.
    pub(super) fn set_up(&mut self) -> Result<(), Halt> {
        self.add_rigs()?;
        self.reconfigure()?;
        let count = self.dice.between(2, 7);
        for n in 0..count {
            let id = format!("{}-{n}", if self.dice.one_in(3) { "b" } else { "a" });
            let dependencies = self.some_edges();
            self.add_bead(NewBead {
                id: Some(id),
                title: "work".to_owned(),
                dependencies,
                ..NewBead::default()
            })?;
        }
        if self.dice.one_in(4) {
            self.import_trouble()?;
        }
        if self.dice.one_in(2) {
            self.add_workspace()?;
        }
        if self.brisk {
            self.much_short_work()?;
        }
        self.sling()
    }

    pub(super) fn add_rigs(&mut self) -> Result<(), Halt> {
        for (name, prefix) in [("ox", "a"), ("mule", "b")] {
            let max_polecats = self.dice.one_in(3).then_some(1);
            let (prefix, path) = (prefix.to_owned(), ".".to_owned());
            let (parked, docked, executor, formula) = (false, false, None, None);
            let name = rig_name(name);
            let rig =
                Rig { name, prefix, path, parked, docked, max_polecats, executor, formula, source: None };
            self.ask(&Command::RigAdd { rig })?;
        }
        Ok(())
    }

    fn some_edges(&mut self) -> Vec<Dependency> {
        let mut edges = Vec::new();
        while self.dice.one_in(2) && edges.len() < 3 {
            if let (Some(on), Some(kind)) = (self.dice.pick(&self.beads).cloned(), self.dice.pick(&KINDS)) {
                edges.push(Dependency::new(on, kind.clone()));
            } else {
                break;
            }
        }
        edges
    }

    pub(super) fn add_bead(&mut self, mut bead: NewBead) -> Result<(), Halt> {
        if self.is_deep() && !self.dice.one_in(4) {
            // A real pool wants to know what to run; the others go by a formula.
            bead.argv = Some(vec!["work".to_owned()]);
        }
        let id = bead.id.as_deref().map(bead_id);
        if self.ask(&Command::BeadAdd { bead: Box::new(bead) })?
            && let Some(id) = id
        {
            self.gains(id);
        }
        Ok(())
    }

    /// A bead exists from now on, and its programs behave somehow.
    pub(super) fn gains(&mut self, id: BeadId) {
        if self.beads.contains(&id) {
            return;
        }
        let chance = |world: &mut Self, n: usize| {
            if world.dice.one_in(n) { world.dice.between(1, 3) as u32 } else { 0 }
        };
        let program = Program {
            failures: chance(self, 3),
            start_failures: chance(self, 4),
            hopeless: self.dice.one_in(12),
            stubborn: self.dice.one_in(4),
            forgets: chance(self, 4),
            closes_late: self.dice.one_in(3),
            deaf: self.dice.one_in(6),
            takes: self.is_deep().then(|| self.how_long_it_runs()),
        };
        self.workers.programs.insert(id.clone(), program);
        self.beads.push(id);
    }

    /// Takes note of commands that were added as beads, also when nobody was told.
    pub(super) fn gains_what_is_new(&mut self) {
        let runs = |id: &BeadId| self.state().rig_of(id).is_some();
        let made = self.state().beads().filter(|entry| entry.bead.argv.is_some() && runs(&entry.bead.id));
        for id in made.map(|entry| entry.bead.id.clone()).collect::<Vec<_>>() {
            self.gains(id);
        }
    }

    /// What only an import brings: cycles, and dependencies nobody has.
    fn import_trouble(&mut self) -> Result<(), Halt> {
        let edge = |on: &str| vec![Dependency::new(bead_id(on), DepKind::Blocks)];
        let bead = |id: &str, on: &str| NewBead {
            id: Some(id.to_owned()),
            title: "imported".to_owned(),
            dependencies: edge(on),
            ..NewBead::default()
        };
        let beads = match self.dice.below(3) {
            0 => vec![bead("a-x", "a-y"), bead("a-y", "a-x")],
            1 => vec![bead("a-x", "a-nobody")],
            _ => vec![NewBead { status: BeadStatus::Closed, ..bead("a-x", "a-0") }],
        };
        let ids: Vec<BeadId> = beads.iter().filter_map(|b| b.id.as_deref().map(bead_id)).collect();
        if self.ask(&Command::BeadImport { beads })? {
            for id in ids {
                self.gains(id);
            }
        }
        Ok(())
    }

    /// The config file changes.
    pub(super) fn reconfigure(&mut self) -> Result<(), Halt> {
        let policy = |max_attempts| RetryPolicy { backoff: vec![Millis(500), Millis(3_000)], max_attempts };
        self.wanted.max_polecats = [-1, 1, 1, 2, 3][self.dice.below(5)];
        self.wanted.batch_size = [0, 0, 0, 1, 2][self.dice.below(5)];
        self.wanted.spawn_delay = Millis([0, 0, 0, 700][self.dice.below(4)]);
        self.wanted.max_dispatch_failures = self.dice.between(1, 3) as u32;
        self.wanted.fairness =
            [Fairness::Town, Fairness::Rig, Fairness::Convoy, Fairness::Agent][self.dice.below(4)];
        self.wanted.aging = self.dice.one_in(3).then_some(Millis(1_000));
        self.wanted.retry_crash = policy(self.dice.between(2, 4) as u32);
        self.wanted.retry_unavailable = policy(self.dice.between(2, 4) as u32);
        self.wanted.stale_after = Millis(self.dice.between(1_000, 20_000));
        self.wanted.close_grace = Millis(self.dice.between(500, 5_000));
        let main = AccountName::parse("main").expect("a valid name");
        let cooldown = self.dice.one_in(3).then_some(Millis(2_000));
        self.wanted.accounts.insert(main, AccountSettings { max_polecats: Some(1), cooldown });
        self.limit();
        if self.is_deep() {
            self.reconfigure_the_loop();
        }
        self.configure()
    }

    /// Limits that are small enough to be reached.
    fn limit(&mut self) {
        let min_run = Millis([0, 500, 3_000][self.dice.below(3)]);
        self.wanted.preemption = PreemptionSettings { threshold: 20, timeout: Millis(1_000), min_run };
        self.wanted.hard_cap = if self.dice.one_in(4) { Millis(10_000) } else { Millis::minutes(480) };
        self.wanted.stuck_after = Millis(self.dice.between(1_000, 60_000));
        let mut budget = |most: u64| {
            let limited = self.dice.one_in(5);
            limited.then(|| dollars(self.dice.between(1, most)))
        };
        self.wanted.cost = CostSettings {
            per_bead: budget(4),
            per_convoy: budget(6),
            daily: budget(9),
            monthly: budget(12),
        };
    }

    /// A worker, be it of a dispatch that is long over, says something.
    fn worker_speaks(&mut self) -> Result<(), Halt> {
        let bead = self.some_bead();
        let dispatches: Vec<String> = self.state().dispatches_of(&bead).map(|d| d.id.to_string()).collect();
        let Some(dispatch) = self.dice.pick(&dispatches).cloned() else { return self.idle() };
        let says = match self.dice.below(6) {
            0 => WorkerSays::Checkpoint { note: "half".to_owned(), session: None },
            1..4 => WorkerSays::Cost { usd: dollars(self.dice.between(0, 3)), total: false, tokens: None },
            4 if self.dice.one_in(2) => WorkerSays::Done { reason: None },
            4 => WorkerSays::Fail { message: "no".to_owned(), unavailable: self.dice.one_in(2) },
            _ => WorkerSays::Progress { text: "at it".to_owned() },
        };
        self.ask(&Command::Worker { dispatch, says }).map(|_| ())
    }

    pub(super) fn some_bead(&mut self) -> BeadId {
        self.dice.pick(&self.beads).cloned().unwrap_or_else(|| bead_id("a-0"))
    }

    fn sling(&mut self) -> Result<(), Halt> {
        let count = self.dice.between(1, 3);
        let ids: Vec<String> = (0..count).map(|_| self.some_bead().to_string()).collect();
        let soon = self.dice.between(0, 5_000);
        let soon = self.now.after(Millis(soon).duration());
        let rig = self.dice.one_in(6).then(|| rig_name("mule"));
        let mut request = SlingRequest { ids, rig, ..SlingRequest::default() };
        match self.dice.below(8) {
            0 | 7 => request.priority = Some(self.dice.between(1, 100) as u8),
            1 => request.not_before = Some(soon),
            2 => request.deadline = Some(soon),
            3 => request.account = AccountName::parse("main").ok(),
            4 => request.force = true,
            5 => request.no_convoy = true,
            6 => request.agent = Some("bob".to_owned()),
            _ => {}
        }
        self.ask(&Command::Sling(Box::new(request))).map(|_| ())
    }

    /// Somebody asks for something.
    pub(super) fn operator_acts(&mut self) -> Result<(), Halt> {
        let id = self.some_bead().to_string();
        let command = match self.dice.below(40) {
            0..6 => return self.sling(),
            6 => Command::Run { batch: Some(self.dice.below(3) as u32), dry_run: self.dice.one_in(4) },
            7 => {
                let span = self.dice.between(1, 5_000);
                let until = self.dice.one_in(2).then(|| self.now.after(Millis(span).duration()));
                Command::Pause { reason: None, until }
            }
            8 | 9 => Command::Resume,
            10 => Command::Clear { bead: self.dice.one_in(3).then_some(id) },
            11 | 12 => Command::Retry { bead: id },
            13 => Command::Hold { id, held: self.dice.one_in(2) },
            14 => Command::Priority { id, priority: self.dice.between(1, 100) as u8 },
            15 | 16 => Command::Cancel { id, at_once: self.dice.one_in(3) },
            17 => Command::Undo,
            18 if self.dice.one_in(2) => Command::Undo,
            18 => Command::Redo,
            19 => Command::BeadClose { ids: vec![id], reason: None },
            20 => Command::BeadReopen { id },
            21 => return self.person_takes(id),
            22 => {
                let on = self.some_bead().to_string();
                let kind = KINDS[self.dice.below(KINDS.len())].clone();
                Command::DependencyAdd { id, on, kind }
            }
            23 => Command::DependencyRemove { id, on: self.some_bead().to_string() },
            24 => return self.more_work(),
            25 => {
                let beads = vec![id, self.some_bead().to_string()];
                let title = "convoy".to_owned();
                Command::ConvoyCreate(Box::new(NewConvoy {
                    title: Some(title),
                    beads,
                    owned: self.dice.one_in(4),
                    ..NewConvoy::default()
                }))
            }
            26..31 => return self.convoy_work(),
            31 | 32 => Command::Recover { dry_run: self.dice.one_in(4) },
            33..36 => return self.worker_speaks(),
            36..39 => {
                let candidate = self.dice.one_in(2).then(|| self.some_bead().to_string());
                Command::Preempt { id, candidate }
            }
            _ => {
                let switch = [RigSwitch::Park, RigSwitch::Unpark, RigSwitch::Dock, RigSwitch::Undock];
                let name = rig_name(if self.dice.one_in(2) { "ox" } else { "mule" });
                Command::RigSwitch { name, switch: switch[self.dice.below(4)] }
            }
        };
        self.ask(&command).map(|_| ())
    }

    fn person_takes(&mut self, id: String) -> Result<(), Halt> {
        let (status, assignee) = match self.dice.below(4) {
            0 => (BeadStatus::InProgress, "bob"),
            1 => (BeadStatus::Deferred, ""),
            _ => (BeadStatus::Open, ""),
        };
        let change =
            BeadChange { status: Some(status), assignee: Some(assignee.to_owned()), ..BeadChange::default() };
        self.ask(&Command::BeadUpdate { id, change }).map(|_| ())
    }

    fn more_work(&mut self) -> Result<(), Halt> {
        if self.beads.len() > 12 {
            return self.idle();
        }
        let after = if self.dice.one_in(2) { vec![self.some_bead().to_string()] } else { Vec::new() };
        let argv = vec!["work".to_owned()];
        let items = vec![AddItem { argv, after, ..AddItem::default() }];
        self.ask(&Command::Add { items })?;
        self.gains_what_is_new();
        Ok(())
    }

    /// With the faults over, takes back what only a person can, so that all work can come to its end.
    pub(super) fn put_in_order(&mut self) -> Result<(), Halt> {
        self.observe_host(false)?;
        if self.is_deep() {
            self.reconfigure_plainly()?;
            self.agents_go_home()?;
            // Somebody may have removed one.
            self.add_rigs()?;
        }
        for rig in self.state().rigs().map(|rig| rig.name.clone()).collect::<Vec<_>>() {
            for switch in [RigSwitch::Unpark, RigSwitch::Undock] {
                self.ask(&Command::RigSwitch { name: rig.clone(), switch })?;
            }
        }
        for id in self.beads.clone() {
            let Some(entry) = self.state().bead(&id).filter(|e| !e.bead.is_closed()) else { continue };
            // Edges into nowhere and around in a circle are cut.
            let known = |on: &BeadId| self.beads.contains(on) && id.as_str() != "a-x";
            let edges = entry.bead.dependencies.iter().filter(|d| !known(&d.on));
            for edge in edges.cloned().collect::<Vec<_>>() {
                let (id, on) = (id.to_string(), edge.on.to_string());
                self.ask(&Command::DependencyRemove { id, on })?;
            }
            let change = BeadChange {
                status: Some(BeadStatus::Open),
                assignee: Some(String::new()),
                ..BeadChange::default()
            };
            self.ask(&Command::BeadUpdate { id: id.to_string(), change })?;
            self.ask(&Command::Hold { id: id.to_string(), held: false })?;
        }
        self.put_tracker_in_order();
        self.wanted.batch_size = 0;
        (self.wanted.cost, self.wanted.hard_cap) = (CostSettings::default(), Millis::minutes(480));
        self.configure()?;
        self.ask(&Command::Resume).map(|_| ())
    }

    /// Everybody asks once more for what is still open, and it runs; what hopeless work leaves behind is cleared.
    pub(super) fn clear_up(&mut self) -> Result<(), Halt> {
        // Rounds, because retries may be used up, breakers open, blockers still be open.
        for round in 0..40 {
            for id in self.beads.clone() {
                if round == 0 || self.check_came_to_its_end(&id).is_err() {
                    self.ask_again(&id)?;
                }
            }
            self.come_to_rest()?;
            if self.beads.iter().all(|id| self.check_came_to_its_end(id).is_ok()) {
                break;
            }
        }
        for id in &self.beads {
            self.check_came_to_its_end(id)?;
        }
        self.ask(&Command::Clear { bead: None })?;
        Ok(())
    }

    fn ask_again(&mut self, id: &BeadId) -> Result<(), Halt> {
        let scheduled = self.state().bead(id).is_some_and(|e| e.work.context.is_some());
        let text = id.to_string();
        let command = match self.state().standing(id) {
            Some(Standing::Open | Standing::Staged | Standing::Done) => {
                let request = SlingRequest { ids: vec![text], no_convoy: true, ..SlingRequest::default() };
                Command::Sling(Box::new(request))
            }
            Some(Standing::Failed | Standing::Cancelled | Standing::CircuitBroken) => {
                Command::Retry { bead: text }
            }
            Some(Standing::Blocked) if !scheduled => Command::Retry { bead: text },
            Some(
                Standing::Blocked
                | Standing::Queued
                | Standing::Assigned
                | Standing::Running
                | Standing::Closed,
            )
            | None => {
                return Ok(());
            }
        };
        self.ask(&command).map(|_| ())
    }

    /// A bead whose programs succeed is closed, unless it waits for one that is hopeless.
    fn check_came_to_its_end(&self, id: &BeadId) -> Result<(), Broken> {
        let closed =
            self.state().bead(id).is_some_and(|e| e.bead.is_closed()) || self.oracle.forgotten.contains(id);
        let hopeless = self.workers.programs.get(id).is_some_and(|p| p.hopeless);
        let stuck = self.state().bead(id).is_some_and(|e| e.work.context.is_some())
            || self.state().reasons(id).iter().any(|r| !r.ids.is_empty());
        let progress = self.state().can_progress(id, true);
        Broken::unless(closed || hopeless || (stuck && !progress), || {
            format!("{id} never ended: {:?}, {:?}", self.state().standing(id), self.state().reasons(id))
        })
    }
}
