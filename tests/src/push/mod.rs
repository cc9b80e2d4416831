//! Push against poll: the same seeded backlog, done by agents that are sent orders and by agents that look for work every
//! so often. In a simulation on the real engine, and with real processes.

mod real;
mod simulated;

use std::time::Duration;

pub use real::{deliveries, in_processes};
pub use simulated::simulate;

/// How agents come by their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// They are sent orders.
    Push,
    /// They look for work every so often, whenever they are free at that moment.
    Poll(Duration),
    /// They look as soon as they are done, and when there was nothing again after this long: polling at its best.
    PollWhenDone(Duration),
}

impl Way {
    fn interval(self) -> Option<Duration> {
        match self {
            Self::Push => None,
            Self::Poll(every) | Self::PollWhenDone(every) => Some(every),
        }
    }
}

/// A piece of work of the backlog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its bead.
    pub id: String,
    /// 0 to 4.
    pub priority: u8,
    /// What must be done first.
    pub needs: Vec<usize>,
    /// How long it takes.
    pub takes: Duration,
}

/// From when to when something lasted, since the start.
pub type Span = (Duration, Duration);

/// What came of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// From the start until everything was done.
    pub finish: Duration,
    /// When each agent had nothing to do.
    pub idle: Vec<Vec<Span>>,
    /// When each bead was ready and nobody had it.
    pub waits: Vec<Span>,
    /// Claims that came too late.
    pub refused: usize,
    /// Beads that two agents had at the same time.
    pub doubled: usize,
}

impl Figures {
    /// The wait that so many of a hundred beads stay below.
    pub fn wait(&self, percent: usize) -> Duration {
        let mut waits: Vec<Duration> = self.waits.iter().map(|(from, to)| to.saturating_sub(*from)).collect();
        waits.sort_unstable();
        let place = (waits.len() * percent).div_ceil(100).clamp(1, waits.len().max(1)) - 1;
        waits.get(place).copied().unwrap_or_default()
    }

    /// The share of the session in which each agent had nothing to do.
    pub fn idle_shares(&self) -> Vec<f64> {
        let share = |spans: &Vec<Span>| {
            let idle: Duration = spans.iter().map(|(from, to)| to.saturating_sub(*from)).sum();
            idle.as_secs_f64() / self.finish.as_secs_f64().max(0.001)
        };
        self.idle.iter().map(share).collect()
    }

    /// The share of all agents' time that was lost: somebody had nothing to do although a bead was ready.
    pub fn lost_share(&self) -> f64 {
        let idle = self.idle.iter().flatten();
        let mut changes: Vec<(Duration, i64, i64)> = Vec::new();
        changes.extend(idle.flat_map(|(from, to)| [(*from, 1, 0), (*to, -1, 0)]));
        changes.extend(self.waits.iter().flat_map(|(from, to)| [(*from, 0, 1), (*to, 0, -1)]));
        changes.sort_unstable();
        let (mut free, mut ready, mut last, mut lost) = (0, 0, Duration::ZERO, 0.0);
        for (at, more_free, more_ready) in changes {
            lost += at.saturating_sub(last).as_secs_f64()
                * f64::from(i32::try_from(free.min(ready).max(0)).unwrap_or(0));
            (free, ready, last) = (free + more_free, ready + more_ready, at);
        }
        lost / (self.finish.as_secs_f64().max(0.001) * self.idle.len().max(1) as f64)
    }
}

/// A small generator, so that a backlog can be made again from its seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }
}

/// A backlog of parallel tracks that sometimes wait for each other, each job taking `least` to four times that.
pub fn backlog(seed: u64, tracks: usize, length: usize, least: Duration) -> Vec<Job> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut jobs: Vec<Job> = Vec::new();
    for step in 0..length {
        for track in 0..tracks {
            let mut needs: Vec<usize> = (step > 0).then(|| (step - 1) * tracks + track).into_iter().collect();
            if step > 0 && dice.below(4) == 0 {
                needs.push((step - 1) * tracks + dice.below(tracks as u64) as usize);
            }
            needs.sort_unstable();
            needs.dedup();
            let takes = least + least.mul_f64(3.0 * dice.below(1000) as f64 / 1000.0);
            let priority = 1 + dice.below(3) as u8;
            jobs.push(Job { id: format!("y-{step:02}{track:02}"), priority, needs, takes });
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the seed asks for, over several backlogs: agents are hardly ever idle, nothing is claimed twice, and even
    /// whoever looks as soon as he is done loses more time.
    #[test]
    fn push_meets_the_seeds_metrics_and_polling_takes_longer() {
        let (mut pushed, mut polled) = (Duration::ZERO, Duration::ZERO);
        let mean = |shares: Vec<f64>| shares.iter().sum::<f64>() / shares.len() as f64;
        for seed in 0..20 {
            let jobs = backlog(seed, 12, 12, Duration::from_mins(1));
            let push = simulate(&jobs, 8, Way::Push);
            let poll = simulate(&jobs, 8, Way::PollWhenDone(Duration::from_secs(30)));
            assert_eq!((push.waits.len(), poll.waits.len()), (jobs.len(), jobs.len()), "all was done");
            assert_eq!((push.doubled, poll.doubled, push.refused), (0, 0, 0), "seed {seed}");
            assert!(mean(push.idle_shares()) < 0.1, "seed {seed}: {:?}", push.idle_shares());
            assert!(push.lost_share() < poll.lost_share(), "seed {seed}");
            (pushed, polled) = (pushed + push.finish, polled + poll.finish);
        }
        assert!(pushed < polled, "{pushed:?} {polled:?}");
    }

    /// An agent that is free claims what becomes ready within the time it takes it to think.
    #[test]
    fn a_bead_that_becomes_ready_while_somebody_is_free_is_claimed_at_once() {
        for seed in 0..20 {
            let jobs = backlog(seed, 4, 20, Duration::from_mins(1));
            let push = simulate(&jobs, 8, Way::Push);
            assert!(push.wait(100) < Duration::from_secs(30), "seed {seed}: {:?}", push.wait(100));
        }
    }
}
