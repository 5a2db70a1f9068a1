//! What sums of encoded values have in common.

use super::residual::Residual;
use crate::net::{Codec, CodecKey, Rows, floats};
use crate::sim::SimError;

/// Values that workers send each other encoded, and what of them one has left out.
pub(super) struct Coded {
    /// What encodes them.
    pub codec: Box<dyn Codec>,
    /// How many workers there are.
    pub workers: usize,
    /// How many values each has.
    pub len: usize,
    /// Seed of the draws.
    pub seed: u64,
    /// What was left out, for the sums that follow.
    pub residual: Residual,
}

impl Coded {
    /// Bytes of so many values.
    pub(super) fn bytes(&self, len: usize) -> usize {
        self.codec.encoded_bytes(1, len).0 as usize
    }

    /// Encodes the values from a place on, and keeps what that leaves out.
    pub(super) fn encode(
        &mut self,
        place: usize,
        values: &[f32],
        key: CodecKey,
    ) -> Result<Vec<u8>, SimError> {
        let bytes = self.codec.encode(&Rows::new(values, values.len()), key);
        let sent = self.codec.decode(&bytes, [1, values.len()], key)?;
        self.residual.keep(place, self.len, values, &sent);
        Ok(bytes)
    }

    /// Adds encoded values to as many others.
    pub(super) fn add(&self, bytes: &[u8], sum: &mut [f32], key: CodecKey) -> Result<(), SimError> {
        let decoded = self.codec.decode(bytes, [1, sum.len()], key)?;
        for (sum, value) in sum.iter_mut().zip(decoded) {
            *sum += value;
        }
        Ok(())
    }
}

/// 4-byte words that hold so many bytes.
pub(super) const fn words(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

/// Bytes as the words of a collective that copies and never computes with them.
pub(super) fn to_words(mut bytes: Vec<u8>) -> Vec<f32> {
    bytes.resize(4 * words(bytes.len()), 0);
    floats(&bytes).collect()
}
