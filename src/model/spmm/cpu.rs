//! The product on processors: rayon over blocks of rows with about equally many entries.

use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use burn::tensor::TensorData;
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::SpmmBackend;
use crate::model::SparseMatrix;
use crate::model::sparse::Rows;

/// Multiplications below which one thread is done before others have woken up.
const SERIAL_WORK: usize = 1 << 18;

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
    if rows.columns.len() * width <= SERIAL_WORK {
        block_times(rows, 0, &value, x, width, &mut out);
        return out;
    }
    let mut tasks = Vec::with_capacity(rows.blocks.len());
    let mut rest = out.as_mut_slice();
    for bounds in rows.blocks.windows(2) {
        let (block, tail) = rest.split_at_mut((bounds[1] - bounds[0]) * width);
        tasks.push((bounds[0], block));
        rest = tail;
    }
    tasks
        .into_par_iter()
        .for_each(|(first, block)| block_times(rows, first, &value, x, width, block));
    out
}

/// Rows `first..` of the product into `out`, as many as it holds.
fn block_times(
    rows: &Rows,
    first: usize,
    value: &impl Fn(usize) -> f32,
    x: &[f32],
    width: usize,
    out: &mut [f32],
) {
    for (row, sums) in out.chunks_exact_mut(width).enumerate() {
        let entries = rows.offsets[first + row] as usize..rows.offsets[first + row + 1] as usize;
        for entry in entries {
            let factor = value(entry);
            let source = &x[rows.columns[entry] as usize * width..][..width];
            for (sum, term) in sums.iter_mut().zip(source) {
                *sum += factor * term;
            }
        }
    }
}

impl SpmmBackend for Flex {
    fn spmm(
        x: FloatTensor<Self>,
        matrix: Arc<SparseMatrix>,
        transposed: bool,
    ) -> FloatTensor<Self> {
        let x = x.to_contiguous();
        let width = x.layout().shape()[1];
        let rows = if transposed {
            matrix.columns()
        } else {
            matrix.rows()
        };
        let values = x.as_slice::<f32>().unwrap_or_else(|| x.storage::<f32>());
        FlexTensor::from_data(TensorData::new(
            product(&matrix, values, width, transposed),
            [rows, width],
        ))
    }
}

#[cfg(feature = "ndarray")]
#[allow(deprecated)] // the backend is kept for those who name it
impl SpmmBackend for burn::backend::NdArray {
    fn spmm(
        x: FloatTensor<Self>,
        matrix: Arc<SparseMatrix>,
        transposed: bool,
    ) -> FloatTensor<Self> {
        use burn_ndarray::NdArrayTensor;
        let data = match x {
            NdArrayTensor::F32(storage) => storage.into_shared(),
            // All tensors of this crate are made from f32 data.
            _ => unreachable!("activations are f32"),
        };
        let width = data.shape()[1];
        let rows = if transposed {
            matrix.columns()
        } else {
            matrix.rows()
        };
        let contiguous: Vec<f32> = data.iter().copied().collect();
        let product = product(&matrix, &contiguous, width, transposed);
        NdArrayTensor::from_data(TensorData::new(product, [rows, width]))
    }
}
