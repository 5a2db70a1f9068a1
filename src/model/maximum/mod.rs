//! The largest value of each column among the neighbours of a node, on every backend and with its
//! gradient.
//!
//! Where several neighbours have the largest value, the first entry of the row wins, and it alone
//! receives the gradient. Each result is made by one thread or lane: no atomics, the same bits
//! always.

#![cfg_attr(feature = "ndarray", allow(deprecated))] // the backend is kept for those who name it

mod cpu;
#[cfg(feature = "wgpu")]
mod cube;

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor as Float;
use burn::backend::{Autodiff, Backend, Dispatch};
use burn::tensor::Tensor;

use super::SparseMatrix;
use super::operation::{on_every_backend, operation};

/// The passes that a backend carries out itself, over a structure `[m, n]` whose values play no
/// part.
pub(crate) trait MaximumKernels: Backend {
    /// For each row and column of `x [n, width]`, which entry of the row has the largest value,
    /// counted from the first; −1 for a row without entries. Kept as floats, which are exact below
    /// 2²⁴ neighbours.
    fn winners(x: Float<Self>, matrix: &SparseMatrix) -> Float<Self>;

    /// The winners' values `[m, width]`; 0 without entries.
    fn pick(x: Float<Self>, winners: Float<Self>, matrix: &SparseMatrix) -> Float<Self>;

    /// For each input the sum of `g [m, width]` over what it won: `[n, width]`.
    fn pick_gradient(g: Float<Self>, winners: Float<Self>, matrix: &SparseMatrix) -> Float<Self>;
}

on_every_backend! {
    /// The maximum as an operation of a tensor backend.
    pub(crate) trait MaximumBackend: Backend {
        /// See [`neighbour_max`].
        fn neighbour_max(x: Float<Self>, matrix: Arc<SparseMatrix>) -> Float<Self>;
    }
}

/// The largest value of each column of `x` over the entries of each row; 0 for a row without
/// entries.
///
/// # Shapes
/// - x: `[matrix.columns, width]`
/// - result: `[matrix.rows, width]`
///
/// # Panics
/// If `x` does not have one row per column of the matrix.
pub fn neighbour_max(matrix: &Arc<SparseMatrix>, x: Tensor<2>) -> Tensor<2> {
    assert_eq!(
        x.dims()[0],
        matrix.columns(),
        "one row of x per column of the matrix"
    );
    let largest =
        <Dispatch as MaximumBackend>::neighbour_max(x.into_dispatch(), Arc::clone(matrix));
    Tensor::from_dispatch(largest)
}

impl<B: MaximumKernels> MaximumBackend for B {
    fn neighbour_max(x: Float<Self>, matrix: Arc<SparseMatrix>) -> Float<Self> {
        B::pick(x.clone(), B::winners(x, &matrix), &matrix)
    }
}

impl<B: MaximumKernels, C: CheckpointStrategy> MaximumBackend for Autodiff<B, C> {
    fn neighbour_max(x: Float<Self>, matrix: Arc<SparseMatrix>) -> Float<Self> {
        operation::<B, C, _, 1>(
            [x],
            |[x]| {
                let winners = B::winners(x.clone(), &matrix);
                let largest = B::pick(x, winners.clone(), &matrix);
                (largest, (matrix, winners))
            },
            |gradient, (matrix, winners), _| [Some(B::pick_gradient(gradient, winners, &matrix))],
        )
    }
}
