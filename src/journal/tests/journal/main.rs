//! What the journal promises, tried from outside: on real files, full disks, damaged bytes and killed processes.
#![expect(clippy::unwrap_used, reason = "tests")]

mod damage;
mod disk_full;
mod durability;
mod flips;
mod processes;
mod reading;
mod repair;
mod support;
