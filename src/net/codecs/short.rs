//! What the two 16-bit floats share.

use crate::net::codec::check_length;
use crate::net::{Bytes, Codec, NetError, Rows};

/// Two bytes a float.
pub(super) const fn short_bytes(rows: usize, width: usize) -> Bytes {
    Bytes(2 * rows as u64 * width as u64)
}

/// Rows as shorter floats.
pub(super) fn encode(rows: &Rows<'_>, shorten: impl Fn(f32) -> [u8; 2]) -> Vec<u8> {
    rows.values().iter().copied().flat_map(shorten).collect()
}

/// Shorter floats as rows.
pub(super) fn decode(
    codec: &dyn Codec,
    bytes: &[u8],
    rows: usize,
    width: usize,
    lengthen: impl Fn([u8; 2]) -> f32,
) -> Result<Vec<f32>, NetError> {
    check_length(codec, bytes, rows, width)?;
    Ok(bytes
        .as_chunks()
        .0
        .iter()
        .map(|&two| lengthen(two))
        .collect())
}
