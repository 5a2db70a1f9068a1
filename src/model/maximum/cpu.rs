//! The maximum on processors: rayon over blocks of rows with about equally many entries.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::MaximumKernels;
use crate::model::SparseMatrix;
use crate::model::host::{self, Host};
use crate::model::sparse::Rows;

/// Fills `[rows, width]`: `task` gets a row and its values.
fn each_row(rows: &Rows, width: usize, task: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    host::each_row(rows, rows.columns.len() * width, |row| row * width, task)
}

fn winners(rows: &Rows, x: &[f32], width: usize) -> Vec<f32> {
    each_row(rows, width, |row, winners| {
        let columns = &rows.columns[rows.entries(row)];
        let source = |place: usize| &x[columns[place] as usize * width..][..width];
        winners.fill(if columns.is_empty() { -1.0 } else { 0.0 });
        // Entry 0 is the winner to begin with, and of equal ones the first stays.
        for place in 1..columns.len() {
            let values = source(place).iter().enumerate();
            for ((column, value), winner) in values.zip(winners.iter_mut()) {
                // What is not a number wins, so that it is not hidden.
                if *value > source(*winner as usize)[column] || value.is_nan() {
                    *winner = place as f32;
                }
            }
        }
    })
}

fn pick(rows: &Rows, x: &[f32], winners: &[f32], width: usize) -> Vec<f32> {
    each_row(rows, width, |row, out| {
        let columns = &rows.columns[rows.entries(row)];
        if columns.is_empty() {
            return;
        }
        let winners = &winners[row * width..][..width];
        for (column, (value, &winner)) in out.iter_mut().zip(winners).enumerate() {
            *value = x[columns[winner as usize] as usize * width + column];
        }
    })
}

fn pick_gradient(matrix: &SparseMatrix, g: &[f32], winners: &[f32], width: usize) -> Vec<f32> {
    let (rows, by_column) = (matrix.by_row(), matrix.by_column());
    each_row(&by_column.rows, width, |input, out| {
        for entry in by_column.rows.entries(input) {
            let row = by_column.rows.columns[entry] as usize;
            // Positions count through the matrix, and winners from the first entry of their row.
            let place = (by_column.positions[entry] - rows.offsets[row]) as f32;
            let won = g[row * width..].iter().zip(&winners[row * width..]);
            for (sum, (gradient, &winner)) in out.iter_mut().zip(won) {
                // Both are small whole numbers, which floats hold exactly, so equality is meant.
                if winner == place {
                    *sum += gradient;
                }
            }
        }
    })
}

impl<B: Host> MaximumKernels for B {
    fn winners(x: FloatTensor<Self>, matrix: &SparseMatrix) -> FloatTensor<Self> {
        let width = x.shape()[1];
        let winners = winners(matrix.by_row(), &B::values(x), width);
        B::tensor(winners, [matrix.rows(), width])
    }

    fn pick(
        x: FloatTensor<Self>,
        winners: FloatTensor<Self>,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
        let width = x.shape()[1];
        let largest = pick(matrix.by_row(), &B::values(x), &B::values(winners), width);
        B::tensor(largest, [matrix.rows(), width])
    }

    fn pick_gradient(
        g: FloatTensor<Self>,
        winners: FloatTensor<Self>,
        matrix: &SparseMatrix,
    ) -> FloatTensor<Self> {
        let width = g.shape()[1];
        let of_x = pick_gradient(matrix, &B::values(g), &B::values(winners), width);
        B::tensor(of_x, [matrix.columns(), width])
    }
}
