//! Memory that a busy moment needed, given back to the machine when it is over.

/// Gives back what is free. The allocator keeps what it once had, because it cannot know that the moment is over.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back() {
    // SAFETY: it takes a number and touches nothing but the allocator's own free memory, under its own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Gives back what is free, where the allocator does not do so by itself.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}
