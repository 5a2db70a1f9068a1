//! A random part of the entries of each row.

use super::draw::{all_columns, shuffle_front};
use crate::net::selection::random_error;
use crate::net::{CodecKey, Columns, NetError, RelativeError, Rows, Selection};

/// Keeps k of the n entries of every row, each row's own draw (random-k sparsification: Stich,
/// Cordonnier and Jaggi, *Sparsified SGD with Memory*, `NeurIPS` 2018).
///
/// k = ⌊n / ratio⌋, at least 1. Both ends draw the entries from the key, so no index is sent; two
/// workers draw the same for the way back. Beside [`RandomColumns`](super::RandomColumns), what is
/// lost differs from row to row, so a mean over neighbours loses less.
///
/// * As it is: E\[x̃\] = (k/n) x, so biased; E‖x̃ − x‖² = (1 − k/n) ‖x‖².
/// * Rescaled by n/k on decoding: unbiased; E‖x̃ − x‖² = (n/k − 1) ‖x‖².
///
/// Encoded: 4·rows·k bytes, row after row, entries in the order drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomEntries {
    /// Width of a row over entries sent, 1 or more. Any other number sends all entries.
    pub ratio: f64,
    /// Whether decoding multiplies by n/k.
    pub rescale: bool,
}

impl RandomEntries {
    fn draw(&self, rows: usize, width: usize, key: CodecKey) -> Columns {
        let kept = self.kept(width);
        let mut random = key.stream_of_pair();
        // Not put back between rows: any order to begin with gives equally likely choices.
        let mut order = all_columns(width);
        let mut columns = Vec::with_capacity(rows * kept);
        for _ in 0..rows {
            shuffle_front(&mut order, kept, &mut random);
            columns.extend_from_slice(&order[..kept]);
        }
        Columns::Each(columns)
    }
}

impl Selection for RandomEntries {
    fn label(&self) -> String {
        let rescaled = if self.rescale { ", rescaled" } else { "" };
        format!("random_entries(ratio={}{rescaled})", self.ratio)
    }

    fn ratio(&self) -> f64 {
        self.ratio
    }

    fn rescales(&self) -> bool {
        self.rescale
    }

    fn choose(&self, rows: &Rows<'_>, key: CodecKey) -> Columns {
        self.draw(rows.rows(), rows.width(), key)
    }

    fn recall(
        &self,
        _index: &[u8],
        [rows, width]: [usize; 2],
        key: CodecKey,
    ) -> Result<Columns, NetError> {
        Ok(self.draw(rows, width, key))
    }

    fn error(&self, width: usize) -> RelativeError {
        random_error(self.kept(width), width, self.rescale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Way;

    const CODEC: RandomEntries = RandomEntries {
        ratio: 8.0,
        rescale: false,
    };

    fn rows(columns: Columns, kept: usize) -> Vec<Vec<u32>> {
        let Columns::Each(columns) = columns else {
            panic!("each row has its own");
        };
        let sorted = |row: &[u32]| {
            let mut row = row.to_vec();
            row.sort_unstable();
            row
        };
        columns.chunks(kept).map(sorted).collect()
    }

    #[test]
    fn rows_draw_apart_and_both_ways_alike() {
        let forward = CodecKey::new(3, 1, 5).between(0, 1, Way::Forward);
        let back = CodecKey::new(3, 1, 5).between(0, 1, Way::Back);
        let drawn = rows(CODEC.draw(6, 64, forward), 8);
        assert_eq!(rows(CODEC.draw(6, 64, back), 8), drawn);
        for (at, row) in drawn.iter().enumerate() {
            assert!(row.windows(2).all(|pair| pair[0] < pair[1]), "{row:?}");
            assert!(!drawn[..at].contains(row));
        }
    }

    #[test]
    fn every_entry_of_every_row_has_the_same_chance() {
        // 20,000 draws of 2 of 16: a share of 1/8 with standard deviation 0.0024; 5 of those bound
        // all 48 entries with a failure chance below 1e-4.
        let mut hits = vec![[0.0_f64; 16]; 3];
        for round in 0..20_000 {
            let key = CodecKey::new(9, 0, round);
            for (row, hits) in rows(CODEC.draw(3, 16, key), 2).iter().zip(&mut hits) {
                for &at in row {
                    hits[at as usize] += 1.0 / 20_000.0;
                }
            }
        }
        assert!(
            hits.as_flattened()
                .iter()
                .all(|share| (share - 0.125).abs() < 5.0 * 0.0024),
            "{hits:?}"
        );
    }
}
