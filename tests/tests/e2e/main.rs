//! End to end: the real `ym`, real processes, real files.

/// Runs a test with each executor that has processes of its own, each as a test of its own.
macro_rules! by_both_executors {
    ($($name:ident),+ $(,)?) => {
        mod by_local {
            $(#[test] fn $name() { super::$name("local"); })+
        }
        mod by_tmux {
            $(#[test] fn $name() { super::$name("tmux"); })+
        }
    };
}

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
mod faults;
mod forecast;
mod hooks;
mod hostile;
mod http;
mod like;
mod mcp;
mod operator;
mod presets;
mod progress;
mod retention;
mod seed1;
mod sling;
mod spawn_delay;
mod tmux;
mod undo;
mod workers;
mod workspaces;
