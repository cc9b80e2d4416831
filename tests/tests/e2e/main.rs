//! End to end: the real `ym`, real processes, real files.

mod agents;
mod branches;
mod concurrency;
mod console;
mod convoys;
mod crashes;
mod daemon;
mod demo;
mod disk_full;
mod dispatches;
mod forecast;
mod hooks;
mod hostile;
mod http;
mod like;
mod mcp;
mod operator;
mod presets;
mod progress;
mod seed1;
mod sling;
mod spawn_delay;
mod undo;
mod workers;
mod workspaces;
