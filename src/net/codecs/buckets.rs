//! Quantised rows in equally wide buckets.

use half::bf16;

use super::bits::{BitReader, BitWriter, packed_bytes};
use super::quantise_rows::{at_least, at_most};
use super::scale::{Scale, extremes};
use crate::net::{Bits, Bytes, Rows};

/// Sends the number of each entry's bucket, of `2ᵇ` between the smallest and the largest entry of
/// its row; it decodes as the middle of the bucket (EC-Graph, ICDE 2022). So an entry is off by at
/// most half a bucket: always the same for the same row, and biased.
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
            Scale::of(low, step, self.0).numbers(row, &mut numbers);
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
            Scale::of(low, step, self.0).values(&numbers, 0.5, &mut decoded);
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
        (low, at_least(range / f64::from(self.0.top() + 1)))
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
    fn what_is_not_finite_spoils_its_row_alone() {
        let buckets = Buckets(Bits::Two);
        let bytes = buckets.encode(&Rows::new(&[1.0, f32::NAN, 3.0, 3.0], 2));
        let found = buckets.decode(&bytes, 2, 2);
        assert!(found[0].is_nan() && found[1].is_nan());
        assert_eq!(found[2..], [3.0, 3.0]);
    }
}
