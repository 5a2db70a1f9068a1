//! Floats as they are.

use crate::net::codec::{check_length, floats, to_bytes};
use crate::net::{Bytes, Codec, CodecKey, NetError, Rows, f32_bytes};

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

    fn decode(
        &self,
        bytes: &[u8],
        rows: usize,
        width: usize,
        _key: CodecKey,
    ) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, rows, width)?;
        Ok(floats(bytes).collect())
    }

    fn is_lossless(&self) -> bool {
        true
    }

    fn expected_error(&self, _width: usize) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: CodecKey = CodecKey {
        seed: 0,
        layer: 0,
        round: 0,
    };

    proptest! {
        #[test]
        fn every_bit_comes_back(bits in prop::collection::vec(any::<u32>(), 0..60)) {
            let values: Vec<f32> = bits.iter().map(|&bits| f32::from_bits(bits)).collect();
            let bytes = Identity.encode(&Rows::new(&values, 1), KEY);
            prop_assert_eq!(bytes.len() as u64, Identity.encoded_bytes(values.len(), 1).0);
            let back = Identity.decode(&bytes, values.len(), 1, KEY).unwrap();
            let back: Vec<u32> = back.into_iter().map(f32::to_bits).collect();
            prop_assert_eq!(back, bits);
        }

        #[test]
        fn bytes_of_another_length_are_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..60), rows in 0..5_usize, width in 0..5_usize,
        ) {
            let decoded = Identity.decode(&bytes, rows, width, KEY);
            prop_assert_eq!(decoded.is_ok(), bytes.len() == rows * width * 4);
        }
    }
}
