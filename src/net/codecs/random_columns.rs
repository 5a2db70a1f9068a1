//! VARCO's compressor: a random part of the columns, the same for all rows.

use rand::Rng;

use crate::net::codec::{check_length, floats, to_bytes};
use crate::net::{Bytes, Codec, CodecKey, NetError, Rows, f32_bytes};
use crate::rng::{Purpose, stream};

/// Sends k of n columns, drawn at random, and decodes the others as zero (Cerviño et al.,
/// *Distributed Training of Large Graph Neural Networks with Variable Communication Rates*, arXiv
/// 2406.17611, as in the authors' code).
///
/// k = ⌊n / ratio⌋, at least 1 and at most n (the authors' code would send nothing where the ratio
/// exceeds the width, and so would never learn). Both ends draw the columns from the key, so no
/// index is sent. One draw serves all rows, senders and receivers of an exchange, and the way back
/// of the same key.
///
/// * As it is: E\[x̃\] = (k/n) x, so biased; E‖x̃ − x‖² = (1 − k/n) ‖x‖².
/// * Rescaled by n/k on decoding: unbiased; E‖x̃ − x‖² = (n/k − 1) ‖x‖².
///
/// Encoded: 4·rows·k bytes, row after row, columns ascending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomColumns {
    /// Width of a row over columns sent, 1 or more. Any other number sends all columns, NaN one.
    pub ratio: f64,
    /// Whether decoding multiplies by n/k.
    pub rescale: bool,
}

impl RandomColumns {
    /// Number k of columns sent, of `width`.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates, which is what is wanted
    pub fn kept(&self, width: usize) -> usize {
        ((width as f64 / self.ratio.max(f64::MIN_POSITIVE)) as usize)
            .clamp(1, width.max(1))
            .min(width)
    }

    /// The columns sent, ascending: the first k of a random permutation of `0..width`, sorted.
    #[must_use]
    pub fn columns(&self, width: usize, key: CodecKey) -> Vec<usize> {
        let kept = self.kept(width);
        let mut columns: Vec<usize> = (0..width).collect();
        if kept < width {
            // Fisher and Yates with a fixed way from 64 random bits to a number below n: a
            // published seed must give the same columns with every version of every library.
            let mut random = stream(key.seed, Purpose::Codec, 0, key.stream_round());
            for at in 0..kept {
                let left = (width - at) as u128;
                #[allow(clippy::cast_possible_truncation)] // below `left`, which is a usize
                let pick = ((u128::from(random.next_u64()) * left) >> 64) as usize;
                columns.swap(at, at + pick);
            }
            columns.truncate(kept);
            columns.sort_unstable();
        }
        columns
    }
}

impl Codec for RandomColumns {
    fn name(&self) -> String {
        let rescaled = if self.rescale { ", rescaled" } else { "" };
        format!("random_columns(ratio={}{rescaled})", self.ratio)
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        f32_bytes(rows) * self.kept(width) as u64
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        if self.kept(rows.width()) == rows.width() {
            return to_bytes(rows.values());
        }
        let columns = self.columns(rows.width(), key);
        let mut bytes = vec![0; rows.rows() * columns.len() * 4];
        let (slots, _) = bytes.as_chunks_mut();
        let kept = rows
            .iter()
            .flat_map(|row| columns.iter().map(|&column| row[column]));
        for (slot, value) in slots.iter_mut().zip(kept) {
            *slot = value.to_le_bytes();
        }
        bytes
    }

    fn decode(
        &self,
        bytes: &[u8],
        rows: usize,
        width: usize,
        key: CodecKey,
    ) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, rows, width)?;
        if self.kept(width) == width {
            return Ok(floats(bytes).collect());
        }
        let columns = self.columns(width, key);
        #[allow(clippy::cast_possible_truncation)] // a factor, not a count
        let factor = if self.rescale {
            (width as f64 / columns.len().max(1) as f64) as f32
        } else {
            1.0
        };
        let mut values = vec![0.0; rows * width];
        let mut sent = floats(bytes);
        for row in values.chunks_exact_mut(width.max(1)) {
            for (&column, value) in columns.iter().zip(&mut sent) {
                row[column] = value * factor;
            }
        }
        Ok(values)
    }

    fn is_lossless(&self) -> bool {
        self.ratio <= 1.0
    }

    fn expected_error(&self, width: usize) -> f64 {
        let (n, k) = (width.max(1) as f64, self.kept(width).max(1) as f64);
        if self.rescale {
            n / k - 1.0
        } else {
            1.0 - k / n
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // of values that are exact
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn key(round: u64) -> CodecKey {
        CodecKey {
            seed: 3,
            layer: 1,
            round,
        }
    }

    const fn codec(ratio: f64, rescale: bool) -> RandomColumns {
        RandomColumns { ratio, rescale }
    }

    fn through(codec: RandomColumns, values: &[f32], width: usize, key: CodecKey) -> Vec<f32> {
        let bytes = codec.encode(&Rows::new(values, width), key);
        codec
            .decode(&bytes, values.len() / width, width, key)
            .unwrap()
    }

    #[test]
    fn kept_columns_are_the_floor_of_width_over_ratio_but_never_none() {
        for (width, ratio, kept) in [
            (128, 4.0, 32),
            (100, 3.0, 33),
            (100, 128.0, 1),
            (47, 1.0, 47),
            (128, 106.7, 1),
            (0, 2.0, 0),
        ] {
            assert_eq!(codec(ratio, false).kept(width), kept, "{width} / {ratio}");
        }
        for strange in [0.0, -1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert!(
                (1..=10).contains(&codec(strange, false).kept(10)),
                "{strange}"
            );
        }
    }

    #[test]
    fn ratio_one_loses_nothing() {
        let values: Vec<f32> = (0_u8..12).map(f32::from).collect();
        assert!(codec(1.0, true).is_lossless() && !codec(1.5, false).is_lossless());
        assert_eq!(through(codec(1.0, true), &values, 4, key(0)), values);
    }

    #[test]
    fn every_column_has_the_same_chance() {
        // 20,000 draws of 3 of 12: a column's share is 1/4 with standard deviation 0.0031; 5 of
        // those bound 12 columns with a failure chance below 1e-5.
        let mut hits = [0.0_f64; 12];
        for round in 0..20_000 {
            for column in codec(4.0, false).columns(12, key(round)) {
                hits[column] += 1.0 / 20_000.0;
            }
        }
        assert!(
            hits.iter().all(|share| (share - 0.25).abs() < 5.0 * 0.0031),
            "{hits:?}"
        );
    }

    #[test]
    fn the_mean_error_over_many_keys_is_the_stated_one() {
        // x = (1, 2, …, 16), k = 4. The squared error of one draw lies in [0, b] with b = max(1,
        // n/k − 1)² · ‖x‖²; the mean of 20,000 draws is within 5·(b/2)/√20000 of its expectation
        // but for a chance below 1e-6. Measured errors are far inside.
        let x: Vec<f32> = (1_u8..=16).map(f32::from).collect();
        let norm: f64 = x.iter().map(|x| f64::from(x * x)).sum();
        for rescale in [false, true] {
            let codec = codec(4.0, rescale);
            let error = |round| -> f64 {
                let decoded = through(codec, &x, 16, key(round));
                decoded
                    .iter()
                    .zip(&x)
                    .map(|(a, b)| f64::from((a - b) * (a - b)))
                    .sum()
            };
            let mean = (0..20_000).map(error).sum::<f64>() / 20_000.0 / norm;
            let largest = if rescale { 9.0 } else { 1.0 };
            let bound = 5.0 * largest / 2.0 / 20_000_f64.sqrt();
            assert!((mean - codec.expected_error(16)).abs() < bound, "{mean}");
        }
    }

    #[test]
    fn the_rescaled_codec_is_unbiased_and_the_plain_one_shrinks_by_k_over_n() {
        // Each decoded entry is x·n/k or 0; over 20,000 keys its mean has standard deviation
        // x·√(n/k − 1)/√20000.
        for (rescale, expected) in [(true, 1.0), (false, 0.25)] {
            let mut mean = [0.0_f64; 8];
            for round in 0..20_000 {
                let decoded = through(codec(4.0, rescale), &[1.0; 8], 8, key(round));
                mean.iter_mut()
                    .zip(decoded)
                    .for_each(|(m, x)| *m += f64::from(x) / 20_000.0);
            }
            let bound = 5.0 * 3_f64.sqrt() / 20_000_f64.sqrt();
            assert!(
                mean.iter().all(|mean| (mean - expected).abs() < bound),
                "{mean:?}"
            );
        }
    }

    #[test]
    fn published_seeds_keep_their_columns() {
        assert_eq!(codec(4.0, false).columns(16, key(0)), FIRST_COLUMNS);
    }

    const FIRST_COLUMNS: [usize; 4] = [0, 9, 13, 14];

    proptest! {
        #[test]
        fn only_the_drawn_columns_survive_and_they_are_exact(
            rows in 0..6_usize, width in 1..40_usize, ratio in 1.0..50_f64, round in any::<u64>(),
        ) {
            let codec = codec(ratio, false);
            let values: Vec<f32> = (0..rows * width).map(|i| i as f32 + 1.0).collect();
            let bytes = codec.encode(&Rows::new(&values, width), key(round));
            prop_assert_eq!(bytes.len() as u64, codec.encoded_bytes(rows, width).0);
            prop_assert_eq!(bytes.len(), 4 * rows * codec.kept(width));
            let columns = codec.columns(width, key(round));
            prop_assert!(columns.is_sorted_by(|a, b| a < b) && columns.len() == codec.kept(width));
            let decoded = codec.decode(&bytes, rows, width, key(round)).unwrap();
            for (at, (decoded, value)) in decoded.iter().zip(&values).enumerate() {
                let expected = if columns.contains(&(at % width)) { *value } else { 0.0 };
                prop_assert_eq!(*decoded, expected);
            }
        }

        #[test]
        fn bytes_of_another_length_are_an_error_and_never_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200), rows in 0..8_usize, width in 0..20_usize,
            ratio in 1.0..30_f64,
        ) {
            let codec = codec(ratio, true);
            let fits = bytes.len() as u64 == codec.encoded_bytes(rows, width).0;
            let decoded = codec.decode(&bytes, rows, width, key(1));
            prop_assert_eq!(decoded.is_ok(), fits);
            if let Err(error) = decoded {
                prop_assert!(!error.is_input());
            }
        }
    }
}
