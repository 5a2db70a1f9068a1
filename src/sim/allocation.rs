//! How this process treats memory it has freed.

/// Has the allocator keep freed memory instead of handing it back to the system.
///
/// Every operation on tensors allocates its result, tens of megabytes on graphs of some ten
/// thousand nodes, and frees it soon after. By default glibc takes such blocks from the system and
/// returns them each time, and the system clears and maps every page anew: half of the time of wide
/// layers. With one arena that never returns memory the same pages serve the next operation. Costs
/// some 10 % more memory at the peak. To be called before any thread starts; without glibc it does
/// nothing.
#[allow(unsafe_code)]
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` only sets numbers that the allocator reads; it has no preconditions.
    unsafe {
        // One arena, as memory that one thread frees serves others only within its arena.
        libc::mallopt(libc::M_ARENA_MAX, 1);
        // No block is mapped by itself: such blocks go back to the system as soon as they are
        // freed.
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
    }
}
