//! Processor time of a thread: other programs share the machine, and an answer is only as late as its work is long.

use std::time::Duration;

/// A moment of this thread's work.
#[derive(Clone, Copy)]
pub(crate) struct Work(Duration);

impl Work {
    pub(crate) fn now() -> Self {
        let time = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID.now();
        Self(time.map(Duration::from).unwrap_or_default())
    }

    pub(crate) fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}
