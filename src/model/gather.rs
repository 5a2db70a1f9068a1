//! Weighted sums of gathered rows on processors: the inner loop of every aggregation.
//!
//! ```text
//!   out[row] = Σ over entries e of row:  w(e, head) · x[column(e)]
//! ```
//!
//! A row of the result is worked out in tiles of columns that stay in registers while the entries
//! of the row go by, in their order; so the bits are those of the plain loop. What is gathered next
//! is asked of memory a few entries ahead: without that, a graph whose rows outgrow the cache waits
//! for memory most of the time. The code is compiled for several instruction sets, of which the
//! best the processor knows is chosen at run time; none of them contracts a product and a sum into
//! one rounding. For that, everything down to the inner loop has to become part of the function
//! that was compiled for the instruction set: hence `inline(always)`.

#![allow(clippy::inline_always)] // see above

use std::ops::Range;

use rayon::prelude::*;

use super::host::made_by_rows;
use super::sparse::Rows;
use crate::simd::vectorised;

/// Entries between the row that is added and the row that is asked for.
// A matter of speed alone: a prefetch changes no value.
pub(super) const AHEAD: usize = 10;

/// Values of a tile that fill the registers.
// Four registers of 16 values with AVX-512, eight of 8 with AVX2.
pub(super) const TILE: usize = 64;

/// Values of a tile where there are 32 registers of 16 values: rows are then gone through half as
/// often. With fewer registers it would be slower than two tiles.
const WIDE: usize = 128;

/// Whether there are as many: with AVX-512.
fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// `Σ_e w(e, k)·x[column(e)]` over the entries `e` of each row, with head `k` of `heads` weighting
/// its own part of the columns of `x [columns, width]`. Result: `[rows, width]`.
pub(super) fn weighted_sums(
    rows: &Rows,
    weight: impl Fn(usize, usize) -> f32 + Sync,
    heads: usize,
    x: &[f32],
    width: usize,
) -> Vec<f32> {
    let part = width / heads;
    let gather = Gather::new(rows, weight, x, width);
    each_part(
        rows,
        heads,
        width,
        width,
        #[inline(always)]
        |row, head, from, sums| {
            gather.part(row, &[(head, head * part)], from, sums);
        },
    )
}

/// `Σ_k Σ_e w(e, k)·(part k of x[column(e)])`: as [`weighted_sums`], with the heads added up.
/// Result: `[rows, width / heads]`.
pub(super) fn sums_of_heads(
    rows: &Rows,
    weight: impl Fn(usize, usize) -> f32 + Sync,
    heads: usize,
    x: &[f32],
    width: usize,
) -> Vec<f32> {
    let part = width / heads;
    let all: Vec<(usize, usize)> = (0..heads).map(|head| (head, head * part)).collect();
    let gather = Gather::new(rows, weight, x, width);
    each_part(
        rows,
        1,
        width,
        part,
        #[inline(always)]
        |row, _, from, sums| {
            gather.part(row, &all, from, sums);
        },
    )
}

/// `Σ_e w(e, k)·x[column(e)]` for each head `k` with the same columns: transposed to
/// [`sums_of_heads`]. Result: `[rows, heads · width]`.
pub(super) fn sums_for_heads(
    rows: &Rows,
    weight: impl Fn(usize, usize) -> f32 + Sync,
    heads: usize,
    x: &[f32],
    width: usize,
) -> Vec<f32> {
    let gather = Gather::new(rows, weight, x, width);
    each_part(
        rows,
        heads,
        width,
        heads * width,
        #[inline(always)]
        |row, head, from, sums| {
            gather.part(row, &[(head, 0)], from, sums);
        },
    )
}

/// Fills `[rows, result]` in `parts` equal parts of each row; `fill` gets the row, the part's
/// number, the first of its columns that are wanted, and their place. For each entry it reads
/// `width` values.
pub(super) fn each_part(
    rows: &Rows,
    parts: usize,
    width: usize,
    result: usize,
    fill: impl Fn(usize, usize, usize, &mut [f32]) + Sync,
) -> Vec<f32> {
    // Rows below are chunks of `result` columns, and chunks of none are a panic.
    if result == 0 {
        return Vec::new();
    }
    let wide = result / parts;
    // Of each row `step` columns, in parts of `wide`: the first is `part`, from its column `from`
    // on. The one place that calls `fill`: with a second one it would no longer become part of the
    // code for the instruction set.
    let fill_rows = |range: Range<usize>, part, from, step, wide, sums: &mut [f32]| {
        vectorised(
            #[inline(always)]
            || {
                for (row, sums) in range.clone().zip(sums.chunks_exact_mut(step)) {
                    for (next, sums) in sums.chunks_exact_mut(wide).enumerate() {
                        fill(row, part + next, from, sums);
                    }
                }
            },
        );
    };
    made_by_rows(
        rows,
        // Heads side by side read the same columns for each head, so the result can be wider than
        // `x`.
        rows.columns.len() * width.max(result),
        |row| row * result,
        |range, sums| {
            let Some(row) = rows.hub(&range) else {
                return fill_rows(range, 0, 0, result, wide, sums);
            };
            let each = |(part, sums): (usize, &mut [f32])| {
                // Each thread gets as many columns as its registers hold, and reads all entries.
                let tiles = sums.par_chunks_mut(TILE).enumerate();
                tiles.for_each(|(tile, sums)| {
                    let width = sums.len();
                    fill_rows(row..row + 1, part, tile * TILE, width, width, sums);
                });
            };
            sums.par_chunks_exact_mut(wide).enumerate().for_each(each);
        },
    )
}

struct Gather<'a, W> {
    rows: &'a Rows,
    weight: W,
    x: &'a [f32],
    width: usize,
    wide: bool,
}

impl<'a, W: Fn(usize, usize) -> f32> Gather<'a, W> {
    fn new(rows: &'a Rows, weight: W, x: &'a [f32], width: usize) -> Self {
        Self {
            rows,
            weight,
            x,
            width,
            wide: is_wide(),
        }
    }

    /// Adds up heads, each with the column where its part of `x` starts, in tiles as wide as they
    /// fit: the columns of the parts from `from` on.
    #[inline(always)]
    fn part(&self, row: usize, heads: &[(usize, usize)], from: usize, sums: &mut [f32]) {
        let mut at = 0;
        // Widths are constants, so that a tile is registers and not memory; hence one branch for
        // each.
        while self.wide && sums.len() - at >= WIDE {
            self.tile::<WIDE>(row, heads, from + at, &mut sums[at..]);
            at += WIDE;
        }
        while sums.len() - at >= TILE {
            self.tile::<TILE>(row, heads, from + at, &mut sums[at..]);
            at += TILE;
        }
        if sums.len() - at >= 32 {
            self.tile::<32>(row, heads, from + at, &mut sums[at..]);
            at += 32;
        }
        if sums.len() - at >= 16 {
            self.tile::<16>(row, heads, from + at, &mut sums[at..]);
            at += 16;
        }
        if sums.len() - at >= 8 {
            self.tile::<8>(row, heads, from + at, &mut sums[at..]);
            at += 8;
        }
        if at < sums.len() {
            self.rest(row, heads, from + at, &mut sums[at..]);
        }
    }

    #[inline(always)]
    fn tile<const WIDTH: usize>(
        &self,
        row: usize,
        heads: &[(usize, usize)],
        offset: usize,
        sums: &mut [f32],
    ) {
        let mut tile = [0.0_f32; WIDTH];
        for entry in self.rows.entries(row) {
            // This may be an entry of a later row, which comes next anyway.
            let later = self.rows.columns.get(entry + AHEAD);
            let base = self.rows.columns[entry] as usize * self.width + offset;
            for &(head, start) in heads {
                if let Some(&later) = later {
                    let at = later as usize * self.width + start + offset;
                    prefetch::<WIDTH>(self.x, at);
                }
                let factor = (self.weight)(entry, head);
                for (sum, term) in tile.iter_mut().zip(&self.x[base + start..][..WIDTH]) {
                    // Not `mul_add`: its single rounding would not give the bits of the plain loop.
                    *sum += factor * term;
                }
            }
        }
        sums[..WIDTH].copy_from_slice(&tile);
    }

    /// Fewer columns than the smallest tile has.
    #[inline(always)]
    fn rest(&self, row: usize, heads: &[(usize, usize)], offset: usize, sums: &mut [f32]) {
        for entry in self.rows.entries(row) {
            let base = self.rows.columns[entry] as usize * self.width + offset;
            for &(head, start) in heads {
                let factor = (self.weight)(entry, head);
                for (sum, term) in sums.iter_mut().zip(&self.x[base + start..]) {
                    *sum += factor * term;
                }
            }
        }
    }
}

/// Asks memory for `WIDTH` values from `at` on. Only a hint: nothing happens where the processor
/// has none.
#[allow(unsafe_code)]
#[inline(always)]
pub(super) fn prefetch<const WIDTH: usize>(x: &[f32], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // Sixteen floats are a cache line of 64 bytes, the unit that memory is asked for.
    for line in (0..WIDTH).step_by(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program can see and never faults, whatever the
        // address. `wrapping_add`, as `add` past the end of a slice is undefined even where nothing
        // is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(x.as_ptr().wrapping_add(at + line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, at);
}

/// `⟨a, b⟩` in sixteen partial sums: the same bits whatever the instruction set.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    // One sum is a chain of additions that the compiler may not reorder; sixteen are a register's
    // worth.
    let mut sums = [0.0_f32; 16];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::SparseMatrix;
    use crate::model::sparse::{HUB_ENTRIES, drawn};

    fn plain(
        matrix: &SparseMatrix,
        weights: &[f32],
        heads: usize,
        x: &[f32],
        width: usize,
    ) -> Vec<f32> {
        let rows = matrix.by_row();
        let mut out = vec![0.0_f32; rows.len() * width];
        for row in 0..rows.len() {
            for entry in rows.entries(row) {
                for column in 0..width {
                    let weight = weights[entry * heads + column / (width / heads)];
                    out[row * width + column] +=
                        weight * x[rows.columns[entry] as usize * width + column];
                }
            }
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn rows_that_threads_share_have_the_bits_of_the_plain_loop(
            before in prop::collection::vec(0_usize..9, 0..4),
            hub in HUB_ENTRIES..HUB_ENTRIES + 100,
            after in prop::collection::vec(0_usize..9, 0..4),
            heads in 1_usize..3,
            part in 1_usize..150,
        ) {
            let lengths = [&before[..], &[hub], &after[..]].concat();
            let (matrix, width) = (drawn::matrix(&lengths, 11, 3), heads * part);
            let rows = matrix.by_row();
            let blocks = rows.blocks.windows(2).map(|ends| ends[0]..ends[1]);
            let shared: Vec<usize> = blocks.filter_map(|block| rows.hub(&block)).collect();
            prop_assert_eq!(shared, vec![before.len()]);
            let weights = drawn::values(matrix.entries() * heads, 4);
            let x = drawn::values(matrix.columns() * width, 5);
            let weight = |entry, head| weights[entry * heads + head];
            let sums = weighted_sums(rows, weight, heads, &x, width);
            prop_assert_eq!(&sums, &plain(&matrix, &weights, heads, &x, width));

            // Of each head its own part, and the sum of these.
            let merged = sums_of_heads(rows, weight, heads, &x, width);
            let spread = sums_for_heads(rows, weight, heads, &x, width);
            for row in 0..rows.len() {
                for column in 0..part {
                    let parts = (0..heads).map(|head| sums[row * width + head * part + column]);
                    let (sum, found) = (parts.sum::<f32>(), merged[row * part + column]);
                    // Terms in another order: what rounding makes of them grows with the root of
                    // their number.
                    prop_assert!((sum - found).abs() <= 1e-3 * (1.0 + rows.entries(row).len() as f32).sqrt());
                }
            }
            for head in 0..heads {
                let of_head = |entry: usize, _: usize| weights[entry * heads + head];
                let alone = weighted_sums(rows, of_head, 1, &x, width);
                for row in 0..rows.len() {
                    let place = (row * heads + head) * width;
                    prop_assert_eq!(&spread[place..place + width], &alone[row * width..][..width]);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn tiles_give_the_bits_of_the_plain_loop(
            lengths in prop::collection::vec(0_usize..9, 1..40),
            heads in 1_usize..4,
            part in 1_usize..150,
            seed in any::<u32>().prop_map(u64::from),
        ) {
            let (matrix, width) = (drawn::matrix(&lengths, 11, seed), heads * part);
            let weights = drawn::values(matrix.entries() * heads, seed + 1);
            let x = drawn::values(matrix.columns() * width, seed + 2);
            let sums = weighted_sums(
                matrix.by_row(),
                |entry, head| weights[entry * heads + head],
                heads,
                &x,
                width,
            );
            prop_assert_eq!(sums, plain(&matrix, &weights, heads, &x, width));
        }

        #[test]
        fn a_dot_product_is_the_sum_of_products(
            pairs in prop::collection::vec((-2.0_f32..2.0, -2.0_f32..2.0), 0..100),
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let exact: f64 = pairs.iter().map(|&(a, b)| f64::from(a) * f64::from(b)).sum();
            // A hundred products of at most 4, in single precision.
            prop_assert!((f64::from(dot(&a, &b)) - exact).abs() < 1e-4);
        }
    }
}
