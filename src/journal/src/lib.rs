//! The event log of a town: one SQLite file, its checkpoints, and the lease that makes one process its writer.
//!
//! Promises: what [`Journal::append`] acknowledged survives `kill -9` and power loss, whole and in order; what it
//! refused left no trace; every row is numbered without gaps and sealed by a chained checksum, so damage is
//! reported with its place instead of being folded into a state. Reading needs no lease and never delays the
//! writer. The crate must not know what an event means: rows are a kind and a JSON text, no more.

mod chain;
mod check;
mod error;
mod lease;
mod load;
mod past;
mod query;
mod reader;
mod repair;
mod row;
mod schema;
mod tip;
mod wal;
mod writer;

pub use check::CheckReport;
pub use error::JournalError;
pub use lease::{Holder, Lease, LeaseError, Role};
pub use query::EventQuery;
pub use reader::Reader;
pub use repair::{Damage, Loss, Repaired};
pub use row::{EntityRow, Loaded, Piece, Row};
pub use schema::SCHEMA_VERSION;
pub use wal::OtherDisk;
pub use writer::Journal;
