//! Floats as they are.

use crate::net::codec::{check_length, floats, to_bytes};
use crate::net::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows, f32_bytes};

/// Sends every float as its four little-endian bytes: nothing is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity;

impl Codec for Identity {
    fn name(&self) -> String {
        "identity".into()
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        f32_bytes(rows) * width as u64
    }

    fn encode(&self, rows: &Rows<'_>, _key: CodecKey) -> Vec<u8> {
        to_bytes(rows.values())
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, shape, key)?;
        Ok(floats(bytes).collect())
    }

    fn is_lossless(&self) -> bool {
        true
    }

    fn is_biased(&self) -> bool {
        false
    }

    fn expected_error(&self, _width: usize) -> RelativeError {
        RelativeError::Exact(0.0)
    }
}
