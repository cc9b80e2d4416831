//! The one loop that joins engine, journal, workers and clients.
//!
//! Promises: one plain thread owns the state and the journal; whatever it answers is on disk; effects (spawns,
//! signals, wake commands) happen only after the events that order them are durable. Whoever holds the lease
//! serves the socket: a daemon, a console, or a passing command.

mod anew;
mod ask;
mod attach;
mod branches;
mod clock;
pub mod config;
mod core;
mod embed;
mod eventlog;
mod fold;
pub mod fuzzing;
mod host;
mod http;
mod input;
mod launch;
mod logtext;
mod memory;
mod reads;
pub mod rehearsal;
mod serve;
mod server;
mod shelf;
mod stamp;
mod standby;
mod starts;
mod store;
mod surroundings;
mod town;
mod waiting;
mod wake;

pub use ask::{Answered, AskError, ask};
pub use core::OpenError;
pub use embed::Embedded;
pub use http::{TokenError, session_token, token, webhook_secret};
pub use serve::{DaemonError, run_daemon};
pub use store::StoreError;
pub use town::{NoTown, TownDir};
