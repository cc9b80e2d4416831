//! How programs talk to a town: the socket protocol, a small synchronous client, and the views.
//!
//! Promises: every JSON document of the command line is a struct in [`views`], rendered from the engine's state
//! once, and read by the CLI, the socket, HTTP and the console alike; text from outside reaches a terminal only
//! through [`Safe`]. It must not open the journal, start a runtime or read the config.

mod connection;
mod document;
mod protocol;
mod safe;
mod socket;
pub mod views;

pub use connection::{Answer, Connection, Lost};
pub use document::Document;
pub use protocol::{
    Ask, Attached, BeadFilter, EventsAsk, Hello, PROTOCOL_VERSION, Reply, Request, ServerRole,
};
pub use safe::{Safe, safe_line};
pub use socket::SocketPath;
