//! Attention on processors: rayon over blocks of rows with about equally many entries.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::{AttentionKernels, NEGATIVE_SLOPE};
use crate::model::SparseMatrix;
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
            let mine = || (head..length).step_by(heads);
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
                let score = left[row * heads + head] + right[column as usize * heads + head];
                let slope = if score < 0.0 { NEGATIVE_SLOPE } else { 1.0 };
                out[at] = slope * weights[at] * (gradient[at] - mean);
            }
        }
    })
}

fn sum(
    rows: &Rows,
    position: impl Fn(usize) -> usize + Sync,
    weights: &[f32],
    heads: usize,
    x: &[f32],
    width: usize,
) -> Vec<f32> {
    let mut out = vec![0.0_f32; rows.len() * width];
    if width == 0 {
        return out;
    }
    let part_width = width / heads;
    let work = rows.columns.len() * width;
    by_rows(
        rows,
        work,
        |row| row * width,
        &mut out,
        |range, part| {
            for (row, sums) in range.zip(part.chunks_exact_mut(width)) {
                for entry in rows.entries(row) {
                    let weights = &weights[position(entry) * heads..][..heads];
                    let source = &x[rows.columns[entry] as usize * width..][..width];
                    let heads = sums
                        .chunks_exact_mut(part_width)
                        .zip(source.chunks_exact(part_width));
                    for (weight, (sums, source)) in weights.iter().zip(heads) {
                        for (sum, term) in sums.iter_mut().zip(source) {
                            *sum += weight * term;
                        }
                    }
                }
            }
        },
    );
    out
}

fn dot(rows: &Rows, g: &[f32], x: &[f32], width: usize, heads: usize) -> Vec<f32> {
    let part_width = width / heads;
    each_row(rows, heads, width, |row, out| {
        if part_width == 0 {
            return;
        }
        let own = &g[row * width..][..width];
        let columns = &rows.columns[rows.entries(row)];
        for (dots, &column) in out.chunks_exact_mut(heads).zip(columns) {
            let other = &x[column as usize * width..][..width];
            let parts = own
                .chunks_exact(part_width)
                .zip(other.chunks_exact(part_width));
            for (dot, (own, other)) in dots.iter_mut().zip(parts) {
                *dot = own.iter().zip(other).map(|(a, b)| a * b).sum();
            }
        }
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
        let (rows, sums) = if transposed {
            let by_column = matrix.by_column();
            let position = |entry: usize| by_column.positions[entry] as usize;
            let sums = sum(&by_column.rows, position, &weights, heads, &x, width);
            (matrix.columns(), sums)
        } else {
            let sums = sum(matrix.by_row(), |entry| entry, &weights, heads, &x, width);
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
        let dots = dot(matrix.by_row(), &g, &x, width, heads);
        B::tensor(dots, [matrix.entries(), heads])
    }
}
