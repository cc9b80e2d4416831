//! The event log of a town, its checkpoints, and the lease that makes one process its writer: in one SQLite file, or in
//! PostgreSQL, where other hosts can follow it.
//!
//! Promises: what [`Journal::append`] acknowledged survives `kill -9` and power loss, whole and in order; what it
//! refused left no trace; every row is numbered without gaps and sealed by a chained checksum, so damage is
//! reported with its place instead of being folded into a state. Reading needs no lease and never delays the
//! writer. The crate must not know what an event means: rows are a kind and a JSON text, no more.

mod chain;
mod check;
mod copy;
mod error;
mod journal;
mod lease;
mod load;
mod postgres;
mod query;
mod reader;
mod row;
mod sqlite;
mod store;

pub use check::CheckReport;
pub use copy::{Copied, copy};
pub use error::JournalError;
pub use journal::Journal;
pub use lease::{Holder, Lease, LeaseError, Role};
pub use postgres::{BadUrl, PostgresUrl, Server, leave_log};
pub use query::EventQuery;
pub use reader::Reader;
pub use row::{EntityRow, Loaded, Piece, Row};
pub use sqlite::{Damage, Loss, OtherDisk, Repaired, SCHEMA_VERSION};
pub use store::Store;
