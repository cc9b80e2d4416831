//! What the journal promises, tried from outside: on real files, full disks, damaged bytes and killed processes.
#![expect(clippy::unwrap_used, reason = "tests")]

mod damage;
mod disk_full;
mod durability;
mod flips;
mod postgres;
mod processes;
mod reading;
mod repair;
#[path = "../../../../tests/src/postgres.rs"]
#[expect(unreachable_pub, reason = "the file is shared with the end-to-end tests")]
mod server;
mod stores;
mod support;
