//! The engine, seen from outside: commands and reports in, events and answers out.

mod smoke;
mod town;
