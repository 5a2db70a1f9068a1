//! A few bits an entry, between the smallest and the largest of its row.

use rand::Rng;
use serde::{Deserialize, Serialize};

use super::bits::{BitReader, BitWriter, packed_bytes};
use super::scale::{Chances, Scale, extremes};
use crate::net::codec::{check_length, corrupt, to_bytes};
use crate::net::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows, floats};

/// Bits an entry is quantised to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Bits {
    /// Two levels.
    One = 1,
    /// Four levels.
    Two = 2,
    /// 16 levels.
    Four = 4,
    /// 256 levels.
    Eight = 8,
}

impl Bits {
    /// All, ascending.
    pub const ALL: [Self; 4] = [Self::One, Self::Two, Self::Four, Self::Eight];

    /// How many.
    pub const fn count(self) -> u32 {
        self as u32
    }

    /// The number of the highest level, counted from 0.
    pub(super) const fn top(self) -> u32 {
        (1 << self.count()) - 1
    }
}

/// Sends each entry as the number q of one of 2ᵇ levels, evenly spaced from its row's `low` to its
/// `high`; it decodes as low + q·(high − low)/(2ᵇ − 1).
///
/// * **2, 4, 8 bits**: `low` and `high` are the row's extremes, and rounding is stochastic: up with
///   a chance equal to the way there, drawn for each message alone (as in QSGD, Alistarh et al.,
///   `NeurIPS` 2017, and `AdaQP`, Wan, Zhao and Wu, `MLSys` 2023). Unbiased; with s = (high −
///   low)/(2ᵇ − 1) an entry's variance is at most s²/4 and that of the extremes is 0, so E‖x̃ − x‖²
///   ≤ (n − 2) s²/4 ≤ (n − 2) ‖x‖² / (2 (2ᵇ − 1)²) (derived: (high − low)² ≤ 2 ‖x‖²).
/// * **1 bit**: two levels at the extremes would lose up to n/2 times what there is, so the levels
///   are the means of the entries below the row's mean and of the others (Seide et al., *1-Bit
///   Stochastic Gradient Descent*, INTERSPEECH 2014), without chance. Biased; the row's mean is
///   kept; ‖x̃ − x‖² ≤ (1 − 1/n) ‖x‖² (derived: with y = x − mean, what is kept is at least
///   n·mean² + ‖y‖₁²/n ≥ ‖x‖²/n).
///
/// A row with a value that is not finite decodes as not a number throughout.
///
/// Encoded: for each row `low` and `high` as 4-byte floats, then all levels packed without gaps:
/// 8·rows + ⌈rows·n·b/8⌉ bytes; none for rows without width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantise {
    /// Bits b of an entry.
    pub bits: Bits,
}

/// The lowest and the highest level of a row.
#[derive(Clone, Copy)]
struct Grid {
    low: f32,
    high: f32,
}

impl Grid {
    const NOT_A_NUMBER: Self = Self {
        low: f32::NAN,
        high: f32::NAN,
    };

    /// The mean of the entries below `mean`, and that of the others; where none is below, as in a
    /// constant row, both are the latter.
    fn of_two_means(row: &[f32], mean: f64) -> Self {
        let (mut sums, mut above) = ([0.0, 0.0], 0_usize);
        for &value in row {
            // Both sums take every entry, one of them as nothing: no branch depends on a value.
            let (value, is_above) = (f64::from(value), f64::from(value) >= mean);
            sums[0] += if is_above { 0.0 } else { value };
            sums[1] += if is_above { value } else { 0.0 };
            above += usize::from(is_above);
        }
        let below = row.len() - above;
        let high = average(sums[1], above).unwrap_or(mean);
        let low = average(sums[0], below).unwrap_or(high);
        Self {
            low: low as f32,
            high: high as f32,
        }
    }

    /// All levels from `low` to `high`, of which `top` is the highest.
    fn scale(self, top: u32) -> Scale {
        let low = f64::from(self.low);
        let step = (f64::from(self.high) - low) / f64::from(top);
        Scale { low, step, top }
    }
}

fn average(sum: f64, count: usize) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

impl Quantise {
    /// The levels of one row, `[width]`; its grid is returned.
    fn row(self, row: &[f32], chances: &mut Chances<impl Rng>, levels: &mut [u32]) -> Grid {
        let Some((low, high)) = extremes(row) else {
            // Zeros keep the place of the row: later ones stand at bits that both ends work out.
            levels.fill(0);
            return Grid::NOT_A_NUMBER;
        };
        if self.bits == Bits::One {
            let sum = row.iter().map(|&value| f64::from(value)).sum();
            let mean = average(sum, row.len()).unwrap_or(0.0);
            for (level, &value) in levels.iter_mut().zip(row) {
                *level = u32::from(f64::from(value) >= mean);
            }
            return Grid::of_two_means(row, mean);
        }
        let grid = Grid { low, high };
        let words = chances.next(row.len());
        grid.scale(self.bits.top()).rounded(row, words, levels);
        grid
    }
}

impl Codec for Quantise {
    fn name(&self) -> String {
        format!("quantise(bits={})", self.bits.count())
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        if width == 0 {
            return Bytes(0);
        }
        let levels = packed_bytes(rows * width, self.bits.count());
        Bytes(8 * rows as u64 + levels as u64)
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        let mut chances = Chances::of(key.stream_of_message());
        let mut row_levels = vec![0; rows.width()];
        let mut levels = BitWriter::default();
        let mut grids = Vec::with_capacity(2 * rows.rows());
        for row in rows.iter() {
            let grid = self.row(row, &mut chances, &mut row_levels);
            grids.extend([grid.low, grid.high]);
            levels.push_all(&row_levels, self.bits.count());
        }
        let mut bytes = to_bytes(&grids);
        bytes.append(&mut levels.finish());
        bytes
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, shape, key)?;
        let [rows, width] = shape;
        if width == 0 {
            return Ok(Vec::new());
        }
        let (grids, levels) = bytes.split_at(8 * rows);
        let mut levels = BitReader::new(levels);
        let mut ends = floats(grids);
        let mut row_levels = vec![0; width];
        let mut values = Vec::with_capacity(rows * width);
        for number in 0..rows {
            // There are two for each row: the length was checked.
            let low = ends.next().unwrap_or(f32::NAN);
            let high = ends.next().unwrap_or(f32::NAN);
            // Not a number passes: that is how a row that was not finite arrives.
            if low.is_infinite() || high.is_infinite() || high < low {
                let reason = format!("the levels of row {number} go from {low} to {high}");
                return Err(corrupt(self, reason));
            }
            levels.take_all(&mut row_levels, self.bits.count());
            let scale = Grid { low, high }.scale(self.bits.top());
            scale.values(&row_levels, 0.0, &mut values);
        }
        levels.expect_end(self)?;
        Ok(values)
    }

    fn is_biased(&self) -> bool {
        self.bits == Bits::One
    }

    fn expected_error(&self, width: usize) -> RelativeError {
        let n = width as f64;
        RelativeError::AtMost(match self.bits {
            Bits::One => 1.0 - 1.0 / n.max(1.0),
            bits => (n - 2.0).max(0.0) / (2.0 * f64::from(bits.top()).powi(2)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Way;

    fn through(bits: Bits, row: &[f32], key: CodecKey) -> Vec<f32> {
        let codec = Quantise { bits };
        let bytes = codec.encode(&Rows::new(row, row.len()), key);
        codec.decode(&bytes, [1, row.len()], key).unwrap()
    }

    #[test]
    fn one_bit_sends_the_mean_of_either_side() {
        let row = [0.0, 1.0, 2.0, 9.0];
        assert_eq!(
            through(Bits::One, &row, CodecKey::new(0, 0, 0)),
            [1.0, 1.0, 1.0, 9.0]
        );
    }

    #[test]
    fn equal_values_and_values_on_a_level_come_back_as_they_were() {
        for bits in Bits::ALL {
            for round in 0..20 {
                let key = CodecKey::new(1, 0, round);
                // A subnormal and the largest float among them.
                for value in [0.0, 0.1, -3.3e-39, f32::MAX] {
                    assert_eq!(through(bits, &[value; 5], key), [value; 5]);
                }
                if bits != Bits::One {
                    let levels: Vec<f32> = (0..=bits.top()).map(|q| q as f32 - 1.0).collect();
                    assert_eq!(through(bits, &levels, key), levels);
                }
            }
        }
    }

    #[test]
    fn the_range_may_exceed_the_largest_float_but_infinity_spoils_its_row_alone() {
        let key = CodecKey::new(0, 0, 0);
        for bits in Bits::ALL {
            let wide = through(bits, &[f32::MAX, f32::MIN, 0.0], key);
            assert!(
                wide.iter().all(|value| value.is_finite()),
                "{bits:?} {wide:?}"
            );
            let codec = Quantise { bits };
            let rows = Rows::new(&[1.0, f32::INFINITY, 2.0, 2.0], 2);
            let decoded = codec
                .decode(&codec.encode(&rows, key), [2, 2], key)
                .unwrap();
            assert!(decoded[0].is_nan() && decoded[1].is_nan());
            assert_eq!(decoded[2..], [2.0, 2.0]);
        }
    }

    #[test]
    fn messages_round_apart() {
        let row: Vec<f32> = (0_u8..64).map(|i| f32::from(i) / 7.0).collect();
        let key = CodecKey::new(0, 0, 0);
        let forward = through(Bits::Two, &row, key.between(0, 1, Way::Forward));
        let back = through(Bits::Two, &row, key.between(0, 1, Way::Back));
        assert_ne!(forward, back);
    }

    #[test]
    fn levels_that_cannot_be_are_refused() {
        let codec = Quantise { bits: Bits::Eight };
        for high in [-1.0, f32::INFINITY] {
            let mut bytes = to_bytes(&[0.0, high]);
            bytes.push(0);
            assert!(
                codec
                    .decode(&bytes, [1, 1], CodecKey::new(0, 0, 0))
                    .is_err()
            );
        }
    }
}
