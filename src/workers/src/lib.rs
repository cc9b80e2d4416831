//! Where beads run.
//!
//! Promises: an order handed to [`LocalPool`] starts at most once; nothing is reported lost before every
//! process it left behind is gone; a dispatch that ran leaves an exit record even when the daemon is dead. The
//! proof of life is the lock on a dispatch's claim file, never a process id. The second half turns a formula and a
//! bead into the steps of such an order.
//!
//! Must not: decide what runs (the engine does), touch the journal, or be async. `unsafe` lives in `sys` alone.

#![deny(unsafe_code)]

mod ask;
mod claim;
mod cook;
mod fence;
mod forkserver;
mod formula;
pub mod fuzzing;
mod git;
mod log;
mod pool;
mod preset;
mod record;
mod report;
mod shim;
mod slurm;
mod socket;
mod spec;
mod sweep;
#[expect(unsafe_code, reason = "the system calls nobody wraps")]
mod sys;
mod tmux;
mod trouble;
mod wire;

pub use cook::{CookError, CookInput, Cooked, cook};
pub use forkserver::forkserver_main;
pub use formula::{Completion, Formula, FormulaError, FormulaStep, Program, Variable};
pub use git::{
    Composed, Condemned, GitError, Landed, MergeOrder, OLDEST_GIT, branches_under, compose, disk_use,
    git_version, is_in_base, land, remove_worktree,
};
pub use pool::{Helper, LinePlace, LocalPool, Waker};
pub use preset::{AgentPreset, Place, PresetError, Presets, Saying, Sign, TextPlace};
pub use record::{ExitCause, ExitRecord, SlurmEnd, YIELDED};
pub use report::{Recovered, WorkerReport};
pub use shim::shim_main;
pub use slurm::{controllers, slurm_version};
pub use socket::{SocketAddress, socket_address};
pub use spec::{RunSpec, StartOrder, StepSpec, Surface, WorktreePlace, WorktreeSpec};
pub use tmux::{attach_to_window, has_window, tmux_version};
pub use trouble::is_machines_fault;

/// What tells a live process of this machine from a later one with the same number; none if it is dead.
pub fn process_mark(pid: u32) -> Option<String> {
    sys::process_mark(pid)
}
