//! Races by name, each with everything that races there at once, in an order that the seed throws. The three of seed 2
//! §8: close events, the safety scan, `scheduler recover`, `scheduler run`, slings (also by force), retries, dying workers
//! and restarts; no bead may ever have two live dispatches or two open contexts. The three of seed 3: a worker's own end
//! against a cancel or a preemption, and a retry against a cancel; each dispatch has exactly one end, true to its claim and
//! followed by what the routing table says.

use yard_engine::bead::{BeadChange, BeadStatus, DepKind, Dependency};
use yard_engine::command::{NewBead, SlingRequest};
use yard_engine::{BeadId, Command, Millis};

use super::Broken;
use super::daemon::Halt;
use super::history::{MOST_STEPS, World};

/// A race by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// Two feeders find the same convoy with work to do.
    DualFeed,
    /// A dead worker's bead is released, found ready and slung anew by several at once.
    RecoveredBead,
    /// A bead waits in the queue while every path looks for beads without a context.
    DuplicateContexts,
    /// A worker comes to its end while somebody calls it off.
    CancelAgainstEnd,
    /// A worker comes to its end while it is asked to give way, or ended for more urgent work.
    PreemptAgainstEnd,
    /// A bead is called off and asked for again, again and again.
    RetryAgainstCancel,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::DualFeed,
        Self::RecoveredBead,
        Self::DuplicateContexts,
        Self::CancelAgainstEnd,
        Self::PreemptAgainstEnd,
        Self::RetryAgainstCancel,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::DualFeed => "dual-feed",
            Self::RecoveredBead => "recovered-bead",
            Self::DuplicateContexts => "duplicate-contexts",
            Self::CancelAgainstEnd => "cancel-against-end",
            Self::PreemptAgainstEnd => "preempt-against-end",
            Self::RetryAgainstCancel => "retry-against-cancel",
        }
    }

    /// How many workers may run: in the last race the queue must stay full.
    fn slots(self, world: &mut World) -> i64 {
        match self {
            Self::DualFeed => [-1, 2, 3][world.dice.below(3)],
            Self::RecoveredBead => [-1, 1, 4][world.dice.below(3)],
            Self::DuplicateContexts | Self::PreemptAgainstEnd => 1,
            Self::CancelAgainstEnd | Self::RetryAgainstCancel => [1, 2, -1][world.dice.below(3)],
        }
    }
}

impl std::str::FromStr for Scenario {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scenario| scenario.name() == text);
        found.ok_or_else(|| {
            format!("no scenario {text:?}: use one of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

impl World {
    /// A convoy is launched, then everybody is at it at once.
    pub(super) fn race(&mut self, scenario: Scenario) -> Result<(), Broken> {
        self.surviving(|world| world.line_up(scenario))?;
        self.faults = true;
        for step in 0..self.dice.between(15, 40) {
            self.step(step, |world| world.somebody_races(scenario))?;
        }
        self.dice = self.dice_of(MOST_STEPS);
        Ok(())
    }

    /// One bead that two others wait for, and a workspace's bead that waits for it too; all in one launched convoy.
    fn line_up(&mut self, scenario: Scenario) -> Result<(), Halt> {
        self.add_rigs()?;
        self.add_workspace()?;
        self.wanted.max_polecats = scenario.slots(self);
        (self.wanted.stale_after, self.wanted.close_grace) = (Millis(2_000), Millis(1_000));
        self.wanted.retry_crash.backoff = vec![Millis(500)];
        self.wanted.preemption.min_run = Millis([0, 500][self.dice.below(2)]);
        self.wanted.preemption.timeout = Millis(500);
        self.configure()?;
        let root = Dependency::new(BeadId::parse("a-0").expect("a valid id"), DepKind::Blocks);
        for (id, needs) in [("a-0", vec![]), ("a-1", vec![root.clone()]), ("b-2", vec![root.clone()])] {
            let (id, title) = (Some(id.to_owned()), "work".to_owned());
            self.add_bead(NewBead { id, title, dependencies: needs, ..NewBead::default() })?;
        }
        self.tracker_has(7, vec![root]);
        self.source_looks();
        self.a_reading_arrives()?;
        let targets = self.beads.iter().map(ToString::to_string).collect();
        self.ask(&Command::ConvoyLaunch { targets, force: true }).map(|_| ())
    }

    fn somebody_races(&mut self, scenario: Scenario) -> Result<(), Halt> {
        let bead = self.some_bead().to_string();
        let command = match self.dice.below(28) {
            0..6 => return Ok(self.shims_go_on(1)?),
            6..9 => return self.a_report_arrives(),
            9 => {
                self.tracker_moves();
                return Ok(());
            }
            10 => {
                self.source_looks();
                return Ok(());
            }
            11 | 12 => return self.a_reading_arrives(),
            13 | 14 => return self.scan(),
            15 => return self.daemon_looks_around(),
            16 => return self.time_passes(),
            17 => return Err(Halt::Crash),
            18 | 19 => Command::Recover { dry_run: false },
            20 => Command::Run { batch: None, dry_run: false },
            21 => Command::Sling(Box::new(SlingRequest { ids: vec![bead], ..SlingRequest::default() })),
            22 => {
                let request = SlingRequest { ids: vec![bead], force: true, ..SlingRequest::default() };
                Command::Sling(Box::new(request))
            }
            23 => Command::Retry { bead },
            _ => return self.pushes_the_race(scenario, bead),
        };
        self.ask(&command).map(|_| ())
    }

    fn a_running_bead(&mut self) -> Option<String> {
        let running = self.workers.running();
        self.dice.pick(&running).map(|id| id.bead().to_string())
    }

    /// What makes this race more likely.
    fn pushes_the_race(&mut self, scenario: Scenario, bead: String) -> Result<(), Halt> {
        match scenario {
            Scenario::DualFeed => {
                let command = match self.dice.below(3) {
                    0 => Command::BeadClose { ids: vec![bead], reason: None },
                    1 => Command::BeadReopen { id: bead },
                    _ => Command::ConvoyLaunch { targets: vec![bead], force: true },
                };
                self.ask(&command).map(|_| ())
            }
            Scenario::RecoveredBead => {
                // Its worker claims it and dies; nobody tells the daemon, and time goes by.
                let who = if self.dice.one_in(3) { "bob".to_owned() } else { format!("ym/{bead}") };
                let change = BeadChange {
                    status: Some(BeadStatus::InProgress),
                    assignee: Some(who),
                    ..BeadChange::default()
                };
                self.ask(&Command::BeadUpdate { id: bead, change })?;
                if let Some(id) = self.workers.running().first().cloned().filter(|_| self.dice.one_in(2)) {
                    self.shim_is_killed(&id);
                }
                self.now = self.now.after(self.wanted.stale_after.duration());
                self.idle()
            }
            Scenario::DuplicateContexts => {
                let command = match self.dice.below(4) {
                    0 => Command::Clear { bead: Some(bead) },
                    1 => Command::Undo,
                    2 => Command::BeadClose { ids: vec!["a-0".to_owned()], reason: None },
                    _ => Command::Cancel { id: bead, at_once: false },
                };
                self.ask(&command).map(|_| ())
            }
            Scenario::CancelAgainstEnd => {
                let bead = self.a_running_bead().unwrap_or(bead);
                if self.dice.one_in(2) {
                    self.shims_go_on(1)?;
                }
                let at_once = self.dice.one_in(3);
                self.ask(&Command::Cancel { id: bead, at_once })?;
                if self.dice.one_in(2) { Ok(self.shims_go_on(1)?) } else { self.a_report_arrives() }
            }
            Scenario::PreemptAgainstEnd => {
                let victim = self.a_running_bead().unwrap_or_else(|| bead.clone());
                let urgent = SlingRequest { ids: vec![bead], priority: Some(99), ..SlingRequest::default() };
                self.ask(&Command::Sling(Box::new(urgent)))?;
                match self.dice.below(3) {
                    0 => drop(self.ask(&Command::Preempt { id: victim, candidate: None })?),
                    1 => self.shims_go_on(1)?,
                    _ => {}
                }
                self.now = self.now.after(self.wanted.preemption.timeout.duration());
                self.idle()?;
                if self.dice.one_in(2) { Ok(self.shims_go_on(1)?) } else { self.a_report_arrives() }
            }
            Scenario::RetryAgainstCancel => {
                for _ in 0..self.dice.between(1, 4) {
                    let id = bead.clone();
                    let command = match self.dice.below(3) {
                        0 => Command::Cancel { id, at_once: self.dice.one_in(3) },
                        1 => Command::Retry { bead: id },
                        _ => {
                            self.shims_go_on(1)?;
                            continue;
                        }
                    };
                    self.ask(&command)?;
                }
                self.a_report_arrives()
            }
        }
    }
}
