//! How rows of floats become the bytes that travel, and what is lost on the way.

use std::fmt;

use super::{Bytes, CodecKey, NetError, Way};

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
    pub const fn rows(&self) -> usize {
        match self.values.len().checked_div(self.width) {
            Some(rows) => rows,
            // Without width nothing says how many there are.
            None => 0,
        }
    }

    /// Floats in a row.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// All values, row after row.
    pub const fn values(&self) -> &'a [f32] {
        self.values
    }

    /// The rows in order; none if they have no width.
    pub fn iter(&self) -> impl Iterator<Item = &'a [f32]> + use<'a> {
        // Chunks of none would be a panic; without width there are no values either.
        self.values.chunks_exact(self.width.max(1))
    }
}

/// E‖x̃ − x‖² / ‖x‖² of a row x and what is decoded of it, the mean taken over keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RelativeError {
    /// The same for every row.
    Exact(f64),
    /// That of the worst row, or more; rounding of single-precision arithmetic aside, and rows so
    /// small (below 2⁻¹²⁶) that it has no digits left for them.
    AtMost(f64),
}

impl RelativeError {
    /// The number.
    pub const fn value(self) -> f64 {
        match self {
            Self::Exact(error) | Self::AtMost(error) => error,
        }
    }
}

/// A way to encode rows. One instance serves all messages of a run; what varies is the key.
///
/// Where a selection is drawn, the gradient of a row travels back in exactly the entries that went
/// forward; where it depends on the values ([`TopK`](super::TopK)), the gradient's own entries are
/// chosen anew.
///
/// # Example
/// A codec of one's own, which sends the sign of each entry in a byte:
///
/// ```
/// use grapevine::net::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows};
///
/// struct Sign;
///
/// impl Codec for Sign {
///     fn name(&self) -> String {
///         "sign".to_owned()
///     }
///     fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
///         Bytes((rows * width) as u64)
///     }
///     fn encode(&self, rows: &Rows<'_>, _: CodecKey) -> Vec<u8> {
///         rows.values().iter().map(|value| u8::from(*value >= 0.0)).collect()
///     }
///     fn decode(
///         &self,
///         bytes: &[u8],
///         [rows, width]: [usize; 2],
///         _: CodecKey,
///     ) -> Result<Vec<f32>, NetError> {
///         if bytes.len() != rows * width {
///             return Err(NetError::Corrupt { codec: self.name(), reason: "length".to_owned() });
///         }
///         Ok(bytes.iter().map(|sign| f32::from(*sign) * 2.0 - 1.0).collect())
///     }
///     fn is_biased(&self) -> bool {
///         true
///     }
///     fn expected_error(&self, _: usize) -> RelativeError {
///         RelativeError::AtMost(f64::INFINITY)
///     }
/// }
///
/// let key = CodecKey::new(0, 1, 5); // seed, layer, round
/// let sent = Sign.encode(&Rows::new(&[0.3, -2.0, 0.0, 1.5], 2), key);
/// assert_eq!(sent.len() as u64, Sign.encoded_bytes(2, 2).0);
/// assert_eq!(Sign.decode(&sent, [2, 2], key)?, [1.0, -1.0, 1.0, 1.0]);
/// # Ok::<(), NetError>(())
/// ```
pub trait Codec: Send + Sync {
    /// Its name in tables: kind and options.
    fn name(&self) -> String;

    /// Bytes of `rows` rows of `width` floats once encoded, known in advance: what travels and what
    /// is planned.
    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes;

    /// Bytes of one message. Default: [`Codec::encoded_bytes`], which it never exceeds; another
    /// number where that depends on which message it is.
    fn message_bytes(&self, rows: usize, width: usize, _key: CodecKey) -> Bytes {
        self.encoded_bytes(rows, width)
    }

    /// Encodes rows into [`Codec::message_bytes`] bytes.
    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8>;

    /// Decodes into rows of the shape `[rows, width]`, row after row.
    ///
    /// # Errors
    /// [`NetError::Corrupt`] if `bytes` cannot come from [`Codec::encode`] with this shape. Never
    /// panics on any bytes.
    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError>;

    /// Copies of the rows that go this way which sender and receiver keep from round to round, for
    /// what a worker is said to hold. Default: none.
    fn remembers(&self, _way: Way) -> [usize; 2] {
        [0, 0]
    }

    /// Whether decoding gives back the same bits for rows of any width. Default: not.
    fn is_lossless(&self) -> bool {
        false
    }

    /// Whether E\[x̃\] = x fails for some row x of some width, the mean taken over keys; rounding
    /// of single-precision arithmetic aside.
    fn is_biased(&self) -> bool;

    /// Expected error of rows of `width` floats.
    fn expected_error(&self, width: usize) -> RelativeError;
}

impl fmt::Debug for dyn Codec + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Refuses bytes of another length than the codec makes of this message.
pub(crate) fn check_length(
    codec: &dyn Codec,
    bytes: &[u8],
    [rows, width]: [usize; 2],
    key: CodecKey,
) -> Result<(), NetError> {
    let (found, expected) = (bytes.len(), codec.message_bytes(rows, width, key).0);
    if found as u64 == expected {
        return Ok(());
    }
    let reason =
        format!("{found} bytes arrived, {expected} were expected for {rows} rows of width {width}");
    Err(corrupt(codec, reason))
}

/// The error of bytes that the codec cannot have made.
pub(super) fn corrupt(codec: &dyn Codec, reason: String) -> NetError {
    NetError::Corrupt {
        codec: codec.name(),
        reason,
    }
}

/// Floats as little-endian bytes, as all messages carry them.
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
}
