//! Floats of half the length: IEEE 754 binary16.

use half::f16;

use super::short;
use crate::net::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows};

/// Sends each entry as an IEEE 754 half-precision float, rounded to nearest.
///
/// Biased, if slightly; ‖x̃ − x‖² ≤ 2⁻²² ‖x‖² while magnitudes lie between 2⁻¹⁴ and 65504. Smaller ones are off by at
/// most 2⁻²⁵, larger ones become ±65504; what is not finite stays so.
///
/// Encoded: 2·rows·n bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct F16;

impl Codec for F16 {
    fn name(&self) -> String {
        "f16".into()
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        short::short_bytes(rows, width)
    }

    fn encode(&self, rows: &Rows<'_>, _key: CodecKey) -> Vec<u8> {
        let largest = f16::MAX.to_f32();
        short::encode(rows, |value| {
            let finite = if value.is_finite() {
                value.clamp(-largest, largest)
            } else {
                value
            };
            f16::from_f32(finite).to_le_bytes()
        })
    }

    fn decode(
        &self,
        bytes: &[u8],
        rows: usize,
        width: usize,
        _key: CodecKey,
    ) -> Result<Vec<f32>, NetError> {
        short::decode(self, bytes, rows, width, |two| {
            f16::from_le_bytes(two).to_f32()
        })
    }

    fn is_lossless(&self) -> bool {
        false
    }

    fn is_biased(&self) -> bool {
        true
    }

    fn expected_error(&self, _width: usize) -> RelativeError {
        RelativeError::AtMost(2_f64.powi(-22))
    }
}
