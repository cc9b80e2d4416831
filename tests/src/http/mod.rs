//! HTTP for tests, over plain sockets: a client that can also misbehave, and peers that a daemon sends requests to.

mod client;
mod peer;

pub use client::{Http, Response};
pub use peer::{Asked, Peer};
