//! A small generator for tests that act at random, so that a failing run can be repeated with its seed.

use std::io::Write as _;

/// Numbers that look random.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// With the seed in `YM_TEST_SEED`, else with one of its own, which the test runner shows if the test fails.
    pub fn new() -> Self {
        let seed = std::env::var("YM_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) * 7919);
        let _ = writeln!(std::io::stderr(), "repeat with YM_TEST_SEED={seed}");
        Self(seed)
    }

    /// With a given seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1))
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

impl Default for Dice {
    fn default() -> Self {
        Self::new()
    }
}
