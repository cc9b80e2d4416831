//! The time as the loop sees it: it runs on with the monotonic clock, so that waits last as long as they should. It
//! follows the wall clock forward (a laptop that slept), and never back: what was decided stays in the past.

use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use yard_engine::Timestamp;

/// A lag behind the wall clock beyond which the machine slept or was set, rather than drifted.
const STEP: Duration = Duration::from_secs(2);

/// The two clocks of a machine: one that only runs on, and the one on the wall.
pub trait Time {
    /// A moment of the clock that nobody sets.
    fn instant(&self) -> Instant;
    /// What the clock on the wall shows.
    fn wall(&self) -> Timestamp;
}

/// This machine's own.
pub(crate) struct RealTime;

impl Time for RealTime {
    fn instant(&self) -> Instant {
        Instant::now()
    }

    fn wall(&self) -> Timestamp {
        wall_clock()
    }
}

/// The loop's clock.
pub(crate) struct Clock {
    machine: Rc<dyn Time>,
    anchor: Instant,
    time: Timestamp,
}

impl Clock {
    /// A clock that starts with the wall clock, or after the last event of the log if that lies in the future.
    pub(crate) fn starting_after(log: Timestamp, machine: Rc<dyn Time>) -> Self {
        Self { anchor: machine.instant(), time: machine.wall().max(log), machine }
    }

    /// Now, following the wall clock if that has run ahead.
    pub(crate) fn now(&mut self) -> Timestamp {
        self.read(self.machine.instant(), self.machine.wall())
    }

    /// The present moment, for waits.
    pub(crate) fn instant(&self) -> Instant {
        self.machine.instant()
    }

    /// The moment after a span that somebody named; one too far away counts as a century.
    pub(crate) fn instant_after(&self, span: Duration) -> Instant {
        self.instant() + span.min(CENTURY)
    }

    fn read(&mut self, instant: Instant, wall: Timestamp) -> Timestamp {
        let steady = self.time.after(instant.saturating_duration_since(self.anchor));
        if wall.since(steady) > STEP {
            (self.anchor, self.time) = (instant, wall);
            return wall;
        }
        steady
    }

    /// How far it is ahead of the wall clock, if that was set back.
    pub(crate) fn lead(&self) -> Duration {
        let steady = self.time.after(self.instant().saturating_duration_since(self.anchor));
        let lead = steady.since(self.machine.wall());
        if lead > STEP { lead } else { Duration::ZERO }
    }

    /// How long until a moment.
    pub(crate) fn until(&self, moment: Timestamp) -> Duration {
        moment.since(self.time.after(self.instant().saturating_duration_since(self.anchor)))
    }
}

const CENTURY: Duration = Duration::from_hours(24 * 36_525);

/// As [`Clock::instant_after`], for whoever has no loop.
pub(crate) fn instant_after(span: Duration) -> Instant {
    Instant::now() + span.min(CENTURY)
}

/// The wall clock.
pub(crate) fn wall_clock() -> Timestamp {
    timestamp(SystemTime::now())
}

/// A time of the system as the engine knows it.
pub(crate) fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_set_back_does_not_stop_time_and_one_that_ran_ahead_is_followed() {
        let start = Instant::now();
        let noon = Timestamp::from_millis(1_000_000_000);
        let mut clock = Clock { machine: Rc::new(RealTime), anchor: start, time: noon };
        let later = |seconds| start + Duration::from_secs(seconds);
        let wall = |seconds: i64| Timestamp::from_millis(1_000_000_000 + seconds * 1000);
        assert_eq!(clock.read(later(10), wall(11)), wall(10), "drift is not followed");
        assert_eq!(clock.read(later(20), wall(-86_400)), wall(20), "set back a day: time goes on");
        assert_eq!(clock.read(later(30), wall(3600)), wall(3600), "an hour of sleep is followed");
        assert_eq!(clock.read(later(40), wall(40)), wall(3610), "and not taken back");
    }
}
