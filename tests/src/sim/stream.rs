//! A stream of urgent work, more than the town can do, over work that is not urgent: the real engine and a clock, with
//! workers that need so much time per step and lose what they did since the last one when they are ended.
//!
//! Promised: whoever is pushed out gets on. He is never pushed out twice in a row for nothing without having been left
//! alone twice as long, he comes back within a bounded time, and all that has begun comes to its end; with ageing also
//! what has not.

use std::collections::BTreeMap;

use yard_engine::bead::Verdict;
use yard_engine::command::{NewBead, SlingRequest};
use yard_engine::dispatch::{Category, DispatchEvent};
use yard_engine::plan::Scope;
use yard_engine::preempt::{Method, PreemptionEvent};
use yard_engine::rig::Rig;
use yard_engine::{
    Asker, BeadId, Command, DispatchId, Event, Kitchen, Millis, Recorded, RigName, Settings, State,
    Timestamp, Tx, WorkerExit,
};

use super::Broken;
use super::dice::Dice;

/// A quiet worker is asked to give way after so long, at first.
const MIN_RUN: u64 = 60_000;
/// How much urgent work there is for each unit the town could do.
const OVERLOAD: u64 = 2;
/// When a stream that starves somebody is given up.
const PATIENCE: u64 = 60 * 24 * 60_000;

/// What a stream amounted to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Streamed {
    /// Urgent beads that were done.
    pub urgent: u64,
    /// Preemptions.
    pub preemptions: u64,
    /// How many times as long as it needed the slowest of what is not urgent took, rounded down.
    pub slowest: u64,
}

/// What a bead needs: the time of each step, those left first.
struct Need {
    steps: Vec<u64>,
    /// Whether its worker looks at checkpoints, or must be ended.
    cooperative: bool,
    /// How much of the current step its worker has done.
    done: u64,
}

struct Stream {
    dice: Dice,
    state: State,
    now: u64,
    began: u64,
    needs: BTreeMap<BeadId, Need>,
    quiet: Vec<(BeadId, u64)>,
    next_urgent: u64,
    told: Streamed,
}

/// Lets a stream run until everything that is not urgent is done.
pub fn stream(seed: u64) -> Result<Streamed, Broken> {
    let mut dice = Dice::new(seed);
    let slots = dice.between(1, 3);
    let mut stream = Stream {
        dice,
        state: State::default(),
        now: 1_800_000_000_000,
        began: 1_800_000_000_000,
        needs: BTreeMap::new(),
        quiet: Vec::new(),
        next_urgent: 0,
        told: Streamed::default(),
    };
    stream.set_up(slots)?;
    let began = stream.began;
    while !stream.quiet.iter().all(|(id, _)| stream.is_closed(id)) {
        stream.step(slots)?;
        let slow = stream.quiet.iter().find(|(id, _)| !stream.is_closed(id) && stream.now - began > PATIENCE);
        if let Some((id, _)) = slow {
            return Err(Broken(format!("seed {seed}: {id} starves: {:?}", stream.state.standing(id))));
        }
    }
    Ok(stream.told)
}

fn id(text: &str) -> BeadId {
    BeadId::parse(text).expect("a valid id")
}

impl Stream {
    fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.now as i64)
    }

    fn is_closed(&self, bead: &BeadId) -> bool {
        self.state.bead(bead).is_some_and(|entry| entry.bead.is_closed())
    }

    /// Decides, checks, and lets what was started run.
    fn decide(&mut self, decide: impl FnOnce(&mut Tx<'_>)) -> Result<(), Broken> {
        let mut tx = Tx::new(&mut self.state, Timestamp::from_millis(self.now as i64));
        tx.tick();
        decide(&mut tx);
        tx.pass(Scope::Everything, None);
        tx.preempt();
        let events = tx.finish();
        self.state.check_invariants()?;
        for recorded in &events {
            self.follow(recorded)?;
        }
        Ok(())
    }

    fn follow(&mut self, recorded: &Recorded) -> Result<(), Broken> {
        match &recorded.event {
            Event::Dispatch(DispatchEvent::Started { dispatch }) => {
                if let Some(need) = self.needs.get_mut(dispatch.id.bead()) {
                    need.done = 0;
                }
                let id = dispatch.id.clone();
                self.decide(|tx| tx.worker_running(&id, None))
            }
            Event::Dispatch(DispatchEvent::StopRequested { id, .. }) => {
                let (id, exit) = (id.clone(), exit(143, Category::Crash, true));
                self.decide(|tx| tx.worker_ended(&id, &exit))
            }
            Event::Preemption(PreemptionEvent::Ended { victim, method, .. }) => {
                let pushed_out = matches!(method, Method::Cooperative | Method::Forced);
                self.told.preemptions += u64::from(pushed_out);
                if pushed_out { self.check_was_left_alone(victim) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Whoever was pushed out had his time, twice as much after each time for nothing.
    fn check_was_left_alone(&self, victim: &DispatchId) -> Result<(), Broken> {
        let Some(dispatch) = self.state.dispatch(victim) else { return Ok(()) };
        let in_vain = self.state.context(&dispatch.context).map_or(0, |context| context.pushed_out);
        let had = dispatch.running_at.map_or(0, |since| self.at().since(since).as_millis() as u64);
        let due = MIN_RUN << in_vain.min(20);
        Broken::unless(had >= due, || format!("{victim} was pushed out after {had} ms instead of {due}"))
    }

    fn ask(&mut self, command: &Command) -> Result<(), Broken> {
        let kitchen = Kitchen::default();
        let mut refused = None;
        self.decide(|tx| refused = tx.decide(&Asker { actor: "op", kitchen: &kitchen }, command).err())?;
        refused.map_or(Ok(()), |refusal| Err(Broken(refusal.message)))
    }

    fn add(&mut self, bead: &BeadId, priority: u8, need: Need) -> Result<(), Broken> {
        self.needs.insert(bead.clone(), need);
        let (id, title) = (Some(bead.to_string()), "work".to_owned());
        self.ask(&Command::BeadAdd { bead: Box::new(NewBead { id, title, ..NewBead::default() }) })?;
        let request = SlingRequest {
            ids: vec![bead.to_string()],
            priority: Some(priority),
            no_convoy: true,
            ..SlingRequest::default()
        };
        self.ask(&Command::Sling(Box::new(request)))
    }

    fn set_up(&mut self, slots: u64) -> Result<(), Broken> {
        let name = RigName::parse("ox").expect("a valid name");
        let (prefix, path) = ("a".to_owned(), ".".to_owned());
        let (parked, docked, max_polecats, executor) = (false, false, None, None);
        let rig =
            Rig { name, prefix, path, parked, docked, max_polecats, executor, formula: None, source: None };
        self.ask(&Command::RigAdd { rig })?;
        // Work that has not begun is nobody's victim: only ageing brings it past a stream that never ends.
        let aging = self.dice.one_in(2).then_some(Millis::minutes(1));
        let waiting = if aging.is_some() { self.dice.between(0, 2) } else { 0 };
        let settings = Settings { max_polecats: slots as i64, aging, ..Settings::default() };
        self.decide(|tx| tx.settings_read(&settings))?;
        for n in 0..slots + waiting {
            let steps: Vec<u64> =
                (0..self.dice.between(1, 4)).map(|_| self.dice.between(10_000, 40 * 60_000)).collect();
            let bead = id(&format!("a-quiet{n}"));
            self.quiet.push((bead.clone(), steps.iter().sum()));
            let cooperative = self.dice.one_in(2);
            self.add(&bead, self.quiet.len() as u8, Need { steps, cooperative, done: 0 })?;
        }
        Ok(())
    }

    /// Time goes on to the next thing that happens: urgent work, the end of a step, or something that is due.
    fn step(&mut self, slots: u64) -> Result<(), Broken> {
        let live: Vec<DispatchId> = self.state.live_dispatches().map(|d| d.id.clone()).collect();
        let ends = live.iter().filter_map(|dispatch| {
            let need = self.needs.get(dispatch.bead())?;
            Some(self.now + need.steps.first()?.saturating_sub(need.done))
        });
        let due = [self.state.next_due(), self.state.next_preemption()].into_iter().flatten();
        let due = due.map(|at| u64::try_from(at.as_millis()).unwrap_or(0));
        let next = ends.chain(due).chain([self.next_urgent.max(self.now)]).min().unwrap_or(self.now);
        let passed = next.saturating_sub(self.now);
        self.now = next.max(self.now);
        for dispatch in &live {
            if let Some(need) = self.needs.get_mut(dispatch.bead()) {
                need.done += passed;
            }
        }
        if self.now >= self.next_urgent {
            self.urgent_work(slots)?;
        }
        for dispatch in live {
            self.worker_goes_on(&dispatch)?;
        }
        self.decide(|_| ())
    }

    /// More of it than the town can do, so that there is always some waiting.
    fn urgent_work(&mut self, slots: u64) -> Result<(), Broken> {
        let span = self.dice.between(5_000, 10 * 60_000);
        self.next_urgent = self.now + (span / (slots * OVERLOAD)).max(1);
        self.told.urgent += 1;
        let bead = id(&format!("a-urgent{}", self.told.urgent));
        // Whatever nobody has got to yet is dropped now and then, so that the queue does not grow without end.
        if self.state.ready_count() < 20 {
            let priority = self.dice.between(40, 100) as u8;
            self.add(&bead, priority, Need { steps: vec![span], cooperative: true, done: 0 })?;
        }
        Ok(())
    }

    /// A worker comes to the end of a step, or sees that it should give way.
    fn worker_goes_on(&mut self, dispatch: &DispatchId) -> Result<(), Broken> {
        let Some(record) = self.state.dispatch(dispatch).filter(|d| d.is_live()) else { return Ok(()) };
        let asked = record.should_yield();
        let Some(need) = self.needs.get_mut(dispatch.bead()) else { return Ok(()) };
        let step_done = need.steps.first().is_some_and(|step| need.done >= *step);
        if step_done {
            (need.done, _) = (0, need.steps.remove(0));
        }
        let (finished, gives_way) = (need.steps.is_empty(), step_done && asked && need.cooperative);
        if step_done && !finished {
            self.decide(|tx| tx.worker_step_done(dispatch, "step"))?;
        }
        if finished {
            self.decide(|tx| tx.worker_ended(dispatch, &exit(0, Category::Crash, false)))?;
            if let Some((_, need)) = self.quiet.iter().find(|(bead, _)| bead == dispatch.bead()) {
                self.told.slowest = self.told.slowest.max((self.now - self.began) / need.max(&1));
            }
            let failed = self.state.bead(dispatch.bead()).and_then(|entry| entry.work.verdict);
            return Broken::unless(failed != Some(Verdict::Failed), || format!("{dispatch} failed"));
        }
        if gives_way {
            self.decide(|tx| tx.worker_ended(dispatch, &exit(75, Category::Yielded, false)))?;
        }
        Ok(())
    }
}

fn exit(code: i32, category: Category, stopped: bool) -> WorkerExit {
    super::workers::exit(Some(code), None, stopped, category)
}
