//! What kernels on processors share: values of tensors as slices, and rows divided between threads.

use std::mem::MaybeUninit;
use std::ops::{Deref, Range};

use burn::backend::tensor::FloatTensor as Float;
use burn::backend::{Backend, Flex, TensorMetadata};
use burn::tensor::TensorData;
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::sparse::Rows;
use crate::simd::vectorised;

/// Multiplications below which one thread is done before others have woken up.
// No result depends on it: with threads or without, each value is made by one of them.
const SERIAL_WORK: usize = 1 << 18;

/// A backend whose tensors lie in the memory of the host.
pub(crate) trait Host: Backend {
    /// The values of a tensor, row by row.
    type Values: Deref<Target = [f32]>;

    /// Reads a tensor.
    fn values(tensor: Float<Self>) -> Self::Values;

    /// A tensor of these values and this shape.
    fn tensor(values: Vec<f32>, shape: [usize; 2]) -> Float<Self>;

    /// Changes the values of a matrix: in place if nobody else has it, else in a copy.
    fn update(tensor: Float<Self>, change: impl FnOnce(&mut [f32])) -> Float<Self> {
        let shape = tensor.shape();
        let mut values = Self::values(tensor).to_vec();
        change(&mut values);
        Self::tensor(values, [shape[0], shape[1]])
    }
}

/// A contiguous tensor of flex as a slice.
pub(crate) struct FlexValues(FlexTensor);

impl Deref for FlexValues {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        self.0
            // `storage` alone would be wrong for a view, whose values are a part of what it points
            // into.
            .as_slice::<f32>()
            .unwrap_or_else(|| self.0.storage::<f32>())
    }
}

impl Host for Flex {
    type Values = FlexValues;

    fn values(tensor: Float<Self>) -> FlexValues {
        // Rows of a matrix lie one after another in it, and are read where they are.
        if tensor.as_slice::<f32>().is_some() {
            return FlexValues(tensor);
        }
        FlexValues(tensor.to_contiguous())
    }

    fn tensor(values: Vec<f32>, shape: [usize; 2]) -> Float<Self> {
        FlexTensor::from_data(TensorData::new(values, shape))
    }

    fn update(mut tensor: FlexTensor, change: impl FnOnce(&mut [f32])) -> FlexTensor {
        let shape = tensor.shape();
        let count = shape.num_elements();
        // Others may hold the same storage, and a view is contiguous though its storage is longer.
        if tensor.is_contiguous()
            && let Some(values) = tensor.try_storage_mut::<f32>()
            && values.len() == count
        {
            change(values);
            return tensor;
        }
        let mut values = Self::values(tensor).to_vec();
        change(&mut values);
        Self::tensor(values, [shape[0], shape[1]])
    }
}

#[cfg(feature = "ndarray")]
#[allow(deprecated)] // the backend is kept for those who name it
impl Host for burn::backend::NdArray {
    type Values = Vec<f32>;

    fn values(tensor: Float<Self>) -> Vec<f32> {
        let burn_ndarray::NdArrayTensor::F32(storage) = tensor else {
            // All tensors of this crate are made from f32 data.
            unreachable!("activations are f32")
        };
        storage.into_shared().iter().copied().collect()
    }

    fn tensor(values: Vec<f32>, shape: [usize; 2]) -> Float<Self> {
        burn_ndarray::NdArrayTensor::from_data(TensorData::new(values, shape))
    }
}

/// Runs `task` over blocks of rows, each with its own part of `out`: row `r` begins at `start(r)`,
/// and `start` of the number of rows is the end. Each value is written by one thread, so the result
/// does not depend on how many there are. `work` is about the number of multiplications.
pub(super) fn by_rows<T: Send>(
    rows: &Rows,
    work: usize,
    start: impl Fn(usize) -> usize,
    out: &mut [T],
    task: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    if work <= SERIAL_WORK {
        task(0..rows.len(), out);
        return;
    }
    let mut tasks = Vec::with_capacity(rows.blocks.len());
    let mut rest = out;
    for bounds in rows.blocks.windows(2) {
        // Parts that do not overlap: no two threads can reach the same value.
        let (part, tail) = rest.split_at_mut(start(bounds[1]) - start(bounds[0]));
        tasks.push((bounds[0]..bounds[1], part));
        rest = tail;
    }
    assert!(rest.is_empty(), "blocks are all rows");
    tasks
        .into_par_iter()
        .for_each(|(range, part)| task(range, part));
}

/// As [`by_rows`], with fresh zeros, and a `task` for each row and its values.
pub(super) fn each_row(
    rows: &Rows,
    work: usize,
    start: impl Fn(usize) -> usize + Sync,
    task: impl Fn(usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    let mut out = vec![0.0; start(rows.len())];
    by_rows(rows, work, &start, &mut out, |range, mut part| {
        for row in range {
            let (mine, rest) = part.split_at_mut(start(row + 1) - start(row));
            task(row, mine);
            part = rest;
        }
    });
    out
}

/// As [`by_rows`], with a fresh `out` of zeros, of which each thread clears what it then works on,
/// while that is in its cache.
pub(super) fn made_by_rows(
    rows: &Rows,
    work: usize,
    start: impl Fn(usize) -> usize,
    task: impl Fn(Range<usize>, &mut [f32]) + Sync,
) -> Vec<f32> {
    let count = start(rows.len());
    let mut values = Vec::with_capacity(count);
    let out = &mut values.spare_capacity_mut()[..count];
    by_rows(rows, work, start, out, |range, part| {
        task(range, cleared(part));
    });
    // SAFETY: there is room for `count` values, and `by_rows` has had a task clear each of them.
    #[allow(unsafe_code)]
    unsafe {
        values.set_len(count);
    }
    values
}

/// So many values in blocks of `block`, each zeros that `task` works on, given the block's number.
pub(super) fn made_in_blocks(
    count: usize,
    block: usize,
    task: impl Fn(usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    let mut values = Vec::with_capacity(count);
    let blocks = values.spare_capacity_mut()[..count].par_chunks_mut(block);
    blocks.enumerate().for_each(|(number, block)| {
        task(number, cleared(block));
    });
    // SAFETY: the blocks are the first `count` values, and each was cleared.
    #[allow(unsafe_code)]
    unsafe {
        values.set_len(count);
    }
    values
}

/// Values that one thread copies at a time.
pub(super) const COPIED: usize = 1 << 14;

/// The values and zeros behind them, `count` in all, copied by all threads.
pub(crate) fn copied(values: &[f32], count: usize) -> Vec<f32> {
    made_in_blocks(count, COPIED, |number, block| {
        let rest = values.get(number * COPIED..).unwrap_or_default();
        let some = rest.len().min(block.len());
        block[..some].copy_from_slice(&rest[..some]);
    })
}

/// These values, set to zero.
fn cleared(values: &mut [MaybeUninit<f32>]) -> &mut [f32] {
    values.fill(MaybeUninit::new(0.0));
    // SAFETY: all of them have just been set.
    #[allow(unsafe_code)]
    unsafe {
        values.assume_init_mut()
    }
}

/// Values that one thread takes at a time: few enough to stay in its cache between the parts of a
/// task.
const BLOCK_VALUES: usize = 1 << 15;

/// Runs `task` over blocks of whole rows of `values`, given the number of a block's first row. Rows
/// must not depend on each other.
pub(super) fn rows_in_blocks(
    values: &mut [f32],
    width: usize,
    task: impl Fn(usize, &mut [f32]) + Sync,
) {
    if width == 0 || values.is_empty() {
        return;
    }
    #[allow(clippy::inline_always)] // part of the code for an instruction set
    let task = |first: usize, rows: &mut [f32]| {
        vectorised(
            #[inline(always)]
            || task(first, rows),
        );
    };
    // A row wider than a block is a block by itself: no task could work on a part of one.
    let height = (BLOCK_VALUES / width).max(1);
    // Two blocks are sooner done here than handed to other threads.
    if values.len() <= 2 * BLOCK_VALUES {
        return task(0, values);
    }
    values
        .par_chunks_mut(height * width)
        .enumerate()
        .for_each(|(block, rows)| task(block * height, rows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_has_its_own_values_and_rows_are_read_where_they_lie() {
        let all = <Flex as Host>::tensor((0_u8..12).map(f32::from).collect(), [4, 3]);
        let rows = <Flex as Host>::values(all.narrow(0, 1, 2));
        assert_eq!(*rows, [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(rows.as_ptr(), all.storage::<f32>()[3..].as_ptr());
        let columns = <Flex as Host>::values(all.narrow(1, 1, 2));
        assert_eq!(*columns, [1.0, 2.0, 4.0, 5.0, 7.0, 8.0, 10.0, 11.0]);
        let turned = <Flex as Host>::values(all.transpose(0, 1));
        assert_eq!(turned[..5], [0.0, 3.0, 6.0, 9.0, 1.0]);
    }
}
