//! The time as the loop sees it: it runs on with the monotonic clock, so that waits last as long as they should,
//! and follows the wall clock when that was set.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use yard_engine::Timestamp;

/// A difference to the wall clock beyond which it was set rather than drifted.
const STEP: Duration = Duration::from_secs(2);

/// The loop's clock.
#[derive(Debug)]
pub(crate) struct Clock {
    anchor: Instant,
    wall: Timestamp,
}

impl Clock {
    /// A clock that starts with the wall clock.
    pub(crate) fn new() -> Self {
        Self { anchor: Instant::now(), wall: wall_clock() }
    }

    /// Now.
    pub(crate) fn now(&mut self) -> Timestamp {
        let steady = self.wall.after(self.anchor.elapsed());
        let wall = wall_clock();
        if wall.since(steady).max(steady.since(wall)) > STEP {
            *self = Self::new();
            return self.wall;
        }
        steady
    }
}

/// The wall clock.
pub(crate) fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
