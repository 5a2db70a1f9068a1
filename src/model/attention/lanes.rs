//! Attention passes whose lanes are the heads, for 2, 4, 8 or 16 heads with few columns each.
//!
//! Rows are laid out anew for a pass, column by column with all heads of a column side by side:
//!
//! ```text
//!   x [n, heads, d]  →  [n, d, heads]        out[c][head] = Σ_e w[e][head] · x[column(e)][c][head]
//! ```
//!
//! One load then brings the weights of an entry for all its columns, and one register holds a
//! column of all heads, where head by head a register would be filled by eight columns at best and
//! every head would go through the entries again. Each result adds its terms in the order of the
//! entries, as ever, and has the bits of the plain loop; but the mean over heads, which is taken
//! last.

#![allow(clippy::inline_always)] // code has to become part of what is compiled for an instruction set

use std::array;

use rayon::prelude::*;

use super::NEGATIVE_SLOPE;
use super::heads::{EXPONENTIAL, each_row};
use crate::model::gather::{AHEAD, TILE, each_part, prefetch};
use crate::model::host::made_in_blocks;
use crate::model::sparse::Rows;
use crate::simd::vectorised;

/// Rows that a thread lays out at a time.
const ROWS: usize = 256;

/// Whether a head has so few columns that lanes of heads are worth laying rows out anew.
pub(super) const fn are_worth_it(columns: usize) -> bool {
    columns < TILE
}

/// `[n, d, heads]` of `[n, heads, d]`.
fn turned<const HEADS: usize>(values: &[f32], columns: usize) -> Vec<f32> {
    each_turned(
        values,
        HEADS * columns,
        #[inline(always)]
        |out, row| {
            let parts: [&[f32]; HEADS] = array::from_fn(|head| &row[head * columns..][..columns]);
            for (column, out) in out.as_chunks_mut::<HEADS>().0.iter_mut().enumerate() {
                for head in 0..HEADS {
                    out[head] = parts[head][column];
                }
            }
        },
    )
}

/// `[n, heads, d]` of `[n, d, heads]`.
fn turned_back<const HEADS: usize>(values: &[f32], columns: usize) -> Vec<f32> {
    each_turned(
        values,
        HEADS * columns,
        #[inline(always)]
        |out, row| {
            for (column, values) in row.as_chunks::<HEADS>().0.iter().enumerate() {
                for head in 0..HEADS {
                    out[head * columns + column] = values[head];
                }
            }
        },
    )
}

/// Rows of `width`, each laid out anew by `turn`, which gets its new and its old place.
fn each_turned(values: &[f32], width: usize, turn: impl Fn(&mut [f32], &[f32]) + Sync) -> Vec<f32> {
    if width == 0 {
        return Vec::new();
    }
    made_in_blocks(values.len(), ROWS * width, |block, out| {
        let values = &values[block * ROWS * width..][..out.len()];
        vectorised(
            #[inline(always)]
            || {
                for (out, row) in out.chunks_exact_mut(width).zip(values.chunks_exact(width)) {
                    turn(out, row);
                }
            },
        );
    })
}

/// Weights of an entry, one a head.
fn of_entry<const HEADS: usize>(weights: &[f32]) -> &[[f32; HEADS]] {
    weights.as_chunks().0
}

/// As `softmax_u(LeakyReLU(left_v + right_u))` of each entry and head.
pub(super) fn softmax<const HEADS: usize>(rows: &Rows, left: &[f32], right: &[f32]) -> Vec<f32> {
    let (left, right) = (of_entry::<HEADS>(left), of_entry::<HEADS>(right));
    each_row(rows, HEADS, HEADS * EXPONENTIAL, |row, weights| {
        let (own, columns) = (left[row], &rows.columns[rows.entries(row)]);
        let weights = weights.as_chunks_mut::<HEADS>().0;
        vectorised(
            #[inline(always)]
            || {
                let mut largest = [f32::NEG_INFINITY; HEADS];
                for (weights, &column) in weights.iter_mut().zip(columns) {
                    let other = &right[column as usize];
                    for head in 0..HEADS {
                        let score = own[head] + other[head];
                        let score = if score < 0.0 {
                            NEGATIVE_SLOPE * score
                        } else {
                            score
                        };
                        weights[head] = score;
                        largest[head] = largest[head].max(score);
                    }
                }
                let mut sums = [0.0; HEADS];
                for weights in weights.iter_mut() {
                    for head in 0..HEADS {
                        // So that no exponential overflows.
                        weights[head] = exp(weights[head] - largest[head]);
                        sums[head] += weights[head];
                    }
                }
                for weights in weights.iter_mut() {
                    for head in 0..HEADS {
                        weights[head] /= sums[head];
                    }
                }
            },
        );
    })
}

/// `eˣ` for `x ≤ 0`, within 3·10⁻⁷ of it relatively; 0 below the smallest normal number. A
/// library's would be a call for each value, and would differ between systems.
///
/// `eˣ = 2ⁿ·eʳ` with `n = ⌊x·log₂e⌉`, and a polynomial for `|r| ≤ ln 2 / 2` (Cephes, `expf`;
/// Moshier, 1989).
#[inline(always)]
#[allow(clippy::excessive_precision)] // as published: what is beyond single precision is rounded
fn exp(x: f32) -> f32 {
    // Of ln 2 the leading bits, whose products with n are exact, and the rest.
    const HIGH: f32 = 0.693_359_375;
    const LOW: f32 = -2.121_944_4e-4;
    // Adding it leaves no place for digits behind the point.
    const ROUND: f32 = 12_582_912.0;
    let whole = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let rest = (x - whole * HIGH) - whole * LOW;
    let mut sum = 1.987_569_15e-4;
    for coefficient in [
        1.398_199_950_7e-3,
        8.333_451_907_3e-3,
        4.166_579_589_4e-2,
        1.666_666_545_9e-1,
        5.000_000_120_1e-1,
    ] {
        sum = sum * rest + coefficient;
    }
    let near_one = sum * (rest * rest) + rest + 1.0;
    // The exponent's bits. A cast saturates, and makes 0 of what is not a number: `near_one` is
    // none, then.
    let exponent = (whole.max(-127.0) as i32 + 127) as u32;
    let value = near_one * f32::from_bits(exponent << 23);
    if x < -87.336_54 { 0.0 } else { value }
}

/// The gradient with respect to the scores, from that of the weights.
pub(super) fn softmax_gradient<const HEADS: usize>(
    rows: &Rows,
    left: &[f32],
    right: &[f32],
    weights: &[f32],
    gradient: &[f32],
) -> Vec<f32> {
    let (left, right) = (of_entry::<HEADS>(left), of_entry::<HEADS>(right));
    let (weights, gradient) = (of_entry::<HEADS>(weights), of_entry::<HEADS>(gradient));
    each_row(rows, HEADS, 4 * HEADS, |row, out| {
        let entries = rows.entries(row);
        let own = left[row];
        let given = || {
            let of_row = weights[entries.clone()].iter();
            of_row.zip(&gradient[entries.clone()])
        };
        let columns = &rows.columns[entries.clone()];
        vectorised(
            #[inline(always)]
            || {
                let mut means = [0.0; HEADS];
                for (weights, gradient) in given() {
                    for head in 0..HEADS {
                        means[head] += weights[head] * gradient[head];
                    }
                }
                let out = out.as_chunks_mut::<HEADS>().0.iter_mut();
                for ((out, (weights, gradient)), &column) in out.zip(given()).zip(columns) {
                    let other = &right[column as usize];
                    for head in 0..HEADS {
                        let score = own[head] + other[head];
                        let slope = if score < 0.0 { NEGATIVE_SLOPE } else { 1.0 };
                        let off = gradient[head] - means[head];
                        out[head] = slope * weights[head] * off;
                    }
                }
            },
        );
    })
}

/// `Σ_e w(e)·x[column(e)]`, head by head: `[rows, heads · d]` of `x [columns, heads · d]`. The
/// weights of entry `e` lie at `positions[e]`, where there are positions.
pub(super) fn sums<const HEADS: usize>(
    rows: &Rows,
    positions: Option<&[u32]>,
    weights: &[f32],
    x: &[f32],
    width: usize,
) -> Vec<f32> {
    let x = turned::<HEADS>(x, width / HEADS);
    let sums = sums_of_turned::<HEADS>(rows, positions, weights, &x, width);
    turned_back::<HEADS>(&sums, width / HEADS)
}

/// The mean over heads of [`sums`]: `[rows, d]`.
pub(super) fn mean<const HEADS: usize>(
    rows: &Rows,
    weights: &[f32],
    x: &[f32],
    width: usize,
) -> Vec<f32> {
    let x = turned::<HEADS>(x, width / HEADS);
    let sums = sums_of_turned::<HEADS>(rows, None, weights, &x, width);
    let share = 1.0 / HEADS as f32;
    let of_heads = of_entry::<HEADS>(&sums).par_iter().with_min_len(ROWS);
    of_heads
        .map(|of_heads| share * of_heads.iter().sum::<f32>())
        .collect()
}

/// [`sums`] of rows that are turned already, as rows that are so.
fn sums_of_turned<const HEADS: usize>(
    rows: &Rows,
    positions: Option<&[u32]>,
    weights: &[f32],
    x: &[f32],
    width: usize,
) -> Vec<f32> {
    let gather = Gather::<HEADS> {
        rows,
        positions,
        weights: of_entry(weights),
        x,
        width,
    };
    each_part(
        rows,
        1,
        width,
        width,
        #[inline(always)]
        |row, _, from, sums| gather.part(row, from, sums),
    )
}

/// Transposed to [`mean`]: `[rows, heads · d]` of `g [columns, d]`.
pub(super) fn spread<const HEADS: usize>(
    rows: &Rows,
    positions: &[u32],
    weights: &[f32],
    g: &[f32],
    columns: usize,
) -> Vec<f32> {
    let weights = of_entry::<HEADS>(weights);
    let (share, width) = (1.0 / HEADS as f32, HEADS * columns);
    let sums = each_part(
        rows,
        1,
        columns,
        width,
        #[inline(always)]
        |row, _, from, sums| {
            // A tile is a multiple of the heads: whole columns.
            let sums = sums.as_chunks_mut::<HEADS>().0;
            for entry in rows.entries(row) {
                let weights = weights[positions[entry] as usize].map(|weight| share * weight);
                let at = rows.columns[entry] as usize * columns + from / HEADS;
                for (sums, term) in sums.iter_mut().zip(&g[at..]) {
                    for head in 0..HEADS {
                        sums[head] += weights[head] * term;
                    }
                }
            }
        },
    );
    turned_back::<HEADS>(&sums, columns)
}

/// `⟨g_v, x_u⟩` of each entry and head, with `g [rows, heads · d]`.
pub(super) fn dots<const HEADS: usize>(
    rows: &Rows,
    g: &[f32],
    x: &[f32],
    width: usize,
) -> Vec<f32> {
    let columns = width / HEADS;
    let g = turned::<HEADS>(g, columns);
    let g = of_entry::<HEADS>(&g);
    dots_with(
        rows,
        x,
        width,
        #[inline(always)]
        |row, column| g[row * columns + column],
    )
}

/// The same for the gradient `g [rows, d]` of a mean over heads.
pub(super) fn mean_dots<const HEADS: usize>(
    rows: &Rows,
    g: &[f32],
    x: &[f32],
    width: usize,
) -> Vec<f32> {
    let (columns, share) = (width / HEADS, 1.0 / HEADS as f32);
    dots_with(
        rows,
        x,
        width,
        #[inline(always)]
        |row, column| [share * g[row * columns + column]; HEADS],
    )
}

fn dots_with<const HEADS: usize>(
    rows: &Rows,
    x: &[f32],
    width: usize,
    own: impl Fn(usize, usize) -> [f32; HEADS] + Sync,
) -> Vec<f32> {
    let columns = width / HEADS;
    let turned = turned::<HEADS>(x, columns);
    let x = of_entry::<HEADS>(&turned);
    each_row(rows, HEADS, width, |row, out| {
        vectorised(
            #[inline(always)]
            || {
                let out = out.as_chunks_mut::<HEADS>().0;
                for (out, entry) in out.iter_mut().zip(rows.entries(row)) {
                    if let Some(&later) = rows.columns.get(entry + AHEAD) {
                        ask_for(&turned, later as usize * width, width);
                    }
                    let at = rows.columns[entry] as usize * columns;
                    let mut sums = [0.0; HEADS];
                    for (column, other) in x[at..at + columns].iter().enumerate() {
                        let own = own(row, column);
                        for head in 0..HEADS {
                            sums[head] += own[head] * other[head];
                        }
                    }
                    *out = sums;
                }
            },
        );
    })
}

/// Asks memory for a row.
#[inline(always)]
fn ask_for(x: &[f32], at: usize, width: usize) {
    for line in (0..width).step_by(16) {
        prefetch::<16>(x, at + line);
    }
}

struct Gather<'a, const HEADS: usize> {
    rows: &'a Rows,
    positions: Option<&'a [u32]>,
    weights: &'a [[f32; HEADS]],
    /// Turned.
    x: &'a [f32],
    width: usize,
}

impl<const HEADS: usize> Gather<'_, HEADS> {
    /// The columns of a turned row from `from` on, a multiple of the heads, in tiles as wide as
    /// they fit.
    #[inline(always)]
    fn part(&self, row: usize, from: usize, sums: &mut [f32]) {
        let mut at = 0;
        // Widths are constants, so that a tile is registers and not memory.
        while sums.len() - at >= TILE {
            self.tile::<TILE>(row, from + at, &mut sums[at..]);
            at += TILE;
        }
        if sums.len() - at >= 32 {
            self.tile::<32>(row, from + at, &mut sums[at..]);
            at += 32;
        }
        if sums.len() - at >= 16 {
            self.tile::<16>(row, from + at, &mut sums[at..]);
            at += 16;
        }
        if at < sums.len() {
            let sums = sums[at..].as_chunks_mut::<HEADS>().0;
            self.add(row, from + at, HEADS * sums.len(), sums);
        }
    }

    #[inline(always)]
    fn tile<const WIDTH: usize>(&self, row: usize, from: usize, sums: &mut [f32]) {
        let mut tile = [0.0_f32; WIDTH];
        self.add(row, from, WIDTH, tile.as_chunks_mut::<HEADS>().0);
        sums[..WIDTH].copy_from_slice(&tile);
    }

    #[inline(always)]
    fn add(&self, row: usize, from: usize, width: usize, sums: &mut [[f32; HEADS]]) {
        for entry in self.rows.entries(row) {
            // This may be an entry of a later row, which comes next anyway.
            if let Some(&later) = self.rows.columns.get(entry + AHEAD) {
                ask_for(self.x, later as usize * self.width + from, width);
            }
            let place = self
                .positions
                .map_or(entry, |places| places[entry] as usize);
            let weights = self.weights[place];
            let at = self.rows.columns[entry] as usize * self.width + from;
            let terms = self.x[at..][..width].as_chunks::<HEADS>().0;
            for (sums, terms) in sums.iter_mut().zip(terms) {
                for head in 0..HEADS {
                    // Not `mul_add`: its single rounding would not give the bits of the plain loop.
                    sums[head] += weights[head] * terms[head];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
