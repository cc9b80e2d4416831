//! The engine, seen from outside: commands and reports in, events and answers out.

mod alerts;
mod awaiting;
mod convoys;
mod dependencies;
mod feeding;
mod launching;
mod operating;
mod ordering;
mod properties;
mod recovery;
mod reporting;
mod seed1_cli;
mod seed1_contexts;
mod seed1_limits;
mod seed1_modes;
mod seed2;
mod slinging;
mod smoke;
mod sources;
mod timing;
mod town;
mod words;
mod workspace;
