//! The console: what an operator of ten to a thousand workers looks at all day.
//!
//! Promises: it folds the town's events into the same engine state the daemon has; [`update`] and [`render`] are plain
//! functions without clock, terminal or I/O; every action stands in one registry ([`actions`]) and has the command line
//! that does the same; text from outside reaches the screen only made safe; the terminal is restored whatever happens.
//! It must not open the journal, decide anything about the schedule, or change the town other than by `ym` commands.

pub mod actions;
pub mod console;
mod crew;
pub mod digest;
mod errands;
mod eventlist;
mod feed;
pub mod filter;
pub mod forecasts;
mod glossary;
pub mod glyphs;
pub mod keys;
pub mod layers;
pub mod layout;
mod logs;
pub mod look;
mod mermaid;
pub mod msg;
mod oracle;
mod outside;
mod paint;
mod panes;
pub mod problems;
mod render;
pub mod replay;
mod rows;
mod run;
pub mod table;
mod terminal;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod text;
pub mod theme;
mod timeline;
pub mod town;
mod update;
mod views;
mod ways;
pub mod whatif;

pub use render::render;
pub use run::{Left, Setup, run};
pub use update::{applies, perform, prepare, update};
