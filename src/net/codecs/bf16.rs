//! Floats of half the length with the range of whole ones: bfloat16.

use half::bf16;

use super::short;
use crate::net::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows};

/// Sends each entry as a bfloat16: the upper half of a float, rounded to nearest.
///
/// Biased, if slightly; ‖x̃ − x‖² ≤ 2⁻¹⁶ ‖x‖² for magnitudes of at least 2⁻¹²⁶, that is, in practice. Those
/// beyond the largest bfloat16 become that; what is not finite stays so.
///
/// Encoded: 2·rows·n bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bf16;

impl Codec for Bf16 {
    fn name(&self) -> String {
        "bf16".into()
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        short::short_bytes(rows, width)
    }

    fn encode(&self, rows: &Rows<'_>, _key: CodecKey) -> Vec<u8> {
        let largest = bf16::MAX.to_f32();
        short::encode(rows, |value| {
            let finite = if value.is_finite() {
                value.clamp(-largest, largest)
            } else {
                value
            };
            bf16::from_f32(finite).to_le_bytes()
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
            bf16::from_le_bytes(two).to_f32()
        })
    }

    fn is_lossless(&self) -> bool {
        false
    }

    fn is_biased(&self) -> bool {
        true
    }

    fn expected_error(&self, _width: usize) -> RelativeError {
        RelativeError::AtMost(2_f64.powi(-16))
    }
}
