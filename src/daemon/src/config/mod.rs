//! The config file `.yardmaster/config.toml`: one table of keys says what is accepted, what it means and what
//! holds when nothing is said.
//!
//! Promises: a bad value is never half taken (the whole file is refused, naming key, line and what was expected);
//! an edit keeps the person's comments, is durable before it is reported, and is never lost to another edit made at
//! the same time.

mod error;
mod file;
mod keys;
mod put_back;
mod settings;
mod store;
mod value;

pub use error::ConfigError;
pub(crate) use file::set_in_text;
pub use file::{Change, Entry, get, list, set, unset};
pub use keys::{Absent, KEYS, KeySpec, Kind};
pub use put_back::{PutBack, put_back};
pub(crate) use settings::needs_tls;
pub use settings::{parse_settings, read_settings};
pub use store::STORE;
pub(crate) use store::read_store;
pub use yard_engine::parse_size;
