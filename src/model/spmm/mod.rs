//! Sparse × dense products on every backend, with their gradient.
//!
//! `spmm(A, x) = A·x` for a constant sparse `A [m, n]` and a dense `x [n, width]`; the gradient
//! with respect to `x` is `Aᵀ·g`. One thread (or one lane of a graphics device) owns each output
//! element and adds its terms in the order of the entries: no atomics, and the same bits whatever
//! the number of threads.

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

on_every_backend! {
    /// The sparse product as an operation of a tensor backend.
    // Not burn's gather and scatter: the atomic sums of graphics devices differ from run to run,
    // and on processors they took 2.7 times as long on a graph like ogbn-arxiv with 128 columns.
    pub(crate) trait SpmmBackend: Backend {
        /// `A·x`, or `Aᵀ·x` when `transposed`.
        fn spmm(x: Float<Self>, matrix: Arc<SparseMatrix>, transposed: bool)
        -> Float<Self>;

        /// `base + A·x`.
        fn spmm_onto(
            base: Float<Self>,
            x: Float<Self>,
            matrix: Arc<SparseMatrix>,
        ) -> Float<Self>;
    }
}

/// `A·x` for `matrix` `A [rows, columns]` and `x [columns, width]`.
///
/// # Shapes
/// - x: `[columns, width]`
/// - result: `[rows, width]`
///
/// # Panics
/// If `x` does not have `columns` rows.
pub fn spmm(matrix: &Arc<SparseMatrix>, x: Tensor<2>) -> Tensor<2> {
    assert_eq!(
        x.dims()[0],
        matrix.columns(),
        "one row of x per column of the matrix"
    );
    let product = <Dispatch as SpmmBackend>::spmm(x.into_dispatch(), Arc::clone(matrix), false);
    Tensor::from_dispatch(product)
}

/// `base + A·x`, in the memory of `base` where nothing else needs it; the terms of the product are
/// added up first.
///
/// # Shapes
/// - base, result: `[rows, width]`
/// - x: `[columns, width]`
///
/// # Panics
/// If the shapes do not fit.
pub fn spmm_onto(base: Tensor<2>, matrix: &Arc<SparseMatrix>, x: Tensor<2>) -> Tensor<2> {
    let [inner, width] = x.dims();
    assert_eq!(
        ([matrix.rows(), width], matrix.columns()),
        (base.dims(), inner),
        "a sparse product and what it is added to"
    );
    let (base, x) = (base.into_dispatch(), x.into_dispatch());
    let sum = <Dispatch as SpmmBackend>::spmm_onto(base, x, Arc::clone(matrix));
    Tensor::from_dispatch(sum)
}

impl<B: SpmmBackend, C: CheckpointStrategy> SpmmBackend for Autodiff<B, C> {
    fn spmm(x: Float<Self>, matrix: Arc<SparseMatrix>, transposed: bool) -> Float<Self> {
        operation::<B, C, _, 1>(
            [x],
            |[x]| {
                let product = B::spmm(x, Arc::clone(&matrix), transposed);
                (product, (matrix, transposed))
            },
            |gradient, (matrix, transposed), _| [Some(B::spmm(gradient, matrix, !transposed))],
        )
    }

    fn spmm_onto(base: Float<Self>, x: Float<Self>, matrix: Arc<SparseMatrix>) -> Float<Self> {
        operation::<B, C, _, 2>(
            [base, x],
            |[base, x]| {
                let sum = B::spmm_onto(base, x, Arc::clone(&matrix));
                (sum, matrix)
            },
            |gradient, matrix, [wants_base, wants_x]| {
                let of_x = wants_x.then(|| B::spmm(gradient.clone(), matrix, true));
                [wants_base.then_some(gradient), of_x]
            },
        )
    }
}
