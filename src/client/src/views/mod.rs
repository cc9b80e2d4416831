//! The JSON documents of the command line, rendered from the engine's state once for everybody.

mod agent;
mod alert;
mod bead;
mod blockers;
mod convoy;
mod doing;
mod event;
mod forecast;
mod heard;
mod history;
mod like;
mod metrics;
mod recover;
mod scheduler;
mod show;
mod stage;
mod stage_document;
mod status;
mod stranded;
pub mod task;
#[cfg(test)]
mod testing;
mod worktree;
mod writer;

pub use agent::{
    AgentList, AgentView, AgentWhy, AgentWhyView, BeadWhy, BodyView, ClaimView, HeldView, InboxView,
    MessageView, OrderedView, TrackItem, TrackList, TrackView, agent, agent_why, agents, claim, inbox,
    message, tracks,
};
pub use alert::{AlertList, AlertView, alerts};
pub use bead::{BeadList, BeadView, DependencyView, RigList, RigView, bead, beads, rigs};
pub use convoy::{ConvoyList, ConvoySummary, ConvoyView, TrackedView, convoy, convoys};
pub use doing::doing;
pub use event::{event_subject, event_words};
pub use forecast::{
    BandView, ForecastView, NeverView, StepView, WaveForecast, WhatIfView, convoy_eta, forecast,
};
pub use heard::HeardView;
pub use history::{HistoryLine, history_line};
pub use metrics::{MetricsView, metrics};
pub use recover::RecoverView;
pub use scheduler::{
    CapacityView, LimitView, Queued, RigQueue, SchedulerList, SchedulerStatus, Waiting, queued,
    scheduler_list, scheduler_status,
};
pub use show::{
    ContextView, DispatchView, LogPiece, LogPlace, LogView, ShowView, WhyView, context, dispatch, why,
    why_convoy,
};
pub use stage::{GatedView, LaunchView, StageOutcome, StageView, TaskView, TreeNode, WaveView, launched};
pub use stage_document::StageDocument;
pub use status::{
    DaemonView, FailedStart, Outcomes, RestingAccount, RunView, RunningView, SlingView, SpendingView,
    StatusView, StuckView, WaitView, resting_accounts, running, spending, status,
};
pub use stranded::{StrandedList, StrandedView, stranded};
pub use worktree::{PruneFailure, PruneView, WorktreeList, WorktreeView};
