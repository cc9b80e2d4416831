//! What follows from a schedule: who holds up the end, how late each may be without doing so, and how busy the slots are.

use super::model::{Model, NEVER, NONE, Place};
use super::simulate::Simulation;

/// The last of these units to end, by time and then by id; none if none ever ends.
pub(super) fn last_of(run: &Simulation<'_, '_>, units: &[u32]) -> Option<u32> {
    let ending = units.iter().copied().filter(|unit| run.end[*unit as usize] < NEVER);
    ending.max_by_key(|unit| (run.end[*unit as usize], std::cmp::Reverse(*unit)))
}

/// The chain that ends with a unit, first to last: each starts when the one before it ends, be it because it waited
/// for it or for its slot.
pub(super) fn chain_to(run: &Simulation<'_, '_>, last: Option<u32>) -> Vec<u32> {
    let mut chain = Vec::new();
    let mut next = last;
    while let Some(unit) = next {
        chain.push(unit);
        next = Some(run.after[unit as usize]).filter(|before| *before != NONE);
    }
    chain.reverse();
    chain
}

/// How much later each unit may end without anything in scope ending after the last of it, slots included. What nothing
/// in scope waits for may take until the end of everything.
pub(super) fn slack(model: &Model<'_>, run: &Simulation<'_, '_>, scope: &[u32], last: i64) -> Vec<i64> {
    let units = model.units.len();
    let horizon = run.end.iter().copied().filter(|end| *end < NEVER).max().unwrap_or(0).max(last);
    let mut latest = vec![horizon; units];
    for unit in scope {
        latest[*unit as usize] = last;
    }
    let mut followers: Vec<(u32, u32)> = (0..units as u32)
        .filter(|unit| run.limit[*unit as usize] != NONE)
        .map(|unit| (run.after[unit as usize], unit))
        .collect();
    followers.sort_unstable();
    let mut order: Vec<u32> = (0..units as u32).filter(|unit| run.end[*unit as usize] < NEVER).collect();
    // Whoever ends later comes first; among those that end together, whoever starts later.
    order.sort_unstable_by_key(|unit| {
        std::cmp::Reverse((run.end[*unit as usize], run.start[*unit as usize], *unit))
    });
    let mut doors: Vec<Option<Option<i64>>> = vec![None; model.waits.len() - units];
    let latest_start = |latest: &[i64], unit: u32| {
        let unit = unit as usize;
        if run.end[unit] == NEVER {
            return i64::MAX;
        }
        match model.units[unit].place {
            Place::Running | Place::Finished => i64::MAX,
            Place::Scheduled | Place::Fed(_) | Place::Never => {
                let takes = run.end[unit].saturating_sub(run.start[unit]);
                latest[unit].saturating_sub(takes)
            }
        }
    };
    for unit in order {
        let mut allowed = latest[unit as usize];
        for node in model.waiting_for(unit) {
            if model.is_unit(*node) {
                allowed = allowed.min(latest_start(&latest, *node));
                continue;
            }
            // Whoever stands behind a door starts after all that it waits for, hence was looked at already.
            let behind = doors[*node as usize - units].get_or_insert_with(|| {
                model.waiting_for(*node).iter().map(|unit| latest_start(&latest, *unit)).min()
            });
            allowed = allowed.min(behind.unwrap_or(horizon));
        }
        let first = followers.partition_point(|(before, _)| *before < unit);
        for (_, follower) in followers[first..].iter().take_while(|(before, _)| *before == unit) {
            allowed = allowed.min(latest_start(&latest, *follower));
        }
        latest[unit as usize] = allowed;
    }
    (0..units).map(|unit| latest[unit].saturating_sub(run.end[unit]).max(0)).collect()
}

/// How many slots are busy, as steps: from each time on so many.
pub(super) fn load(model: &Model<'_>, run: &Simulation<'_, '_>) -> Vec<(i64, u32)> {
    let mut changes: Vec<(i64, i32)> = Vec::new();
    for (unit, (start, end)) in model.units.iter().zip(run.start.iter().zip(&run.end)) {
        if unit.place != Place::Finished && *start < NEVER {
            changes.push((*start, 1));
            changes.push((*end, -1));
        }
    }
    changes.sort_unstable();
    let mut steps: Vec<(i64, u32)> = Vec::new();
    let mut busy = 0_i32;
    for (time, change) in changes {
        busy += change;
        let step = (time, busy.unsigned_abs());
        match steps.last_mut() {
            Some(last) if last.0 == time => *last = step,
            Some(_) | None => steps.push(step),
        }
    }
    steps.dedup_by_key(|(_, busy)| *busy);
    steps
}
