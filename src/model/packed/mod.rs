//! Products with sparse rows that a training reads again and again, and of which much is stored:
//! bags of words a tenth full or more.
//!
//! ```text
//!             inner, in slabs of 96
//!           ┌──────┬──────┬──────┐
//!   rows    │ slab │ slab │ slab │  ·  x [inner, width]: 96 × 64 values of it stay in the first
//!           └──────┴──────┴──────┘     cache while the rows go by
//! ```
//!
//! Read row by row, such a matrix asks for rows of `x` all over: a weight of 767 × 256 values does
//! not fit the cache that a processor could read fast enough. Here the entries lie slab by slab, so
//! that a part of `x` is read for all rows before the next one is. Terms of a sum are still added
//! in the order of the entries, each product rounded by itself: the bits are those of the plain
//! loop, whatever the number of threads. On an AVX-512 processor a third of all values stored takes
//! less than half the time of the dense product.

mod layout;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

use self::layout::{DEPTH, Layout, Packed, deep, layouts};
use super::host::made_in_blocks;
use super::sparse::{Cache, SparseMatrix};

/// Rows whose sums a thread works out at a time, at most: with [`WIDE`] columns 96 KB, in its
/// second cache.
const HEIGHT: usize = 384;

/// At least: with fewer, reading `x` takes longer than adding it up.
const LEAST_HEIGHT: usize = 96;

/// Columns of `x` that are read at a time: four registers of 16 values.
const WIDE: usize = 64;

/// Columns of the last strips, where a wide one would be mostly empty.
const NARROW: usize = 16;

/// Prepares a matrix for many products with its structure on the host, if these will be sooner done
/// then; their bits are the same.
pub(super) fn pack(matrix: &SparseMatrix) {
    known(matrix.structure_cache(), LAYOUTS, || {
        layouts(matrix.by_row(), matrix.columns())
    });
}

/// The matrix or its transpose, if it was prepared by [`pack`].
pub(super) fn packed(matrix: &SparseMatrix, transposed: bool) -> Option<Arc<Packed>> {
    let found = matrix.structure_cache().find::<Layouts>(LAYOUTS)?;
    let layout = &found.as_ref().as_ref()?[usize::from(transposed)];
    let key = format!("{LAYOUTS} {transposed}");
    Some(known(matrix.value_cache(), &key, || {
        Packed::new(layout, matrix.by_row(), matrix.values(), transposed)
    }))
}

/// What a cache knows by this name, made when it is not there yet.
fn known<T: Any + Send + Sync>(cache: &Cache, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
    cache.find(name).unwrap_or_else(|| {
        // Not within `get`, which holds the cache: this takes several threads, and one that waits
        // for the others may meanwhile be given work that asks the cache, too.
        let made = make();
        cache.get(name, || made)
    })
}

/// Those of the matrix and of its transpose.
type Layouts = Option<[Arc<Layout>; 2]>;

/// What they are called among what is kept of a matrix.
const LAYOUTS: &str = "slabs";

impl Packed {
    /// The product with `x [inner, width]`: `[rows, width]`.
    pub(super) fn product(&self, x: &[f32], width: usize) -> Vec<f32> {
        let strips = strips(width);
        let height = self.height(&strips);
        // Blocks of no columns would be a panic.
        let block = (height * width).max(1);
        made_in_blocks(self.layout.rows * width, block, |block, out| {
            let put = <[f32]>::copy_from_slice;
            self.block(x, width, block * height, &strips, out, put);
        })
    }

    /// Adds the product with `x [inner, width]` to `sums [rows, width]`.
    pub(super) fn add_product(&self, x: &[f32], width: usize, sums: &mut [f32]) {
        let strips = strips(width);
        let height = self.height(&strips);
        let blocks = sums.par_chunks_mut((height * width).max(1)).enumerate();
        blocks.for_each(|(block, sums)| {
            self.block(x, width, block * height, &strips, sums, |sums, product| {
                for (sum, term) in sums.iter_mut().zip(product) {
                    *sum += term;
                }
            });
        });
    }

    /// Rows of a block: a transpose can have few, of which each thread should get some.
    fn height(&self, strips: &[Range<usize>]) -> usize {
        let parts = 2 * rayon::current_num_threads();
        (self.layout.rows * strips.len() / parts).clamp(LEAST_HEIGHT, HEIGHT)
    }

    /// Gives to `put` each row of the product from `first` on in parts, with where it belongs in
    /// `out`, which is those rows.
    fn block(
        &self,
        x: &[f32],
        width: usize,
        first: usize,
        strips: &[Range<usize>],
        out: &mut [f32],
        put: impl Fn(&mut [f32], &[f32]),
    ) {
        let rows = first..first + out.len() / width;
        let sums: Vec<Sums> = (strips.par_iter())
            .map(|columns| self.strip(x, width, rows.clone(), columns.clone()))
            .collect();
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            for (columns, sums) in strips.iter().zip(&sums) {
                put(&mut out[columns.clone()], &sums.row(row)[..columns.len()]);
            }
        }
    }

    /// Some rows of the product in some of its columns.
    fn strip(&self, x: &[f32], width: usize, rows: Range<usize>, columns: Range<usize>) -> Sums {
        let part = Part {
            packed: self,
            x,
            width,
            rows,
            columns,
        };
        let arch = Arch::new();
        match (part.columns.len() > NARROW, self.values.is_empty()) {
            (true, false) => Sums::Wide(arch.dispatch(Strip::<WIDE, false>(part))),
            (true, true) => Sums::Wide(arch.dispatch(Strip::<WIDE, true>(part))),
            (false, false) => Sums::Narrow(arch.dispatch(Strip::<NARROW, false>(part))),
            (false, true) => Sums::Narrow(arch.dispatch(Strip::<NARROW, true>(part))),
        }
    }
}

/// The strips of so many columns: wide ones, and narrow ones for the rest.
fn strips(width: usize) -> Vec<Range<usize>> {
    let (mut strips, mut start) = (Vec::new(), 0);
    while start < width {
        let rest = width - start;
        // Three narrow strips take as long as a wide one.
        let wide = if rest > 2 * NARROW { WIDE } else { NARROW };
        strips.push(start..width.min(start + wide));
        start += wide;
    }
    strips
}

/// Values side by side that begin where a line of the cache does: else many a register would be
/// read from two lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Tile<const COLUMNS: usize>([f32; COLUMNS]);

impl<const COLUMNS: usize> Tile<COLUMNS> {
    #[allow(clippy::inline_always)] // part of the loop that is compiled for each instruction set
    #[inline(always)]
    fn add(&mut self, value: f32, near: &Self) {
        for (sum, term) in self.0.iter_mut().zip(&near.0) {
            // Not `mul_add`, whose single rounding would give other bits.
            *sum += value * term;
        }
    }
}

/// The rows of a strip.
enum Sums {
    Wide(Vec<Tile<WIDE>>),
    Narrow(Vec<Tile<NARROW>>),
}

impl Sums {
    /// The values of a row, and zeros to the end of its tile.
    fn row(&self, row: usize) -> &[f32] {
        match self {
            Self::Wide(rows) => &rows[row].0,
            Self::Narrow(rows) => &rows[row].0,
        }
    }
}

/// A part of a product.
struct Part<'a> {
    packed: &'a Packed,
    x: &'a [f32],
    width: usize,
    rows: Range<usize>,
    columns: Range<usize>,
}

/// A part with its columns in tiles of so many, of entries that are `ONES` or have values.
// A type instead of a closure: its `call` is sure to become part of the code for each instruction
// set.
struct Strip<'a, const COLUMNS: usize, const ONES: bool>(Part<'a>);

impl<const COLUMNS: usize, const ONES: bool> NullaryFnOnce for Strip<'_, COLUMNS, ONES> {
    type Output = Vec<Tile<COLUMNS>>;

    #[allow(clippy::inline_always)] // see above
    #[inline(always)]
    fn call(self) -> Self::Output {
        let Part {
            packed,
            x,
            width,
            rows,
            columns,
        } = self.0;
        let empty = Tile([0.0_f32; COLUMNS]);
        let (mut sums, mut near) = (vec![empty; rows.len()], vec![empty; DEPTH]);
        for (number, slab) in packed.layout.slabs.iter().enumerate() {
            let values: &[f32] = if ONES { &[] } else { &packed.values[number] };
            let range = deep(number, packed.layout.inner);
            let x = x[range.start * width..range.end * width].chunks_exact(width);
            for (near, x) in near.iter_mut().zip(x) {
                let x = &x[columns.clone()];
                match x.first_chunk::<COLUMNS>() {
                    // Of a size that is known, so no call of the library's copy.
                    Some(x) => near.0 = *x,
                    None => near.0[..x.len()].copy_from_slice(x),
                }
            }
            let ends = &slab.ends[rows.start..=rows.end];
            for (sums, ends) in sums.iter_mut().zip(ends.windows(2)) {
                let entries = ends[0] as usize..ends[1] as usize;
                let places = &slab.places[entries.clone()];
                let mut tile = *sums;
                if ONES {
                    for &place in places {
                        tile.add(1.0, &near[usize::from(place)]);
                    }
                } else {
                    for (&place, &value) in places.iter().zip(&values[entries]) {
                        tile.add(value, &near[usize::from(place)]);
                    }
                }
                *sums = tile;
            }
        }
        sums
    }
}
