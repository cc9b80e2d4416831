//! The journal in one SQLite file, beside which lie its WAL, the note of its end and the lease's lock.

mod copy;
mod folder;
mod lease;
mod past;
mod reader;
mod repair;
mod rows;
mod schema;
mod tip;
mod wal;
mod writer;

pub(crate) use copy::write_copy;
pub(crate) use lease::FileLease;
pub(crate) use past::new_copy;
pub(crate) use reader::SqliteReader;
pub use repair::{Damage, Loss, Repaired};
pub use schema::SCHEMA_VERSION;
pub use wal::OtherDisk;
pub(crate) use writer::SqliteJournal;
