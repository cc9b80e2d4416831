//! The pure scheduler of Yardmaster.
//!
//! Promises: the log is the truth and [`State`] is its fold; the same events give the same state, byte for
//! byte; every decision (what is ready, what has room, what starts) is made here and nowhere else. It must
//! not do I/O, read a clock, use randomness or be async: time, settings and observations come in as inputs.

pub mod agent;
pub mod alert;
mod answer;
pub mod bead;
pub mod breaker;
pub mod capacity;
mod checkpoint;
pub mod command;
pub mod context;
pub mod convoy;
mod decide;
pub mod dispatch;
mod edges;
pub mod event;
mod feed;
pub mod forecast;
mod graph;
pub mod ids;
mod idtext;
mod invariants;
pub mod like;
mod lineup;
mod lookup;
pub mod merge;
pub mod money;
mod packed;
pub mod plan;
pub mod preempt;
mod queue;
pub mod readiness;
mod reason;
mod refusal;
mod retire;
mod retry;
pub mod rig;
mod scan;
mod seldom;
pub mod session;
pub mod settings;
mod size;
pub mod slurm;
pub mod source;
pub mod spending;
pub mod stage;
mod standing;
mod state;
mod stop;
mod stored;
mod stranded;
pub mod task;
mod tidy;
pub mod time;
pub mod town;
mod trackers;
mod tx;
pub mod undo;
mod used;
mod watch;
pub mod worktree;

pub use checkpoint::{CheckpointRow, Restoring, UnreadableRow};
pub use command::{Answer, Command};
pub use decide::{Asker, DEEPEST, Kitchen, WebhookFailure, WorkerExit, is_too_deep};
pub use event::{Event, Recorded, UnreadableEvent};
pub use ids::{
    AccountName, AgentName, AlertId, BadId, BeadId, ContextId, ConvoyId, DispatchId, FormulaName, RigName,
    Seq,
};
pub use invariants::Violation;
pub use lookup::{Lookup, Numbers};
pub use queue::Lane;
pub use refusal::Refusal;
pub use seldom::{Seldom, Unfilled};
pub use settings::Settings;
pub use size::parse_size;
pub use source::SourceReading;
pub use standing::Standing;
pub use state::State;
pub use stranded::Stranded;
pub use time::{BadTime, Millis, Timestamp};
pub use tx::Tx;
pub use used::Used;
