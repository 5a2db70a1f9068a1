//! The product on processors: rayon over blocks of rows with about equally many entries.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::SpmmBackend;
use crate::model::SparseMatrix;
use crate::model::host::{Host, by_rows};
use crate::model::sparse::Rows;

/// `A·x` or `Aᵀ·x` on host slices: `x [columns, width]` row by row, the result `[rows, width]`.
#[must_use]
pub fn product(matrix: &SparseMatrix, x: &[f32], width: usize, transposed: bool) -> Vec<f32> {
    if transposed {
        let by_column = matrix.by_column();
        let (values, positions) = (matrix.values(), &by_column.positions);
        rows_times(
            &by_column.rows,
            |entry| values[positions[entry] as usize],
            x,
            width,
        )
    } else {
        let values = matrix.values();
        rows_times(matrix.by_row(), |entry| values[entry], x, width)
    }
}

fn rows_times(
    rows: &Rows,
    value: impl Fn(usize) -> f32 + Sync,
    x: &[f32],
    width: usize,
) -> Vec<f32> {
    let mut out = vec![0.0_f32; rows.len() * width];
    if width == 0 {
        return out;
    }
    let work = rows.columns.len() * width;
    by_rows(
        rows,
        work,
        |row| row * width,
        &mut out,
        |range, part| {
            for (row, sums) in range.zip(part.chunks_exact_mut(width)) {
                for entry in rows.entries(row) {
                    let factor = value(entry);
                    let source = &x[rows.columns[entry] as usize * width..][..width];
                    for (sum, term) in sums.iter_mut().zip(source) {
                        *sum += factor * term;
                    }
                }
            }
        },
    );
    out
}

impl<B: Host> SpmmBackend for B {
    fn spmm(
        x: FloatTensor<Self>,
        matrix: Arc<SparseMatrix>,
        transposed: bool,
    ) -> FloatTensor<Self> {
        let width = x.shape()[1];
        let rows = if transposed {
            matrix.columns()
        } else {
            matrix.rows()
        };
        let product = product(&matrix, &B::values(x), width, transposed);
        B::tensor(product, [rows, width])
    }
}
