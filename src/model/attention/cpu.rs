//! Attention on processors: rayon over blocks of rows with about equally many entries.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use pulp::Arch;

use super::{AttentionKernels, NEGATIVE_SLOPE};
use crate::model::SparseMatrix;
use crate::model::gather::{dot, sums_for_heads, sums_of_heads, weighted_sums};
use crate::model::host::{Host, by_rows};
use crate::model::sparse::Rows;

/// Multiplications that an exponential is about worth.
const EXPONENTIAL: usize = 16;

/// Fills the values `[entries, heads]` row by row: `task` gets a row and its values.
fn each_row(
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

fn softmax(rows: &Rows, left: &[f32], right: &[f32], heads: usize) -> Vec<f32> {
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

fn softmax_gradient(
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
fn dots(rows: &Rows, g: &[f32], x: &[f32], width: usize, heads: usize, parts: usize) -> Vec<f32> {
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
        let weights = softmax(matrix.by_row(), &left, &right, heads);
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
        let of_scores = softmax_gradient(
            matrix.by_row(),
            &B::values(left),
            &B::values(right),
            &B::values(weights),
            &B::values(gradient),
            heads,
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
        let (rows, sums) = if transposed {
            let by_column = matrix.by_column();
            let positions = &by_column.positions;
            let weight = |entry: usize, head| weights[positions[entry] as usize * heads + head];
            let sums = weighted_sums(&by_column.rows, weight, heads, x, width);
            (matrix.columns(), sums)
        } else {
            let weight = |entry: usize, head| weights[entry * heads + head];
            let sums = weighted_sums(matrix.by_row(), weight, heads, x, width);
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
        let dots = dots(matrix.by_row(), &g, &x, width, heads, heads);
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
        let sums = sums_of_heads(matrix.by_row(), weight, heads, &x, width);
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
        let positions = &by_column.positions;
        let weight = |entry: usize, head| share * weights[positions[entry] as usize * heads + head];
        let sums = sums_for_heads(&by_column.rows, weight, heads, &g, part);
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
        // One part of `g` for all heads: spreading it out first would be `heads` times the memory.
        let mut dots = dots(matrix.by_row(), &g, &x, width, heads, 1);
        let share = 1.0 / heads as f32;
        for dot in &mut dots {
            *dot *= share;
        }
        B::tensor(dots, [matrix.entries(), heads])
    }
}
