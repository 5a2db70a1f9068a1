//! The passes on processors, shared between threads by blocks of rows.

#![allow(clippy::inline_always)] // loops become part of the code for an instruction set

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor as Float;
use rayon::prelude::*;

use super::{Activation, EPSILON, RowwiseKernels};
use crate::model::Loss;
use crate::model::dropout::Mask;
use crate::model::host::{Host, rows_in_blocks};
use crate::simd::vectorised;

/// Rows whose sums are added up on one thread; fixed, so that sums do not depend on the number of
/// threads.
// Not to be tuned: gradients of parameters depend on it in their last bits, and all results on
// them.
const BLOCK: usize = 1024;

/// The `$pass` in which `$of` is a function of one activation. A choice for each value would keep a
/// loop from vector instructions, and the sign of every other value would be guessed wrong.
macro_rules! for_each_activation {
    ($activation:expr, $function:ident, |$of:ident| $pass:expr) => {
        match $activation {
            Activation::Identity => {
                let $of = |x| Activation::Identity.$function(x);
                $pass
            }
            Activation::Relu => {
                let $of = |x| Activation::Relu.$function(x);
                $pass
            }
            Activation::Elu => {
                let $of = |x| Activation::Elu.$function(x);
                $pass
            }
        }
    };
}

/// Sums over rows `0..rows` of what `add(row, sums)` adds, block by block.
fn sums_over_rows(rows: usize, length: usize, add: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    let block = |start: usize| {
        let mut sums = vec![0.0_f32; length];
        vectorised(
            #[inline(always)]
            || {
                for row in start..(start + BLOCK).min(rows) {
                    add(row, &mut sums);
                }
            },
        );
        sums
    };
    let starts: Vec<usize> = (0..rows).step_by(BLOCK).collect();
    let blocks: Vec<Vec<f32>> = starts.into_par_iter().map(block).collect();
    let mut total = vec![0.0_f32; length];
    // In the order of blocks, whichever thread was done first.
    for sums in blocks {
        for (total, sum) in total.iter_mut().zip(sums) {
            *total += sum;
        }
    }
    total
}

/// Mean of a row and `1 / √(variance + ε)`.
#[inline(always)]
fn moments(x: &[f32]) -> (f32, f32) {
    let width = x.len() as f32;
    let mean = sum(x, |value| value) / width;
    // In two passes: the mean of squares less the square of the mean would lose digits.
    let variance = sum(x, |value| (value - mean) * (value - mean)) / width;
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

/// `Σ of(value)` in sixteen partial sums: the same bits whatever the instruction set.
#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0_f32; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += of(*value);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|&value| of(value)).sum::<f32>()
}

/// Softmax of `row`, times `weight`, minus `targets`, times `scale`.
fn pull(row: &mut [f32], targets: &[f32], weight: f32, scale: f32) {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for value in &mut *row {
        *value = (*value - largest).exp();
        total += *value;
    }
    for (value, target) in row.iter_mut().zip(targets) {
        *value = scale * (weight * (*value / total) - target);
    }
}

/// `−Σ targets ⊙ log softmax(logits)` of a row that counts.
fn class_loss(logits: &[f32], targets: &[f32]) -> f32 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = logits.iter().map(|value| (value - largest).exp()).sum();
    let shift = largest + total.ln();
    let pairs = logits.iter().zip(targets);
    pairs.map(|(x, target)| target * (shift - x)).sum()
}

/// `Σ |targets| ⊙ log(1 + exp(−sign(targets) ⊙ logits))` of a row.
fn labels_loss(logits: &[f32], targets: &[f32]) -> f32 {
    let of_label = |(x, target): (&f32, &f32)| {
        let z = if *target > 0.0 { -x } else { *x };
        target.abs() * (z.max(0.0) + (-z.abs()).exp().ln_1p())
    };
    logits.iter().zip(targets).map(of_label).sum()
}

/// The row becomes `−targets ⊙ σ(−sign(targets) ⊙ row)` times `scale`.
fn pull_labels(row: &mut [f32], targets: &[f32], scale: f32) {
    for (value, target) in row.iter_mut().zip(targets) {
        let z = if *target > 0.0 { -*value } else { *value };
        *value = -scale * target / (1.0 + (-z).exp());
    }
}

impl<B: Host> RowwiseKernels for B {
    fn activate(x: Float<Self>, bias: Float<Self>, activation: Activation) -> Float<Self> {
        let (width, bias) = (x.shape()[1], B::values(bias));
        let bias: &[f32] = &bias;
        B::update(x, |x| {
            for_each_activation!(activation, at, |at| rows_in_blocks(
                x,
                width,
                #[inline(always)]
                |_, rows| {
                    for row in rows.chunks_exact_mut(width) {
                        for (value, bias) in row.iter_mut().zip(bias) {
                            *value = at(*value + bias);
                        }
                    }
                }
            ));
        })
    }

    fn slope(g: Float<Self>, y: Float<Self>, activation: Activation) -> Float<Self> {
        if activation == Activation::Identity {
            return g;
        }
        let (width, y) = (g.shape()[1], B::values(y));
        let y: &[f32] = &y;
        B::update(g, |g| {
            for_each_activation!(activation, slope, |slope| {
                rows_in_blocks(
                    g,
                    width,
                    #[inline(always)]
                    |first, rows| {
                        for (g, y) in rows.iter_mut().zip(&y[first * width..]) {
                            *g *= slope(*y);
                        }
                    },
                );
            });
        })
    }

    fn column_sums(g: Float<Self>) -> Float<Self> {
        let [rows, width] = [g.shape()[0], g.shape()[1]];
        let g = B::values(g);
        let g: &[f32] = &g;
        let sums = sums_over_rows(
            rows,
            width,
            #[inline(always)]
            |row, sums| {
                for (sum, value) in sums.iter_mut().zip(&g[row * width..]) {
                    *sum += value;
                }
            },
        );
        B::tensor(sums, [1, width])
    }

    fn normalise(
        x: Float<Self>,
        gain: Float<Self>,
        shift: Float<Self>,
        activation: Activation,
    ) -> Float<Self> {
        let width = x.shape()[1];
        let (gain, shift) = (B::values(gain), B::values(shift));
        let (gain, shift): (&[f32], &[f32]) = (&gain, &shift);
        B::update(x, |x| {
            for_each_activation!(activation, at, |at| rows_in_blocks(
                x,
                width,
                #[inline(always)]
                |_, rows| {
                    for row in rows.chunks_exact_mut(width) {
                        let (mean, scale) = moments(row);
                        for ((value, gain), shift) in row.iter_mut().zip(gain).zip(shift) {
                            *value = at((*value - mean) * scale * gain + shift);
                        }
                    }
                }
            ));
        })
    }

    fn normalise_gradients(g: Float<Self>, x: Float<Self>, gain: Float<Self>) -> [Float<Self>; 3] {
        let [count, width] = [x.shape()[0], x.shape()[1]];
        let (x, gain) = (B::values(x), B::values(gain));
        let (x, gain): (&[f32], &[f32]) = (&x, &gain);
        let upstream = B::values(g.clone());
        let sums = {
            let g: &[f32] = &upstream;
            sums_over_rows(
                count,
                2 * width,
                #[inline(always)]
                |row, sums| {
                    let (x, g) = (&x[row * width..][..width], &g[row * width..][..width]);
                    // Worked out again: the way forward keeps nothing but the rows themselves.
                    let (mean, scale) = moments(x);
                    let (gains, shifts) = sums.split_at_mut(width);
                    for (((gain, shift), x), g) in gains.iter_mut().zip(shifts).zip(x).zip(g) {
                        *gain += g * (x - mean) * scale;
                        *shift += g;
                    }
                },
            )
        };
        // While somebody else holds the tensor, the update below would have to copy it.
        drop(upstream);
        let of_x = B::update(g, |g| {
            rows_in_blocks(
                g,
                width,
                #[inline(always)]
                |first, rows| {
                    for (row, g) in rows.chunks_exact_mut(width).enumerate() {
                        let x = &x[(first + row) * width..][..width];
                        let (mean, scale) = moments(x);
                        let (mut pull, mut along) = (0.0_f32, 0.0_f32);
                        for ((g, x), gain) in g.iter_mut().zip(x).zip(gain) {
                            *g *= gain;
                            pull += *g;
                            along += *g * (x - mean) * scale;
                        }
                        let (pull, along) = (pull / width as f32, along / width as f32);
                        for (g, x) in g.iter_mut().zip(x) {
                            *g = (*g - pull - (x - mean) * scale * along) * scale;
                        }
                    }
                },
            );
        });
        let (gains, shifts) = sums.split_at(width);
        let row = |values: &[f32]| B::tensor(values.to_vec(), [1, width]);
        [of_x, row(gains), row(shifts)]
    }

    fn mask(x: Float<Self>, mask: &Mask) -> Float<Self> {
        let width = x.shape()[1];
        B::update(x, |x| {
            rows_in_blocks(
                x,
                width,
                #[inline(always)]
                |first, rows| {
                    for (row, values) in rows.chunks_exact_mut(width).enumerate() {
                        mask.apply(first + row, values);
                    }
                },
            );
        })
    }

    fn loss(logits: Float<Self>, targets: Float<Self>, loss: Loss) -> Float<Self> {
        let width = logits.shape()[1];
        let (logits, targets) = (B::values(logits), B::values(targets));
        let of_row = |(logits, targets): (&[f32], &[f32])| {
            // Rows that do not count need no exponentials.
            if targets.iter().all(|&target| target == 0.0) {
                return 0.0;
            }
            match loss {
                Loss::CrossEntropy => class_loss(logits, targets),
                Loss::BinaryCrossEntropy => labels_loss(logits, targets),
            }
        };
        let losses: Vec<f32> = logits
            .par_chunks_exact(width)
            .zip(targets.par_chunks_exact(width))
            // A single row is too little work to hand to a thread.
            .with_min_len(BLOCK)
            .map(of_row)
            .collect();
        // Many small terms: in double precision, and in the order of the rows whatever the threads.
        let total: f64 = losses.iter().map(|&loss| f64::from(loss)).sum();
        B::tensor(vec![total as f32], [1, 1])
    }

    fn loss_gradient(
        g: Float<Self>,
        logits: Float<Self>,
        targets: Float<Self>,
        loss: Loss,
    ) -> Float<Self> {
        let width = logits.shape()[1];
        // The loss is one number, and so is the gradient that comes from above.
        let (scale, targets) = (B::values(g)[0], B::values(targets));
        let targets: &[f32] = &targets;
        B::update(logits, |logits| {
            rows_in_blocks(
                logits,
                width,
                #[inline(always)]
                |first, rows| {
                    let targets = targets[first * width..].chunks_exact(width);
                    for (row, targets) in rows.chunks_exact_mut(width).zip(targets) {
                        if targets.iter().all(|&target| target == 0.0) {
                            row.fill(0.0);
                            continue;
                        }
                        match loss {
                            Loss::CrossEntropy => pull(row, targets, targets.iter().sum(), scale),
                            Loss::BinaryCrossEntropy => pull_labels(row, targets, scale),
                        }
                    }
                },
            );
        })
    }
}
