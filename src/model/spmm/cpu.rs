//! The product on processors: rayon over blocks of rows with about equally many entries, or over
//! strips of columns where a tall matrix is transposed.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::SpmmBackend;
use crate::model::SparseMatrix;
use crate::model::gather::weighted_sums;
use crate::model::host::Host;
use crate::model::scatter;

/// `A·x` or `Aᵀ·x` on host slices: `x [columns, width]` row by row, the result `[rows, width]`.
pub(super) fn product(
    matrix: &SparseMatrix,
    x: &[f32],
    width: usize,
    transposed: bool,
) -> Vec<f32> {
    let values = matrix.values();
    if transposed && scatter::pays(matrix, width) {
        scatter::transposed_product(matrix, x, width)
    } else if transposed {
        let by_column = matrix.by_column();
        let positions = &by_column.positions;
        let value = |entry: usize, _| values[positions[entry] as usize];
        weighted_sums(&by_column.rows, value, 1, x, width)
    } else {
        weighted_sums(matrix.by_row(), |entry, _| values[entry], 1, x, width)
    }
}

impl<B: Host> SpmmBackend for B {
    fn spmm(
        x: FloatTensor<Self>,
        matrix: Arc<SparseMatrix>,
        transposed: bool,
    ) -> FloatTensor<Self> {
        let width = x.shape()[1];
        let product = product(&matrix, &B::values(x), width, transposed);
        B::tensor(product, [matrix.outputs(transposed), width])
    }
}
