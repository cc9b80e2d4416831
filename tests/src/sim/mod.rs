//! The yard in a box: seeded histories of the real engine with everything around it simulated.
//!
//! Real: every decision, every event, the fold, checkpoints, the planner, the invariant checker. Simulated: the journal
//! (a durable prefix and commit points), the clock, the workers with their claim files, a beads workspace with its
//! tracker, and the operator. A history
//! first lives through faults (crashes at every persisted step, lost, late and doubled reports, dead shims, failed
//! starts, a full disk, clock jumps), then goes on without them until everything has come to its end.
//!
//! Checked: `State::check_indexes` after every event that becomes durable, `State::check_invariants` after every
//! decision, `State::check_nothing_waits_needlessly` after every pass, what the `oracle` knows at every start, end
//! and recovery, and the balance of the whole history at its end. The same seed gives the same history.

mod convoys;
mod daemon;
mod deep;
mod dice;
mod disk;
mod history;
mod line;
mod mutant;
mod operator;
mod oracle;
mod scenario;
mod shrink;
mod stream;
#[cfg(test)]
mod tests;
mod tracker;
mod workers;

pub use deep::coverage::Coverage;
pub use history::{Failure, Play, Told};
pub use mutant::Mutant;
pub use scenario::Scenario;
pub use stream::{Streamed, stream};

/// A promise that did not hold, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

impl Broken {
    fn unless(holds: bool, what: impl FnOnce() -> String) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self(what())) }
    }
}

impl From<yard_engine::Violation> for Broken {
    fn from(violation: yard_engine::Violation) -> Self {
        Self(violation.to_string())
    }
}
