//! Attention over the neighbours of each node (Veličković et al., 2018), on every backend and with
//! gradients.
//!
//! Two operations over the entries of a sparse structure `[m, n]`, whose values play no part:
//!
//! - [`edge_softmax`] turns a score of each output and one of each input into weights
//!   `[entries, heads]`;
//! - [`edge_sum`] adds up input rows `[n, heads · d]` with such weights, head by head.
//!
//! Between them the weights are an ordinary tensor, so that dropout of weights is an ordinary
//! product. As in the sparse product, one thread or lane owns each result and adds its terms in the
//! order of the entries: no atomics, the same bits always.

#![cfg_attr(feature = "ndarray", allow(deprecated))] // the backend is kept for those who name it

mod cpu;
#[cfg(feature = "wgpu")]
mod cube;
mod heads;
mod lanes;

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor as Float;
use burn::backend::{Autodiff, Backend, Dispatch, FloatDType, TensorMetadata};
use burn::tensor::{Shape, Tensor};

use super::operation::{on_every_backend, operation};
use super::{Merge, SparseMatrix};

/// Slope of the `LeakyReLU` below zero (Veličković et al., 2018, section 2.1).
pub(super) const NEGATIVE_SLOPE: f32 = 0.2;

/// The passes that a backend carries out itself; gradients are made of them. All tensors have two
/// dimensions.
pub(crate) trait AttentionKernels: Backend {
    /// Weights `[entries, heads]` of `left [m, heads]` and `right [n, heads]`.
    fn weigh(left: Float<Self>, right: Float<Self>, matrix: &SparseMatrix) -> Float<Self>;

    /// The gradient `[entries, heads]` with respect to `left_v + right_u` of each entry, from that
    /// of the weights.
    fn weigh_gradient(
        left: Float<Self>,
        right: Float<Self>,
        weights: Float<Self>,
        gradient: Float<Self>,
        matrix: &SparseMatrix,
    ) -> Float<Self>;

    /// `Σ_u w_vu x_u` for each output `v`; when `transposed`, `Σ_v w_vu x_v` for each input `u`.
    /// Every head `k` weights its own part of the columns of `x`.
    fn sum(
        weights: Float<Self>,
        x: Float<Self>,
        matrix: &SparseMatrix,
        transposed: bool,
    ) -> Float<Self>;

    /// The mean over heads of [`AttentionKernels::sum`]: `[m, d]` of `x [n, heads · d]`.
    fn mean(weights: Float<Self>, x: Float<Self>, matrix: &SparseMatrix) -> Float<Self> {
        let (heads, width) = (weights.shape()[1], x.shape()[1]);
        // For graphics devices; processors have a kernel that adds heads up as it goes.
        let sums = Self::sum(weights, x, matrix, false);
        let (rows, part) = (matrix.rows(), width / heads);
        let sums = Self::float_reshape(sums, Shape::new([rows, heads, part]));
        Self::float_reshape(Self::float_mean_dim(sums, 1), Shape::new([rows, part]))
    }

    /// Transposed to [`AttentionKernels::mean`]: `[n, heads · d]` of `g [m, d]`.
    fn spread(weights: Float<Self>, g: Float<Self>, matrix: &SparseMatrix) -> Float<Self> {
        let heads = weights.shape()[1];
        Self::sum(weights, for_each_head::<Self>(g, heads), matrix, true)
    }

    /// `⟨g_v, x_u⟩` of each entry and head: `[entries, heads]`.
    fn dot(g: Float<Self>, x: Float<Self>, heads: usize, matrix: &SparseMatrix) -> Float<Self>;

    /// The same for the gradient `g [m, d]` of a mean over heads.
    fn mean_dot(
        g: Float<Self>,
        x: Float<Self>,
        heads: usize,
        matrix: &SparseMatrix,
    ) -> Float<Self> {
        Self::dot(for_each_head::<Self>(g, heads), x, heads, matrix)
    }
}

/// The gradient `g [m, d]` of a mean over heads as that of each head: `[m, heads · d]`.
fn for_each_head<B: Backend>(g: Float<B>, heads: usize) -> Float<B> {
    let [rows, part] = [g.shape()[0], g.shape()[1]];
    let share = B::float_mul_scalar(g, (1.0 / heads as f32).into());
    let share = B::float_reshape(share, Shape::new([rows, 1, part]));
    let all = B::float_repeat_dim(share, 1, heads);
    B::float_reshape(all, Shape::new([rows, heads * part]))
}

on_every_backend! {
    /// The two operations as those of a tensor backend.
    pub(crate) trait AttentionBackend: Backend {
        /// See [`edge_softmax`].
        fn edge_softmax(
            left: Float<Self>,
            right: Float<Self>,
            matrix: Arc<SparseMatrix>,
        ) -> Float<Self>;

        /// See [`edge_sum`].
        fn edge_sum(
            weights: Float<Self>,
            x: Float<Self>,
            matrix: Arc<SparseMatrix>,
            merge: Merge,
        ) -> Float<Self>;
    }
}

/// `softmax_u(LeakyReLU(left_v + right_u))` over the entries `u` of each row `v`, for each head
/// (Veličković et al., 2018, eq. 3, whose `aᵀ[W h_v ‖ W h_u]` is the sum of a score of `v` and one
/// of `u`).
///
/// # Shapes
/// - left: `[matrix.rows, heads]`
/// - right: `[matrix.columns, heads]`
/// - result: `[matrix.entries, heads]`; the weights of a row add up to 1
///
/// # Panics
/// If the shapes are others.
pub fn edge_softmax(matrix: &Arc<SparseMatrix>, left: Tensor<2>, right: Tensor<2>) -> Tensor<2> {
    let heads = left.dims()[1];
    assert_eq!(left.dims(), [matrix.rows(), heads], "a score of each row");
    assert_eq!(
        right.dims(),
        [matrix.columns(), heads],
        "a score of each column"
    );
    let weights = <Dispatch as AttentionBackend>::edge_softmax(
        left.into_dispatch(),
        right.into_dispatch(),
        Arc::clone(matrix),
    );
    Tensor::from_dispatch(weights)
}

/// `Σ_u w_vu x_u` over the entries `u` of each row `v`: head `k` of `heads` weights columns
/// `k·d..(k + 1)·d` (Veličković et al., 2018, eq. 4 and 5 before the non-linearity, the heads side
/// by side; or eq. 6, their mean).
///
/// # Shapes
/// - weights: `[matrix.entries, heads]`
/// - x: `[matrix.columns, heads · d]`
/// - result: `[matrix.rows, heads · d]`, or `[matrix.rows, d]` for the mean
///
/// # Panics
/// If the shapes are others.
pub fn edge_sum(
    matrix: &Arc<SparseMatrix>,
    weights: Tensor<2>,
    x: Tensor<2>,
    merge: Merge,
) -> Tensor<2> {
    let [entries, heads] = weights.dims();
    let [rows, width] = x.dims();
    assert_eq!(entries, matrix.entries(), "a weight of each entry");
    assert_eq!(rows, matrix.columns(), "one row of x per column");
    assert!(
        heads > 0 && width.is_multiple_of(heads),
        "columns of x are divided between the heads"
    );
    let sums = <Dispatch as AttentionBackend>::edge_sum(
        weights.into_dispatch(),
        x.into_dispatch(),
        Arc::clone(matrix),
        merge,
    );
    Tensor::from_dispatch(sums)
}

impl<B: AttentionKernels> AttentionBackend for B {
    fn edge_softmax(
        left: Float<Self>,
        right: Float<Self>,
        matrix: Arc<SparseMatrix>,
    ) -> Float<Self> {
        B::weigh(left, right, &matrix)
    }

    fn edge_sum(
        weights: Float<Self>,
        x: Float<Self>,
        matrix: Arc<SparseMatrix>,
        merge: Merge,
    ) -> Float<Self> {
        merged::<B>(weights, x, &matrix, merge)
    }
}

/// The heads side by side, or their mean.
fn merged<B: AttentionKernels>(
    weights: Float<B>,
    x: Float<B>,
    matrix: &SparseMatrix,
    merge: Merge,
) -> Float<B> {
    match merge {
        Merge::Concatenate => B::sum(weights, x, matrix, false),
        Merge::Average => B::mean(weights, x, matrix),
    }
}

/// `[rows, columns]` of ones where `like` lies: what [`AttentionKernels::sum`] adds up to get sums
/// of the weights themselves.
fn ones<B: Backend>(rows: usize, columns: usize, like: &Float<B>) -> Float<B> {
    B::float_ones(Shape::new([rows, columns]), &like.device(), FloatDType::F32)
}

impl<B: AttentionKernels, C: CheckpointStrategy> AttentionBackend for Autodiff<B, C> {
    fn edge_softmax(
        left: Float<Self>,
        right: Float<Self>,
        matrix: Arc<SparseMatrix>,
    ) -> Float<Self> {
        operation::<B, C, _, 2>(
            [left, right],
            |[left, right]| {
                let weights = B::weigh(left.clone(), right.clone(), &matrix);
                // Scores by row and column, not by entry: those of entries are added up again on
                // the way back.
                let kept = (matrix, left, right, weights.clone());
                (weights, kept)
            },
            |gradient, (matrix, left, right, weights), wanted| {
                let heads = left.shape()[1];
                let of_scores = B::weigh_gradient(left, right, weights, gradient, &matrix);
                // With ones in place of rows the sums are those of the scores' own gradients.
                let sums = |rows, transposed| {
                    let ones = ones::<B>(rows, heads, &of_scores);
                    B::sum(of_scores.clone(), ones, &matrix, transposed)
                };
                let [of_left, of_right] = wanted;
                [
                    of_left.then(|| sums(matrix.columns(), false)),
                    of_right.then(|| sums(matrix.rows(), true)),
                ]
            },
        )
    }

    fn edge_sum(
        weights: Float<Self>,
        x: Float<Self>,
        matrix: Arc<SparseMatrix>,
        merge: Merge,
    ) -> Float<Self> {
        operation::<B, C, _, 2>(
            [weights, x],
            |[weights, x]| {
                let sums = merged::<B>(weights.clone(), x.clone(), &matrix, merge);
                (sums, (matrix, weights, x, merge))
            },
            |gradient, (matrix, weights, x, merge), [wants_weights, wants_x]| {
                let (heads, g) = (weights.shape()[1], gradient.clone());
                let of_weights = wants_weights.then(|| match merge {
                    Merge::Concatenate => B::dot(g, x, heads, &matrix),
                    Merge::Average => B::mean_dot(g, x, heads, &matrix),
                });
                let of_x = wants_x.then(|| match merge {
                    Merge::Concatenate => B::sum(weights, gradient, &matrix, true),
                    Merge::Average => B::spread(weights, gradient, &matrix),
                });
                [of_weights, of_x]
            },
        )
    }
}
