//! The maximum on processors: rayon over blocks of rows with about equally many entries.

#![allow(clippy::inline_always)] // loops become part of the code for an instruction set

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor as Float;

use super::MaximumKernels;
use crate::model::SparseMatrix;
use crate::model::host::{self, Host};
use crate::model::sparse::Rows;
use crate::simd::vectorised;

fn winners(rows: &Rows, x: &[f32], width: usize) -> Vec<f32> {
    let (work, start) = (rows.columns.len() * width, |row| row * width);
    host::made_by_rows(rows, work, start, |range, part| {
        let mut largest = vec![0.0; width];
        vectorised(
            #[inline(always)]
            || {
                for (row, winners) in range.clone().zip(part.chunks_exact_mut(width.max(1))) {
                    winners_of(&rows.columns[rows.entries(row)], x, &mut largest, winners);
                }
            },
        );
    })
}

/// The winners of one row, which begin as zeros; `largest` is room for their values.
#[inline(always)]
fn winners_of(columns: &[u32], x: &[f32], largest: &mut [f32], winners: &mut [f32]) {
    let width = winners.len();
    let source = |column: u32| &x[column as usize * width..][..width];
    // Entry 0 is the winner to begin with, and of equal ones the first stays.
    let Some((&first, others)) = columns.split_first() else {
        winners.fill(-1.0);
        return;
    };
    largest.copy_from_slice(source(first));
    for (place, &column) in (1_u32..).zip(others) {
        let so_far = largest.iter_mut().zip(&mut *winners);
        for (value, (largest, winner)) in source(column).iter().zip(so_far) {
            // What is not a number wins, so that it is not hidden. Both sides are worked out, and
            // both values written, so that the loop has no branch and takes many columns at once.
            let wins = (value > largest) | value.is_nan();
            *winner = if wins { place as f32 } else { *winner };
            *largest = if wins { *value } else { *largest };
        }
    }
}

fn pick(rows: &Rows, x: &[f32], winners: &[f32], width: usize) -> Vec<f32> {
    let (work, start) = (rows.columns.len() * width, |row| row * width);
    host::each_row(rows, work, start, |row, out| {
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
    let inputs = &by_column.rows;
    let (work, start) = (inputs.columns.len() * width, |row| row * width);
    host::made_by_rows(inputs, work, start, |range, part| {
        vectorised(
            #[inline(always)]
            || {
                for (input, out) in range.clone().zip(part.chunks_exact_mut(width.max(1))) {
                    for entry in inputs.entries(input) {
                        let row = inputs.columns[entry] as usize;
                        // Positions count through the matrix, and winners from the first entry of
                        // their row.
                        let place = (by_column.positions[entry] - rows.offsets[row]) as f32;
                        let winners = &winners[row * width..][..width];
                        let won = g[row * width..][..width].iter().zip(winners);
                        for (sum, (gradient, &winner)) in out.iter_mut().zip(won) {
                            // Both are small whole numbers, which floats hold exactly, so equality
                            // is meant.
                            *sum += if winner == place { *gradient } else { 0.0 };
                        }
                    }
                }
            },
        );
    })
}

impl<B: Host> MaximumKernels for B {
    fn winners(x: Float<Self>, matrix: &SparseMatrix) -> Float<Self> {
        let width = x.shape()[1];
        let winners = winners(matrix.by_row(), &B::values(x), width);
        B::tensor(winners, [matrix.rows(), width])
    }

    fn pick(x: Float<Self>, winners: Float<Self>, matrix: &SparseMatrix) -> Float<Self> {
        let width = x.shape()[1];
        let largest = pick(matrix.by_row(), &B::values(x), &B::values(winners), width);
        B::tensor(largest, [matrix.rows(), width])
    }

    fn pick_gradient(g: Float<Self>, winners: Float<Self>, matrix: &SparseMatrix) -> Float<Self> {
        let width = g.shape()[1];
        let of_x = pick_gradient(matrix, &B::values(g), &B::values(winners), width);
        B::tensor(of_x, [matrix.columns(), width])
    }
}
