//! The time as the loop sees it: it runs on with the monotonic clock, so that waits last as long as they should. It
//! follows the wall clock forward (a laptop that slept), and never back: what was decided stays in the past.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use yard_engine::Timestamp;

/// A lag behind the wall clock beyond which the machine slept or was set, rather than drifted.
const STEP: Duration = Duration::from_secs(2);

/// The loop's clock.
#[derive(Debug)]
pub(crate) struct Clock {
    anchor: Instant,
    time: Timestamp,
}

impl Clock {
    /// A clock that starts with the wall clock, or after the last event of the log if that lies in the future.
    pub(crate) fn starting_after(log: Timestamp) -> Self {
        Self { anchor: Instant::now(), time: wall_clock().max(log) }
    }

    /// Now, following the wall clock if that has run ahead.
    pub(crate) fn now(&mut self) -> Timestamp {
        self.read(Instant::now(), wall_clock())
    }

    fn read(&mut self, instant: Instant, wall: Timestamp) -> Timestamp {
        let steady = self.time.after(instant.saturating_duration_since(self.anchor));
        if wall.since(steady) > STEP {
            *self = Self { anchor: instant, time: wall };
            return wall;
        }
        steady
    }

    /// How long until a moment.
    pub(crate) fn until(&self, moment: Timestamp) -> Duration {
        moment.since(self.time.after(self.anchor.elapsed()))
    }
}

/// The instant after a span that somebody named; one too far away counts as a century.
pub(crate) fn instant_after(span: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_hours(24 * 36_525);
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
        let mut clock = Clock { anchor: start, time: noon };
        let later = |seconds| start + Duration::from_secs(seconds);
        let wall = |seconds: i64| Timestamp::from_millis(1_000_000_000 + seconds * 1000);
        assert_eq!(clock.read(later(10), wall(11)), wall(10), "drift is not followed");
        assert_eq!(clock.read(later(20), wall(-86_400)), wall(20), "set back a day: time goes on");
        assert_eq!(clock.read(later(30), wall(3600)), wall(3600), "an hour of sleep is followed");
        assert_eq!(clock.read(later(40), wall(40)), wall(3610), "and not taken back");
    }
}
