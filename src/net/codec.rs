//! How rows of floats become the bytes that travel, and what is lost on the way.

use super::{Bytes, NetError};
use crate::rng::mix;

/// Rows of floats, row after row: `[rows, width]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rows<'a> {
    values: &'a [f32],
    width: usize,
}

impl<'a> Rows<'a> {
    /// Views `values` as rows of `width` floats.
    ///
    /// # Panics
    /// If the values do not fill whole rows: the caller cut a matrix wrongly.
    #[must_use]
    pub fn new(values: &'a [f32], width: usize) -> Self {
        let whole = if width == 0 {
            values.is_empty()
        } else {
            values.len().is_multiple_of(width)
        };
        assert!(whole, "{} values do not fill rows of {width}", values.len());
        Self { values, width }
    }

    /// Number of rows; none if they have no width.
    #[must_use]
    pub const fn rows(&self) -> usize {
        match self.values.len().checked_div(self.width) {
            Some(rows) => rows,
            None => 0,
        }
    }

    /// Floats in a row.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// All values, row after row.
    #[must_use]
    pub const fn values(&self) -> &'a [f32] {
        self.values
    }

    /// The rows in order; none if they have no width.
    pub fn iter(&self) -> impl Iterator<Item = &'a [f32]> + use<'a> {
        self.values.chunks_exact(self.width.max(1))
    }
}

/// What both ends know without sending it, and derive random choices from.
///
/// The way back uses the key of the way forward, and so makes the same choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodecKey {
    /// Seed of the run.
    pub seed: u64,
    /// Model layer whose input travels.
    pub layer: u32,
    /// Number of the exchange: the epoch in full-batch training.
    pub round: u64,
}

impl CodecKey {
    /// Round of the random stream that belongs to this key.
    #[must_use]
    pub const fn stream_round(&self) -> u64 {
        mix(self.layer as u64, self.round)
    }
}

/// A way to encode rows. One instance serves all messages of a run; what varies is the key.
pub trait Codec: Send + Sync {
    /// Its name in tables: kind and options.
    fn name(&self) -> String;

    /// Bytes of `rows` rows of `width` floats once encoded, known in advance: what travels and what
    /// is planned.
    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes;

    /// Encodes rows into [`Codec::encoded_bytes`] bytes.
    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8>;

    /// Decodes into `rows · width` floats, row after row.
    ///
    /// # Errors
    /// [`NetError::Corrupt`] if `bytes` cannot come from [`Codec::encode`] with this shape. Never
    /// panics on any bytes.
    fn decode(
        &self,
        bytes: &[u8],
        rows: usize,
        width: usize,
        key: CodecKey,
    ) -> Result<Vec<f32>, NetError>;

    /// Whether decoding gives back the same bits for rows of any width.
    fn is_lossless(&self) -> bool;

    /// Expected squared error E‖x̃ − x‖² / ‖x‖² over keys, of rows of `width` floats.
    fn expected_error(&self, width: usize) -> f64;
}

/// Refuses bytes of another length than the codec makes of this shape.
pub(super) fn check_length(
    codec: &dyn Codec,
    bytes: &[u8],
    rows: usize,
    width: usize,
) -> Result<(), NetError> {
    let expected = codec.encoded_bytes(rows, width);
    if bytes.len() as u64 == expected.0 {
        return Ok(());
    }
    Err(NetError::Corrupt {
        codec: codec.name(),
        reason: format!(
            "{} bytes arrived, {} were expected for {rows} rows of width {width}",
            bytes.len(),
            expected.0
        ),
    })
}

/// Floats as little-endian bytes, as all messages carry them.
#[must_use]
pub fn to_bytes(values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * 4];
    for (bytes, value) in bytes.chunks_exact_mut(4).zip(values) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// Floats from little-endian bytes; a rest of fewer than four bytes is ignored.
pub fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&four| f32::from_le_bytes(four))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_by_width() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let rows = Rows::new(&values, 3);
        assert_eq!(rows.rows(), 2);
        assert_eq!(
            rows.iter().collect::<Vec<_>>(),
            [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        );
        assert_eq!(Rows::new(&[], 0).iter().count(), 0);
    }

    #[test]
    fn layers_and_rounds_have_streams_of_their_own() {
        let round = |layer, round| {
            CodecKey {
                seed: 0,
                layer,
                round,
            }
            .stream_round()
        };
        assert_ne!(round(0, 1), round(1, 0));
        assert_ne!(round(0, 1), round(0, 2));
    }
}
