//! The journal in a schema of a PostgreSQL database: the same rows, sums and seals as in the file, and a lease with a term
//! that every write checks in its own transaction, so that whoever was replaced while it stood still writes nothing.

mod copy;
mod lease;
mod password;
mod place;
mod reader;
mod rows;
mod schema;
mod session;
mod url;
mod writer;

pub(crate) use copy::write_copy;
pub(crate) use lease::RowLease;
pub use place::leave_log;
pub(crate) use reader::PostgresReader;
pub(crate) use schema::begin;
pub use session::Server;
pub use url::{BadUrl, PostgresUrl};
pub(crate) use writer::PostgresJournal;
