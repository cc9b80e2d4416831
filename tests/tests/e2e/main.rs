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

/// The same, and on a cluster; what needs a cluster takes longer, so only tests that say something about it.
macro_rules! by_every_executor {
    ($($name:ident),+ $(,)?) => {
        by_both_executors!($($name),+);
        by_slurm!($($name),+);
    };
}

/// Runs a test on a cluster.
macro_rules! by_slurm {
    ($($name:ident),+ $(,)?) => {
        mod by_slurm {
            $(#[test] fn $name() { super::$name("slurm"); })+
        }
    };
}

/// Runs tests of this module also with journals in PostgreSQL.
macro_rules! also_on_postgres {
    ($($name:ident $(($executor:literal))?),+ $(,)?) => {
        mod on_postgres {
            $(#[test] fn $name() { yard_tests::town::on_postgres(|| super::$name($($executor)?)); })+
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
mod postgres;
mod presets;
mod progress;
mod remote;
mod retention;
mod seed1;
mod sling;
mod slurm;
mod spawn_delay;
mod tmux;
mod undo;
mod workers;
mod workspaces;
