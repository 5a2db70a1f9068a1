//! The product on processors: rayon over blocks of rows with about equally many entries, over
//! strips of columns where a tall matrix is transposed, or slab by slab where it was packed.

#![allow(clippy::inline_always)] // the loop becomes part of the code for an instruction set

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor as Float;

use super::SpmmBackend;
use crate::model::SparseMatrix;
use crate::model::gather::weighted_sums;
use crate::model::host::{Host, rows_in_blocks};
use crate::model::packed::packed;
use crate::model::scatter;

/// `A·x` or `Aᵀ·x` on host slices: `x [columns, width]` row by row, the result `[rows, width]`.
pub(super) fn product(
    matrix: &SparseMatrix,
    x: &[f32],
    width: usize,
    transposed: bool,
) -> Vec<f32> {
    if let Some(packed) = packed(matrix, transposed) {
        return packed.product(x, width);
    }
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
    fn spmm(x: Float<Self>, matrix: Arc<SparseMatrix>, transposed: bool) -> Float<Self> {
        let width = x.shape()[1];
        let product = product(&matrix, &B::values(x), width, transposed);
        B::tensor(product, [matrix.outputs(transposed), width])
    }

    fn spmm_onto(base: Float<Self>, x: Float<Self>, matrix: Arc<SparseMatrix>) -> Float<Self> {
        let (width, x) = (x.shape()[1], B::values(x));
        B::update(base, |sums| {
            if let Some(packed) = packed(&matrix, false) {
                return packed.add_product(&x, width, sums);
            }
            let product = product(&matrix, &x, width, false);
            rows_in_blocks(
                sums,
                width,
                #[inline(always)]
                |first, sums| {
                    for (sum, term) in sums.iter_mut().zip(&product[first * width..]) {
                        *sum += term;
                    }
                },
            );
        })
    }
}
