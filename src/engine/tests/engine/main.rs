//! The engine, seen from outside: commands and reports in, events and answers out.

mod dependencies;
mod operating;
mod ordering;
mod properties;
mod reporting;
mod seed1_cli;
mod seed1_contexts;
mod seed1_limits;
mod seed1_modes;
mod slinging;
mod smoke;
mod timing;
mod town;
