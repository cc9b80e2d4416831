//! The retry policy: whether and when a bead whose worker failed is tried again, per class of failure.

use crate::Millis;
use crate::bead::Verdict;
use crate::context::Context;
use crate::dispatch::Category;
use crate::settings::{RetryPolicy, Settings};

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextTry {
    /// Again, after a wait.
    After(Millis),
    /// Not again; the bead is left with this.
    Never(Verdict),
}

/// A worker that yields goes to the back of the queue for a moment, so that it cannot spin.
const YIELD_WAIT: Millis = Millis::seconds(1);

/// Decides what follows a failure of this class, given how often the request failed before.
pub(crate) fn next_try(settings: &Settings, context: &Context, category: Category) -> NextTry {
    if let Some(task) = &context.task {
        return next_try_of_task(settings, context, task.max_attempts, category);
    }
    match category {
        Category::Crash => after(&settings.retry_crash, context.crashes)
            .map_or(NextTry::Never(Verdict::Failed), NextTry::After),
        Category::Unavailable => after(&settings.retry_unavailable, context.unavailables)
            .map_or(NextTry::Never(Verdict::Unavailable), NextTry::After),
        Category::Yielded => NextTry::After(YIELD_WAIT),
        Category::HardCap => NextTry::Never(Verdict::Failed),
    }
}

/// A task says itself how often it may be tried.
fn next_try_of_task(settings: &Settings, context: &Context, most: u32, category: Category) -> NextTry {
    let (policy, failed) = match category {
        Category::Crash => (&settings.retry_crash, context.crashes),
        Category::Unavailable => (&settings.retry_unavailable, context.unavailables),
        Category::Yielded => return NextTry::After(YIELD_WAIT),
        Category::HardCap => return NextTry::Never(Verdict::Failed),
    };
    let attempts = context.crashes + context.unavailables + 1;
    let again = RetryPolicy { backoff: policy.backoff.clone(), max_attempts: u32::MAX };
    let wait = after(&again, failed).filter(|_| attempts < most);
    wait.map_or(NextTry::Never(Verdict::Failed), NextTry::After)
}

/// The wait before the next attempt after `failed_before + 1` failures; none when attempts are used up.
fn after(policy: &RetryPolicy, failed_before: u32) -> Option<Millis> {
    let failed = failed_before + 1;
    if failed >= policy.max_attempts {
        return None;
    }
    let waits = &policy.backoff;
    Some(waits.get(failed_before as usize).or(waits.last()).copied().unwrap_or(Millis(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_follow_the_schedule_and_end_with_the_attempts() {
        let policy = RetryPolicy { backoff: vec![Millis(1), Millis(5)], max_attempts: 4 };
        let waits: Vec<_> = (0..4).map(|failed| after(&policy, failed)).collect();
        assert_eq!(waits, [Some(Millis(1)), Some(Millis(5)), Some(Millis(5)), None]);
    }
}
