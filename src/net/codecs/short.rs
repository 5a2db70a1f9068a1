//! Floats of half the length: IEEE 754 binary16, and bfloat16 with the range of whole ones.

use std::marker::PhantomData;

use half::{bf16, f16};

use crate::net::codec::check_length;
use crate::net::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows};

/// Sends each entry as an IEEE 754 half-precision float, rounded to nearest.
///
/// Biased, if slightly; ‖x̃ − x‖² ≤ 2⁻²² ‖x‖² while magnitudes lie between 2⁻¹⁴ and 65504. Smaller ones are off by at
/// most 2⁻²⁵, larger ones become ±65504; what is not finite stays so.
///
/// Encoded: 2·rows·n bytes.
pub const F16: Short<f16> = Short(PhantomData);

/// Sends each entry as a bfloat16: the upper half of a float, rounded to nearest.
///
/// Biased, if slightly; ‖x̃ − x‖² ≤ 2⁻¹⁶ ‖x‖² for magnitudes of at least 2⁻¹²⁶, that is, in practice. Those
/// beyond the largest bfloat16 become that; what is not finite stays so.
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
    /// Bits of precision p, the leading one included: rounding to nearest errs by at most 2⁻ᵖ, relatively.
    const PRECISION: i32;

    /// The nearest one, little-endian.
    fn shorten(value: f32) -> [u8; 2];
    /// The same value as a whole float.
    fn lengthen(two: [u8; 2]) -> f32;
}

impl TwoBytes for f16 {
    const NAME: &'static str = "f16";
    const LARGEST: f32 = Self::MAX.to_f32_const();
    const PRECISION: i32 = 11;

    fn shorten(value: f32) -> [u8; 2] {
        Self::from_f32(value).to_le_bytes()
    }

    fn lengthen(two: [u8; 2]) -> f32 {
        Self::from_le_bytes(two).to_f32()
    }
}

impl TwoBytes for bf16 {
    const NAME: &'static str = "bf16";
    const LARGEST: f32 = Self::MAX.to_f32_const();
    const PRECISION: i32 = 8;

    fn shorten(value: f32) -> [u8; 2] {
        Self::from_f32(value).to_le_bytes()
    }

    fn lengthen(two: [u8; 2]) -> f32 {
        Self::from_le_bytes(two).to_f32()
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
        let shorten = |&value: &f32| {
            if value.is_finite() {
                F::shorten(value.clamp(-F::LARGEST, F::LARGEST))
            } else {
                F::shorten(value)
            }
        };
        rows.values().iter().flat_map(shorten).collect()
    }

    fn decode(
        &self,
        bytes: &[u8],
        rows: usize,
        width: usize,
        _key: CodecKey,
    ) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, rows, width)?;
        let (values, _) = bytes.as_chunks();
        Ok(values.iter().map(|&two| F::lengthen(two)).collect())
    }

    fn is_lossless(&self) -> bool {
        false
    }

    fn is_biased(&self) -> bool {
        true
    }

    fn expected_error(&self, _width: usize) -> RelativeError {
        RelativeError::AtMost(2_f64.powi(-2 * F::PRECISION))
    }
}
