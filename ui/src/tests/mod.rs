//! Tests of the console as a whole, on the towns of [`crate::testing`].

mod frames;
mod hostile;
mod registry;
mod snapshots;
mod verbs;
mod ways_about;
