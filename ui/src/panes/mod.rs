//! The parts of the screen that views share, and what lies over them.

pub(crate) mod agent;
pub(crate) mod banner;
pub(crate) mod bottom;
pub(crate) mod detail;
pub(crate) mod finder;
pub(crate) mod header;
pub(crate) mod log;
pub(crate) mod menu;
pub(crate) mod plan;
pub(crate) mod text;
pub(crate) mod tiles;
pub(crate) mod why;
