//! Dropout (Srivastava et al., 2014) whose masks belong to global nodes.
//!
//! Whether value `column` of node `v` is kept in epoch `t` at layer `l` is a function of (seed, t,
//! l, v, column) alone. So the mask neither depends on the partition nor has to be sent: a worker
//! that reads a neighbour's row drops exactly what its owner drops.

#![allow(clippy::inline_always)] // loops become part of the code for an instruction set

use rayon::prelude::*;

use super::SparseMatrix;
use super::host::by_rows;
use crate::rng::{Purpose, mix};
use crate::simd::vectorised;

/// Rows that a thread draws at a time.
const ROWS: usize = 256;

/// Values below which one thread is done before others have woken up.
// No result depends on it: a draw is the same on any thread.
const SERIAL_VALUES: usize = 1 << 16;

/// Multiplications that a draw is about worth.
pub(super) const DRAW: usize = 8;

/// Columns of a row for each entry of it, from which on its draws are made one by one.
const DRAWN_AT_ONCE: usize = 16;

/// Drops values with a probability and scales the others up, so that expectations stay.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    /// A value is dropped when its 16 random bits are below this: the probability in units of 2⁻¹⁶.
    threshold: u32,
    /// The same for the features.
    of_features: u32,
    /// And for attention weights.
    of_attention: u32,
    seed: u64,
}

/// A probability in units of 2⁻¹⁶.
fn threshold(probability: f64) -> u32 {
    (probability.clamp(0.0, 1.0) * 65_536.0)
        .round()
        // Never all of them: `scale` divides by the share that is kept.
        .min(65_535.0) as u32
}

impl Dropout {
    /// Dropout with a probability in `[0, 1)`, rounded to a multiple of 2⁻¹⁶.
    pub fn new(probability: f64, seed: u64) -> Self {
        let threshold = threshold(probability);
        Self {
            threshold,
            of_features: threshold,
            of_attention: threshold,
            // Mixed, not a stream: any value's draw is found without those before it.
            seed: mix(seed, Purpose::Dropout as u64),
        }
    }

    /// With another probability for the features, which are the input of layer 0.
    pub fn with_features(self, probability: f64) -> Self {
        Self {
            of_features: threshold(probability),
            ..self
        }
    }

    /// With another probability for attention weights.
    pub fn with_attention(self, probability: f64) -> Self {
        Self {
            of_attention: threshold(probability),
            ..self
        }
    }

    /// That of attention weights.
    pub(crate) const fn on_attention(mut self) -> Self {
        self.threshold = self.of_attention;
        self
    }

    /// That of the input of a layer.
    pub(crate) const fn of_input(mut self, layer: usize) -> Self {
        if layer == 0 {
            self.threshold = self.of_features;
        }
        self
    }

    /// Whether nothing is ever dropped.
    pub(crate) const fn is_off(&self) -> bool {
        self.threshold == 0
    }

    /// What a kept value is multiplied with.
    pub fn scale(&self) -> f32 {
        65_536.0 / (65_536 - self.threshold) as f32
    }

    fn node_key(&self, epoch: u64, layer: usize, node: u32) -> u64 {
        mix(mix(self.seed, mix(epoch, layer as u64)), u64::from(node))
    }

    /// Whether a value is kept: 16 of the 64 bits drawn for each group of four columns.
    const fn keeps(&self, bits: u64, column: usize) -> bool {
        (bits >> (16 * (column % 4))) & 0xFFFF >= self.threshold as u64
    }

    /// The mask of dense rows, `[nodes, width]`: 0 or [`Self::scale`].
    pub fn mask(&self, epoch: u64, layer: usize, nodes: &[u32], width: usize) -> Vec<f32> {
        let mut mask = vec![0.0; nodes.len() * width];
        if width == 0 {
            return mask;
        }
        if mask.len() < SERIAL_VALUES {
            self.fill(epoch, layer, nodes, width, &mut mask);
        } else {
            mask.par_chunks_mut(ROWS * width)
                .zip(nodes.par_chunks(ROWS))
                .for_each(|(mask, nodes)| self.fill(epoch, layer, nodes, width, mask));
        }
        mask
    }

    /// [`mask`](Self::mask) into `mask`, `[nodes, width]`, on this thread; `width` is at least 1.
    pub(super) fn fill(
        &self,
        epoch: u64,
        layer: usize,
        nodes: &[u32],
        width: usize,
        mask: &mut [f32],
    ) {
        vectorised(
            #[inline(always)]
            || {
                for (row, &node) in mask.chunks_exact_mut(width).zip(nodes) {
                    let key = self.node_key(epoch, layer, node);
                    self.each_factor(
                        key,
                        row,
                        #[inline(always)]
                        |value, factor| *value = factor,
                    );
                }
            },
        );
    }

    /// Calls `set` with each value of a row and what it is multiplied with.
    #[inline(always)]
    fn each_factor(&self, key: u64, row: &mut [f32], set: impl Fn(&mut f32, f32)) {
        // Whole groups by themselves: with as many values each, they are drawn several at a time.
        let (groups, rest) = row.as_chunks_mut::<4>();
        let whole = groups.len();
        for (group, values) in groups.iter_mut().enumerate() {
            self.each_of_group(mix(key, group as u64), values, &set);
        }
        self.each_of_group(mix(key, whole as u64), rest, &set);
    }

    #[inline(always)]
    fn each_of_group(&self, bits: u64, values: &mut [f32], set: &impl Fn(&mut f32, f32)) {
        let scale = self.scale();
        for (column, value) in values.iter_mut().enumerate() {
            set(value, if self.keeps(bits, column) { scale } else { 0.0 });
        }
    }

    /// Sparse rows with dropout applied: the same draws as [`Self::mask`].
    pub fn sparse(
        &self,
        epoch: u64,
        layer: usize,
        nodes: &[u32],
        rows: &SparseMatrix,
    ) -> SparseMatrix {
        let structure = rows.by_row();
        let width = rows.columns();
        let factors = [0.0, self.scale()];
        let mut values = vec![0.0; rows.entries()];
        let start = |row: usize| structure.offsets[row] as usize;
        by_rows(
            structure,
            rows.entries() * DRAW,
            start,
            &mut values,
            |range, part| {
                let first = start(range.start);
                let mut mask = vec![0.0; width];
                for row in range {
                    let entries = structure.entries(row);
                    let node = &nodes[row..=row];
                    let stored = rows.values()[entries.clone()].iter();
                    let stored = stored.zip(&structure.columns[entries.clone()]);
                    let part = &mut part[entries.start - first..];
                    // Many draws at once cost less than a few one by one.
                    if entries.len() * DRAWN_AT_ONCE >= width && width > 0 {
                        self.fill(epoch, layer, node, width, &mut mask);
                        for (value, (&stored, &column)) in part.iter_mut().zip(stored) {
                            *value = stored * mask[column as usize];
                        }
                        continue;
                    }
                    let key = self.node_key(epoch, layer, node[0]);
                    // Entries of one group mostly follow each other, so one draw serves them all.
                    let (mut group, mut bits) = (usize::MAX, 0);
                    for (value, (&stored, &column)) in part.iter_mut().zip(stored) {
                        let column = column as usize;
                        if column / 4 != group {
                            group = column / 4;
                            bits = mix(key, group as u64);
                        }
                        // Looked up: no processor foresees where a draw branches.
                        *value = stored * factors[usize::from(self.keeps(bits, column))];
                    }
                }
            },
        );
        rows.with_values(values)
    }
}

/// The mask of dense rows, drawn row by row where it is needed.
#[derive(Clone, Debug)]
pub struct Mask {
    dropout: Dropout,
    epoch: u64,
    layer: usize,
    nodes: Vec<u32>,
}

impl Mask {
    /// That of [`Dropout::mask`].
    pub fn new(dropout: &Dropout, epoch: u64, layer: usize, nodes: &[u32]) -> Self {
        Self {
            dropout: *dropout,
            epoch,
            layer,
            nodes: nodes.to_vec(),
        }
    }

    /// All of it: `[nodes, width]`.
    pub(super) fn values(&self, width: usize) -> Vec<f32> {
        self.dropout
            .mask(self.epoch, self.layer, &self.nodes, width)
    }

    /// Drops values of one row and scales the others.
    #[inline(always)]
    pub(super) fn apply(&self, row: usize, values: &mut [f32]) {
        let key = self
            .dropout
            .node_key(self.epoch, self.layer, self.nodes[row]);
        self.dropout.each_factor(
            key,
            values,
            #[inline(always)]
            |value, factor| *value *= factor,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_and_dense_rows_lose_the_same_values() {
        let dropout = Dropout::new(0.4, 9);
        let nodes = [5, 17];
        let offsets = [0, 3, 5];
        let columns = vec![0, 4, 6, 1, 6];
        let rows = SparseMatrix::new(7, &offsets, columns.clone(), vec![1.0; 5]);
        let sparse = dropout.sparse(3, 1, &nodes, &rows);
        let mask = dropout.mask(3, 1, &nodes, 7);
        for (entry, &column) in columns.iter().enumerate() {
            let row = usize::from(entry >= 3);
            assert_eq!(sparse.values()[entry], mask[row * 7 + column as usize]);
        }
    }

    #[test]
    fn many_sparse_rows_are_dropped_as_their_dense_mask_says() {
        // More than one thread has of them.
        let (dropout, count, width) = (Dropout::new(0.5, 1), 400, 300);
        let nodes: Vec<u32> = (0..count).map(|row| 3 * row + 1).collect();
        let lengths: Vec<usize> = (0..count as usize).map(|row| row % width).collect();
        let rows = crate::model::sparse::drawn::matrix(&lengths, width, 2);
        assert!(rows.entries() * DRAW > 1 << 18);
        let (sparse, mask) = (
            dropout.sparse(3, 1, &nodes, &rows),
            dropout.mask(3, 1, &nodes, width),
        );
        for row in 0..rows.rows() {
            for entry in rows.by_row().entries(row) {
                let kept = mask[row * width + rows.by_row().columns[entry] as usize];
                assert_eq!(sparse.values()[entry], kept * rows.values()[entry]);
            }
        }
    }

    #[test]
    fn the_share_of_dropped_values_is_the_probability_and_the_mean_stays_one() {
        let dropout = Dropout::new(0.3, 1);
        let nodes: Vec<u32> = (0..2000).collect();
        let mask = dropout.mask(0, 0, &nodes, 50);
        let dropped = mask.iter().filter(|&&m| m == 0.0).count() as f64 / mask.len() as f64;
        // Five standard deviations of a share over 100,000 draws.
        assert!((dropped - 0.3).abs() < 5.0 * (0.3 * 0.7 / 1e5_f64).sqrt());
        let mean = mask.iter().map(|&m| f64::from(m)).sum::<f64>() / mask.len() as f64;
        // The same five, over the 0.7 that is kept.
        assert!((mean - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_mask_is_a_function_of_the_global_node_and_differs_between_epochs_and_layers() {
        let dropout = Dropout::new(0.5, 1);
        let both = dropout.mask(2, 0, &[3, 8], 64);
        assert_eq!(both[64..], dropout.mask(2, 0, &[8], 64)[..]);
        assert_ne!(both, dropout.mask(3, 0, &[3, 8], 64));
        assert_ne!(both, dropout.mask(2, 1, &[3, 8], 64));
    }
}
