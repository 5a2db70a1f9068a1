//! VARCO's compressor: a random part of the columns, the same for all rows.

use super::draw::{all_columns, shuffle_front};
use crate::net::selection::random_error;
use crate::net::{CodecKey, Columns, NetError, RelativeError, Rows, Selection};

/// Keeps k of n columns, drawn at random, the same for all rows (Cerviño et al., *Distributed
/// Training of Large Graph Neural Networks with Variable Communication Rates*, arXiv 2406.17611;
/// `DropoutCompressorDecompressor` and `VariableDropoutCompressorDecompressor` in
/// `sar/core/compressor.py` of the authors' `mturja-vf-ic-bd/SAR` at `0f40457`, by
/// `--compression_type`).
///
/// k = ⌊n / ratio⌋, at least 1. Both ends draw the columns from the key, so no index is sent. One
/// draw serves all rows, senders and receivers of an exchange, and the way back of the same key.
///
/// * As it is: E\[x̃\] = (k/n) x, so biased; E‖x̃ − x‖² = (1 − k/n) ‖x‖².
/// * Rescaled by n/k on decoding: unbiased; E‖x̃ − x‖² = (n/k − 1) ‖x‖².
///
/// Encoded: 4·rows·k bytes, row after row, columns ascending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomColumns {
    /// Width of a row over columns sent, 1 or more. Any other number sends all columns.
    pub ratio: f64,
    /// Whether decoding multiplies by n/k.
    pub rescale: bool,
}

impl RandomColumns {
    /// The columns sent, ascending: the first k of a random permutation of `0..width`, sorted.
    pub fn columns(&self, width: usize, key: CodecKey) -> Vec<u32> {
        let kept = self.kept(width);
        let mut columns = all_columns(width);
        if kept < width {
            shuffle_front(&mut columns, kept, &mut key.stream_of_exchange());
            columns.truncate(kept);
            // Ascending, so that rows are read and written from left to right; what is drawn stays
            // the same.
            columns.sort_unstable();
        }
        columns
    }
}

impl Selection for RandomColumns {
    fn label(&self) -> String {
        let rescaled = if self.rescale { ", rescaled" } else { "" };
        format!("random_columns(ratio={}{rescaled})", self.ratio)
    }

    fn ratio(&self) -> f64 {
        self.ratio
    }

    fn rescales(&self) -> bool {
        self.rescale
    }

    fn choose(&self, rows: &Rows<'_>, key: CodecKey) -> Columns {
        Columns::Same(self.columns(rows.width(), key))
    }

    fn recall(
        &self,
        _index: &[u8],
        [_, width]: [usize; 2],
        key: CodecKey,
    ) -> Result<Columns, NetError> {
        Ok(Columns::Same(self.columns(width, key)))
    }

    fn error(&self, width: usize) -> RelativeError {
        random_error(self.kept(width), width, self.rescale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Way;

    const CODEC: RandomColumns = RandomColumns {
        ratio: 4.0,
        rescale: false,
    };

    const fn key(round: u64) -> CodecKey {
        CodecKey::new(3, 1, round)
    }

    #[test]
    fn every_column_has_the_same_chance() {
        // 20,000 draws of 3 of 12: a column's share is 1/4 with standard deviation 0.0031; 5 of
        // those bound 12 columns with a failure chance below 1e-5.
        let mut hits = [0.0_f64; 12];
        for round in 0..20_000 {
            for column in CODEC.columns(12, key(round)) {
                hits[column as usize] += 1.0 / 20_000.0;
            }
        }
        assert!(
            hits.iter().all(|share| (share - 0.25).abs() < 5.0 * 0.0031),
            "{hits:?}"
        );
    }

    #[test]
    fn all_messages_of_an_exchange_and_their_way_back_carry_the_same_columns() {
        let columns = |key| CODEC.columns(64, key);
        let expected = columns(key(7));
        for way in [Way::Forward, Way::Back] {
            assert_eq!(columns(key(7).between(0, 1, way)), expected);
            assert_eq!(columns(key(7).between(2, 0, way)), expected);
        }
        assert_ne!(columns(key(8)), expected);
    }

    #[test]
    fn published_seeds_keep_their_columns() {
        // As they were first drawn; nothing but keeping them makes them right.
        assert_eq!(CODEC.columns(16, key(0)), [0, 9, 13, 14]);
    }
}
