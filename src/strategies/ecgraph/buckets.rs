//! The quantiser: each entry of a row in one of equally wide buckets.

use half::bf16;

use crate::net::{Bits, Bytes, Rows};

/// Sends the number of each entry's bucket, of `2ᵇ` between the smallest and the largest entry of
/// its row; it decodes as the middle of the bucket. So an entry is off by at most half a bucket,
/// beside the rounding of the ends: always the same for the same row, and biased.
///
/// Encoded: for each row the lower end and the width of a bucket as bfloat16s, 4 bytes, then all
/// numbers packed without gaps: `4·rows + ⌈rows·width·b/8⌉` bytes; none for rows without width. A
/// row with a value that is not finite decodes as not a number throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets(pub Bits);

impl Buckets {
    /// Bytes of a message.
    pub const fn bytes(self, rows: usize, width: usize) -> Bytes {
        if width == 0 {
            return Bytes(0);
        }
        let packed = (rows * width * self.0.count() as usize).div_ceil(8);
        Bytes((4 * rows + packed) as u64)
    }

    /// The message of these rows.
    pub fn encode(self, rows: &Rows<'_>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 * rows.rows());
        let mut numbers = Vec::with_capacity(rows.values().len());
        for row in rows.iter() {
            let (low, step) = self.ends(row);
            bytes.extend([low.to_le_bytes(), step.to_le_bytes()].concat());
            let (low, step) = (low.to_f32(), step.to_f32());
            let number = |value: &f32| {
                let place = if step > 0.0 {
                    (value - low) / step
                } else {
                    0.0
                };
                // Casts saturate: below the lower end at 0, and so does what is not a number.
                (place as u32).min(self.top()) as u8
            };
            numbers.extend(row.iter().map(number));
        }
        let bits = self.0.count();
        let packed = numbers.chunks(self.in_a_byte()).map(|some| {
            let places = some.iter().zip(0_u32..);
            places.fold(0, |byte, (number, at)| byte | number << (bits * at))
        });
        bytes.extend(packed);
        bytes
    }

    /// The rows of a message of [`Self::bytes`].
    pub fn decode(self, bytes: &[u8], rows: usize, width: usize) -> Vec<f32> {
        let (ends, packed) = bytes.split_at((4 * rows).min(bytes.len()));
        let (bits, in_a_byte) = (self.0.count(), self.in_a_byte());
        let number = |at: usize| {
            let byte = u32::from(packed[at / in_a_byte]);
            byte >> (bits as usize * (at % in_a_byte)) & self.top()
        };
        let (ends, _) = ends.as_chunks::<4>();
        let row = |(row, &[a, b, c, d]): (usize, &[u8; 4])| {
            let [low, step] = [[a, b], [c, d]].map(|half| bf16::from_le_bytes(half).to_f32());
            (0..width).map(move |column| low + (number(row * width + column) as f32 + 0.5) * step)
        };
        ends.iter().enumerate().flat_map(row).collect()
    }

    /// The highest number of a bucket.
    const fn top(self) -> u32 {
        (1 << self.0.count()) - 1
    }

    const fn in_a_byte(self) -> usize {
        8 / self.0.count() as usize
    }

    /// The lower end of a row's first bucket, and how wide buckets are.
    fn ends(self, row: &[f32]) -> (bf16, bf16) {
        if !row.iter().all(|value| value.is_finite()) {
            return (bf16::NAN, bf16::NAN);
        }
        let low = row.iter().copied().fold(f32::INFINITY, f32::min);
        let high = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let step = (f64::from(high) - f64::from(low)) / f64::from(self.top() + 1);
        (bf16::from_f32(low), bf16::from_f64(step))
    }
}
