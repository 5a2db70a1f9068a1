//! How this process treats memory: what it has freed, and where blocks begin.

use std::alloc::{GlobalAlloc, Layout, System};

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

/// The system's allocator, of which large blocks begin where a line of the cache does.
///
/// Rows of tensors are read 64 bytes at a time. Blocks of the system begin at any multiple of 16
/// bytes: then most reads touch two lines, and aggregation takes a sixth longer. For programs, as
/// their `#[global_allocator]`.
// Not by asking the system for such blocks: glibc before 2.38 cuts them out of larger ones and does
// not find them again, so that the heap grows with each epoch.
#[derive(Clone, Copy, Debug)]
pub struct CacheLines;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Bytes from which a block begins with a line.
const LARGE: usize = 1 << 14;

/// What the system is asked for instead of a large block: the place of this block in it is written
/// right before the block.
fn around(size: usize, align: usize) -> Option<Layout> {
    /// What blocks of the system are multiples of, on all that we know.
    const SYSTEM: usize = 16;
    if size < LARGE || align > SYSTEM {
        return None;
    }
    // Layouts are no longer than `isize::MAX`; where this is too long, the block is as it is.
    Layout::from_size_align(size.checked_add(LINE)?, SYSTEM).ok()
}

/// The block within what the system gave, if it gave something.
///
/// # Safety
/// `outer` is null, or of a layout of [`around`].
#[allow(unsafe_code)]
unsafe fn within(outer: *mut u8) -> *mut u8 {
    if outer.is_null() {
        return outer;
    }
    // From 16 to 64, as `outer` is a multiple of 16: there is room for a byte before the block.
    let place = LINE - outer.addr() % LINE;
    // SAFETY: the layout is longer than the block by the largest place, and the byte lies between
    // the start of the layout and the block, where nothing else does.
    unsafe {
        let block = outer.add(place);
        block.sub(1).write(place as u8);
        block
    }
}

/// What the system gave for a block of [`within`], and the block's place in it.
///
/// # Safety
/// `block` is such a one.
#[allow(unsafe_code)]
unsafe fn outside(block: *mut u8) -> (*mut u8, usize) {
    // SAFETY: `within` wrote the place there.
    unsafe {
        let place = usize::from(block.sub(1).read());
        (block.sub(place), place)
    }
}

// SAFETY: blocks are the system's, or lie within such of a layout with room for them; which of both
// follows from the layout alone, with which each is handed back. Of the caller's duties each is
// passed on: a block within a larger one has a size above 0 where that has.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for CacheLines {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            match around(layout.size(), layout.align()) {
                Some(outer) => within(System.alloc(outer)),
                None => System.alloc(layout),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above; the byte before the block is no part of it.
        unsafe {
            match around(layout.size(), layout.align()) {
                Some(outer) => within(System.alloc_zeroed(outer)),
                None => System.alloc_zeroed(layout),
            }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe {
            match around(layout.size(), layout.align()) {
                Some(outer) => System.dealloc(outside(block).0, outer),
                None => System.dealloc(block, layout),
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: as above. What the system keeps of the old contents begins at the old place, and
        // a move to the new one stays within the new layout, which has room for either.
        unsafe {
            match (around(layout.size(), align), around(size, align)) {
                (None, None) => System.realloc(block, layout, size),
                (Some(old), Some(new)) => {
                    let (outer, before) = outside(block);
                    let outer = System.realloc(outer, old, new.size());
                    if outer.is_null() {
                        return outer;
                    }
                    let after = LINE - outer.addr() % LINE;
                    let kept = layout.size().min(size);
                    outer.add(before).copy_to(outer.add(after), kept);
                    within(outer)
                }
                _ => {
                    let fresh = Layout::from_size_align_unchecked(size, align);
                    let moved = self.alloc(fresh);
                    if !moved.is_null() {
                        block.copy_to_nonoverlapping(moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_keep_what_is_in_them_and_large_ones_begin_with_a_line(
            sizes in prop::collection::vec(
                prop_oneof![1_usize..200, LARGE - 40..LARGE + 40, LARGE..4 * LARGE],
                1..8,
            ),
            align in prop_oneof![Just(1_usize), Just(4), Just(16), Just(32)],
            zeroed in any::<bool>(),
        ) {
            let layout = |size| Layout::from_size_align(size, align).unwrap();
            let first = layout(sizes[0]);
            // What a byte at this place should be.
            let mark = |at: usize| (at % 251) as u8;
            #[allow(unsafe_code)]
            // SAFETY: sizes are above 0, and each block is used within its size and handed back
            // once, with the layout that it has.
            unsafe {
                let mut block = if zeroed {
                    CacheLines.alloc_zeroed(first)
                } else {
                    CacheLines.alloc(first)
                };
                if zeroed {
                    let bytes = std::slice::from_raw_parts(block, sizes[0]);
                    prop_assert!(bytes.iter().all(|&byte| byte == 0));
                }
                let mut before = 0;
                for (number, &size) in sizes.iter().enumerate() {
                    if number > 0 {
                        block = CacheLines.realloc(block, layout(before), size);
                    }
                    let bytes = std::slice::from_raw_parts_mut(block, size);
                    let kept = if number > 0 { before.min(size) } else { 0 };
                    prop_assert!((0..kept).all(|at| bytes[at] == mark(at)));
                    (0..size).for_each(|at| bytes[at] = mark(at));
                    prop_assert_eq!(block.addr() % align, 0);
                    prop_assert!(size < LARGE || align > 16 || block.addr() % LINE == 0);
                    before = size;
                }
                CacheLines.dealloc(block, layout(before));
            }
        }
    }
}
