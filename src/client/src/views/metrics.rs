//! Figures for a monitoring system: a few numbers, however large the town.

use serde::{Deserialize, Serialize};
use yard_engine::State;
use yard_engine::capacity::Limit;

use super::task::{TaskStatsView, task_stats};

/// The figures of a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricsView {
    /// The position of the last event.
    pub seq: u64,
    /// Beads that are known.
    pub beads: usize,
    /// Requests that wait, for whatever.
    pub scheduled: usize,
    /// Those of them that could start if there were room.
    pub ready: usize,
    /// Workers and actions under way.
    pub running: usize,
    /// Workers that may run; none without a limit.
    pub max_workers: Option<u64>,
    /// Whether dispatch is paused.
    pub paused: bool,
    /// Alerts that nobody has seen.
    pub alerts: usize,
    /// Whether waiting work starts by itself.
    pub dispatches: bool,
    /// Tasks of the HTTP API.
    pub tasks: TaskStatsView,
}

/// The figures.
pub fn metrics(state: &State, dispatches: bool) -> MetricsView {
    MetricsView {
        seq: state.seq().0,
        beads: state.bead_count(),
        scheduled: state.open_context_count(),
        ready: state.ready_count(),
        running: state.live_count(),
        max_workers: state.room(&Limit::Town).max,
        paused: state.pause().is_some(),
        alerts: state.alerts().filter(|alert| alert.acked_by.is_none()).count(),
        dispatches,
        tasks: task_stats(state, None),
    }
}
