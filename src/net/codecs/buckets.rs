//! Quantised rows in equally wide buckets.

use half::bf16;

use super::bits::{BitReader, BitWriter, packed_bytes};
use super::quantise_rows::{at_least, at_most};
use super::scale::{Scale, cut, extremes};
use crate::net::{Bits, Bytes, Rows};
use crate::simd::vectorised;

/// Sends the number of each entry's bucket, between the smallest and the largest entry of its row;
/// it decodes as the middle of the bucket (EC-Graph, ICDE 2022). So an entry is off by at most half
/// a bucket: always the same for the same row, and biased.
///
/// Of `2ᵇ` numbers, with `b` above 1, one is that of exact zeros, which stay what an activation or
/// dropout made them. Where there are negative entries the bucket around zero is two, one for each
/// sign. So there are `2ᵇ − 1` equally wide buckets, or `2ᵇ − 2`, as the authors' code means to
/// have them (`gCompensateBits` in `dgnn_server.cc` of `songzhen-neu/ecgraph`; what it tests for,
/// at line 1910, leaves out the smallest entry, so that the lowest bucket is two there). One bit
/// tells two halves; theirs tells the sign, read as 1 or −1.
///
/// Encoded: for each row the lower end and the width of a bucket as bfloat16s, 4 bytes, both
/// rounded so that the buckets cover the row, then all numbers packed without gaps:
/// `4·rows + ⌈rows·width·b/8⌉` bytes; none for rows without width. A row with a value that is not
/// finite decodes as not a number throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets(pub Bits);

impl Buckets {
    /// Bytes of a message.
    pub(crate) const fn bytes(self, rows: usize, width: usize) -> Bytes {
        if width == 0 {
            return Bytes(0);
        }
        Bytes((4 * rows + packed_bytes(rows * width, self.0.count())) as u64)
    }

    /// The message of these rows.
    pub(crate) fn encode(self, rows: &Rows<'_>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 * rows.rows());
        let mut packed = BitWriter::default();
        let mut numbers = vec![0; rows.width()];
        for row in rows.iter() {
            let (low, step) = self.ends(row);
            bytes.extend_from_slice(&low.to_le_bytes());
            bytes.extend_from_slice(&step.to_le_bytes());
            RowBuckets::of(low, step, self.0).numbers(row, &mut numbers);
            packed.push_all(&numbers, self.0.count());
        }
        bytes.extend(packed.finish());
        bytes
    }

    /// The rows of a message of [`Self::bytes`].
    pub(crate) fn decode(self, bytes: &[u8], rows: usize, width: usize) -> Vec<f32> {
        let (ends, packed) = bytes.split_at((4 * rows).min(bytes.len()));
        let mut packed = BitReader::new(packed);
        let mut numbers = vec![0; width];
        let mut decoded = Vec::with_capacity(rows * width);
        for &[a, b, c, d] in ends.as_chunks::<4>().0 {
            let [low, step] = [[a, b], [c, d]].map(bf16::from_le_bytes);
            packed.take_all(&mut numbers, self.0.count());
            RowBuckets::of(low, step, self.0).values(&numbers, &mut decoded);
        }
        decoded
    }

    /// The lower end of a row's first bucket, and how wide buckets are.
    fn ends(self, row: &[f32]) -> (bf16, bf16) {
        let Some((low, high)) = extremes(row) else {
            return (bf16::NAN, bf16::NAN);
        };
        let low = at_most(low);
        let range = (f64::from(high) - f64::from(low.to_f32())).max(0.0);
        (low, at_least(range / f64::from(equal(low, self.0))))
    }
}

/// How many buckets of equal width a row has whose lowest begins at `low`.
fn equal(low: bf16, bits: Bits) -> u32 {
    match bits {
        Bits::One => 2,
        _ if low < bf16::ZERO => bits.top() - 1,
        _ => bits.top(),
    }
}

/// The buckets of one row.
#[derive(Clone, Copy)]
struct RowBuckets {
    scale: Scale,
    /// The number of exact zeros, if they have one.
    zeros: Option<u32>,
    /// The number of the bucket that zero parts, which is that of its negative side; those above
    /// come one later.
    parted: Option<u32>,
}

impl RowBuckets {
    fn of(low: bf16, step: bf16, bits: Bits) -> Self {
        let equal = equal(low, bits);
        let scale = Scale {
            top: equal - 1,
            ..Scale::of(low, step, bits)
        };
        let zeros = (bits != Bits::One).then(|| bits.top());
        // Where all entries are negative zero lies beyond the last bucket, and parts none. It parts
        // no bucket without width.
        let signs = zeros.is_some() && low < bf16::ZERO && step > bf16::ZERO;
        let parted = signs.then(|| cut(scale.place(0.0), equal));
        Self {
            scale,
            zeros,
            parted,
        }
    }

    /// The number of the bucket of each value.
    fn numbers(self, row: &[f32], numbers: &mut [u32]) {
        self.scale.numbers(row, numbers);
        let Some(zeros) = self.zeros else {
            return;
        };
        let later = u32::from(self.parted.is_some());
        vectorised(
            #[inline(always)]
            || {
                for (number, &value) in numbers.iter_mut().zip(row) {
                    let above = if value > 0.0 { later } else { 0 };
                    *number = if value == 0.0 { zeros } else { *number + above };
                }
            },
        );
    }

    /// Appends the middles of the buckets with these numbers, as far as there are such floats.
    fn values(self, numbers: &[u32], values: &mut Vec<f32>) {
        let Scale { low, step, .. } = self.scale;
        // Numbers that no bucket has, where nothing is apart.
        let zeros = self.zeros.unwrap_or(u32::MAX);
        let parted = self.parted.unwrap_or(u32::MAX - 1);
        // Of a row that is not finite nothing is left, zeros neither.
        let zero = if low.is_nan() { low } else { 0.0 };
        vectorised(
            #[inline(always)]
            || {
                values.extend(numbers.iter().map(|&number| {
                    let later = u32::from(number > parted);
                    let lower = low + step * f64::from(number - later);
                    let mut ends = [lower, lower + step];
                    if number == parted {
                        ends[1] = 0.0;
                    }
                    if number == parted + 1 {
                        ends[0] = 0.0;
                    }
                    let middle = 0.5 * (ends[0] + ends[1]);
                    let value = if number == zeros { zero } else { middle };
                    // The highest bucket may reach beyond the largest float.
                    (value as f32).clamp(f32::MIN, f32::MAX)
                }));
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_entry_is_off_by_half_a_bucket_at_most(
            bits in prop::sample::select(vec![Bits::One, Bits::Two, Bits::Four, Bits::Eight]),
            width in 1_usize..9,
            scale in prop::sample::select(vec![1e-30_f32, 1.0, 1e38]),
            values in prop::collection::vec(-1.0_f32..1.0, 0..60),
        ) {
            let rows = values.len() / width;
            let values: Vec<f32> = values[..rows * width].iter().map(|x| x * scale).collect();
            let buckets = Buckets(bits);
            let bytes = buckets.encode(&Rows::new(&values, width));
            prop_assert_eq!(Bytes(bytes.len() as u64), buckets.bytes(rows, width));
            let decoded = buckets.decode(&bytes, rows, width);
            for (row, decoded) in values.chunks(width).zip(decoded.chunks(width)) {
                let (_, step) = buckets.ends(row);
                let half = f64::from(step.to_f32()) / 2.0;
                for (value, found) in row.iter().zip(decoded) {
                    let error = (f64::from(*value) - f64::from(*found)).abs();
                    // Beside half a bucket, what is decoded is rounded to a float.
                    let most = half + f64::from(value.abs()) * f64::from(f32::EPSILON);
                    prop_assert!(error <= most, "{value} as {found}, {half}");
                }
            }
        }
    }

    #[test]
    fn zeros_and_signs_have_buckets_of_their_own() {
        let sent = |bits, row: &[f32]| {
            let bytes = Buckets(bits).encode(&Rows::new(row, row.len()));
            Buckets(bits).decode(&bytes, 1, row.len())
        };
        // Three buckets, and zeros.
        let found = sent(Bits::Two, &[0.0, 1.0, 2.5, 6.0]);
        assert_eq!(found, [0.0, 1.0, 3.0, 5.0]);
        // Two, of which zero parts the second, at 1.5 of 3; and zeros.
        let found = sent(Bits::Two, &[-4.0, -0.5, 0.0, 0.25, 2.0]);
        assert_eq!(found, [-2.5, -0.5, 0.0, 1.0, 1.0]);
        // All negative: zero parts none.
        let found = sent(Bits::Two, &[-4.0, -3.5, -2.0]);
        assert_eq!(found, [-3.5, -3.5, -2.5]);
        // One bit tells halves alone.
        assert_eq!(sent(Bits::One, &[0.0, 1.0, 4.0]), [1.0, 1.0, 3.0]);
    }

    #[test]
    fn what_is_not_finite_spoils_its_row_alone() {
        let buckets = Buckets(Bits::Two);
        let bytes = buckets.encode(&Rows::new(&[1.0, f32::NAN, 3.0, 3.0], 2));
        let found = buckets.decode(&bytes, 2, 2);
        assert!(found[0].is_nan() && found[1].is_nan());
        assert_eq!(found[2..], [3.0, 3.0]);
    }
}
