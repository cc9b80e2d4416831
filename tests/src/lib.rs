//! What the end-to-end tests, the crash tests and the simulation share.
//!
//! Promises: tests drive the real binary and the real engine; they wait for conditions, never for time.

pub mod dice;
pub mod fuzz;
pub mod http;
pub mod postgres;
pub mod push;
pub mod repo;
pub mod sim;
pub mod slurm;
pub mod ssh;
pub mod terminal;
pub mod tls;
pub mod town;
pub mod workspace;
pub mod world;
