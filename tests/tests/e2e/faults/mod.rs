//! Faults of the machine, met by the real program: killed processes, crashes at exact system calls, failing calls, stopped
//! processes, full and read-only disks, too few descriptors and processes, damaged journals, clocks that are set.

mod clocks;
mod disks;
mod errors;
mod flips;
mod golden;
mod journals;
mod kills;
mod limits;
mod load;
mod stops;
mod strace;
mod syscalls;

/// A number for the daily run, and one for `tests/run --full`.
fn share(daily: usize, full: usize) -> usize {
    if std::env::var_os("YM_TEST_FULL").is_some() { full } else { daily }
}
