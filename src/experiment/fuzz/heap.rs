//! An allocator that counts what the thread that fuzzes takes.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// One allocation of more than this, for files of a few kilobytes, is refused: the program then
/// ends, after saying in which execution.
const ABSURD: usize = 2 << 30;

thread_local! {
    /// Bytes taken and not given back since the count began; none while nothing is counted.
    static TAKEN: Cell<Option<isize>> = const { Cell::new(None) };
    /// The most of them at once.
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// Which execution this is, for last words.
    static AT: Cell<(&'static str, u64)> = const { Cell::new(("", 0)) };
}

struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

fn count(change: isize) {
    // A thread that is ending has no cells any more, and nothing to count.
    let _ = TAKEN.try_with(|taken| {
        if let Some(before) = taken.get() {
            // Signed, for what was there before the count began may be given back in it.
            let now = before + change;
            taken.set(Some(now));
            let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
        }
    });
}

fn is_absurd(size: usize) -> bool {
    // Counting ends here, for telling allocates as well.
    let absurd = size > ABSURD
        && TAKEN
            .try_with(|taken| taken.replace(None))
            .is_ok_and(|taken| taken.is_some());
    if absurd {
        let (target, seed) = AT.with(Cell::get);
        eprintln!("{target}, execution {seed}: an allocation of {size} bytes");
    }
    absurd
}

// SAFETY: all is left to the system's allocator; a null pointer says that there is no memory, as it may.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_absurd(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size() as isize);
        // SAFETY: as promised to this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as promised to this function.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_absurd(size) {
            return std::ptr::null_mut();
        }
        // While it is moved there are both.
        count(size as isize);
        // SAFETY: as promised to this function.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        count(-(layout.size() as isize));
        moved
    }
}

/// Bytes that `action` has on this thread's heap at most, beyond what was there.
pub fn peak_of<T>(target: &'static str, seed: u64, action: impl FnOnce() -> T) -> (T, usize) {
    AT.set((target, seed));
    PEAK.set(0);
    TAKEN.set(Some(0));
    let result = action();
    TAKEN.set(None);
    (result, PEAK.get().unsigned_abs())
}

#[test]
fn the_most_that_was_there_at_once_is_counted() {
    let ((), peak) = peak_of("", 0, || {
        for _ in 0..3 {
            drop(std::hint::black_box(vec![1_u8; 1 << 20]));
        }
    });
    assert!((1 << 20..1 << 21).contains(&peak), "{peak}");
}
