//! Attention on processors: rayon over blocks of rows with about equally many entries.
//!
//! `lanes` has the passes for numbers of heads that fill the lanes of a register, while the
//! columns of a head do not; `heads` has those for all others.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor as Float;

use super::{AttentionKernels, heads, lanes};
use crate::model::SparseMatrix;
use crate::model::gather::{sums_for_heads, sums_of_heads, weighted_sums};
use crate::model::host::Host;

/// A pass over lanes of heads where their number fills some, or else that for any number.
macro_rules! in_lanes {
    ($heads:expr, $pass:ident($($argument:expr),+), or $plain:expr) => {
        match $heads {
            2 => lanes::$pass::<2>($($argument),+),
            4 => lanes::$pass::<4>($($argument),+),
            8 => lanes::$pass::<8>($($argument),+),
            16 => lanes::$pass::<16>($($argument),+),
            _ => $plain,
        }
    };
}

/// The heads of rows that are summed in lanes; 0 where a head has columns enough of its own.
const fn lanes_of(heads: usize, columns: usize) -> usize {
    if lanes::are_worth_it(columns) {
        heads
    } else {
        0
    }
}

impl<B: Host> AttentionKernels for B {
    fn weigh(left: Float<Self>, right: Float<Self>, matrix: &SparseMatrix) -> Float<Self> {
        let heads = left.shape()[1];
        let (left, right) = (B::values(left), B::values(right));
        let rows = matrix.by_row();
        let weights = in_lanes!(
            heads,
            softmax(rows, &left, &right),
            or heads::softmax(rows, &left, &right, heads)
        );
        B::tensor(weights, [matrix.entries(), heads])
    }

    fn weigh_gradient(
        left: Float<Self>,
        right: Float<Self>,
        weights: Float<Self>,
        gradient: Float<Self>,
        matrix: &SparseMatrix,
    ) -> Float<Self> {
        let heads = left.shape()[1];
        let (left, right) = (B::values(left), B::values(right));
        let (weights, gradient) = (B::values(weights), B::values(gradient));
        let rows = matrix.by_row();
        let of_scores = in_lanes!(
            heads,
            softmax_gradient(rows, &left, &right, &weights, &gradient),
            or heads::softmax_gradient(rows, &left, &right, &weights, &gradient, heads)
        );
        B::tensor(of_scores, [matrix.entries(), heads])
    }

    fn sum(
        weights: Float<Self>,
        x: Float<Self>,
        matrix: &SparseMatrix,
        transposed: bool,
    ) -> Float<Self> {
        let (heads, width) = (weights.shape()[1], x.shape()[1]);
        let (weights, x) = (B::values(weights), B::values(x));
        let (weights, x): (&[f32], &[f32]) = (&weights, &x);
        let lanes = lanes_of(heads, width / heads);
        let (rows, sums) = if transposed {
            let by_column = matrix.by_column();
            let (rows, positions) = (&by_column.rows, &by_column.positions);
            let weight = |entry: usize, head| weights[positions[entry] as usize * heads + head];
            let sums = in_lanes!(
                lanes,
                sums(rows, Some(positions), weights, x, width),
                or weighted_sums(rows, weight, heads, x, width)
            );
            (matrix.columns(), sums)
        } else {
            let rows = matrix.by_row();
            let weight = |entry: usize, head| weights[entry * heads + head];
            let sums = in_lanes!(
                lanes,
                sums(rows, None, weights, x, width),
                or weighted_sums(rows, weight, heads, x, width)
            );
            (matrix.rows(), sums)
        };
        B::tensor(sums, [rows, width])
    }

    fn dot(g: Float<Self>, x: Float<Self>, heads: usize, matrix: &SparseMatrix) -> Float<Self> {
        let width = x.shape()[1];
        let (g, x) = (B::values(g), B::values(x));
        let rows = matrix.by_row();
        let dots = in_lanes!(
            lanes_of(heads, width / heads),
            dots(rows, &g, &x, width),
            or heads::dots(rows, &g, &x, width, heads, heads)
        );
        B::tensor(dots, [matrix.entries(), heads])
    }

    fn mean(weights: Float<Self>, x: Float<Self>, matrix: &SparseMatrix) -> Float<Self> {
        let (heads, width) = (weights.shape()[1], x.shape()[1]);
        let (weights, x) = (B::values(weights), B::values(x));
        let (weights, share): (&[f32], f32) = (&weights, 1.0 / heads as f32);
        // The mean's factor goes to the weights, which are fewer than the terms.
        let weight = |entry: usize, head| share * weights[entry * heads + head];
        let rows = matrix.by_row();
        let sums = in_lanes!(
            lanes_of(heads, width / heads),
            mean(rows, weights, &x, width),
            or sums_of_heads(rows, weight, heads, &x, width)
        );
        B::tensor(sums, [matrix.rows(), width / heads])
    }

    fn spread(weights: Float<Self>, g: Float<Self>, matrix: &SparseMatrix) -> Float<Self> {
        let (heads, part) = (weights.shape()[1], g.shape()[1]);
        let (weights, g) = (B::values(weights), B::values(g));
        let (weights, share): (&[f32], f32) = (&weights, 1.0 / heads as f32);
        let by_column = matrix.by_column();
        let (rows, positions) = (&by_column.rows, &by_column.positions);
        let weight = |entry: usize, head| share * weights[positions[entry] as usize * heads + head];
        let sums = in_lanes!(
            lanes_of(heads, part),
            spread(rows, positions, weights, &g, part),
            or sums_for_heads(rows, weight, heads, &g, part)
        );
        B::tensor(sums, [matrix.columns(), heads * part])
    }

    fn mean_dot(
        g: Float<Self>,
        x: Float<Self>,
        heads: usize,
        matrix: &SparseMatrix,
    ) -> Float<Self> {
        let width = x.shape()[1];
        let (g, x) = (B::values(g), B::values(x));
        let rows = matrix.by_row();
        let dots = in_lanes!(
            lanes_of(heads, width / heads),
            mean_dots(rows, &g, &x, width),
            or {
                // One part of `g` for all heads: spreading it out first would be `heads` times the
                // memory.
                let share = 1.0 / heads as f32;
                let mut dots = heads::dots(rows, &g, &x, width, heads, 1);
                for dot in &mut dots { *dot *= share; }
                dots
            }
        );
        B::tensor(dots, [matrix.entries(), heads])
    }
}
