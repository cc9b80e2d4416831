//! Memory that a busy moment needed, given back to the machine when it is over.

/// Gives back what is free. The allocator keeps what it once had, because it cannot know that the moment is over.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back() {
    // SAFETY: it takes a number and touches nothing but the allocator's own free memory, under its own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Has the allocator keep little of what is free at the end of each of its areas. It would otherwise keep twice as much as
/// the largest piece that was ever freed, in every area, and [`give_back`] cannot reach it there.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn keep_little() {
    const KEPT: libc::c_int = 1024 * 1024;
    for setting in [libc::M_TRIM_THRESHOLD, libc::M_MMAP_THRESHOLD] {
        // SAFETY: it takes two numbers and sets one of the allocator's own, under its lock.
        unsafe {
            libc::mallopt(setting, KEPT);
        }
    }
}

/// Nothing to be said to other allocators.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn keep_little() {}

/// Gives back what is free, where the allocator does not do so by itself.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}
