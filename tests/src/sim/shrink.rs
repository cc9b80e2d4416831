//! A failing history made short: steps are left out, many at first, then one by one, as long as it still fails.

use super::{Failure, Play};

impl Play {
    /// The shortest history found that breaks a promise as this one does, with its failure; itself if it keeps all.
    pub fn shrink(self) -> (Self, Option<Failure>) {
        let Err(mut failure) = self.play() else { return (self, None) };
        // Steps that no history has are no steps.
        let mut shortest = Self { steps: self.steps & ((1 << 40) - 1), ..self };
        let mut chunk = 32;
        while chunk > 0 {
            let mut shorter = false;
            for from in (0..64).step_by(chunk) {
                let span = (u64::MAX >> (64 - chunk)) << from;
                let without = Self { steps: shortest.steps & !span, ..shortest };
                if without.steps == shortest.steps {
                    continue;
                }
                if let Err(still) = without.play() {
                    (shortest, failure, shorter) = (without, still, true);
                }
            }
            if !shorter {
                chunk /= 2;
            }
        }
        (shortest, Some(failure))
    }
}
