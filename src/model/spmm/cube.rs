//! The product on graphics devices: one lane per output element, neighbouring lanes on neighbouring
//! columns.

use std::sync::Arc;

use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use cubecl::prelude::*;

use super::SpmmBackend;
use crate::model::SparseMatrix;
use crate::model::device::{Numbers, lanes, launch, result, structure};

#[cube(launch_unchecked)]
fn rows_times(
    offsets: &[u32],
    columns: &[u32],
    values: &[f32],
    x: &[f32],
    out: &mut [f32],
    width: usize,
) {
    if ABSOLUTE_POS >= out.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / width;
    let column = ABSOLUTE_POS % width;
    let mut sum = 0.0_f32;
    for entry in usize::cast_from(offsets[row])..usize::cast_from(offsets[row + 1]) {
        sum += values[entry] * x[usize::cast_from(columns[entry]) * width + column];
    }
    out[ABSOLUTE_POS] = sum;
}

impl SpmmBackend for CubeBackend {
    fn spmm(
        x: FloatTensor<Self>,
        matrix: Arc<SparseMatrix>,
        transposed: bool,
    ) -> FloatTensor<Self> {
        // The kernel reads rows one after another; a transposed or narrowed view lies otherwise.
        let x = into_contiguous(x);
        let width = x.meta.shape()[1];
        let rows = matrix.outputs(transposed);
        let structure = structure(&x, &matrix, transposed);
        // Values lie in the order in which they are read, so the transpose has its own.
        let key = format!("{:?} {transposed}", x.device);
        let values = matrix.value_cache().get(&key, || {
            if !transposed {
                return Numbers::new(&x.client, matrix.values());
            }
            let positions = matrix.by_column().positions.iter();
            let values: Vec<f32> = positions.map(|&p| matrix.values()[p as usize]).collect();
            Numbers::new(&x.client, &values)
        });

        let out = result(&x, rows, width);
        let elements = rows * width;
        if elements == 0 {
            return out;
        }
        // SAFETY: the lengths given are those of the buffers made above, and every index is below
        // them: columns were checked against the width of the matrix when it was made.
        unsafe {
            launch!(
                rows_times,
                lanes(&x, elements),
                structure.offsets.argument(),
                structure.columns.argument(),
                values.argument(),
                x.into_buffer_arg(),
                out.clone().into_buffer_arg(),
                width,
            );
        }
        out
    }

    fn spmm_onto(
        base: FloatTensor<Self>,
        x: FloatTensor<Self>,
        matrix: Arc<SparseMatrix>,
    ) -> FloatTensor<Self> {
        Self::float_add(base, Self::spmm(x, matrix, false))
    }
}
