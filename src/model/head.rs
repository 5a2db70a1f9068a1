//! The first rows of a matrix, and what their gradient is below them.
//!
//! ```text
//!   y = first n rows of x        ∂x = ⎡ g ⎤  n rows
//!                                     ⎣ 0 ⎦  the others
//! ```
//!
//! burn's `narrow` does the same. On processors its way back clears memory, copies it to where it
//! is aligned, and writes the gradient over it, all on one thread; here all threads write each
//! value once.

#![cfg_attr(feature = "ndarray", allow(deprecated))] // the backend is kept for those who name it

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor as Float;
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata};
use burn::tensor::{Slice, Tensor};

use super::host::{Host, copied};
use super::operation::{on_every_backend, operation};

/// Which rows of two dimensions.
fn first(rows: usize) -> [Slice; 2] {
    [Slice::from(0..rows), Slice::full()]
}

/// The way back on a backend.
pub(crate) trait HeadKernels: Backend {
    /// `g [some, width]` with zeros below, `[rows, width]`.
    fn with_zeros_below(g: Float<Self>, rows: usize) -> Float<Self> {
        let [some, width] = g.shape().dims();
        let zeros = Self::float_zeros([rows, width].into(), &g.device(), g.dtype().into());
        Self::float_slice_assign(zeros, &first(some), g)
    }
}

#[cfg(feature = "wgpu")]
impl HeadKernels for burn_cubecl::CubeBackend {}

impl<B: Host> HeadKernels for B {
    fn with_zeros_below(g: Float<Self>, rows: usize) -> Float<Self> {
        let width = g.shape()[1];
        B::tensor(copied(&B::values(g), rows * width), [rows, width])
    }
}

on_every_backend! {
    /// The first rows as an operation of a tensor backend.
    pub(crate) trait HeadBackend: Backend {
        /// See [`first_rows`].
        fn first_rows(x: Float<Self>, rows: usize) -> Float<Self>;
    }
}

/// The first `rows` rows of `x`, not copied where rows are read where they lie.
///
/// # Shapes
/// - x: `[at least rows, width]`
/// - result: `[rows, width]`
///
/// # Panics
/// If there are fewer.
pub(super) fn first_rows(x: Tensor<2>, rows: usize) -> Tensor<2> {
    assert!(rows <= x.dims()[0], "so many rows of a tensor");
    Tensor::from_dispatch(<Dispatch as HeadBackend>::first_rows(
        x.into_dispatch(),
        rows,
    ))
}

impl<B: HeadKernels> HeadBackend for B {
    fn first_rows(x: Float<Self>, rows: usize) -> Float<Self> {
        B::float_slice(x, &first(rows))
    }
}

impl<B: HeadKernels, C: CheckpointStrategy> HeadBackend for Autodiff<B, C> {
    fn first_rows(x: Float<Self>, rows: usize) -> Float<Self> {
        operation::<B, C, _, 1>(
            [x],
            |[x]| {
                let all = x.shape()[0];
                (B::float_slice(x, &first(rows)), all)
            },
            |g, all, _| [Some(B::with_zeros_below(g, all))],
        )
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};
    use proptest::prelude::*;

    use super::*;
    use crate::model::host::COPIED;
    use crate::model::sparse::drawn;

    proptest! {
        #[test]
        fn first_rows_and_their_gradient_are_those_of_a_part_of_the_tensor(
            rows in 1_usize..9,
            more in 0_usize..5,
            // With blocks that end within a row, too.
            width in prop_oneof![1_usize..40, COPIED - 3..COPIED + 9],
            seed in any::<u32>().prop_map(u64::from),
        ) {
            let all = rows + more;
            let tensor = |rows, seed| -> Tensor<2> {
                let values = drawn::values(rows * width, seed);
                Tensor::from_data(TensorData::new(values, [rows, width]), &Device::flex())
            };
            let (x, g) = (tensor(all, seed), tensor(rows, seed + 1));
            let found = |take: fn(Tensor<2>, usize) -> Tensor<2>| {
                let x = Tensor::from_inner(x.clone()).require_grad();
                let some = take(x.clone(), rows);
                let mut gradients = (some.clone() * Tensor::from_inner(g.clone())).sum().backward();
                let gradient = x.grad_remove(&mut gradients).expect("x has a gradient");
                (some.inner().into_data(), gradient.into_data())
            };
            prop_assert_eq!(found(first_rows), found(|x, rows| x.narrow(0, 0, rows)));
            prop_assert_eq!(
                first_rows(x.clone(), rows).into_data(), x.narrow(0, 0, rows).into_data()
            );
        }
    }
}
