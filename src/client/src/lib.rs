//! How programs talk to a town, here or elsewhere: the socket protocol, a small synchronous client, and the views.
//!
//! Promises: every JSON document of the command line is a struct in [`views`], rendered from the engine's state
//! once, and read by the CLI, the socket, HTTP and the console alike; text from outside reaches a terminal only
//! through [`Safe`]. It must not open the journal, start a runtime or read the config.

mod connection;
mod document;
mod place;
mod protocol;
mod safe;
mod socket;
mod ssh;
mod stream;
pub mod views;
mod web;

pub use connection::{Answer, Connection, Lost};
pub use document::Document;
pub use place::{BadPlace, Place};
pub use protocol::{
    Ask, Attached, BeadFilter, EventsAsk, Hello, PROTOCOL_VERSION, Reply, Request, ServerRole,
};
pub use safe::{Safe, safe_line};
pub use socket::SocketPath;
pub use ssh::{SshFailure, SshTown};
pub use web::{UPGRADE, WebTown, notice_when_gone};
