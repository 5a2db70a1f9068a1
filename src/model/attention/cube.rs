//! Attention on graphics devices: one lane per output element of a sum, one per entry and head of a
//! dot product, and one per row and head of a softmax.

use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use cubecl::prelude::*;

use super::{AttentionKernels, NEGATIVE_SLOPE};
use crate::model::SparseMatrix;
use crate::model::device::{lanes, launch, positions, result, structure, zeros};

#[cube]
fn leaky(score: f32) -> f32 {
    let mut value = score;
    if score < 0.0_f32 {
        value = score * NEGATIVE_SLOPE;
    }
    value
}

#[cube(launch_unchecked)]
fn softmax_rows(
    offsets: &[u32],
    columns: &[u32],
    left: &[f32],
    right: &[f32],
    out: &mut [f32],
    heads: usize,
) {
    if ABSOLUTE_POS >= left.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / heads;
    let head = ABSOLUTE_POS % heads;
    let start = usize::cast_from(offsets[row]);
    let end = usize::cast_from(offsets[row + 1]);
    // Below, the first entry's score is read as the largest to begin with.
    if start == end {
        terminate!();
    }
    let own = left[ABSOLUTE_POS];
    let mut largest = leaky(own + right[usize::cast_from(columns[start]) * heads + head]);
    for entry in start..end {
        let score = leaky(own + right[usize::cast_from(columns[entry]) * heads + head]);
        // The result's own memory holds the scores until they become weights.
        out[entry * heads + head] = score;
        if score > largest {
            largest = score;
        }
    }
    let mut sum = 0.0_f32;
    for entry in start..end {
        let value = (out[entry * heads + head] - largest).exp();
        out[entry * heads + head] = value;
        sum += value;
    }
    for entry in start..end {
        out[entry * heads + head] /= sum;
    }
}

#[cube(launch_unchecked)]
fn softmax_gradient_rows(
    offsets: &[u32],
    columns: &[u32],
    left: &[f32],
    right: &[f32],
    weights: &[f32],
    gradient: &[f32],
    out: &mut [f32],
    heads: usize,
) {
    if ABSOLUTE_POS >= left.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / heads;
    let head = ABSOLUTE_POS % heads;
    let start = usize::cast_from(offsets[row]);
    let end = usize::cast_from(offsets[row + 1]);
    let own = left[ABSOLUTE_POS];
    let mut mean = 0.0_f32;
    for entry in start..end {
        mean += weights[entry * heads + head] * gradient[entry * heads + head];
    }
    for entry in start..end {
        let at = entry * heads + head;
        let score = own + right[usize::cast_from(columns[entry]) * heads + head];
        let mut value = weights[at] * (gradient[at] - mean);
        if score < 0.0_f32 {
            value *= NEGATIVE_SLOPE;
        }
        out[at] = value;
    }
}

#[cube(launch_unchecked)]
fn sum_rows(
    offsets: &[u32],
    columns: &[u32],
    positions: &[u32],
    weights: &[f32],
    x: &[f32],
    out: &mut [f32],
    heads: usize,
    width: usize,
    #[comptime] transposed: bool,
) {
    if ABSOLUTE_POS >= out.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / width;
    let column = ABSOLUTE_POS % width;
    let head = column / (width / heads);
    let mut sum = 0.0_f32;
    for entry in usize::cast_from(offsets[row])..usize::cast_from(offsets[row + 1]) {
        let position = if transposed {
            usize::cast_from(positions[entry])
        } else {
            entry
        };
        sum +=
            weights[position * heads + head] * x[usize::cast_from(columns[entry]) * width + column];
    }
    out[ABSOLUTE_POS] = sum;
}

#[cube(launch_unchecked)]
fn dot_rows(
    offsets: &[u32],
    columns: &[u32],
    g: &[f32],
    x: &[f32],
    out: &mut [f32],
    rows: usize,
    heads: usize,
    width: usize,
) {
    if ABSOLUTE_POS >= columns.len() * heads {
        terminate!();
    }
    let entry = ABSOLUTE_POS / heads;
    let head = ABSOLUTE_POS % heads;
    // The entry's row: the last that begins no later.
    let mut row = 0;
    let mut end = rows;
    while end - row > 1 {
        let middle = row + (end - row) / 2;
        if usize::cast_from(offsets[middle]) <= entry {
            row = middle;
        } else {
            end = middle;
        }
    }
    let part = width / heads;
    let own = row * width + head * part;
    let other = usize::cast_from(columns[entry]) * width + head * part;
    let mut sum = 0.0_f32;
    for column in 0..part {
        sum += g[own + column] * x[other + column];
    }
    out[ABSOLUTE_POS] = sum;
}

impl AttentionKernels for CubeBackend {
    fn weigh(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
        let (left, right) = (into_contiguous(left), into_contiguous(right));
        let heads = left.meta.shape()[1];
        let (rows, entries) = (matrix.rows(), matrix.entries());
        if entries * heads == 0 {
            return zeros(&left, entries, heads);
        }
        let out = result(&left, entries, heads);
        let structure = structure(&left, matrix, false);
        // SAFETY: the lengths given are those of the buffers, and every index is below them:
        // columns were checked against the width of the matrix when it was made, and the shapes of
        // the tensors by the caller. So it is in the functions below.
        unsafe {
            launch!(
                softmax_rows,
                lanes(&left, rows * heads),
                structure.offsets.argument(),
                structure.columns.argument(),
                left.into_buffer_arg(),
                right.into_buffer_arg(),
                out.clone().into_buffer_arg(),
                heads,
            );
        }
        out
    }

    fn weigh_gradient(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
        let (left, right) = (into_contiguous(left), into_contiguous(right));
        let (weights, gradient) = (into_contiguous(weights), into_contiguous(gradient));
        let heads = left.meta.shape()[1];
        let (rows, entries) = (matrix.rows(), matrix.entries());
        if entries * heads == 0 {
            return zeros(&left, entries, heads);
        }
        let out = result(&left, entries, heads);
        let structure = structure(&left, matrix, false);
        // SAFETY: as in `weigh`.
        unsafe {
            launch!(
                softmax_gradient_rows,
                lanes(&left, rows * heads),
                structure.offsets.argument(),
                structure.columns.argument(),
                left.into_buffer_arg(),
                right.into_buffer_arg(),
                weights.into_buffer_arg(),
                gradient.into_buffer_arg(),
                out.clone().into_buffer_arg(),
                heads,
            );
        }
        out
    }

    fn sum(
        weights: FloatTensor<Self>,
        x: FloatTensor<Self>,
        matrix: &SparseMatrix,
        transposed: bool,
    ) -> FloatTensor<Self> {
        let (weights, x) = (into_contiguous(weights), into_contiguous(x));
        let (heads, width) = (weights.meta.shape()[1], x.meta.shape()[1]);
        let rows = matrix.outputs(transposed);
        let (elements, entries) = (rows * width, matrix.entries());
        if elements * entries == 0 {
            return zeros(&x, rows, width);
        }
        let out = result(&x, rows, width);
        let structure = structure(&x, matrix, transposed);
        let positions = if transposed {
            positions(&x, matrix).argument()
        } else {
            // Not read: the entries are their own positions.
            structure.columns.argument()
        };
        // SAFETY: as in `weigh`.
        unsafe {
            launch!(
                sum_rows,
                lanes(&x, elements),
                structure.offsets.argument(),
                structure.columns.argument(),
                positions,
                weights.into_buffer_arg(),
                x.into_buffer_arg(),
                out.clone().into_buffer_arg(),
                heads,
                width,
                transposed,
            );
        }
        out
    }

    fn dot(
        g: FloatTensor<Self>,
        x: FloatTensor<Self>,
        heads: usize,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
        let (g, x) = (into_contiguous(g), into_contiguous(x));
        let width = x.meta.shape()[1];
        let (rows, entries) = (matrix.rows(), matrix.entries());
        if entries * heads == 0 {
            return zeros(&x, entries, heads);
        }
        let out = result(&x, entries, heads);
        let structure = structure(&x, matrix, false);
        // SAFETY: as in `weigh`.
        unsafe {
            launch!(
                dot_rows,
                lanes(&x, entries * heads),
                structure.offsets.argument(),
                structure.columns.argument(),
                g.into_buffer_arg(),
                x.into_buffer_arg(),
                out.clone().into_buffer_arg(),
                rows,
                heads,
                width,
            );
        }
        out
    }
}
