//! Loops compiled for the vector instructions that the processor turns out to have.

#![allow(clippy::inline_always)] // what is not part of the loop is compiled without them

use pulp::{Arch, Simd, WithSimd};

/// What `task` returns: compiled once for each instruction set that matters, and run as code for
/// the best that the processor has. Results are the same to the bit on all.
///
/// The closure and all that its loops call must be marked `#[inline(always)]`. What is not becomes
/// a function of its own, with the few instructions that every processor has.
// A task that can be called again, though it is called once: to call a closure once, the compiler
// puts a function around it, unless the closure consumes what it holds. That function is not
// inlined, whatever the closure says, and loops would lose half of their speed and more unnoticed.
#[inline]
pub(crate) fn vectorised<R>(task: impl FnMut() -> R) -> R {
    struct Task<F>(F);

    impl<R, F: FnMut() -> R> WithSimd for Task<F> {
        type Output = R;

        #[inline(always)]
        fn with_simd<S: Simd>(mut self, _: S) -> R {
            (self.0)()
        }
    }

    Arch::new().dispatch(Task(task))
}
