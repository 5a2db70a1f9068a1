//! What kernels on processors share: values of tensors as slices, and rows divided between threads.

use std::ops::{Deref, Range};

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex};
use burn::tensor::TensorData;
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::sparse::Rows;

/// Multiplications below which one thread is done before others have woken up.
const SERIAL_WORK: usize = 1 << 18;

/// A backend whose tensors lie in the memory of the host.
pub trait Host: Backend {
    /// The values of a tensor, row by row.
    type Values: Deref<Target = [f32]>;

    /// Reads a tensor.
    fn values(tensor: FloatTensor<Self>) -> Self::Values;

    /// A tensor of these values and this shape.
    fn tensor(values: Vec<f32>, shape: [usize; 2]) -> FloatTensor<Self>;
}

/// A contiguous tensor of flex as a slice.
pub struct FlexValues(FlexTensor);

impl Deref for FlexValues {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        self.0
            .as_slice::<f32>()
            .unwrap_or_else(|| self.0.storage::<f32>())
    }
}

impl Host for Flex {
    type Values = FlexValues;

    fn values(tensor: FloatTensor<Self>) -> FlexValues {
        FlexValues(tensor.to_contiguous())
    }

    fn tensor(values: Vec<f32>, shape: [usize; 2]) -> FloatTensor<Self> {
        FlexTensor::from_data(TensorData::new(values, shape))
    }
}

#[cfg(feature = "ndarray")]
#[allow(deprecated)] // the backend is kept for those who name it
impl Host for burn::backend::NdArray {
    type Values = Vec<f32>;

    fn values(tensor: FloatTensor<Self>) -> Vec<f32> {
        let burn_ndarray::NdArrayTensor::F32(storage) = tensor else {
            // All tensors of this crate are made from f32 data.
            unreachable!("activations are f32")
        };
        storage.into_shared().iter().copied().collect()
    }

    fn tensor(values: Vec<f32>, shape: [usize; 2]) -> FloatTensor<Self> {
        burn_ndarray::NdArrayTensor::from_data(TensorData::new(values, shape))
    }
}

/// Runs `task` over blocks of rows, each with its own part of `out`: row `r` begins at `start(r)`, and `start` of the
/// number of rows is the end. Each value is written by one thread, so the result does not depend on how many there are.
/// `work` is about the number of multiplications.
pub fn by_rows(
    rows: &Rows,
    work: usize,
    start: impl Fn(usize) -> usize,
    out: &mut [f32],
    task: impl Fn(Range<usize>, &mut [f32]) + Sync,
) {
    if work <= SERIAL_WORK {
        task(0..rows.len(), out);
        return;
    }
    let mut tasks = Vec::with_capacity(rows.blocks.len());
    let mut rest = out;
    for bounds in rows.blocks.windows(2) {
        let (part, tail) = rest.split_at_mut(start(bounds[1]) - start(bounds[0]));
        tasks.push((bounds[0]..bounds[1], part));
        rest = tail;
    }
    tasks
        .into_par_iter()
        .for_each(|(range, part)| task(range, part));
}
