//! What kernels on graphics devices share: the structure of a sparse matrix in their memory, and
//! results to be filled.

use std::sync::Arc;

use burn::tensor::{DType, Shape};
use burn_cubecl::tensor::CubeTensor;
use cubecl::calculate_cube_count_elemwise;
use cubecl::client::Client;
use cubecl::prelude::*;
use cubecl::server::Handle;

use super::SparseMatrix;
use super::sparse::Rows;

/// Numbers on a device.
pub(super) struct Numbers {
    handle: Handle,
    length: usize,
}

impl Numbers {
    /// Uploads numbers; a buffer may not be empty, so one that is never read where there is none.
    pub(super) fn new<T: CubeElement + Default>(client: &Client, numbers: &[T]) -> Self {
        let one = [T::default()];
        let numbers = if numbers.is_empty() { &one } else { numbers };
        Self {
            handle: client.create_from_slice(T::as_bytes(numbers)),
            length: numbers.len(),
        }
    }

    /// What a kernel is given.
    pub(super) fn argument(&self) -> BufferArg {
        // SAFETY: the length is that of the buffer.
        unsafe { BufferArg::from_raw_parts(self.handle.clone(), self.length) }
    }
}

/// The structure of a matrix, or of its transpose, on a device.
pub(super) struct Uploaded {
    /// `[rows + 1]`
    pub offsets: Numbers,
    /// `[entries]`, at least one.
    pub columns: Numbers,
}

fn upload(client: &Client, rows: &Rows) -> Uploaded {
    Uploaded {
        offsets: Numbers::new(client, &rows.offsets),
        columns: Numbers::new(client, &rows.columns),
    }
}

/// The structure of `matrix`, or of its transpose, where `like` lies; uploaded when first asked
/// for.
pub(super) fn structure(
    like: &CubeTensor,
    matrix: &SparseMatrix,
    transposed: bool,
) -> Arc<Uploaded> {
    // By its text: the same caches also keep tiles, under names of their own.
    let device = format!("{:?}", like.device);
    if transposed {
        let by_column = matrix.by_column();
        by_column
            .cache
            .get(&device, || upload(&like.client, &by_column.rows))
    } else {
        matrix
            .structure_cache()
            .get(&device, || upload(&like.client, matrix.by_row()))
    }
}

/// For each entry of the transpose its position in the matrix, where `like` lies.
pub(super) fn positions(like: &CubeTensor, matrix: &SparseMatrix) -> Arc<Numbers> {
    let by_column = matrix.by_column();
    // A name of its own: under the device's alone stands the structure, which is another type.
    let key = format!("{:?} positions", like.device);
    by_column
        .cache
        .get(&key, || Numbers::new(&like.client, &by_column.positions))
}

/// Where a kernel with a lane for each of so many elements runs, beside `like`: the client, the
/// cubes of lanes, and the size of a cube.
pub(super) fn lanes(like: &CubeTensor, elements: usize) -> (Client, CubeCount, CubeDim) {
    let size = CubeDim::new(&like.client, elements);
    let cubes = calculate_cube_count_elemwise(&like.client, elements, size);
    (like.client.clone(), cubes, size)
}

/// Calls a kernel where [`lanes`] says.
macro_rules! launch {
    ($kernel:ident, $lanes:expr, $($argument:expr),+ $(,)?) => {{
        let (client, cubes, size) = $lanes;
        $kernel::launch_unchecked(&client, cubes, size, $($argument),+)
    }};
}
pub(super) use launch;

/// A tensor `[rows, width]` where `like` lies, to be filled.
pub(super) fn result(like: &CubeTensor, rows: usize, width: usize) -> CubeTensor {
    // A buffer may not be empty, so a result without values has room for one that nobody reads.
    let bytes = (rows * width).max(1) * size_of::<f32>();
    // What was in this memory before stays there: every kernel writes each element of its result.
    over(like, like.client.empty(bytes), rows, width)
}

/// Zeros `[rows, width]` where `like` lies: what comes of no entries.
pub(super) fn zeros(like: &CubeTensor, rows: usize, width: usize) -> CubeTensor {
    let zeros = vec![0.0_f32; (rows * width).max(1)];
    let handle = like.client.create_from_slice(f32::as_bytes(&zeros));
    over(like, handle, rows, width)
}

fn over(like: &CubeTensor, handle: Handle, rows: usize, width: usize) -> CubeTensor {
    CubeTensor::new_contiguous(
        like.client.clone(),
        like.device.clone(),
        Shape::new([rows, width]),
        handle,
        DType::F32,
    )
}
