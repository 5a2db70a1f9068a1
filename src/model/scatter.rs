//! Products with a transposed matrix that has far more rows than columns, on processors: the
//! gradient of a first layer's weight, whose input is sparse.
//!
//! ```text
//!   out[column(e)] += w(e) · x[row],   row by row, for the entries e of each row
//! ```
//!
//! Of `x` and the result one is read in order and the other at random; here it is the result,
//! because it is the smaller one. It is worked out in strips of columns, each narrow enough for the
//! cache of the one thread that adds it up. A value gets its terms in the order of the rows, as it
//! does where it gathers them by column: the bits are the same.

#![allow(clippy::inline_always)] // as in `gather`: the loop becomes part of the code for the chosen instruction set

use rayon::prelude::*;

use super::gather::prefetch;
use super::sparse::SparseMatrix;
use crate::simd::vectorised;

/// Columns of a strip, if all threads have one then.
const WIDEST: usize = 128;

/// Columns of the narrowest strips that are worth it: a cache line.
const NARROWEST: usize = 16;

/// Rows between the one that is added and the one that is asked of memory.
// As of all three: values are the same with any number, only the time is not.
const AHEAD: usize = 4;

/// Whether `matrixᵀ·x` is better added up so, for `x` of this width: the result is smaller than
/// `x`, and every thread gets a strip.
pub(super) fn pays(matrix: &SparseMatrix, width: usize) -> bool {
    // Which way is taken may depend on the number of threads: both give the same bits.
    matrix.columns() < matrix.rows() && width >= NARROWEST * rayon::current_num_threads()
}

/// `matrixᵀ·x`: `matrix [rows, columns]`, `x [rows, width]`, the result `[columns, width]`.
pub(super) fn transposed_product(matrix: &SparseMatrix, x: &[f32], width: usize) -> Vec<f32> {
    // Strips depend on the number of threads and values do not: strips share no column.
    let strips = strips(width, rayon::current_num_threads());
    let sums: Vec<Vec<f32>> = (strips.par_iter())
        .map(|&(start, wide)| {
            vectorised(
                #[inline(always)]
                || match wide {
                    // Literals, so that each arm is compiled with its width as a constant; the last
                    // is for the rest of a width.
                    128 => strip(matrix, x, width, start, 128),
                    64 => strip(matrix, x, width, start, 64),
                    32 => strip(matrix, x, width, start, 32),
                    16 => strip(matrix, x, width, start, 16),
                    _ => strip(matrix, x, width, start, wide),
                },
            )
        })
        .collect();
    let mut out = vec![0.0_f32; matrix.columns() * width];
    // Chunks of no columns would be a panic.
    (out.par_chunks_mut(width.max(1)).enumerate()).for_each(|(row, out)| {
        for (&(start, wide), sums) in strips.iter().zip(&sums) {
            out[start..start + wide].copy_from_slice(&sums[row * wide..][..wide]);
        }
    });
    out
}

/// Where strips begin and how wide they are: as wide as leaves one for each thread, and what
/// remains in narrower ones.
fn strips(width: usize, threads: usize) -> Vec<(usize, usize)> {
    let (mut strips, mut start, mut wide) = (Vec::new(), 0, WIDEST);
    while wide > NARROWEST && width / wide < threads {
        wide /= 2;
    }
    while start < width {
        while wide > NARROWEST && width - start < wide {
            wide /= 2;
        }
        let wide = wide.min(width - start);
        strips.push((start, wide));
        start += wide;
    }
    strips
}

/// The columns from `start` on, `wide` of them. Where that is a constant, a row of the strip stays
/// in registers.
#[inline(always)]
fn strip(matrix: &SparseMatrix, x: &[f32], width: usize, start: usize, wide: usize) -> Vec<f32> {
    let (rows, values) = (matrix.by_row(), matrix.values());
    let mut out = vec![0.0_f32; matrix.columns() * wide];
    for row in 0..rows.len() {
        // Past the last row nothing is read, and asking for it does no harm.
        for line in (0..wide).step_by(NARROWEST) {
            prefetch::<NARROWEST>(x, (row + AHEAD) * width + start + line);
        }
        let terms = &x[row * width + start..][..wide];
        for entry in rows.entries(row) {
            let factor = values[entry];
            let sums = &mut out[rows.columns[entry] as usize * wide..][..wide];
            for (sum, term) in sums.iter_mut().zip(terms) {
                *sum += factor * term;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::gather::weighted_sums;
    use crate::model::sparse::drawn;

    proptest! {
        #[test]
        fn adding_up_where_entries_point_gives_the_bits_of_gathering_by_column(
            lengths in prop::collection::vec(0_usize..9, 1..60),
            columns in 1_usize..20,
            width in 1_usize..400,
            seed in any::<u32>().prop_map(u64::from),
        ) {
            let matrix = drawn::matrix(&lengths, columns, seed);
            let x = drawn::values(matrix.rows() * width, seed + 1);
            let by_column = matrix.by_column();
            let gathered = weighted_sums(
                &by_column.rows,
                |entry, _| matrix.values()[by_column.positions[entry] as usize],
                1,
                &x,
                width,
            );
            prop_assert_eq!(transposed_product(&matrix, &x, width), gathered);
        }

        #[test]
        fn strips_cover_every_column_once_and_leave_none_idle(width in 1_usize..2000, threads in 1_usize..40) {
            let strips = strips(width, threads);
            let mut next = 0;
            for &(start, wide) in &strips {
                prop_assert_eq!(start, next);
                prop_assert!((1..=WIDEST).contains(&wide));
                next = start + wide;
            }
            prop_assert_eq!(next, width);
            prop_assert!(strips.len() >= threads.min(width / NARROWEST));
        }
    }
}
