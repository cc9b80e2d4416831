//! Deep histories: the real loop of the daemon (`yard_daemon::rehearsal`) on the real journal code, over a simulated disk.
//!
//! Everything around them is the same as in the quick histories: operator, workers, tracker, oracle. What becomes durable
//! is read from the disk by a connection of its own, never from what the loop believes; after a crash, which may come in the
//! middle of any write or sync of SQLite's, the loop begins again on what the disk has left.

mod around;
mod brisk;
mod config;
pub(super) mod coverage;
mod disk;
mod mischief;
mod outside;
mod past;
mod people;
mod rounds;
mod stage;
mod town;
mod vfs;

pub(super) use self::rounds::{Deep, brief};
