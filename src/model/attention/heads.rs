//! Attention passes head by head, for any number of heads.

#![allow(clippy::inline_always)] // loops become part of the code for an instruction set

use super::NEGATIVE_SLOPE;
use crate::model::gather::dot;
use crate::model::host;
use crate::model::sparse::Rows;
use crate::simd::vectorised;

/// Multiplications that an exponential is about worth.
pub(super) const EXPONENTIAL: usize = 16;

/// Fills the values `[entries, heads]` row by row: `task` gets a row and its values.
pub(super) fn each_row(
    rows: &Rows,
    heads: usize,
    work: usize,
    task: impl Fn(usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    let work = rows.columns.len() * work;
    host::each_row(rows, work, |row| rows.offsets[row] as usize * heads, task)
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
    let part_width = width / heads;
    let own_width = parts * part_width;
    each_row(rows, heads, width, |row, out| {
        // Chunks of no columns would be a panic.
        if part_width == 0 {
            return;
        }
        let own = &g[row * own_width..][..own_width];
        let columns = &rows.columns[rows.entries(row)];
        vectorised(
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
