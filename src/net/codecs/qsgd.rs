//! Entries as multiples of a share of their bucket's length, rounded at random.

#![allow(clippy::inline_always)] // the loop becomes part of the code for the chosen instruction set

use rand::Rng;

use super::bits::{BitReader, BitWriter, packed_bytes};
use super::scale::{Chances, chance, cut};
use crate::net::codec::{check_length, corrupt};
use crate::net::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows, floats, to_bytes};
use crate::simd::vectorised;

/// Sends each entry x of a bucket as a sign and one of the levels 0, 1, … s; it decodes as
/// ±‖bucket‖₂ · level/s (QSGD: Alistarh, Grubic, Li, Tomioka and Vojnović, `NeurIPS` 2017, section
/// 3.1). A row is cut into buckets of so many entries, the last one being shorter.
///
/// Rounding is stochastic, up with a chance equal to the way there, drawn for each message alone:
/// unbiased, and E‖x̃ − x‖² ≤ min(n/s², √n/s) ‖x‖² for buckets of n (their lemma 3.1).
///
/// A bucket with a value that is not finite decodes as not a number throughout.
///
/// Encoded: for each bucket its length as a 4-byte float, then sign and level of each entry in
/// 1 + ⌈log₂(s + 1)⌉ bits, packed without gaps: 4·buckets + ⌈rows·n·bits/8⌉ bytes. (The paper's
/// analysis codes levels with Elias's integers; its experiments send a fixed number of bits.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qsgd {
    /// The highest level s, at least 1 and below 2³¹.
    pub levels: u32,
    /// Entries of a bucket, at least 1.
    pub bucket: usize,
}

impl Qsgd {
    /// Bits of a level, without the sign.
    const fn level_bits(self) -> u32 {
        u32::BITS - self.levels.leading_zeros()
    }

    const fn buckets(self, rows: usize, width: usize) -> usize {
        rows * width.div_ceil(self.bucket)
    }

    /// Signs and levels of the entries of one bucket; its length is returned.
    fn bucket(self, bucket: &[f32], chances: &mut Chances<impl Rng>, entries: &mut [u32]) -> f32 {
        let squares = bucket.iter().map(|&value| f64::from(value).powi(2));
        let length = squares.sum::<f64>().sqrt() as f32;
        let finite = length.is_finite();
        // Of an endless length every entry is no share.
        let usable = finite && length > 0.0;
        let all = if usable {
            f64::from(length)
        } else {
            f64::INFINITY
        };
        let words = chances.next(bucket.len());
        vectorised(
            #[inline(always)]
            || {
                for ((entry, &value), &word) in entries.iter_mut().zip(bucket).zip(words) {
                    let place = f64::from(value.abs()) / all * f64::from(self.levels);
                    let level = cut(place + chance(word), self.levels);
                    *entry = level << 1 | u32::from(value.is_sign_negative());
                }
            },
        );
        if finite { length } else { f32::NAN }
    }
}

impl Codec for Qsgd {
    fn name(&self) -> String {
        format!("qsgd(levels={}, bucket={})", self.levels, self.bucket)
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        let entries = packed_bytes(rows * width, 1 + self.level_bits());
        Bytes((4 * self.buckets(rows, width) + entries) as u64)
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        let mut chances = Chances::of(key.stream_of_message());
        let mut of_bucket = vec![0; self.bucket.min(rows.width())];
        let mut entries = BitWriter::default();
        let mut lengths = Vec::with_capacity(self.buckets(rows.rows(), rows.width()));
        for bucket in rows.iter().flat_map(|row| row.chunks(self.bucket)) {
            let of_bucket = &mut of_bucket[..bucket.len()];
            lengths.push(self.bucket(bucket, &mut chances, of_bucket));
            entries.push_all(of_bucket, 1 + self.level_bits());
        }
        let mut bytes = to_bytes(&lengths);
        bytes.append(&mut entries.finish());
        bytes
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, shape, key)?;
        let [rows, width] = shape;
        let (lengths, entries) = bytes.split_at(4 * self.buckets(rows, width));
        let mut lengths = floats(lengths);
        let mut entries = BitReader::new(entries);
        let mut of_bucket = vec![0; self.bucket.min(width)];
        let mut values = Vec::with_capacity(rows * width);
        for _ in 0..rows {
            for start in (0..width).step_by(self.bucket) {
                // There is one for each bucket: the number of bytes was checked.
                let length = lengths.next().unwrap_or(f32::NAN);
                if length.is_infinite() || length < 0.0 {
                    return Err(corrupt(self, format!("a bucket has the length {length}")));
                }
                let of_bucket = &mut of_bucket[..self.bucket.min(width - start)];
                entries.take_all(of_bucket, 1 + self.level_bits());
                if let Some(entry) = of_bucket.iter().find(|&entry| entry >> 1 > self.levels) {
                    return Err(corrupt(
                        self,
                        format!("an entry has the level {}", entry >> 1),
                    ));
                }
                values.extend(of_bucket.iter().map(|&entry| {
                    let share = f64::from(entry >> 1) / f64::from(self.levels);
                    let value = (f64::from(length) * share) as f32;
                    if entry & 1 == 1 { -value } else { value }
                }));
            }
        }
        entries.expect_end(self)?;
        Ok(values)
    }

    fn is_biased(&self) -> bool {
        false
    }

    fn expected_error(&self, width: usize) -> RelativeError {
        let (n, s) = (width.min(self.bucket) as f64, f64::from(self.levels));
        RelativeError::AtMost((n / (s * s)).min(n.sqrt() / s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: CodecKey = CodecKey::new(1, 0, 0);

    #[test]
    fn four_bits_an_entry_and_a_float_a_bucket() {
        let codec = Qsgd {
            levels: 7,
            bucket: 512,
        };
        // 1433 · 256 parameters of a layer: 717 buckets, of which the last is half full.
        let entries = 1433 * 256;
        assert_eq!(
            codec.encoded_bytes(1, entries).0,
            4 * 717 + entries as u64 / 2
        );
    }

    #[test]
    fn an_entry_is_a_level_of_its_buckets_length_and_right_on_average() {
        let codec = Qsgd {
            levels: 5,
            bucket: 2,
        };
        // Lengths 5 and 2: levels are whole numbers, and fifths of 2.
        let row = [3.0, -4.0, 0.0, 2.0, -1.5];
        let mut sums = [0.0_f64; 5];
        for round in 0..4_000 {
            let key = CodecKey::new(7, 0, round);
            let bytes = codec.encode(&Rows::new(&row, 5), key);
            let decoded = codec.decode(&bytes, [1, 5], key).unwrap();
            assert_eq!(decoded[..4], row[..4], "they are levels themselves");
            sums[4] += f64::from(decoded[4]) / 4_000.0;
        }
        assert!(
            (sums[4] + 1.5).abs() < 1e-6,
            "alone in its bucket: {sums:?}"
        );
        let odd = [2.0, 1.0, 0.5];
        let coarse = Qsgd {
            levels: 1,
            bucket: 3,
        };
        let mut sum = [0.0_f64; 3];
        for round in 0..20_000 {
            let key = CodecKey::new(7, 1, round);
            let bytes = coarse.encode(&Rows::new(&odd, 3), key);
            for (sum, value) in sum
                .iter_mut()
                .zip(coarse.decode(&bytes, [1, 3], key).unwrap())
            {
                *sum += f64::from(value) / 20_000.0;
            }
        }
        // An entry has a standard deviation of at most half the length, 2.29: 0.0081 of the mean.
        for (sum, value) in sum.iter().zip(odd) {
            assert!(
                (sum - f64::from(value)).abs() < 5.0 * 0.0081,
                "{sum} {value}"
            );
        }
    }

    #[test]
    fn levels_beyond_the_highest_are_refused() {
        let codec = Qsgd {
            levels: 5,
            bucket: 4,
        };
        let mut bytes = codec.encode(&Rows::new(&[1.0], 1), KEY);
        *bytes.last_mut().unwrap() = 0b1110;
        let error = codec.decode(&bytes, [1, 1], KEY).unwrap_err();
        assert!(error.to_string().contains("level 7"), "{error}");
    }
}
