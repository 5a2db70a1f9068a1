//! Attention on processors: rayon over blocks of rows with about equally many entries.
//!
//! [`lanes`] has the passes for numbers of heads that fill the lanes of a register, while the
//! columns of a head do not; here are those for all others.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use pulp::Arch;

use super::lanes;
use super::{AttentionKernels, NEGATIVE_SLOPE};
use crate::model::SparseMatrix;
use crate::model::gather::{dot, sums_for_heads, sums_of_heads, weighted_sums};
use crate::model::host::{Host, by_rows};
use crate::model::sparse::Rows;

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

/// Multiplications that an exponential is about worth.
pub(super) const EXPONENTIAL: usize = 16;

/// Fills the values `[entries, heads]` row by row: `task` gets a row and its values.
pub(super) fn each_row(
    rows: &Rows,
    heads: usize,
    work: usize,
    task: impl Fn(usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    let mut out = vec![0.0_f32; rows.columns.len() * heads];
    by_rows(
        rows,
        rows.columns.len() * work,
        |row| rows.offsets[row] as usize * heads,
        &mut out,
        |range, mut part| {
            for row in range {
                let (mine, rest) = part.split_at_mut(rows.entries(row).len() * heads);
                task(row, mine);
                part = rest;
            }
        },
    );
    out
}

pub(super) fn softmax(rows: &Rows, left: &[f32], right: &[f32], heads: usize) -> Vec<f32> {
    each_row(rows, heads, heads * EXPONENTIAL, |row, weights| {
        let own = &left[row * heads..][..heads];
        let columns = &rows.columns[rows.entries(row)];
        for (weights, &column) in weights.chunks_exact_mut(heads).zip(columns) {
            let other = &right[column as usize * heads..][..heads];
            for ((weight, own), other) in weights.iter_mut().zip(own).zip(other) {
                let score = own + other;
                *weight = if score < 0.0 {
                    NEGATIVE_SLOPE * score
                } else {
                    score
                };
            }
        }
        for head in 0..heads {
            let length = weights.len();
            // Heads lie side by side within an entry, so one head's weights are every `heads`-th.
            let mine = || (head..length).step_by(heads);
            // Subtracted below, so that no exponential overflows.
            let largest = mine().fold(f32::NEG_INFINITY, |most, at| most.max(weights[at]));
            let mut sum = 0.0;
            for at in mine() {
                weights[at] = (weights[at] - largest).exp();
                sum += weights[at];
            }
            for at in mine() {
                weights[at] /= sum;
            }
        }
    })
}

pub(super) fn softmax_gradient(
    rows: &Rows,
    left: &[f32],
    right: &[f32],
    weights: &[f32],
    gradient: &[f32],
    heads: usize,
) -> Vec<f32> {
    each_row(rows, heads, 4 * heads, |row, out| {
        let entries = rows.entries(row);
        let values = entries.start * heads..entries.end * heads;
        let (weights, gradient) = (&weights[values.clone()], &gradient[values]);
        let columns = &rows.columns[entries];
        for head in 0..heads {
            let mine = || (head..out.len()).step_by(heads);
            let mean: f32 = mine().map(|at| weights[at] * gradient[at]).sum();
            for (at, &column) in mine().zip(columns) {
                // Worked out again, as its weight has taken its place in memory.
                let score = left[row * heads + head] + right[column as usize * heads + head];
                let slope = if score < 0.0 { NEGATIVE_SLOPE } else { 1.0 };
                out[at] = slope * weights[at] * (gradient[at] - mean);
            }
        }
    })
}

/// `g` has `heads` parts, or one for all heads.
pub(super) fn dots(
    rows: &Rows,
    g: &[f32],
    x: &[f32],
    width: usize,
    heads: usize,
    parts: usize,
) -> Vec<f32> {
    let (arch, part_width) = (Arch::new(), width / heads);
    let own_width = parts * part_width;
    each_row(rows, heads, width, |row, out| {
        // Chunks of no columns would be a panic.
        if part_width == 0 {
            return;
        }
        let own = &g[row * own_width..][..own_width];
        let columns = &rows.columns[rows.entries(row)];
        #[allow(clippy::inline_always)]
        // it must become part of the code for the chosen instruction set
        arch.dispatch(
            #[inline(always)]
            || {
                for (dots, &column) in out.chunks_exact_mut(heads).zip(columns) {
                    let other = &x[column as usize * width..][..width];
                    // Where all heads share one gradient, its one part meets the part of each head.
                    let own = own.chunks_exact(part_width).cycle();
                    let parts = own.zip(other.chunks_exact(part_width));
                    for (result, (own, other)) in dots.iter_mut().zip(parts) {
                        *result = dot(own, other);
                    }
                }
            },
        );
    })
}

impl<B: Host> AttentionKernels for B {
    fn weigh(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
        let heads = left.shape()[1];
        let (left, right) = (B::values(left), B::values(right));
        let rows = matrix.by_row();
        let weights = in_lanes!(
            heads,
            softmax(rows, &left, &right),
            or softmax(rows, &left, &right, heads)
        );
        B::tensor(weights, [matrix.entries(), heads])
    }

    fn weigh_gradient(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
        let heads = left.shape()[1];
        let (left, right) = (B::values(left), B::values(right));
        let (weights, gradient) = (B::values(weights), B::values(gradient));
        let rows = matrix.by_row();
        let of_scores = in_lanes!(
            heads,
            softmax_gradient(rows, &left, &right, &weights, &gradient),
            or softmax_gradient(rows, &left, &right, &weights, &gradient, heads)
        );
        B::tensor(of_scores, [matrix.entries(), heads])
    }

    fn sum(
        weights: FloatTensor<Self>,
        x: FloatTensor<Self>,
        matrix: &SparseMatrix,
        transposed: bool,
    ) -> FloatTensor<Self> {
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

    fn dot(
        g: FloatTensor<Self>,
        x: FloatTensor<Self>,
        heads: usize,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
        let width = x.shape()[1];
        let (g, x) = (B::values(g), B::values(x));
        let rows = matrix.by_row();
        let dots = in_lanes!(
            lanes_of(heads, width / heads),
            dots(rows, &g, &x, width),
            or dots(rows, &g, &x, width, heads, heads)
        );
        B::tensor(dots, [matrix.entries(), heads])
    }

    fn mean(
        weights: FloatTensor<Self>,
        x: FloatTensor<Self>,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
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

    fn spread(
        weights: FloatTensor<Self>,
        g: FloatTensor<Self>,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
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
        g: FloatTensor<Self>,
        x: FloatTensor<Self>,
        heads: usize,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
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
                let mut dots = dots(rows, &g, &x, width, heads, 1);
                dots.iter_mut().for_each(|dot| *dot *= share);
                dots
            }
        );
        B::tensor(dots, [matrix.entries(), heads])
    }
}
