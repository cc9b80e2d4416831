//! Past, running and planned work on one axis of time: the axis, the bars of one bead, and how many slots are busy.

use yard_engine::BeadId;
use yard_engine::dispatch::{Dispatch, Outcome, StopReason};

use crate::console::Console;
use crate::text::Zone;
use crate::theme::Role;

/// Widths of a column, in milliseconds: such that labels fall on round times.
const COLUMNS: [i64; 18] = [
    1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 90_000, 120_000, 300_000, 600_000, 900_000,
    1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000,
];
/// The share of the axis that lies in the past, in percent.
const PAST: i64 = 35;
/// Columns between two labels.
const LABEL_EVERY: usize = 12;

/// An axis of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    /// The time at its left edge.
    pub from: i64,
    /// Milliseconds per column.
    pub column: i64,
    /// How many columns.
    pub columns: usize,
    /// What time it is.
    pub now: i64,
}

/// A cell of a bar.
pub(crate) type Cell = (&'static str, Role);

/// The axis that shows what runs and what is planned, as far as there is room; or what the user chose.
pub(crate) fn axis(console: &Console, columns: usize) -> Axis {
    let state = console.state();
    let now = console.shown_now().as_millis();
    let wide = columns.max(10) as i64;
    let finish = console.shown_forecasts().town.as_ref().and_then(|forecast| forecast.finish);
    let ahead = finish.map_or(0, |band| band.p90.as_millis() - now);
    let oldest = match state.live_dispatches().map(|dispatch| dispatch.started_at.as_millis()).min() {
        // Nothing runs: what ran last is worth seeing.
        None if ahead <= 0 => oldest_seen(console),
        oldest => oldest,
    };
    let behind = now - oldest.unwrap_or(now);
    let needed = (behind * 100 / (wide * PAST)).max(ahead * 100 / (wide * (98 - PAST)));
    let fitting = COLUMNS.into_iter().find(|column| *column >= needed);
    let column = console.column.or(fitting).unwrap_or(COLUMNS[COLUMNS.len() - 1]);
    let from = now - wide * PAST / 100 * column + console.shift * column;
    Axis { from: from.div_euclid(column) * column, column, columns, now }
}

/// When the first attempt of the rows in sight began.
fn oldest_seen(console: &Console) -> Option<i64> {
    let state = console.state();
    let firsts = console.table.visible(60).filter_map(|id| state.dispatches_of(id).next());
    firsts.map(|dispatch| dispatch.started_at.as_millis()).min()
}

/// The next finer or coarser width of a column.
pub(crate) fn next_column(column: i64, finer: bool) -> i64 {
    let at = COLUMNS.iter().position(|known| *known >= column).unwrap_or(COLUMNS.len() - 1);
    let next = if finer { at.saturating_sub(1) } else { (at + 1).min(COLUMNS.len() - 1) };
    COLUMNS[next]
}

impl Axis {
    /// The column of a time; it may lie outside.
    pub(crate) fn at(&self, millis: i64) -> i64 {
        (millis - self.from).div_euclid(self.column)
    }

    /// The time at its right edge.
    pub(crate) fn until(&self) -> i64 {
        self.from + self.columns as i64 * self.column
    }

    /// The labels, with a mark where now is.
    pub(crate) fn labels(&self, zone: Zone, now_head: &str) -> String {
        let mut cells: Vec<String> = vec![" ".to_owned(); self.columns];
        for start in (0..self.columns).step_by(LABEL_EVERY) {
            let time = yard_engine::Timestamp::from_millis(self.from + start as i64 * self.column);
            let text = self.label(zone, time);
            // Half a time under the mark of now would be no time.
            let hidden = usize::try_from(self.at(self.now))
                .is_ok_and(|now| (start..start + text.len()).contains(&now));
            if start + text.len() <= self.columns && !hidden {
                for (cell, letter) in cells[start..].iter_mut().zip(text.chars()) {
                    *cell = letter.to_string();
                }
            }
        }
        if let Some(cell) = usize::try_from(self.at(self.now)).ok().and_then(|at| cells.get_mut(at)) {
            now_head.clone_into(cell);
        }
        cells.concat()
    }

    /// A time as finely as the axis shows it: with seconds, with the day, or the day alone.
    fn label(&self, zone: Zone, time: yard_engine::Timestamp) -> String {
        const DAY: i64 = 86_400_000;
        match (self.column * LABEL_EVERY as i64, self.column * self.columns as i64) {
            (..60_000, _) => zone.clock(time),
            (DAY.., _) => zone.day(time),
            (_, DAY..) => zone.day_and_minute(time),
            _ => zone.minute(time),
        }
    }

    /// Its two ends.
    pub(crate) fn ends(&self, zone: Zone) -> String {
        let time = yard_engine::Timestamp::from_millis;
        let days = self.until() - self.from >= 86_400_000;
        let end = |at: i64| if days { zone.day_and_minute(time(at)) } else { zone.minute(time(at)) };
        format!("{} - {}", end(self.from), end(self.until()))
    }

    /// How wide a column is, in words.
    pub(crate) fn scale(&self) -> String {
        format!("1 col = {}", crate::text::span_exact(self.column))
    }
}

/// The bars of one bead, a cell per column.
pub(crate) fn bars(console: &Console, axis: &Axis, bead: &BeadId) -> Vec<Cell> {
    let glyphs = &console.look.glyphs;
    let state = console.state();
    let planned = console.shown_forecasts().planned(bead);
    let critical = planned.is_some_and(|planned| planned.critical);
    let mut cells: Vec<Cell> = vec![(" ", Role::Text); axis.columns];
    let mut last_end = None;
    for dispatch in state.dispatches_of(bead) {
        let from = dispatch.running_at.unwrap_or(dispatch.started_at).as_millis();
        let end = dispatch.ended.as_ref().map_or(axis.now, |ended| ended.at.as_millis());
        last_end = Some((from, end));
        let cell = if critical && dispatch.is_live() {
            (glyphs.past_critical, Role::PastCritical)
        } else {
            (glyphs.past, Role::Past)
        };
        fill(&mut cells, axis, from, end, cell);
        if let Some(mark) = end_mark(console, dispatch) {
            let at = usize::try_from(axis.at(end));
            if let Some(place) = at.ok().and_then(|at| cells.get_mut(at)) {
                *place = mark;
            }
        }
    }
    if let Some(planned) = planned.filter(|planned| planned.end.as_millis() > axis.now) {
        let from = planned.start.as_millis().max(axis.now + axis.column);
        let cell = if planned.critical {
            (glyphs.plan_critical, Role::PlanCritical)
        } else {
            (glyphs.plan, Role::Plan)
        };
        fill(&mut cells, axis, from, planned.end.as_millis(), cell);
        if planned.start.as_millis() >= axis.until()
            && let Some(last) = cells.last_mut()
        {
            *last = (glyphs.beyond, Role::Plan);
        }
    }
    if let Some((_, end)) = last_end.filter(|(_, end)| *end < axis.from)
        && cells.iter().all(|(glyph, _)| *glyph == " ")
        && end < axis.from
        && let Some(first) = cells.first_mut()
    {
        *first = (glyphs.before, Role::Dim);
    }
    if let Some(place) = usize::try_from(axis.at(axis.now)).ok().and_then(|at| cells.get_mut(at))
        && place.0 == " "
    {
        *place = (glyphs.now, Role::Now);
    }
    cells
}

/// How an attempt ended, where that is worth a mark.
fn end_mark(console: &Console, dispatch: &Dispatch) -> Option<Cell> {
    let glyphs = &console.look.glyphs;
    Some(match &dispatch.ended.as_ref()?.outcome {
        Outcome::Succeeded | Outcome::NeverRan { .. } => return None,
        Outcome::Stopped { reason: StopReason::CooperativePreemption | StopReason::PreemptionTimeout } => {
            (glyphs.preempted, Role::Warning)
        }
        Outcome::Stopped { .. } => (glyphs.cancelled, Role::Warning),
        Outcome::Failed { .. } | Outcome::StartFailed { .. } | Outcome::Lost { .. } => {
            (glyphs.failed, Role::Bad)
        }
    })
}

fn fill(cells: &mut [Cell], axis: &Axis, from: i64, to: i64, cell: Cell) {
    let first = axis.at(from).clamp(0, axis.columns as i64);
    // However short, it takes a column.
    let last = axis.at(to.max(from + 1) - 1).clamp(-1, axis.columns as i64 - 1);
    for at in first..=last {
        cells[at as usize] = cell;
    }
}

/// How many slots are busy in each column: counted for the past, forecast for what comes.
pub(crate) fn load(console: &Console, axis: &Axis) -> Vec<u32> {
    let past = &console.digest.load;
    let ahead = console.shown_forecasts().town.as_ref().map(|forecast| forecast.load.as_slice());
    let busy = |column: usize| {
        let from = axis.from + column as i64 * axis.column;
        if from > axis.now {
            let steps = ahead.unwrap_or_default();
            let next = steps.partition_point(|(at, _)| at.as_millis() <= from);
            return next.checked_sub(1).and_then(|last| steps.get(last)).map_or(0, |(_, busy)| *busy);
        }
        // The most that were live at any moment of the column.
        let first = past.partition_point(|(at, _)| *at <= from);
        let next = past.partition_point(|(at, _)| *at < from + axis.column);
        past[first.saturating_sub(1)..next].iter().map(|(_, busy)| *busy).max().unwrap_or(0)
    };
    (0..axis.columns).map(busy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ten(from: i64, now: i64) -> Axis {
        Axis { from, column: 1_000, columns: 10, now }
    }

    #[test]
    fn a_bar_takes_at_least_a_column_and_is_clipped_at_both_edges() {
        let axis = ten(10_000, 15_000);
        let drawn = |from, to| -> String {
            let mut cells = vec![(" ", Role::Text); 10];
            fill(&mut cells, &axis, from, to, ("x", Role::Past));
            cells.iter().map(|(glyph, _)| *glyph).collect()
        };
        assert_eq!(drawn(12_000, 15_000), "  xxx     ");
        assert_eq!(drawn(12_100, 12_200), "  x       ");
        assert_eq!(drawn(0, 11_500), "xx        ");
        assert_eq!(drawn(18_000, 99_000), "        xx");
        assert_eq!(drawn(0, 5_000), "          ");
        assert_eq!(drawn(99_000, 100_000), "          ");
    }

    #[test]
    fn columns_grow_and_shrink_step_by_step() {
        assert_eq!(next_column(5_000, true), 2_000);
        assert_eq!(next_column(5_000, false), 10_000);
        assert_eq!(next_column(1_000, true), 1_000);
        assert_eq!(next_column(43_200_000, false), 43_200_000);
    }

    #[test]
    fn labels_never_run_over_the_edge() {
        let axis = Axis { from: 0, column: 60_000, columns: 27, now: 300_000 };
        let labels = axis.labels(Zone::Utc, "v");
        assert_eq!(labels, "00:00v      00:12       ".to_owned() + "   ");
    }
}
