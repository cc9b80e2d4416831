//! One history: a town is set up, lives through faults, and then, with the faults over, everything comes to its end.

use yard_engine::dispatch::Dispatch;
use yard_engine::{BeadId, DispatchId, Millis, Settings, State, Timestamp};

use super::daemon::Halt;
use super::deep::Deep;
use super::dice::Dice;
use super::disk::Disk;
use super::oracle::Oracle;
use super::tracker::Tracker;
use super::workers::{Arrival, Report, Workers};
use super::{Broken, Coverage, Mutant, Scenario};

/// Everything there is, inside the daemon and around it.
pub(super) struct World {
    pub(super) dice: Dice,
    pub(super) mutant: Option<Mutant>,
    /// The wall clock.
    pub(super) now: Timestamp,
    pub(super) disk: Disk,
    pub(super) workers: Workers,
    pub(super) tracker: Tracker,
    pub(super) oracle: Oracle,
    /// What the config file says.
    pub(super) wanted: Settings,
    /// The daemon's memory: lost in a crash.
    pub(super) state: State,
    /// Whether things still go wrong.
    pub(super) faults: bool,
    pub(super) beads: Vec<BeadId>,
    pub(super) story: Option<Vec<String>>,
    /// The real loop and what it stands on, in a deep history.
    pub(super) deep: Option<Deep>,
    /// The real loop was told to go.
    pub(super) draining: bool,
    /// There is much work, nearly all of it short, so that the loop decides ahead who is next.
    pub(super) brisk: bool,
    play: Play,
    restarts: u64,
}

/// No history has as many steps.
pub(super) const MOST_STEPS: u64 = 63;

/// What a history amounted to, for the summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// Events that became durable.
    pub events: u64,
    /// Dispatches that were started.
    pub dispatches: u64,
    /// Crashes the daemon recovered from.
    pub restarts: u64,
    /// What a deep history came across.
    pub coverage: Coverage,
}

/// A history in which a promise was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed that tells it again.
    pub seed: u64,
    /// Which promise.
    pub broken: Broken,
    /// What happened, if it was told.
    pub story: Vec<String>,
}

/// Which history is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Play {
    /// Its dice.
    pub seed: u64,
    /// One of the named races, rather than anything that may happen.
    pub scenario: Option<Scenario>,
    /// A rule that is broken on purpose.
    pub mutant: Option<Mutant>,
    /// With the real loop on the real journal code.
    pub deep: bool,
    /// The steps that are taken, a bit each; the others are left out.
    pub steps: u64,
}

impl Play {
    /// The first of all, with nothing broken.
    pub const FIRST: Self = Self { seed: 0, scenario: None, mutant: None, deep: false, steps: u64::MAX };

    /// Plays it.
    pub fn play(self) -> Result<Told, Failure> {
        World::new(self, None).live(self.seed)
    }

    /// Plays it again, keeping the story.
    pub fn play_telling(self) -> Result<Told, Failure> {
        World::new(self, Some(Vec::new())).live(self.seed)
    }

    /// The story of it, however it ends.
    pub fn story(self) -> Vec<String> {
        let mut world = World::new(self, Some(Vec::new()));
        let outcome = world.go_through();
        let end =
            outcome.map_or_else(|broken| format!("broken: {}", broken.0), |()| "every promise kept".into());
        world.tell(|| end);
        world.story.take().unwrap_or_default()
    }
}

impl World {
    pub(super) fn new(play: Play, story: Option<Vec<String>>) -> Self {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let deep = play.deep.then(|| Deep::new(play.seed, now));
        Self {
            dice: Dice::new(play.seed),
            mutant: play.mutant,
            play,
            now,
            disk: Disk::default(),
            workers: Workers::default(),
            tracker: Tracker::default(),
            oracle: Oracle::watching(play.deep),
            wanted: Settings::default(),
            state: State::default(),
            faults: false,
            beads: Vec::new(),
            deep,
            draining: false,
            brisk: play.deep && play.seed % 4 == 1,
            story,
            restarts: 0,
        }
    }

    /// Adds a line to the story, if it is told.
    pub(super) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(line());
        }
    }

    /// The town as the daemon has it.
    pub(super) fn state(&self) -> &State {
        self.deep.as_ref().map_or(&self.state, Deep::state)
    }

    fn live(mut self, seed: u64) -> Result<Told, Failure> {
        match self.go_through() {
            Ok(()) => Ok(Told {
                events: self.oracle.durable.seq().0,
                coverage: self.deep.as_ref().map(Deep::coverage).unwrap_or_default(),
                dispatches: self.beads.iter().map(|b| self.state().dispatches_of(b).count() as u64).sum(),
                restarts: self.restarts,
            }),
            Err(broken) => Err(Failure { seed, broken, story: self.story.unwrap_or_default() }),
        }
    }

    fn go_through(&mut self) -> Result<(), Broken> {
        if self.is_deep() {
            self.surviving(Self::recover)?;
        }
        match self.play.scenario {
            None => {
                self.surviving(Self::set_up)?;
                self.faults = true;
                for step in 0..self.dice.between(10, 40) {
                    self.step(step, Self::something_happens)?;
                }
                self.dice = self.dice_of(MOST_STEPS);
            }
            Some(scenario) => self.race(scenario)?,
        }
        self.faults_are_over();
        self.tell(|| "the faults are over".to_owned());
        // A fault of before may still end the daemon in the middle of it.
        let mut in_order = false;
        while !in_order {
            self.surviving(|world| {
                world.put_in_order()?;
                in_order = true;
                Ok(())
            })?;
        }
        self.come_to_rest()?;
        self.surviving(Self::clear_up)?;
        self.come_to_rest()?;
        self.oracle.check_balance(&self.workers)?;
        self.check_tracker_is_known()?;
        self.oracle.check_recovered(self.state())?;
        if self.is_deep() {
            return self.surviving(Self::deep_recover);
        }
        let written = self.dice.one_in(4);
        self.oracle.check_recovered(&self.disk.restore(written)?)
    }

    /// Takes a step of the history, unless it is left out. Each has dice of its own, so that it stays what it is when
    /// others are left out.
    pub(super) fn step(
        &mut self,
        step: u64,
        what: impl FnOnce(&mut Self) -> Result<(), Halt>,
    ) -> Result<(), Broken> {
        if self.play.steps >> step & 1 == 0 {
            return Ok(());
        }
        self.dice = self.dice_of(step);
        self.tell(|| format!("-- step {step}"));
        self.surviving(what)
    }

    pub(super) fn dice_of(&self, step: u64) -> Dice {
        Dice::new(self.play.seed.wrapping_mul(MOST_STEPS + 1).wrapping_add(step + 1))
    }

    /// Does something; if the daemon crashes over it, starts it again until it stays up.
    pub(super) fn surviving(
        &mut self,
        what: impl FnOnce(&mut Self) -> Result<(), Halt>,
    ) -> Result<(), Broken> {
        let mut outcome = what(self);
        loop {
            match outcome {
                Ok(()) => return Ok(()),
                Err(Halt::Broken(broken)) => return Err(broken),
                Err(Halt::Crash) => {
                    self.restarts += 1;
                    self.while_the_daemon_is_down()?;
                    outcome = self.recover();
                }
            }
        }
    }

    /// Workers do not notice that the daemon is gone, but what they report may be lost.
    fn while_the_daemon_is_down(&mut self) -> Result<(), Broken> {
        if self.dice.one_in(2) {
            self.workers.reports.clear();
        }
        let time = self.dice.between(0, 3_000);
        self.now = self.now.after(Millis(time).duration());
        self.tracker.begin_again();
        if self.faults && self.dice.one_in(2) {
            self.tracker_moves();
        }
        let steps = self.dice.below(6);
        self.shims_go_on(steps)
    }

    fn something_happens(&mut self) -> Result<(), Halt> {
        match self.dice.below(100) {
            0..20 if self.brisk => self.burst()?,
            0..28 => self.shims_go_on(1)?,
            28..44 => self.a_report_arrives()?,
            44..62 if self.is_deep() && self.dice.one_in(3) => self.deep_operator()?,
            44..62 => self.operator_acts()?,
            62..67 => self.tracker_moves(),
            67..70 => self.source_looks(),
            70..74 => self.a_reading_arrives()?,
            74..83 => self.time_passes()?,
            83..88 => self.daemon_looks_around()?,
            88 | 89 => self.scan()?,
            90..92 if self.is_deep() && self.dice.one_in(2) => self.the_past_goes_by()?,
            90..92 => self.checkpoint()?,
            92 => {
                self.tell_alerts()?;
            }
            93..95 => {
                let full = self.dice.one_in(2);
                self.set_full(full);
            }
            95..97 => {
                let busy = self.dice.one_in(2);
                self.observe_host(busy)?;
            }
            97 => {
                self.tell(|| "crash while idle".to_owned());
                return Err(Halt::Crash);
            }
            98 if self.dice.one_in(2) => self.drain()?,
            _ => self.reconfigure()?,
        }
        Ok(())
    }

    /// Some shims arrive at their claims, go on, end, or are killed.
    pub(super) fn shims_go_on(&mut self, steps: usize) -> Result<(), Broken> {
        for _ in 0..steps {
            let running = self.workers.running();
            let waiting = self.workers.launched.len();
            if waiting > 0 && (running.is_empty() || self.dice.one_in(2)) {
                let nth = self.dice.below(waiting);
                self.shim_arrives(nth)?;
            } else if let Some(id) = self.dice.pick(&running).cloned() {
                match self.dice.below(8) {
                    0 if self.faults => self.shim_is_killed(&id),
                    1 => self.sends(Report::StepDone(id)),
                    2 if self.is_deep() => self.sends(Report::Metered(id)),
                    _ => self.payload_ends(&id)?,
                }
            }
        }
        Ok(())
    }

    pub(super) fn shim_arrives(&mut self, nth: usize) -> Result<(), Broken> {
        if self.faults && self.dice.one_in(16) {
            let id = self.workers.launched.swap_remove(nth);
            self.tell(|| format!("the shim of {id} dies on its way"));
            if self.is_deep() {
                self.shim_is_gone(&id);
                self.nobody_waits_behind(&id);
            }
            return Ok(());
        }
        let (id, arrival) = self.workers.arrive(nth, self.mutant);
        self.tell(|| format!("the shim of {id} arrives: {arrival:?}"));
        match arrival {
            Arrival::Refused => {
                // It says so to its pool, which looks at the claim.
                if self.is_deep() {
                    self.shim_is_gone(&id);
                    self.shim_goes_on_after(&id)?;
                }
            }
            Arrival::StartFailed => {
                self.sends(Report::StartFailed(id.clone()));
                if self.is_deep() {
                    self.shim_goes_on_after(&id)?;
                }
            }
            Arrival::Runs => {
                self.oracle.begins(&id, &self.workers)?;
                self.agent_claims(&id);
                if self.workers.claims.get(&id).is_some_and(|claim| claim.worktree.is_some()) {
                    self.sends(Report::Isolated(id.clone()));
                }
                self.sends(Report::Running(id));
            }
        }
        Ok(())
    }

    fn payload_ends(&mut self, id: &DispatchId) -> Result<(), Broken> {
        if self.is_deep() && self.workers.ignores_signals(id, self.uptime()) {
            return Ok(());
        }
        if let Some(exit) = self.workers.finish(id, &mut self.dice) {
            self.tell(|| format!("{id} ends: {:?} {:?}", exit.code, exit.signal));
            self.oracle.dies(id);
            if exit.code == Some(0) {
                self.agent_closes(id.bead());
            }
            self.sends(Report::Ended(id.clone(), exit));
            if self.is_deep() {
                self.shim_goes_on_after(id)?;
            }
        }
        Ok(())
    }

    pub(super) fn shim_is_killed(&mut self, id: &DispatchId) {
        self.tell(|| format!("the shim of {id} is killed"));
        self.workers.kill(id);
        self.oracle.dies(id);
        if self.is_deep() {
            self.shim_is_gone(id);
            self.nobody_waits_behind(id);
        }
    }

    /// Nothing outlives a power cut.
    pub(super) fn power_is_cut(&mut self) {
        for id in self.workers.power_is_cut() {
            self.oracle.dies(&id);
        }
    }

    /// A report sets out; it may get lost or come twice.
    pub(super) fn sends(&mut self, report: Report) {
        let lot = if self.faults { self.dice.below(8) } else { 7 };
        match lot {
            0 => {}
            1 => self.workers.reports.extend([report.clone(), report]),
            _ => self.workers.reports.push(report),
        }
    }

    /// Any report that is under way, so that they overtake each other.
    pub(super) fn a_report_arrives(&mut self) -> Result<(), Halt> {
        if self.workers.reports.is_empty() {
            return self.idle();
        }
        if self.is_deep() && self.dice.one_in(4) {
            self.all_reports_arrive();
            return self.idle();
        }
        let nth = self.dice.below(self.workers.reports.len());
        let report = self.workers.reports.swap_remove(nth);
        self.hear(report)
    }

    pub(super) fn time_passes(&mut self) -> Result<(), Halt> {
        let now = self.now.as_millis();
        let jump = match self.dice.below(12) {
            0 => -(self.dice.between(0, 3_600_000) as i64),
            1 => self.dice.between(0, 3_600_000) as i64,
            2..6 => self.dice.between(0, 20_000) as i64,
            _ => self.dice.between(0, 2_000) as i64,
        };
        let target = Timestamp::from_millis(now + jump);
        if self.is_deep() && jump.abs() > 100_000 && self.dice.one_in(2) {
            self.sets_the_clock(target);
        }
        self.now = target;
        self.tell(|| format!("the clock moves by {jump} ms"));
        self.idle()
    }

    /// The daemon notices what no report told it: dead shims, lost messages, starts that take too long.
    pub(super) fn daemon_looks_around(&mut self) -> Result<(), Halt> {
        let live: Vec<Dispatch> = self.state().live_dispatches().cloned().collect();
        let Some(dispatch) = self.dice.pick(&live).cloned() else { return self.idle() };
        let on_its_way = self.workers.launched.contains(&dispatch.id);
        if !on_its_way {
            self.settle(&dispatch.id)
        } else if dispatch.running_at.is_none() && self.dice.one_in(3) {
            self.time_out(&dispatch.id)
        } else {
            Ok(())
        }
    }

    /// Goes on without faults until nothing moves any more.
    pub(super) fn come_to_rest(&mut self) -> Result<(), Broken> {
        for _ in 0..2_000 {
            let arrivals = self.workers.launched.len();
            let running = self.workers.running();
            let mut moved = arrivals + running.len() > 0;
            for _ in 0..arrivals {
                self.shim_arrives(0)?;
            }
            for id in &running {
                self.payload_ends(id)?;
            }
            while let Some(report) = self.workers.reports.pop() {
                moved = true;
                self.surviving(|world| world.hear(report))?;
            }
            let mut elsewhere = false;
            self.surviving(|world| {
                elsewhere = world.tracker_comes_to_rest()? | world.tell_alerts()?;
                Ok(())
            })?;
            moved |= elsewhere;
            let stuck = |world: &Self, id: &DispatchId| {
                let has_worker = world.state().dispatch(id).is_none_or(Dispatch::has_worker);
                has_worker
                    && !world.workers.claims.get(id).is_some_and(|c| c.held)
                    && !world.workers.is_on_its_way(id)
            };
            let live: Vec<DispatchId> = self.state().live_dispatches().map(|d| d.id.clone()).collect();
            for id in live.iter().filter(|id| stuck(self, id)).cloned().collect::<Vec<_>>() {
                moved = true;
                self.surviving(|world| world.settle(&id))?;
            }
            let spawn_due =
                self.state().next_spawn_at().filter(|t| *t > self.now && self.state().ready_count() > 0);
            let due = [self.state().next_due(), spawn_due, self.state().next_preemption()];
            let due = due.into_iter().flatten().min();
            match due {
                Some(due) if !moved => self.now = self.now.max(due),
                None if !moved && live.is_empty() => {
                    let before = self.state().seq();
                    self.surviving(Self::idle)?;
                    if self.state().seq() > before {
                        continue;
                    }
                    if self.state().untold_alerts().next().is_none() {
                        return Ok(());
                    }
                    // The alert command failed, and is tried again in a while.
                    self.now = self.now.after(Millis(1_000).duration());
                    continue;
                }
                _ => {}
            }
            self.surviving(Self::idle)?;
        }
        Err(Broken("the town never came to rest".to_owned()))
    }
}
