//! The schedule of what is left, by the engine's own rules: what ends closes, what that unblocks is fed by id, and then
//! everything ready starts, up to capacity, in the order of the ready queue. A test holds it to what the engine does.
//!
//! Not modelled: preemption, and the moment between the decision to start and the first program.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::chance::Chance;
use super::model::{Model, NEVER, NONE, Place, TOWN};
use crate::queue::OrderKey;

/// What happens at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// An attempt ends.
    Ends,
    /// An attempt ends and is to be made again.
    Fails,
    /// A wait is over.
    Wakes,
    /// Something moves to the head of its lane.
    GoesAhead,
    /// Starts may be made again.
    Resumes,
}

/// Runs through a model. Its room is used again for the next run.
pub(super) struct Simulation<'m, 'a> {
    model: &'m Model<'a>,
    chance: Option<Chance>,
    now: i64,
    /// When each unit first starts; `NEVER` if it does not.
    pub(super) start: Vec<i64>,
    /// When each unit is done; `NEVER` if it never is.
    pub(super) end: Vec<i64>,
    /// What each unit came after: the last of what it waited for, or who held its slot.
    pub(super) after: Vec<u32>,
    /// The limit it waited for after that, if it did.
    pub(super) limit: Vec<u32>,
    happenings: BinaryHeap<Reverse<(i64, Happening, u32)>>,
    ready: Vec<BinaryHeap<Reverse<(OrderKey, u32)>>>,
    queued: Vec<bool>,
    keys: Vec<Option<OrderKey>>,
    ready_since: Vec<i64>,
    attempts: Vec<u32>,
    waits: Vec<u32>,
    active: Vec<u64>,
    lanes: Vec<(u64, u64)>,
    hungry: Vec<u32>,
    pending: Vec<u32>,
    /// Who made room under each full limit at this time.
    freed: Vec<(i64, Vec<u32>)>,
    next_spawn: i64,
    /// The position in the log that the next start or request would have.
    seq: u64,
    preferred: u32,
}

impl<'m, 'a> Simulation<'m, 'a> {
    pub(super) fn new(model: &'m Model<'a>) -> Self {
        let units = model.units.len();
        Self {
            model,
            chance: None,
            now: 0,
            start: vec![NEVER; units],
            end: vec![NEVER; units],
            after: vec![NONE; units],
            limit: vec![NONE; units],
            happenings: BinaryHeap::new(),
            ready: model.classes.iter().map(|_| BinaryHeap::new()).collect(),
            queued: vec![false; units],
            keys: vec![None; units],
            ready_since: vec![0; units],
            attempts: vec![0; units],
            waits: Vec::new(),
            active: Vec::new(),
            lanes: Vec::new(),
            hungry: Vec::new(),
            pending: Vec::new(),
            freed: vec![(NEVER, Vec::new()); model.limits.len()],
            next_spawn: 0,
            seq: 0,
            preferred: NONE,
        }
    }

    /// Lets everything happen: with expected durations, or with those of a sample.
    pub(super) fn run(&mut self, chance: Option<Chance>) {
        self.reset(chance);
        for (unit, place) in self.model.units.iter().map(|unit| unit.place).enumerate() {
            let unit = unit as u32;
            match place {
                Place::Running => self.work(unit),
                Place::Finished => self.close(unit),
                Place::Scheduled | Place::Fed(_) => {
                    if self.waits[unit as usize] == 0 {
                        self.unblock(unit);
                    }
                }
                Place::Never => {}
            }
        }
        if self.model.paused_until > 0 && self.model.paused_until < NEVER {
            self.happenings.push(Reverse((self.model.paused_until, Happening::Resumes, NONE)));
        }
        self.pass();
        while let Some(Reverse((time, ..))) = self.happenings.peek() {
            self.now = *time;
            while let Some(Reverse((time, what, unit))) = self.happenings.peek().copied() {
                if time > self.now {
                    break;
                }
                self.happenings.pop();
                self.happen(what, unit);
            }
            self.pass();
        }
    }

    fn reset(&mut self, chance: Option<Chance>) {
        let model = self.model;
        (self.chance, self.now) = (chance, 0);
        for list in [&mut self.start, &mut self.end] {
            list.fill(NEVER);
        }
        if chance.is_none() {
            for list in [&mut self.after, &mut self.limit] {
                list.fill(NONE);
            }
        }
        self.ready.iter_mut().for_each(BinaryHeap::clear);
        self.queued.fill(false);
        self.keys.fill(None);
        self.ready_since.fill(0);
        self.attempts.fill(0);
        self.waits.clone_from(&model.waits);
        self.active.clone_from(&model.active);
        self.lanes.clone_from(&model.lanes);
        self.next_spawn = model.next_spawn;
        self.seq = model.state.seq().0;
        self.preferred = model.preferred;
        for (time, units) in &mut self.freed {
            *time = NEVER;
            units.clear();
        }
    }

    fn happen(&mut self, what: Happening, unit: u32) {
        match what {
            Happening::Ends => {
                self.free_slot(unit);
                self.close(unit);
            }
            Happening::Fails => {
                self.free_slot(unit);
                let attempt = &mut self.attempts[unit as usize];
                *attempt += 1;
                let failed_before = self.model.units[unit as usize].failures + *attempt - 1;
                let waits = self.model.backoff;
                let wait = waits.get(failed_before as usize).or(waits.last()).map_or(0, |wait| wait.0);
                let wait = i64::try_from(wait).unwrap_or(NEVER);
                self.happenings.push(Reverse((self.now.saturating_add(wait), Happening::Wakes, unit)));
            }
            Happening::Wakes => self.enqueue(unit),
            Happening::GoesAhead => {
                if let Some(key) = self.keys[unit as usize].filter(|_| self.queued[unit as usize]) {
                    self.stand(unit, key.ahead());
                }
            }
            Happening::Resumes => {}
        }
    }

    /// A unit is done: what waited for it alone is unblocked.
    fn close(&mut self, unit: u32) {
        self.end[unit as usize] = self.now;
        self.pending.push(unit);
        while let Some(node) = self.pending.pop() {
            for waiting in self.model.waiting_for(node) {
                let waits = &mut self.waits[*waiting as usize];
                *waits -= 1;
                if *waits > 0 {
                    continue;
                }
                if self.model.is_unit(*waiting) {
                    self.after[*waiting as usize] = unit;
                    self.unblock(*waiting);
                } else {
                    self.pending.push(*waiting);
                }
            }
        }
    }

    fn unblock(&mut self, unit: u32) {
        let release = self.model.units[unit as usize].release;
        if release > self.now {
            self.after[unit as usize] = NONE;
            self.happenings.push(Reverse((release, Happening::Wakes, unit)));
        } else {
            self.enqueue(unit);
        }
    }

    fn enqueue(&mut self, number: u32) {
        let place = number as usize;
        self.ready_since[place] = self.now;
        let unit = &self.model.units[place];
        let Some(key) = self.keys[place].or(unit.key) else {
            return self.hungry.push(number);
        };
        self.keys[place] = Some(key);
        let is_ahead = unit.ahead <= self.now && self.attempts[place] == 0;
        self.stand(number, if is_ahead { key.ahead() } else { key });
        if !is_ahead && unit.ahead < NEVER && self.attempts[place] == 0 {
            self.happenings.push(Reverse((unit.ahead, Happening::GoesAhead, number)));
        }
    }

    fn stand(&mut self, unit: u32, key: OrderKey) {
        self.queued[unit as usize] = true;
        self.ready[self.model.units[unit as usize].class as usize].push(Reverse((key, unit)));
    }

    /// One planning pass.
    fn pass(&mut self) {
        self.feed();
        if self.now < self.model.paused_until {
            return;
        }
        while self.active[TOWN] < self.model.caps[TOWN] {
            if self.model.spawn_delay > 0 && self.now < self.next_spawn {
                if self.ready.iter().any(|class| !class.is_empty()) {
                    self.happenings.push(Reverse((self.next_spawn, Happening::Resumes, NONE)));
                }
                break;
            }
            let Some(unit) = self.pick() else { break };
            self.queued[unit as usize] = false;
            if self.model.units[unit as usize].deadline > self.now {
                self.begin(unit);
            }
        }
    }

    fn feed(&mut self) {
        self.hungry.sort_unstable();
        let enqueued_at = self.model.now.as_millis().saturating_add(self.now);
        let mut hungry = std::mem::take(&mut self.hungry);
        for unit in hungry.drain(..) {
            if let Place::Fed(priority) = self.model.units[unit as usize].place {
                self.seq += 1;
                let key = OrderKey::new(priority, enqueued_at, self.seq, self.model.aging);
                self.keys[unit as usize] = Some(key);
                self.stand(unit, key);
            }
        }
        self.hungry = hungry;
    }

    /// Who starts next: of the lane with the fewest running, then of the one served longest ago, the first that has
    /// room.
    fn pick(&mut self) -> Option<u32> {
        let preferred = self.preferred;
        if preferred != NONE && self.queued[preferred as usize] && self.has_room(self.class_of(preferred)) {
            return Some(preferred);
        }
        let mut best: Option<((u64, u64, OrderKey), usize)> = None;
        for class in 0..self.ready.len() {
            while let Some(Reverse((_, unit))) = self.ready[class].peek()
                && !self.queued[*unit as usize]
            {
                self.ready[class].pop();
            }
            let Some(Reverse((key, _))) = self.ready[class].peek() else { continue };
            let (running, served) = self.lanes[self.model.classes[class].lane as usize];
            let place = (running, served, *key);
            if best.is_none_or(|(other, _)| place < other) && self.has_room(class) {
                best = Some((place, class));
            }
        }
        let (_, class) = best?;
        self.ready[class].pop().map(|Reverse((_, unit))| unit)
    }

    fn class_of(&self, unit: u32) -> usize {
        self.model.units[unit as usize].class as usize
    }

    fn limits_of(&self, class: usize) -> impl Iterator<Item = usize> + use<> {
        let limits = self.model.classes[class].limits;
        limits.into_iter().filter(|limit| *limit != NONE).map(|limit| limit as usize)
    }

    fn has_room(&self, class: usize) -> bool {
        self.limits_of(class).all(|limit| self.active[limit] < self.model.caps[limit])
    }

    fn begin(&mut self, unit: u32) {
        let place = unit as usize;
        let class = self.class_of(unit);
        if self.chance.is_none() && self.ready_since[place] < self.now {
            self.blame_a_limit(unit, class);
        }
        for limit in self.limits_of(class) {
            self.active[limit] += 1;
        }
        self.seq += 1;
        let (running, served) = &mut self.lanes[self.model.classes[class].lane as usize];
        *running += 1;
        *served = self.seq;
        self.next_spawn = self.now.saturating_add(self.model.spawn_delay);
        self.preferred = NONE;
        self.work(unit);
    }

    /// A unit that was ready before now waited for a slot: notes which, and who held it.
    fn blame_a_limit(&mut self, unit: u32, class: usize) {
        self.after[unit as usize] = NONE;
        let limits: Vec<usize> = self.limits_of(class).collect();
        for limit in limits.into_iter().rev() {
            let (time, holders) = &mut self.freed[limit];
            if *time == self.now
                && let Some(holder) = holders.pop()
            {
                self.after[unit as usize] = holder;
                self.limit[unit as usize] = limit as u32;
                break;
            }
        }
    }

    /// The next attempt of a unit begins, or goes on.
    fn work(&mut self, number: u32) {
        let place = number as usize;
        let unit = &self.model.units[place];
        if self.start[place] == NEVER {
            self.start[place] = self.now;
        }
        let estimate = &self.model.estimates[unit.estimate as usize];
        let attempt = self.attempts[place];
        let done = if attempt == 0 { unit.done } else { 0 };
        let (what, takes) = match self.chance {
            None => (Happening::Ends, estimate.expected_left(done)),
            Some(chance) => {
                let draw = |what| chance.draw(unit.number, attempt, what);
                // The last attempt is taken to succeed: what is given up is a matter for a person, not for a forecast.
                let may_fail = unit.failures + attempt + 1 < self.model.max_attempts;
                let fails = may_fail.then(|| estimate.drawn_failure(done, draw)).flatten();
                fails.map_or_else(
                    || (Happening::Ends, estimate.drawn_left(done, draw(2))),
                    |after| (Happening::Fails, after),
                )
            }
        };
        // What waits for it ends after it, be it by a moment.
        let takes = i64::try_from(takes).unwrap_or(NEVER).max(1);
        self.happenings.push(Reverse((self.now.saturating_add(takes), what, number)));
    }

    fn free_slot(&mut self, unit: u32) {
        let class = self.class_of(unit);
        for limit in self.limits_of(class) {
            if self.chance.is_none() {
                self.note_freed(limit, unit);
            }
            self.active[limit] = self.active[limit].saturating_sub(1);
        }
        let (running, _) = &mut self.lanes[self.model.classes[class].lane as usize];
        *running = running.saturating_sub(1);
    }

    fn note_freed(&mut self, limit: usize, unit: u32) {
        let (time, holders) = &mut self.freed[limit];
        if *time != self.now {
            *time = self.now;
            holders.clear();
        }
        if self.active[limit] >= self.model.caps[limit] || !holders.is_empty() {
            holders.push(unit);
        }
    }
}
