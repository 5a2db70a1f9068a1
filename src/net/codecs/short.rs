//! Floats of half the length: IEEE 754 binary16, and bfloat16 with the range of whole ones.

#![allow(clippy::inline_always)] // the loop becomes part of the code for the chosen instruction set

use std::marker::PhantomData;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::net::codec::check_length;
use crate::net::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows};
use crate::simd::vectorised;

/// Sends each entry as an IEEE 754 half-precision float, rounded to nearest.
///
/// Biased, if slightly; ‖x̃ − x‖² ≤ 2⁻²² ‖x‖² while magnitudes lie between 2⁻¹⁴ and 65504. Smaller
/// ones are off by at most 2⁻²⁵, which may be all there is, larger ones become ±65504: so the bound
/// for any row is ‖x‖². What is not finite stays so.
///
/// Encoded: 2·rows·n bytes.
pub const F16: Short<f16> = Short(PhantomData);

/// Sends each entry as a bfloat16: the upper half of a float, rounded to nearest.
///
/// Biased, if slightly; ‖x̃ − x‖² ≤ 2⁻¹⁶ ‖x‖² for magnitudes of at least 2⁻¹²⁶, that is, in
/// practice. Those beyond the largest bfloat16 become that; what is not finite stays so.
///
/// Encoded: 2·rows·n bytes.
pub const BF16: Short<bf16> = Short(PhantomData);

/// A codec that shortens each entry: [`F16`] or [`BF16`].
#[derive(Clone, Copy, Debug)]
pub struct Short<F>(PhantomData<F>);

/// A float of two bytes.
trait TwoBytes: Send + Sync {
    /// Its name in experiment files.
    const NAME: &'static str;
    /// The largest finite one.
    const LARGEST: f32;
    /// What ‖x̃ − x‖² / ‖x‖² never exceeds.
    const BOUND: f64;

    /// The bytes of the nearest ones, little-endian.
    fn shorten(values: &[f32], bytes: &mut [[u8; 2]]);
    /// The values of the ones with these bytes.
    fn lengthen(bytes: &[[u8; 2]], values: &mut [f32]);
}

/// Halves that are converted in one go.
const BLOCK: usize = 256;

/// Of values beyond the largest that is finite that one: rounding to nearest would make infinity of
/// them. What is not finite stays so.
#[inline(always)]
fn within(largest: f32, value: f32) -> f32 {
    if value.is_finite() {
        value.clamp(-largest, largest)
    } else {
        value
    }
}

impl TwoBytes for f16 {
    const NAME: &'static str = "f16";
    const LARGEST: f32 = Self::MAX.to_f32_const();
    // Of rows below 2⁻²⁵ nothing is left. Within its normal range it is 2⁻²².
    const BOUND: f64 = 1.0;

    fn shorten(values: &[f32], bytes: &mut [[u8; 2]]) {
        let (mut finite, mut halves) = ([0.0; BLOCK], [Self::ZERO; BLOCK]);
        for (values, bytes) in values.chunks(BLOCK).zip(bytes.chunks_mut(BLOCK)) {
            let (finite, halves) = (&mut finite[..values.len()], &mut halves[..values.len()]);
            for (finite, &value) in finite.iter_mut().zip(values) {
                *finite = within(Self::LARGEST, value);
            }
            // With the processor's own instruction where it has one.
            halves.convert_from_f32_slice(finite);
            for (two, half) in bytes.iter_mut().zip(halves) {
                *two = half.to_le_bytes();
            }
        }
    }

    fn lengthen(bytes: &[[u8; 2]], values: &mut [f32]) {
        let mut halves = [Self::ZERO; BLOCK];
        for (bytes, values) in bytes.chunks(BLOCK).zip(values.chunks_mut(BLOCK)) {
            let halves = &mut halves[..values.len()];
            for (half, &two) in halves.iter_mut().zip(bytes) {
                *half = Self::from_le_bytes(two);
            }
            halves.convert_to_f32_slice(values);
        }
    }
}

impl TwoBytes for bf16 {
    const NAME: &'static str = "bf16";
    const LARGEST: f32 = Self::MAX.to_f32_const();
    // 2⁻¹⁶, of all floats but those below 2⁻¹²⁶.
    const BOUND: f64 = 1.0 / 65536.0;

    fn shorten(values: &[f32], bytes: &mut [[u8; 2]]) {
        vectorised(
            #[inline(always)]
            || {
                for (two, &value) in bytes.iter_mut().zip(values) {
                    *two = Self::from_f32(within(Self::LARGEST, value)).to_le_bytes();
                }
            },
        );
    }

    fn lengthen(bytes: &[[u8; 2]], values: &mut [f32]) {
        vectorised(
            #[inline(always)]
            || {
                for (value, &two) in values.iter_mut().zip(bytes) {
                    *value = Self::from_le_bytes(two).to_f32();
                }
            },
        );
    }
}

impl<F: TwoBytes> Codec for Short<F> {
    fn name(&self) -> String {
        F::NAME.into()
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        Bytes(2 * rows as u64 * width as u64)
    }

    fn encode(&self, rows: &Rows<'_>, _key: CodecKey) -> Vec<u8> {
        let mut bytes = vec![0; 2 * rows.values().len()];
        F::shorten(rows.values(), bytes.as_chunks_mut().0);
        bytes
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, shape, key)?;
        let [rows, width] = shape;
        let mut values = vec![0.0; rows * width];
        F::lengthen(bytes.as_chunks().0, &mut values);
        Ok(values)
    }

    fn is_biased(&self) -> bool {
        true
    }

    fn expected_error(&self, _width: usize) -> RelativeError {
        RelativeError::AtMost(F::BOUND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A row of finite floats of all magnitudes that a bfloat16 has.
    fn rows() -> impl Strategy<Value = Vec<f32>> {
        let entry = (-125..127_i32, 1.0..2.0_f32, any::<bool>());
        let entry = entry.prop_map(|(power, digits, negative)| {
            let value = digits * 2_f32.powi(power);
            if negative { -value } else { value }
        });
        proptest::collection::vec(entry, 1..6)
    }

    fn squares(values: impl Iterator<Item = f64>) -> f64 {
        values.map(|value| value * value).sum()
    }

    proptest! {
        #[test]
        fn no_row_loses_more_than_is_stated(row in rows()) {
            for codec in [Box::new(F16) as Box<dyn Codec>, Box::new(BF16)] {
                let (width, key) = (row.len(), CodecKey::new(0, 0, 0));
                let bytes = codec.encode(&Rows::new(&row, width), key);
                let decoded = codec.decode(&bytes, [1, width], key).unwrap();
                let pairs = row.iter().zip(&decoded);
                let lost = squares(pairs.map(|(x, y)| f64::from(*x) - f64::from(*y)));
                let all = squares(row.iter().map(|x| f64::from(*x)));
                let bound = codec.expected_error(width).value();
                prop_assert!(lost <= bound * all, "{}: {lost} of {all}", codec.name());
            }
        }

        #[test]
        fn in_its_normal_range_a_half_precision_float_keeps_eleven_bits(
            power in -14..15_i32, digits in 1.0..2.0_f32,
        ) {
            let (value, key) = (digits * 2_f32.powi(power), CodecKey::new(0, 0, 0));
            let bytes = F16.encode(&Rows::new(&[value], 1), key);
            let decoded = F16.decode(&bytes, [1, 1], key).unwrap()[0];
            prop_assert!((decoded - value).abs() <= value * 2_f32.powi(-11));
        }
    }
}
