//! The maximum on graphics devices: one lane per output element, neighbouring lanes on neighbouring
//! columns.

use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use cubecl::prelude::*;

use super::MaximumKernels;
use crate::model::SparseMatrix;
use crate::model::device::{lanes, launch, positions, result, structure, zeros};

#[cube(launch_unchecked)]
fn winners_of_rows(offsets: &[u32], columns: &[u32], x: &[f32], out: &mut [f32], width: usize) {
    if ABSOLUTE_POS >= out.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / width;
    let column = ABSOLUTE_POS % width;
    let start = usize::cast_from(offsets[row]);
    let end = usize::cast_from(offsets[row + 1]);
    let mut winner = f32::new(-1.0_f32);
    if start < end {
        winner = 0.0_f32;
        let mut largest = x[usize::cast_from(columns[start]) * width + column];
        for entry in start..end {
            let value = x[usize::cast_from(columns[entry]) * width + column];
            if value > largest {
                largest = value;
                winner = f32::cast_from(entry - start);
            }
        }
    }
    out[ABSOLUTE_POS] = winner;
}

#[cube(launch_unchecked)]
fn pick_rows(
    offsets: &[u32],
    columns: &[u32],
    x: &[f32],
    winners: &[f32],
    out: &mut [f32],
    width: usize,
) {
    if ABSOLUTE_POS >= out.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / width;
    let column = ABSOLUTE_POS % width;
    let winner = winners[ABSOLUTE_POS];
    let mut value = 0.0_f32;
    if winner >= 0.0_f32 {
        let entry = usize::cast_from(offsets[row]) + usize::cast_from(winner);
        value = x[usize::cast_from(columns[entry]) * width + column];
    }
    out[ABSOLUTE_POS] = value;
}

#[cube(launch_unchecked)]
fn pick_gradient_rows(
    offsets: &[u32],
    columns: &[u32],
    positions: &[u32],
    firsts: &[u32],
    g: &[f32],
    winners: &[f32],
    out: &mut [f32],
    width: usize,
) {
    if ABSOLUTE_POS >= out.len() {
        terminate!();
    }
    let input = ABSOLUTE_POS / width;
    let column = ABSOLUTE_POS % width;
    let mut sum = 0.0_f32;
    for entry in usize::cast_from(offsets[input])..usize::cast_from(offsets[input + 1]) {
        let row = usize::cast_from(columns[entry]);
        let place = f32::cast_from(positions[entry] - firsts[row]);
        if winners[row * width + column] == place {
            sum += g[row * width + column];
        }
    }
    out[ABSOLUTE_POS] = sum;
}

impl MaximumKernels for CubeBackend {
    fn winners(x: FloatTensor<Self>, matrix: &SparseMatrix) -> FloatTensor<Self> {
        let x = into_contiguous(x);
        let (rows, width) = (matrix.rows(), x.meta.shape()[1]);
        let entries = matrix.entries();
        // Nothing wins and nothing is picked: `pick` looks at no winner either then.
        if entries * width == 0 {
            return zeros(&x, rows, width);
        }
        let out = result(&x, rows, width);
        let structure = structure(&x, matrix, false);
        // SAFETY: the lengths given are those of the buffers, and every index is below them:
        // columns were checked against the width of the matrix when it was made, and the shapes of
        // the tensors by the caller. So it is in the functions below.
        unsafe {
            launch!(
                winners_of_rows,
                lanes(&x, rows * width),
                structure.offsets.argument(),
                structure.columns.argument(),
                x.into_buffer_arg(),
                out.clone().into_buffer_arg(),
                width,
            );
        }
        out
    }

    fn pick(
        x: FloatTensor<Self>,
        winners: FloatTensor<Self>,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
        let (x, winners) = (into_contiguous(x), into_contiguous(winners));
        let (rows, width) = (matrix.rows(), x.meta.shape()[1]);
        let entries = matrix.entries();
        if entries * width == 0 {
            return zeros(&x, rows, width);
        }
        let out = result(&x, rows, width);
        let structure = structure(&x, matrix, false);
        // SAFETY: as in `winners`, whose values lie within the row, or are negative.
        unsafe {
            launch!(
                pick_rows,
                lanes(&x, rows * width),
                structure.offsets.argument(),
                structure.columns.argument(),
                x.into_buffer_arg(),
                winners.into_buffer_arg(),
                out.clone().into_buffer_arg(),
                width,
            );
        }
        out
    }

    fn pick_gradient(
        g: FloatTensor<Self>,
        winners: FloatTensor<Self>,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
        let (g, winners) = (into_contiguous(g), into_contiguous(winners));
        let (inputs, width) = (matrix.columns(), g.meta.shape()[1]);
        let entries = matrix.entries();
        if entries * width == 0 {
            return zeros(&g, inputs, width);
        }
        let out = result(&g, inputs, width);
        let (forward, transposed) = (structure(&g, matrix, false), structure(&g, matrix, true));
        let positions = positions(&g, matrix);
        // SAFETY: as in `winners`.
        unsafe {
            launch!(
                pick_gradient_rows,
                lanes(&g, inputs * width),
                transposed.offsets.argument(),
                transposed.columns.argument(),
                positions.argument(),
                forward.offsets.argument(),
                g.into_buffer_arg(),
                winners.into_buffer_arg(),
                out.clone().into_buffer_arg(),
                width,
            );
        }
        out
    }
}
