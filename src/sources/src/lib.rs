//! Where beads come from.
//!
//! Promises: a workspace is only ever read, never written; each change is told once; what can be read is told at once,
//! and a disappearance only when it is certain; whatever happens to a workspace's files (cut off, rewritten in place,
//! full of conflict markers, replaced by a directory) costs nothing that was known before, and is told in one sentence
//! as trouble for as long as it lasts.
//!
//! [`find`] says how a directory's workspace is to be read, [`Source`] reads it, [`Watch`] reads it again whenever it
//! may have changed, [`Descriptions`] answers what a bead says at length.
//!
//! Must not: decide what a change means (the engine compares it with the log), touch the journal, or be async.

#![deny(unsafe_code)]

mod command;
mod details;
mod eyes;
mod file;
pub mod fuzzing;
mod hands;
mod jsonl;
mod known;
mod ledger;
mod lenient;
mod lines;
mod news;
mod quick;
mod record;
mod run;
mod source;
mod watch;
mod workspace;

pub use details::{Descriptions, Details};
pub use record::Record;
pub use source::Source;
pub use watch::{Sink, Watch, WatchOptions};
pub use workspace::{Found, find};
