//! The JSON documents of the command line, rendered from the engine's state once for everybody.

mod bead;
mod convoy;
mod scheduler;
mod show;
mod status;

pub use bead::{BeadList, BeadView, DependencyView, RigList, RigView, bead, beads, rigs};
pub use convoy::{ConvoyList, ConvoySummary, ConvoyView, TrackedView, convoy, convoys};
pub use scheduler::{
    CapacityView, LimitView, Queued, RigQueue, SchedulerList, SchedulerStatus, Waiting, queued,
    scheduler_list, scheduler_status,
};
pub use show::{
    ContextView, DispatchView, HistoryLine, LogView, ShowView, WhyView, context, dispatch, history_line, why,
    why_convoy,
};
pub use status::{
    DaemonView, FailedStart, Outcomes, RunView, RunningView, SlingView, StatusView, StuckView, WaitView,
    running, status,
};
