//! The real loop in the world's hands: a round at a time, with everything checked after each.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use serde_json::Value;
use yard_client::{Ask, Reply, ServerRole};
use yard_daemon::rehearsal::{Rehearsal, Time as _};
use yard_daemon::{OpenError, StoreError, TownDir};
use yard_engine::{Command, DispatchId, Refusal, Seq, SourceReading, State, Timestamp};
use yard_journal::{Journal, JournalError, OtherDisk};

use super::around::{Around, Asked, Clocks, Desk, Shared};
use super::coverage::Coverage;
use super::disk::{Disk, Fault, disk};
use super::stage::{Outside, Pool};
use super::{config, past, town, vfs};
use crate::sim::Broken;
use crate::sim::daemon::Halt;
use crate::sim::history::World;
use crate::sim::workers::Report;

/// The loop and what it stands on.
pub(in crate::sim) struct Deep {
    town: TownDir,
    journal: &'static str,
    around: Shared,
    clocks: Rc<Clocks>,
    desk: Rc<RefCell<Desk>>,
    core: Option<Rehearsal>,
    /// What stands in the config file besides what quick histories configure.
    more_config: String,
    /// Kept while no loop runs.
    nothing: State,
    wal_limit: u32,
    seed: u64,
    /// What was durable when a sync was first seen to have failed.
    failed_sync: Option<Seq>,
}

/// What the disk says went wrong, and what that is counted as.
const ROUTES_OF_THE_DISK: [(&str, &str); 10] = [
    ("middle of a Write", "torn-write"),
    ("middle of a SyncFolder", "crash-in-folder-sync"),
    ("middle of a Sync", "crash-in-sync"),
    ("middle of a Truncate", "crash-in-truncate"),
    ("middle of a Delete", "crash-in-delete"),
    ("a Write fails", "failed-write"),
    ("a Sync fails", "failed-sync"),
    ("middle of a Rename", "crash-in-rename"),
    ("a SyncFolder fails", "failed-folder-sync"),
    ("past.new again", "rename-lost"),
];

/// A drain that takes more rounds than this spins.
const MOST_ROUNDS: u32 = 600;

/// Where the journal lies on the simulated disk.
const JOURNAL: &str = past::JOURNAL;

impl Deep {
    pub(in crate::sim) fn new(seed: u64, now: Timestamp) -> Self {
        vfs::register();
        let clocks = Rc::new(Clocks::new(now));
        let desk = Rc::<RefCell<Desk>>::default();
        let watched = Rc::clone(&desk);
        disk(|disk| {
            disk.format(seed);
            disk.watch = Some(Rc::new(move || watched.borrow_mut().answered_early()));
        });
        let around = Around::new(Rc::clone(&clocks), JOURNAL.to_owned());
        Self {
            town: town::fresh(),
            journal: JOURNAL,
            around: Rc::new(RefCell::new(around)),
            clocks,
            desk,
            core: None,
            more_config: String::new(),
            nothing: State::default(),
            wal_limit: 8 + (seed % 60) as u32,
            seed,
            failed_sync: None,
        }
    }

    pub(in crate::sim) fn state(&self) -> &State {
        self.core.as_ref().map_or(&self.nothing, Rehearsal::state)
    }

    pub(in crate::sim) fn coverage(&self) -> Coverage {
        self.around.borrow().coverage.clone()
    }

    fn is_read_only(&self) -> bool {
        self.core.as_ref().is_some_and(|core| core.read_only().is_some())
    }
}

impl Drop for Deep {
    fn drop(&mut self) {
        // Nothing more is written, so that a history ends as quickly as a crash.
        disk(Disk::kill);
        self.core = None;
        self.around.borrow_mut().forget_the_process();
        disk(|disk| disk.format(0));
    }
}

impl World {
    pub(in crate::sim) fn is_deep(&self) -> bool {
        self.deep.is_some()
    }

    fn deep_mut(&mut self) -> &mut Deep {
        self.deep.as_mut().expect("only deep histories come here")
    }

    fn swap_with_around(&mut self) {
        let shared = Rc::clone(&self.deep_mut().around);
        let lent = &mut shared.borrow_mut().lent;
        std::mem::swap(&mut self.dice, &mut lent.dice);
        std::mem::swap(&mut self.workers, &mut lent.workers);
        std::mem::swap(&mut self.tracker, &mut lent.tracker);
        std::mem::swap(&mut self.oracle, &mut lent.oracle);
        std::mem::swap(&mut self.wanted, &mut lent.wanted);
        std::mem::swap(&mut self.faults, &mut lent.faults);
        std::mem::swap(&mut self.story, &mut lent.story);
    }

    pub(super) fn lend(&mut self) {
        let now = self.now;
        let clocks = &self.deep_mut().clocks;
        if now > clocks.wall() {
            clocks.pass(now.since(clocks.wall()));
        } else {
            clocks.set_wall(now);
        }
        self.swap_with_around();
    }

    pub(super) fn take_back(&mut self) {
        self.swap_with_around();
        self.now = self.deep_mut().clocks.wall();
        for line in disk(|disk| std::mem::take(&mut disk.events)) {
            if let Some(route) = ROUTES_OF_THE_DISK.iter().find(|(words, _)| line.contains(words)) {
                self.covers(route.1);
            }
            self.tell(|| line);
        }
    }

    /// Lets something be done with the loop, among everything that is around it.
    pub(super) fn with_core<T>(&mut self, work: impl FnOnce(&mut Rehearsal) -> T) -> Result<T, Halt> {
        let Some(mut core) = self.deep_mut().core.take() else { return Err(Halt::Crash) };
        self.lend();
        let outcome = work(&mut core);
        self.deep_mut().around.borrow_mut().catch_up();
        self.take_back();
        self.deep_mut().core = Some(core);
        self.check_promises()?;
        Ok(outcome)
    }

    fn check_promises(&mut self) -> Result<(), Halt> {
        let broken = self.deep_mut().around.borrow_mut().broken.take();
        let broken = broken.or_else(|| disk(|disk| disk.broken.take()).map(Broken));
        if let Some(broken) = broken {
            return Err(Halt::Broken(broken));
        }
        if Around::is_dead() {
            self.covers("crash");
            return Err(Halt::Crash);
        }
        if disk(|disk| disk.sync_failed) {
            let now = self.oracle.durable.seq();
            let since = *self.deep_mut().failed_sync.get_or_insert(now);
            Broken::unless(now == since, || "more was stored after a sync had failed".to_owned())?;
        }
        Ok(())
    }

    pub(in crate::sim) fn covers(&mut self, route: &str) {
        self.deep_mut().around.borrow_mut().coverage.route(route);
    }

    /// One round of the loop. False if it was its last.
    pub(in crate::sim) fn deep_round(&mut self) -> Result<bool, Halt> {
        self.may_plan_a_fault();
        let was_read_only = self.deep_mut().is_read_only();
        let goes_on = self.with_core(Rehearsal::round)?;
        let is_read_only = self.deep_mut().is_read_only();
        self.hear_replies();
        match (was_read_only, is_read_only) {
            (false, true) => self.covers("disk-refused-reload"),
            (true, false) => self.covers("writable-again"),
            _ => {}
        }
        let state = self.state();
        let (have, durable) = (state.seq(), self.oracle.durable.seq());
        Broken::unless(have == durable, || {
            format!("the loop has decided up to {have}, but {durable} is durable")
        })?;
        state.check_invariants()?;
        if !is_read_only && goes_on && !self.draining {
            state.check_nothing_waits_needlessly()?;
            self.oracle.check_nobody_is_stuck(state)?;
        }
        if self.dice.one_in(16) {
            self.oracle.check_recovered(self.state())?;
        }
        Ok(goes_on)
    }

    fn may_plan_a_fault(&mut self) {
        if !self.faults || disk(|disk| disk.has_plan()) || !self.dice.one_in(12) {
            return;
        }
        let steps = self.dice.between(1, 16);
        let fault = if self.dice.one_in(3) { Fault::Fail } else { Fault::Crash };
        disk(|disk| disk.plan(steps, fault));
    }

    fn hear_replies(&mut self) {
        let desk = Rc::clone(&self.deep_mut().desk);
        let mut desk = desk.borrow_mut();
        desk.listen();
        for asked in &mut desk.asked {
            asked.fresh = false;
            for reply in &asked.heard {
                match reply {
                    Reply::Ok { document, .. } => {
                        self.oracle.acknowledges(self.oracle.durable.seq());
                        let codes = codes_in(document.get());
                        codes.for_each(|code| {
                            self.deep_mut().around.borrow_mut().coverage.refusal(code);
                        });
                        self.tell(|| format!("yes to {}", asked.command));
                    }
                    Reply::Error(Refusal { code, message, .. }) => {
                        self.deep_mut().around.borrow_mut().coverage.refusal(code);
                        self.tell(|| format!("no to {}: {code}, {message}", asked.command));
                    }
                    Reply::Item(_) => {}
                }
            }
        }
        desk.asked.retain(|asked| asked.heard.is_empty());
    }

    /// A command; whether it was not refused.
    pub(in crate::sim) fn deep_ask(&mut self, actor: &str, command: &Command) -> Result<bool, Halt> {
        let words = brief(command);
        self.put(actor, Ask::Command { command: command.clone() }, words)
    }

    /// Some question; whether it was not refused.
    pub(in crate::sim) fn put(&mut self, actor: &str, ask: Ask, words: String) -> Result<bool, Halt> {
        let deep = self.deep_mut();
        let Some(core) = &deep.core else { return Err(Halt::Crash) };
        let is_command = matches!(ask, Ask::Command { .. });
        let replies = core.ask(actor, ask);
        let command = if is_command { words } else { String::new() };
        let asked = Asked { replies, command, fresh: true, heard: Vec::new() };
        let refused = |deep: &Deep| deep.around.borrow().coverage.refusals.values().sum::<u64>();
        deep.desk.borrow_mut().asked.push(asked);
        let before = refused(deep);
        self.deep_round()?;
        Ok(refused(self.deep_mut()) == before)
    }

    /// The loop sleeps as long as it would, and looks.
    pub(in crate::sim) fn deep_idle(&mut self) -> Result<(), Halt> {
        self.deep_round().map(|_| ())
    }

    /// A second goes by, after which the loop looks around.
    pub(in crate::sim) fn deep_second(&mut self) -> Result<(), Halt> {
        self.now = self.now.after(std::time::Duration::from_millis(1_001));
        self.deep_idle()
    }

    /// What else is to stand in the config file.
    pub(super) fn more_config(&mut self, text: String) {
        self.deep_mut().more_config = text;
    }

    /// The config file says what the operator wants.
    pub(in crate::sim) fn deep_configure(&mut self) -> Result<(), Halt> {
        let deep = self.deep.as_ref().expect("only deep histories come here");
        let text = config::write(&self.wanted, &deep.more_config);
        town::write_config(&deep.town, &text);
        self.tell(|| format!("config:\n{text}"));
        self.put("op", Ask::Health, String::new()).map(|_| ())
    }

    pub(in crate::sim) fn deep_observe_host(&mut self, busy: bool) -> Result<(), Halt> {
        self.deep_mut().around.borrow_mut().busy = busy;
        self.deep_second()
    }

    pub(in crate::sim) fn deep_hear(&mut self, report: &Report) -> Result<(), Halt> {
        let now = self.now;
        let report = report.in_full(&self.workers, now);
        match &self.deep_mut().core {
            Some(core) => core.worker(report),
            None => return Err(Halt::Crash),
        }
        self.deep_idle()
    }

    pub(in crate::sim) fn deep_hear_reading(&mut self, reading: &SourceReading) -> Result<(), Halt> {
        match &self.deep_mut().core {
            Some(core) => core.source(reading.clone()),
            None => return Err(Halt::Crash),
        }
        self.deep_idle()
    }

    /// Has the loop look at all claims and indexes.
    pub(in crate::sim) fn deep_scan(&mut self) -> Result<(), Halt> {
        self.put("op", Ask::Poke { rig: None }, String::new())?;
        self.deep_second()?;
        self.deep_idle()
    }

    pub(in crate::sim) fn deep_checkpoint(&mut self) -> Result<(), Halt> {
        self.with_core(Rehearsal::checkpoint)?;
        self.covers("checkpoint");
        Ok(())
    }

    /// What is around the loop.
    pub(super) fn around<T>(&mut self, work: impl FnOnce(&mut Around) -> T) -> T {
        work(&mut self.deep_mut().around.borrow_mut())
    }

    /// The loop, if one runs.
    pub(super) fn core(&self) -> Result<&Rehearsal, Halt> {
        self.deep.as_ref().and_then(|deep| deep.core.as_ref()).ok_or(Halt::Crash)
    }

    /// A command that waits for the next round.
    pub(super) fn put_in_line(&mut self, actor: &str, command: &Command) {
        let Some(core) = &self.deep_mut().core else { return };
        let replies = core.ask(actor, Ask::Command { command: command.clone() });
        let words = brief(command);
        self.tell(|| format!("asked with others: {words}"));
        let asked = Asked { replies, command: words, fresh: true, heard: Vec::new() };
        self.deep_mut().desk.borrow_mut().asked.push(asked);
    }

    /// Every report that is under way reaches the loop in its next round.
    pub(in crate::sim) fn all_reports_arrive(&mut self) {
        for report in std::mem::take(&mut self.workers.reports) {
            let report = report.in_full(&self.workers, self.now);
            if let Some(core) = &self.deep_mut().core {
                core.worker(report);
            }
        }
    }

    /// A shim of this pool's is gone; the pool finds out how things stand.
    pub(in crate::sim) fn shim_is_gone(&mut self, id: &DispatchId) {
        let shared = Rc::clone(&self.deep_mut().around);
        if self.deep_mut().core.is_none() {
            return;
        }
        self.swap_with_around();
        let report = shared.borrow_mut().settle(id);
        self.swap_with_around();
        if let Some(report) = report {
            self.sends(report);
        }
    }

    /// How long the machine has been up.
    pub(in crate::sim) fn uptime(&self) -> yard_engine::Millis {
        self.deep.as_ref().map(|deep| deep.clocks.uptime()).unwrap_or_default()
    }

    /// The wall clock is set, or the machine slept: nothing that counts time has noticed.
    pub(in crate::sim) fn sets_the_clock(&mut self, now: Timestamp) {
        self.now = now;
        self.deep_mut().clocks.set_wall(now);
    }

    /// The loop is told to go, and goes when its workers have ended or its time is over.
    pub(in crate::sim) fn deep_drain(&mut self) -> Result<(), Halt> {
        self.draining = true;
        let goes_on = if self.dice.one_in(2) {
            let leave_running = self.dice.one_in(3);
            let timeout_ms = self.dice.one_in(2).then_some(2_000);
            self.put("op", Ask::Stop { timeout_ms, leave_running }, String::new()).map(|_| true)
        } else {
            match &self.deep_mut().core {
                Some(core) => core.terminate(),
                None => return Err(Halt::Crash),
            }
            self.deep_round()
        };
        let mut goes_on = goes_on?;
        let (mut rounds, began) = (0, self.uptime());
        while goes_on {
            rounds += 1;
            Broken::unless(rounds < MOST_ROUNDS, || {
                let took = self.uptime().0 - began.0;
                format!("a drain has taken {rounds} rounds in {took} ms, and has not ended")
            })?;
            if self.dice.one_in(8) {
                self.put_in_line("op", &Command::Run { batch: None, dry_run: false });
            }
            self.shims_go_on(2)?;
            if let Some(report) = self.workers.reports.pop() {
                let report = report.in_full(&self.workers, self.now);
                if let Some(core) = &self.deep_mut().core {
                    core.worker(report);
                }
            }
            self.deep_outside()?;
            goes_on = self.deep_round()?;
        }
        if let Some(core) = self.deep_mut().core.take() {
            // Nobody reads along while it closes: it is the last, and leaves one file.
            self.lend();
            self.deep_mut().around.borrow_mut().forget_the_process();
            core.leave();
            self.take_back();
            self.covers("left-in-good-order");
        }
        Err(Halt::Crash)
    }

    /// A process begins on what is there.
    pub(in crate::sim) fn deep_recover(&mut self) -> Result<(), Halt> {
        let killed = Around::is_dead();
        let power_cut = killed && self.dice.one_in(3);
        self.draining = false;
        disk(Disk::kill);
        let deep = self.deep_mut();
        deep.core = None;
        deep.failed_sync = None;
        deep.desk.borrow_mut().asked.clear();
        deep.around.borrow_mut().forget_the_process();
        disk(|disk| disk.boot(power_cut));
        self.workers.reports.clear();
        if power_cut {
            self.tell(|| "the power was cut".to_owned());
            self.covers("power-cut");
            self.power_is_cut();
        }
        self.may_plan_a_fault();
        self.tell(|| "restart".to_owned());
        match self.open() {
            Ok(()) => {}
            Err(OpenError::Store(StoreError::Journal(error))) => return self.could_not_open(&error),
            Err(error) => return Err(Halt::Broken(Broken(format!("the town cannot be opened: {error}")))),
        }
        self.check_promises()?;
        // Its first round stores what it has decided since it read the journal.
        self.deep_idle()?;
        self.check_past()?;
        Ok(self.oracle.check_recovered(self.state())?)
    }

    fn open(&mut self) -> Result<(), OpenError> {
        let deep = self.deep.as_ref().expect("only deep histories come here");
        let (town, journal, around) = (deep.town.clone(), deep.journal, Rc::clone(&deep.around));
        let (place, clocks) =
            (OtherDisk { vfs: vfs::NAME, wal_limit: deep.wal_limit }, Rc::clone(&deep.clocks));
        let keeping = past::keeping(place, deep.seed);
        self.lend();
        let role = if self.now.as_millis() % 8 == 0 { ServerRole::Console } else { ServerRole::Daemon };
        let opened = Journal::open_on(place, Path::new(journal)).map_err(StoreError::from);
        // Until then nobody has acted upon what the last process could not sync.
        let is_sure = opened.is_ok();
        let opened = opened.map_err(OpenError::from).and_then(|journal| {
            let (pool, outside) = (Pool(Rc::clone(&around)), Outside(Rc::clone(&around)));
            Rehearsal::open(&town, role, journal, Box::new(pool), clocks, Box::new(outside), keeping)
        });
        if is_sure {
            around.borrow_mut().catch_up();
            around.borrow_mut().note_how_it_was_read();
        }
        self.take_back();
        self.deep_mut().core = Some(opened?);
        Ok(())
    }

    /// Whoever could not open the journal ends, and is started again.
    fn could_not_open(&mut self, error: &JournalError) -> Result<(), Halt> {
        self.tell(|| format!("the journal cannot be opened: {error}"));
        self.check_promises()?;
        match error {
            JournalError::Full => {
                self.covers("no-space-to-open");
                if self.dice.one_in(2) {
                    disk(|disk| disk.full = false);
                }
            }
            JournalError::Disk(_) | JournalError::Fsync => self.covers("disk-failed-to-open"),
            error => return Err(Halt::Broken(Broken(format!("the journal cannot be opened: {error}")))),
        }
        Err(Halt::Crash)
    }

    pub(in crate::sim) fn set_full(&mut self, full: bool) {
        if self.is_deep() {
            disk(|disk| disk.full = full);
        } else {
            self.disk.full = full;
        }
    }

    pub(in crate::sim) fn faults_are_over(&mut self) {
        self.faults = false;
        self.set_full(false);
        disk(Disk::heal);
    }
}

/// A command in few words: what is not said in it is left out.
pub(in crate::sim) fn brief(command: &Command) -> String {
    fn strip(value: &mut Value) {
        if let Value::Array(items) = value {
            items.iter_mut().for_each(strip);
        }
        if let Value::Object(fields) = value {
            let says = |value: &Value| match value {
                Value::Null | Value::Bool(false) => false,
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty(),
                Value::String(text) => !text.is_empty(),
                _ => true,
            };
            fields.values_mut().for_each(strip);
            fields.retain(|_, value| says(value));
        }
    }
    let mut value = serde_json::to_value(command).unwrap_or_default();
    strip(&mut value);
    value.to_string()
}

/// The codes of refusals that a document tells of.
fn codes_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("\"code\":\"").filter_map(|(at, found)| text[at + found.len()..].split('"').next())
}

#[cfg(test)]
mod tests {
    use yard_engine::BeadId;
    use yard_engine::bead::{DepKind, Dependency};

    use super::*;
    use crate::sim::Play;

    fn done<T>(outcome: Result<T, Halt>) -> T {
        match outcome {
            Ok(value) => value,
            Err(Halt::Crash) => panic!("the loop is gone"),
            Err(Halt::Broken(broken)) => panic!("{}", broken.0),
        }
    }

    #[test]
    fn what_was_seen_of_a_workspace_before_it_was_read_anew_is_not_believed() {
        let mut world = World::new(Play { deep: true, ..Play::FIRST }, None);
        done(world.deep_recover());
        done(world.add_rigs());
        done(world.add_workspace());
        done(world.deep_second());
        // It is seen to wait for something, and then does not; but the disk fails, and everything is read again.
        let edge = Dependency::new(BeadId::parse("y-0").expect("a valid id"), DepKind::Blocks);
        world.tracker_has(9, vec![edge]);
        world.source_looks();
        world.tracker_has(9, Vec::new());
        disk(|disk| disk.plan(1, Fault::Fail));
        done(world.ask(&Command::Pause { reason: None, until: None }));
        assert!(world.deep_mut().is_read_only(), "the disk has not failed");
        done(world.a_reading_arrives());
        assert!(!world.deep_mut().is_read_only(), "the disk still fails");
        done(world.check_tracker_is_known().map_err(Halt::from));
    }
}
