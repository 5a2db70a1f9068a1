//! `AdaQP`'s quantiser: rows of different bits in one message, each with a zero point and a step of
//! two bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use half::bf16;
use rand::seq::SliceRandom;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bits::{BitReader, BitWriter};
use super::scale::{Chances, Scale, extremes};
use crate::net::codec::{check_length, corrupt};
use crate::net::{Bits, Bytes, Codec, CodecKey, CodecLane, NetError, RelativeError, Rows};

/// How many bits the rows of a message are sent with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowBits {
    /// All with the same.
    Uniform(Bits),
    /// A third each with 2, 4 and 8, the first of these more if thirds are not whole; which ones is
    /// drawn for each message.
    Random,
    /// By model layer and lane, for each group of so many rows one after another; 8 where nothing
    /// is said.
    Assigned {
        /// Rows of a group.
        group: usize,
        /// Bits of each group.
        #[serde(serialize_with = "write_bits", deserialize_with = "read_bits")]
        bits: Arc<GroupBits>,
    },
}

/// Bits of the groups of each message, by model layer and lane.
type GroupBits = BTreeMap<(u32, CodecLane), Vec<Bits>>;

fn write_bits<S: Serializer>(bits: &Arc<GroupBits>, to: S) -> Result<S::Ok, S::Error> {
    (**bits).serialize(to)
}

fn read_bits<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<GroupBits>, D::Error> {
    GroupBits::deserialize(from).map(Arc::new)
}

/// Bits that rows are given, at random or by assignment (`AdaQP`).
pub(crate) const ROW_BITS: [Bits; 3] = [Bits::Two, Bits::Four, Bits::Eight];

/// Sends each entry of a row with b bits as the number q of one of 2ᵇ levels; it decodes as z + q·s
/// (Wan, Zhao and Wu, *Adaptive Message Quantization and Parallelization for Distributed Full-graph
/// GNN Training*, `MLSys` 2023).
///
/// Zero point z and step s are bfloat16s: z is the smallest entry, rounded down, and s is what
/// reaches the largest in 2ᵇ − 1 steps, rounded up. (The authors round both to nearest, which
/// biases.) Rounding to a level is stochastic, up with a chance equal to the way there, drawn for
/// each message alone: unbiased, with a variance of s² f (1 − f) for an entry that is f of a step
/// above a level, which is at most s²/4, and s²/6 on average over f. E‖x̃ − x‖² ≤ 0.52 n ‖x‖² / (2ᵇ
/// − 1)² (derived: s ≤ (1 + 2⁻⁷)(√2 + 2⁻⁷) ‖x‖ / (2ᵇ − 1)).
///
/// A row with a value that is not finite decodes as not a number throughout; values beyond the
/// largest bfloat16 may become the nearest that can be sent.
///
/// Encoded: for each row z and s, 4 bytes, then all levels packed without gaps: 4·rows + ⌈n·Σb/8⌉
/// bytes; none for rows without width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantiseRows {
    /// Bits of each row.
    pub bits: RowBits,
}

/// The levels of one row: z + q·s.
#[derive(Clone, Copy, Debug)]
struct Levels {
    zero: bf16,
    step: bf16,
}

impl Levels {
    /// Those of a row; none if it is not finite.
    fn of(row: &[f32], bits: Bits) -> Option<Self> {
        let (low, high) = extremes(row)?;
        let zero = at_most(low);
        // From the rounded zero point, so that the highest level reaches the largest entry still.
        // Below zero only where that lies above the entry, beyond the lowest bfloat16.
        let range = (f64::from(high) - f64::from(zero.to_f32())).max(0.0);
        let step = at_least(range / f64::from(bits.top()));
        Some(Self { zero, step })
    }

    fn scale(self, bits: Bits) -> Scale {
        Scale::of(self.zero, self.step, bits)
    }
}

/// The largest finite bfloat16 that is at most `value`; the lowest of all if there is none.
pub(super) fn at_most(value: f32) -> bf16 {
    let bits = value.to_bits();
    let cut = (bits >> 16) as u16; // towards zero
    let beyond = u16::from(value < 0.0 && bits & 0xFFFF != 0);
    // One more in the last place is the next in magnitude; behind the lowest that is −∞.
    bf16::from_bits(cut + beyond).max(bf16::MIN)
}

/// The smallest bfloat16 that is at least `value`, which is not negative; the largest of all if
/// there is none.
pub(super) fn at_least(value: f64) -> bf16 {
    let mut short = value as f32;
    if f64::from(short) < value {
        short = short.next_up();
    }
    let bits = short.to_bits();
    let beyond = u16::from(bits & 0xFFFF != 0);
    bf16::from_bits((bits >> 16) as u16 + beyond).min(bf16::MAX)
}

impl QuantiseRows {
    /// Bits of each row of a message.
    fn of_rows(&self, rows: usize, key: CodecKey) -> Vec<Bits> {
        match &self.bits {
            RowBits::Uniform(bits) => vec![*bits; rows],
            RowBits::Random => {
                let mut bits: Vec<Bits> = ROW_BITS.into_iter().cycle().take(rows).collect();
                // Other draws than those of the rounding, which takes the message's own stream.
                bits.shuffle(&mut key.inner().stream_of_message());
                bits
            }
            RowBits::Assigned { group, bits } => {
                let groups = key.lane.and_then(|lane| bits.get(&(key.layer, lane)));
                let of = |row: usize| groups?.get(row / (*group).max(1)).copied();
                (0..rows)
                    .map(|row| of(row).unwrap_or(Bits::Eight))
                    .collect()
            }
        }
    }

    /// Sum over the rows of a message of the bits of each of its values. In time that does not grow
    /// with the rows, unless bits are assigned: plans have messages of billions of rows.
    fn bits_a_column(&self, rows: usize, key: CodecKey) -> usize {
        let count = |bits: &Bits| bits.count() as usize;
        match &self.bits {
            RowBits::Uniform(bits) => rows * count(bits),
            RowBits::Random => {
                let (rounds, rest) = (rows / ROW_BITS.len(), rows % ROW_BITS.len());
                let sum = |bits: &[Bits]| bits.iter().map(count).sum::<usize>();
                rounds * sum(&ROW_BITS) + sum(&ROW_BITS[..rest])
            }
            RowBits::Assigned { .. } => self.of_rows(rows, key).iter().map(count).sum(),
        }
    }
}

impl Codec for QuantiseRows {
    fn name(&self) -> String {
        let bits = match &self.bits {
            RowBits::Uniform(bits) => bits.count().to_string(),
            RowBits::Random => "random".to_owned(),
            RowBits::Assigned { .. } => "assigned".to_owned(),
        };
        format!("quantise_rows(bits={bits})")
    }

    /// Where bits are assigned, the most that a message can have; what it has is
    /// [`Codec::message_bytes`].
    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        // Without a lane no group has bits of its own, so every row counts with eight.
        self.message_bytes(rows, width, CodecKey::new(0, 0, 0))
    }

    fn message_bytes(&self, rows: usize, width: usize, key: CodecKey) -> Bytes {
        if width == 0 {
            return Bytes(0);
        }
        let packed = (width * self.bits_a_column(rows, key)).div_ceil(8);
        Bytes((4 * rows + packed) as u64)
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        let mut chances = Chances::of(key.stream_of_message());
        let mut numbers = vec![0; rows.width()];
        let mut packed = BitWriter::default();
        let mut bytes = Vec::with_capacity(4 * rows.rows());
        for (row, bits) in rows.iter().zip(self.of_rows(rows.rows(), key)) {
            let words = chances.next(row.len());
            let levels = Levels::of(row, bits);
            match levels {
                Some(levels) => levels.scale(bits).rounded(row, words, &mut numbers),
                None => numbers.fill(0),
            }
            let Levels { zero, step } = levels.unwrap_or(Levels {
                zero: bf16::NAN,
                step: bf16::NAN,
            });
            bytes.extend_from_slice(&zero.to_le_bytes());
            bytes.extend_from_slice(&step.to_le_bytes());
            packed.push_all(&numbers, bits.count());
        }
        bytes.append(&mut packed.finish());
        bytes
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, shape, key)?;
        let [rows, width] = shape;
        if width == 0 {
            return Ok(Vec::new());
        }
        let bits = self.of_rows(rows, key);
        let (heads, packed) = bytes.split_at(4 * rows);
        let mut packed = BitReader::new(packed);
        let mut numbers = vec![0; width];
        let mut values = Vec::with_capacity(rows * width);
        for (head, bits) in heads.as_chunks::<4>().0.iter().zip(bits) {
            let levels = Levels {
                zero: bf16::from_le_bytes([head[0], head[1]]),
                step: bf16::from_le_bytes([head[2], head[3]]),
            };
            let Levels { zero, step } = levels;
            if zero.is_infinite() || step.is_infinite() || step < bf16::ZERO {
                return Err(corrupt(
                    self,
                    format!("levels from {zero} in steps of {step}"),
                ));
            }
            packed.take_all(&mut numbers, bits.count());
            levels.scale(bits).values(&numbers, 0.0, &mut values);
        }
        packed.expect_end(self)?;
        Ok(values)
    }

    fn is_biased(&self) -> bool {
        false
    }

    fn expected_error(&self, width: usize) -> RelativeError {
        let bits = match &self.bits {
            RowBits::Uniform(bits) => *bits,
            RowBits::Random | RowBits::Assigned { .. } => Bits::Two,
        };
        RelativeError::AtMost(0.52 * width as f64 / f64::from(bits.top()).powi(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Way;
    use proptest::prelude::*;

    const KEY: CodecKey = CodecKey::new(3, 1, 5);

    fn uniform(bits: Bits) -> QuantiseRows {
        QuantiseRows {
            bits: RowBits::Uniform(bits),
        }
    }

    proptest! {
        #[test]
        fn over_both_roundings_the_mean_is_the_value_and_the_variance_below_a_quarter_step(
            row in prop::collection::vec(-1e4_f32..1e4, 1..20), offset in -1e6_f32..1e6,
            scale in prop::sample::select(vec![1e-6_f32, 1e-3, 1.0]),
        ) {
            let row: Vec<f32> = row.iter().map(|v| v * scale + offset * scale).collect();
            for bits in ROW_BITS {
                let levels = Levels::of(&row, bits).unwrap();
                let (zero, step) = (f64::from(levels.zero.to_f32()), f64::from(levels.step.to_f32()));
                for &value in &row {
                    let place = levels.scale(bits).place(value);
                    prop_assert!((0.0..=f64::from(bits.top()) * (1.0 + 1e-12)).contains(&place), "{place} of {bits:?}");
                    // Down with chance 1 − f, up with f: both levels exist.
                    let (below, f) = (place.floor(), place.fract());
                    let above = (below + 1.0).min(f64::from(bits.top()));
                    prop_assert!(f == 0.0 || above > below);
                    let [down, up] = [below, above].map(|level| zero + step * level);
                    let x = f64::from(value);
                    let mean = (1.0 - f) * down + f * up;
                    prop_assert!((mean - x).abs() <= 1e-9 * (x.abs() + step), "{mean}, {x}");
                    let variance = (1.0 - f) * (down - x).powi(2) + f * (up - x).powi(2);
                    prop_assert!(variance <= step * step / 4.0 * (1.0 + 1e-6) + 1e-18);
                }
            }
        }

        #[test]
        fn an_entry_becomes_one_of_the_two_levels_beside_it(
            row in prop::collection::vec(-9.0_f32..9.0, 1..20), round in any::<u64>(),
        ) {
            for bits in ROW_BITS {
                let (codec, key) = (uniform(bits), CodecKey::new(1, 0, round));
                let bytes = codec.encode(&Rows::new(&row, row.len()), key);
                let decoded = codec.decode(&bytes, [1, row.len()], key).unwrap();
                let step = Levels::of(&row, bits).unwrap().step.to_f32();
                for (x, y) in row.iter().zip(decoded) {
                    prop_assert!((x - y).abs() <= step * (1.0 + 1e-5) + 1e-6, "{x}, {y}");
                }
            }
        }

        #[test]
        fn zero_points_and_steps_are_rounded_outwards_to_the_next_bfloat(
            value in -1e30_f32..1e30, step in 0.0_f64..1e30,
        ) {
            let down = at_most(value);
            prop_assert!(down.to_f32() <= value);
            prop_assert!(value - down.to_f32() <= value.abs() / 128.0);
            let up = f64::from(at_least(step).to_f32());
            prop_assert!(up >= step && up <= step * (1.0 + 1.0 / 128.0) + 1e-40);
        }
    }

    #[test]
    fn over_evenly_spread_entries_the_variance_is_a_sixth_of_a_step_squared() {
        let row: Vec<f32> = (0_u16..4097).map(|v| f32::from(v) / 4096.0).collect();
        for bits in [Bits::Two, Bits::Four] {
            let levels = Levels::of(&row, bits).unwrap();
            let each = row.iter().map(|&value| {
                let f = levels.scale(bits).place(value).fract();
                f * (1.0 - f)
            });
            let mean = each.sum::<f64>() / row.len() as f64;
            assert!((mean * 6.0 - 1.0).abs() < 0.01, "{bits:?}: {mean}");
        }
    }

    #[test]
    fn constant_rows_come_back_exactly_where_a_bfloat_holds_them_and_nearly_elsewhere() {
        for bits in ROW_BITS {
            for value in [0.0, 1.5, -96.0, 0.1, f32::MAX, f32::MIN] {
                let row = [value; 5];
                let bytes = uniform(bits).encode(&Rows::new(&row, 5), KEY);
                for found in uniform(bits).decode(&bytes, [1, 5], KEY).unwrap() {
                    let off = (f64::from(found) - f64::from(value)).abs();
                    let exact = bf16::from_f32(value).to_f32().to_bits() == value.to_bits();
                    assert!(off <= f64::from(value.abs()) / 100.0, "{found}, {value}");
                    assert!(!exact || off == 0.0, "{found}, {value}");
                }
            }
        }
    }

    #[test]
    fn a_row_costs_four_bytes_and_its_bits_and_only_the_last_byte_is_filled_up() {
        for (bits, count) in [(Bits::Two, 2_usize), (Bits::Four, 4), (Bits::Eight, 8)] {
            for (rows, width) in [(1, 1), (3, 5), (7, 16), (0, 4)] {
                let expected = (4 * rows + (rows * width * count).div_ceil(8)) as u64;
                assert_eq!(uniform(bits).encoded_bytes(rows, width).0, expected);
            }
        }
        assert_eq!(uniform(Bits::Two).encoded_bytes(4, 0).0, 0);
        let random = QuantiseRows {
            bits: RowBits::Random,
        };
        // Two rows with 2 bits, two with 4, one with 8.
        assert_eq!(random.encoded_bytes(5, 6).0, 4 * 5 + 15);
    }

    #[test]
    fn a_third_of_the_rows_has_each_width_and_messages_draw_apart() {
        let random = QuantiseRows {
            bits: RowBits::Random,
        };
        let of = |key| random.of_rows(30, key);
        let forward = of(KEY.between(0, 1, Way::Forward));
        for bits in ROW_BITS {
            assert_eq!(forward.iter().filter(|&&b| b == bits).count(), 10);
        }
        assert_eq!(forward, of(KEY.between(0, 1, Way::Forward)));
        assert_ne!(forward, of(KEY.between(0, 1, Way::Back)));
        assert_ne!(forward, of(KEY.between(1, 0, Way::Forward)));
    }

    #[test]
    fn assigned_bits_are_those_of_the_message_and_its_group() {
        let lane = |reader| CodecLane {
            owner: 0,
            reader,
            way: Way::Forward,
        };
        let groups = vec![Bits::Two, Bits::Eight, Bits::Four];
        let assigned = QuantiseRows {
            bits: RowBits::Assigned {
                group: 2,
                bits: Arc::new(BTreeMap::from([((1, lane(1)), groups)])),
            },
        };
        let [known, unknown] = [1, 2].map(|reader| KEY.between(0, reader, Way::Forward));
        let counts = |key| -> Vec<u32> {
            let bits = assigned.of_rows(5, key);
            bits.iter().map(|bits| bits.count()).collect()
        };
        assert_eq!(counts(known), [2, 2, 8, 8, 4]);
        assert_eq!(counts(unknown), [8; 5]);
        assert_eq!(assigned.message_bytes(5, 3, known).0, 20 + 9);
        assert_eq!(assigned.encoded_bytes(5, 3).0, 20 + 15);
        let row: Vec<f32> = (0_u8..15).map(f32::from).collect();
        let bytes = assigned.encode(&Rows::new(&row, 3), known);
        let decoded = assigned.decode(&bytes, [5, 3], known).unwrap();
        assert_eq!(decoded.len(), 15);
        assert!(assigned.decode(&bytes, [5, 3], unknown).is_err());
    }

    #[test]
    fn infinity_spoils_its_row_alone() {
        let rows = [1.0, f32::INFINITY, 2.0, 2.0];
        for bits in ROW_BITS {
            let bytes = uniform(bits).encode(&Rows::new(&rows, 2), KEY);
            let decoded = uniform(bits).decode(&bytes, [2, 2], KEY).unwrap();
            assert!(decoded[0].is_nan() && decoded[1].is_nan());
            assert_eq!(decoded[2..], [2.0, 2.0]);
        }
    }
}
